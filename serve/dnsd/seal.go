package dnsd

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/miekg/dns"
)

// seal is the serial of a zone and the signatures of the SOA record with it. Answers
// that were packed before the last change get both whenever they are sent; so a change
// costs one signature for each zone that is asked for, however many answers there are.
type seal struct {
	signer  *signer
	changes uint32 // of the source when it was made
	serial  uint32
	made    time.Time
	data    [][]byte // of the RRSIG records
}

// sealEvery is how often a seal is made anew at most. In a burst of changes, the serial
// in signed answers is behind by so much.
const sealEvery = 50 * time.Millisecond

// newSeal signs the SOA record of a zone.
func newSeal(s *signer, soa *dns.SOA, changes uint32, now time.Time) (*seal, error) {
	signatures, err := s.sign([]dns.RR{soa})
	if err != nil {
		return nil, err
	}
	made := &seal{signer: s, changes: changes, serial: soa.Serial, made: now}
	for _, rr := range signatures {
		buf := make([]byte, dns.Len(rr)+1)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			return nil, err
		}
		r, end := readRecord(buf[:n], 0)
		if end == 0 {
			return nil, dns.ErrBuf
		}
		made.data = append(made.data, r.data)
	}
	return made, nil
}

// soaTail is the size of what follows an SOA record's serial in it; the signatures come
// right behind, each with this in front: a name that is a compression pointer, type,
// class, TTL and length.
const (
	soaTail    = 20
	rrsigFront = 2 + 10
)

// stamp puts serial and signatures into an answer, whose serial is at a place. It
// reports false if they have no place there.
func (s *seal) stamp(body []byte, serial int) bool {
	at := serial + soaTail
	for _, data := range s.data {
		at += rrsigFront
		if len(body) < at+len(data) || int(binary.BigEndian.Uint16(body[at-2:])) != len(data) {
			return false // it was packed when the zone had other keys
		}
		copy(body[at:], data)
		at += len(data)
	}
	binary.BigEndian.PutUint32(body[serial:], s.serial)
	return true
}

// sealed returns the seal of a zone, or ok = false if there is none.
func (s *serials) sealed(ctx context.Context, number uint16, now time.Time) (_ *seal, ok bool) {
	list := *s.list.Load()
	if number == 0 || int(number) >= len(list) {
		return nil, false
	}
	z := list[number]
	changes := uint32(s.from.Changed())
	have := z.seal.Load()
	if have.isFresh(now) && have.changes == changes {
		return have, true
	}
	at, err := s.from.find(ctx, z.apex)
	if err != nil || at == nil || at.signer() == nil {
		return nil, false
	}
	if have.isFresh(now) && have.signer == at.signer() && now.Sub(have.made).Abs() < sealEvery {
		return have, true
	}
	soa, _ := at.apex()
	if have.isFresh(now) && have.signer == at.signer() && have.serial == soa.Serial {
		// Another zone has changed.
		next := *have
		next.changes = changes
		z.seal.Store(&next)
		return &next, true
	}
	made, err := newSeal(at.signer(), soa, changes, now)
	if err != nil {
		return nil, false
	}
	z.seal.Store(made)
	return made, true
}

// isFresh reports whether the signatures of a seal are good for long enough.
func (s *seal) isFresh(now time.Time) bool {
	if s == nil {
		return false
	}
	age := now.Sub(s.made)
	return age > -signatureEarly/2 && age < signatureFresh // or the clock was wrong when it was made
}
