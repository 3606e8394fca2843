package dnsd

import (
	"encoding/binary"
	"math/bits"
)

// sipKey is a key of SipHash: 128 bits as two little-endian words.
type sipKey struct{ k0, k1 uint64 }

func newSipKey(b [16]byte) sipKey {
	return sipKey{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// sipHash is SipHash-2-4 (Aumasson and Bernstein, 2012), which RFC 9018 prescribes
// for cookies and the standard library keeps to itself.
func sipHash(k sipKey, msg []byte) uint64 {
	v := [4]uint64{k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d, k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573}
	last := uint64(len(msg)) << 56
	for ; len(msg) >= 8; msg = msg[8:] {
		sipBlock(&v, binary.LittleEndian.Uint64(msg))
	}
	for i, b := range msg {
		last |= uint64(b) << (8 * i)
	}
	sipBlock(&v, last)
	v[2] ^= 0xFF
	for range 4 {
		sipRound(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipBlock(v *[4]uint64, m uint64) {
	v[3] ^= m
	sipRound(v)
	sipRound(v)
	v[0] ^= m
}

func sipRound(v *[4]uint64) {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}
