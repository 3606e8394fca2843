package zonesign

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

// WireSet is a set of records, of one name, type and TTL, as it is on the wire, in canonical form
// (RFC 4034, section 6.2).
type WireSet struct {
	Name  string // of the owner, in lower case
	Owner []byte // the same on the wire, not compressed
	Type  uint16
	TTL   uint32
	Data  [][]byte // of the records; AppendRRSIGs sorts them

	message []byte // that is signed
}

// AppendRRSIGs appends the signatures of a set of records as Sign makes them, with a pointer to
// their owner at the beginning of each, and returns how many there are. It does nothing but to
// sign: an answer that was not asked for before waits for it.
func (s *Signer) AppendRRSIGs(to []byte, owner uint16, set *WireSet) (_ []byte, n int, err error) {
	slices.SortFunc(set.Data, bytes.Compare)
	keys := s.keysFor(set.Type)
	from, until := s.times(set.Name, set.Type)
	for i := range keys {
		key := &keys[i]
		to = binary.BigEndian.AppendUint16(to, 0xC000|owner)
		to = binary.BigEndian.AppendUint16(to, dns.TypeRRSIG)
		to = binary.BigEndian.AppendUint16(to, dns.ClassINET)
		to = binary.BigEndian.AppendUint32(to, set.TTL)
		to = append(to, 0, 0)
		begin := len(to)
		to = binary.BigEndian.AppendUint16(to, set.Type)
		to = append(to, key.algorithm, uint8(dns.CountLabel(set.Name)))
		to = binary.BigEndian.AppendUint32(to, set.TTL)
		to = binary.BigEndian.AppendUint32(to, uint32(until.Unix()))
		to = binary.BigEndian.AppendUint32(to, uint32(from.Unix()))
		to = binary.BigEndian.AppendUint16(to, key.tag)
		to = append(to, s.zoneWire...)
		set.fill(to[begin:])
		if to, err = key.appendSignature(to, set.message); err != nil {
			return to, 0, stele.Messagef("zone.records-not-signable", `the {type} records of "{name}" can't be signed: {cause}`, dns.TypeToString[set.Type], set.Name, err)
		}
		binary.BigEndian.PutUint16(to[begin-2:], uint16(len(to)-begin))
	}
	return to, len(keys), nil
}

// fill makes the message that is signed (RFC 4034, section 3.1.8.1): the data of the signature
// without itself, and the records, which are sorted.
func (set *WireSet) fill(head []byte) {
	m := append(set.message[:0], head...)
	for i, data := range set.Data {
		if i > 0 && bytes.Equal(data, set.Data[i-1]) {
			continue // no record stands there twice (section 6.3)
		}
		m = append(m, set.Owner...)
		m = binary.BigEndian.AppendUint16(m, set.Type)
		m = binary.BigEndian.AppendUint16(m, dns.ClassINET)
		m = binary.BigEndian.AppendUint32(m, set.TTL)
		m = binary.BigEndian.AppendUint16(m, uint16(len(data)))
		m = append(m, data...)
	}
	set.message = m
}

// appendSignature signs a message as the algorithms of zones have it (RFC 6605, section 4; RFC
// 8080, section 4).
func (k *signingKey) appendSignature(to, message []byte) ([]byte, error) {
	if k.algorithm != zonekey.ECDSA {
		signature, err := k.signer.Sign(nil, message, crypto.Hash(0))
		return append(to, signature...), err
	}
	digest := sha256.Sum256(message)
	signature, err := k.signer.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return to, err
	}
	r, s, ok := splitSignature(signature)
	if !ok {
		return to, dns.ErrSig
	}
	to = append(to, make([]byte, signatureSize)...)
	end := len(to)
	copy(to[end-signatureSize/2-len(r):], r)
	copy(to[end-len(s):], s)
	return to, nil
}

// splitSignature returns the two numbers of an ECDSA signature, without zeros before them: a SEQUENCE
// of two INTEGERs (RFC 3279, section 2.2.3), none of which has more than 33 bytes. The reader of the
// standard library takes a tenth of the time of the signature itself.
func splitSignature(der []byte) (r, s []byte, ok bool) {
	if len(der) < 2 || der[0] != 0x30 || int(der[1]) != len(der)-2 {
		return nil, nil, false
	}
	r, rest, ok := cutInteger(der[2:])
	if !ok {
		return nil, nil, false
	}
	s, rest, ok = cutInteger(rest)
	return r, s, ok && len(rest) == 0
}

// cutInteger returns a number with which a text begins, and what follows.
func cutInteger(der []byte) (number, rest []byte, ok bool) {
	if len(der) < 2 || der[0] != 0x02 || int(der[1]) > len(der)-2 {
		return nil, nil, false
	}
	end := 2 + int(der[1])
	number = bytes.TrimLeft(der[2:end], "\x00")
	return number, der[end:], len(number) > 0 && len(number) <= signatureSize/2
}

// packZone returns the name of a zone on the wire, in lower case.
func packZone(name string) ([]byte, error) {
	wire := make([]byte, len(name)+1)
	n, err := dns.PackDomainName(strings.ToLower(name), wire, 0, nil, false)
	return wire[:n], err
}

// spreadOf is a number that is always the same for a name and type.
func spreadOf(name string, rtype uint16) uint32 {
	var buf [300]byte
	text := strconv.AppendUint(append(append(buf[:0], name...), ' '), uint64(rtype), 10)
	h := fnv.New32a()
	_, _ = h.Write(text) // never fails
	return h.Sum32()
}
