package dnsd

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"time"
)

// Sizes of a cookie's two halves (RFC 7873, section 4; RFC 9018, section 4).
const (
	clientCookieSize = 8
	serverCookieSize = 16
	cookieSize       = clientCookieSize + serverCookieSize
)

// How long a server cookie is good (RFC 9018, section 4.3), and how often secrets of
// our own change (RFC 7873, section 7.1, asks for 26 hours at most).
const (
	cookieLife   = time.Hour
	cookieRenew  = 30 * time.Minute
	cookieAhead  = 5 * time.Minute
	cookieSecret = 24 * time.Hour
)

// CookieSecret is a key of which server cookies are made.
type CookieSecret [16]byte

// jar makes and judges server cookies.
type jar struct {
	keys  atomic.Pointer[cookieKeys]
	fixed bool // the keys were given, and stay
}

// cookieKeys are the keys in use: the first makes cookies, all of them are believed.
type cookieKeys struct {
	keys  []sipKey
	since time.Time
}

// newJar makes a jar with given secrets, or with one of its own that changes daily.
func newJar(secrets []CookieSecret, now time.Time) *jar {
	j := &jar{fixed: len(secrets) > 0}
	k := &cookieKeys{since: now}
	for _, s := range secrets {
		k.keys = append(k.keys, newSipKey(s))
	}
	if !j.fixed {
		k.keys = []sipKey{randomKey()}
	}
	j.keys.Store(k)
	return j
}

func randomKey() sipKey {
	var b [16]byte
	rand.Read(b[:]) // it never fails
	return newSipKey(b)
}

// current returns the present keys. The key before the current one is still accepted.
func (j *jar) current(now time.Time) []sipKey {
	k := j.keys.Load()
	if j.fixed || now.Sub(k.since) < cookieSecret {
		return k.keys
	}
	next := &cookieKeys{keys: []sipKey{randomKey(), k.keys[0]}, since: now}
	if j.keys.CompareAndSwap(k, next) {
		return next.keys
	}
	return j.keys.Load().keys
}

// answer appends the cookie that a client gets for the one it sent, and reports
// whether that one was good: whether the client is where it says it is.
func (j *jar) answer(dst, sent []byte, from netip.Addr, now time.Time) (_ []byte, good bool) {
	keys := j.current(now)
	if len(sent) == cookieSize {
		made := int64(binary.BigEndian.Uint32(sent[12:]))
		// The time is a serial number (RFC 1982): it goes round in 2106.
		age := time.Duration(int32(uint32(now.Unix())-uint32(made))) * time.Second
		if sent[8] == 1 && age <= cookieLife && age >= -cookieAhead {
			for _, k := range keys {
				if !genuine(k, sent, from) {
					continue
				}
				if age < cookieRenew {
					return append(dst, sent...), true
				}
				good = true
				break
			}
		}
	}
	dst = append(dst, sent[:clientCookieSize]...)
	dst = append(dst, 1, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(now.Unix()))
	made := dst[len(dst)-clientCookieSize-8:]
	return binary.LittleEndian.AppendUint64(dst, cookieHash(keys[0], made, from)), good
}

// genuine reports whether a cookie was made with a key for an address.
func genuine(k sipKey, cookie []byte, from netip.Addr) bool {
	var want [8]byte
	binary.LittleEndian.PutUint64(want[:], cookieHash(k, cookie[:16], from))
	return subtle.ConstantTimeCompare(want[:], cookie[16:]) == 1
}

// cookieHash is RFC 9018, section 4.4, over the client cookie, version, reserved bytes
// and time, which begins holds in this order.
func cookieHash(k sipKey, begins []byte, from netip.Addr) uint64 {
	var buf [32]byte
	n := copy(buf[:], begins[:16])
	if from.Is4() {
		a := from.As4()
		n += copy(buf[n:], a[:])
	} else {
		a := from.As16()
		n += copy(buf[n:], a[:])
	}
	return sipHash(k, buf[:n])
}

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
