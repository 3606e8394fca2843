package dnsd

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonesign"
)

// serials know the present serial of each zone, so that it can be put into an answer
// that was packed before the last change. Zones have numbers that never change.
type serials struct {
	from source

	mu     sync.Mutex
	number map[string]uint16
	list   atomic.Pointer[[]*serial] // by number; 0 is not a zone
}

// serial is the serial of a zone at the time of a change: both in one word, so that
// they always belong together.
type serial struct {
	apex string
	word atomic.Uint64 // count of changes, its lower half; and the serial
	seal atomic.Pointer[soaSignature]
}

func newSerials(from source) *serials {
	s := &serials{from: from, number: make(map[string]uint16)}
	s.list.Store(&[]*serial{nil})
	return s
}

const maxZones = 1<<16 - 1

// numberOf returns a zone's number, or 0 if there are too many.
func (s *serials) numberOf(apex string) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.number[apex]; ok {
		return n
	}
	list := *s.list.Load()
	if len(list) > maxZones {
		return 0
	}
	n := uint16(len(list))
	// A word that no change has makes the first reader fetch the serial.
	z := &serial{apex: apex}
	z.word.Store(uint64(^uint32(s.from.Changed())) << 32)
	list = append(list[:n:n], z)
	s.list.Store(&list)
	s.number[apex] = n
	return n
}

// now returns the present serial of a zone, or ok = false if it can't be told.
func (s *serials) now(ctx context.Context, number uint16) (_ uint32, ok bool) {
	list := *s.list.Load()
	if number == 0 || int(number) >= len(list) {
		return 0, false
	}
	z := list[number]
	changes := uint32(s.from.Changed())
	if word := z.word.Load(); uint32(word>>32) == changes {
		return uint32(word), true
	}
	at, err := s.from.find(ctx, z.apex)
	if err != nil || at == nil {
		return 0, false
	}
	soa, _ := at.Apex()
	z.word.Store(uint64(changes)<<32 | uint64(soa.Serial))
	return soa.Serial, true
}

// soaSignature is the serial of a zone and the signatures of the SOA record with it. Answers
// that were packed before the last change get both whenever they are sent; so a change
// costs one signature for each zone that is asked for, however many answers there are.
type soaSignature struct {
	signer  *zonesign.Signer
	changes uint32 // of the source when it was made
	serial  uint32
	made    time.Time
	data    [][]byte // of the RRSIG records
}

// soaSignInterval bounds how often the SOA record of a zone is signed. In a burst of
// changes, the serial in signed answers lags by so much.
const soaSignInterval = 50 * time.Millisecond

// newSOASignature signs the SOA record of a zone.
func newSOASignature(s *zonesign.Signer, soa *dns.SOA, changes uint32, now time.Time) (*soaSignature, error) {
	signatures, err := s.Sign([]dns.RR{soa})
	if err != nil {
		return nil, err
	}
	made := &soaSignature{signer: s, changes: changes, serial: soa.Serial, made: now}
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
// right after, each with this in front: a name that is a compression pointer, type, class,
// TTL and length.
const (
	soaTail    = 20
	rrsigFront = 2 + 10
)

// stamp puts serial and signatures into an answer, whose serial is at a place. It
// reports false if they have no place there.
func (s *soaSignature) stamp(body []byte, serial int) bool {
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

// soaSignature returns the serial and the signatures of a zone, or ok = false if it has none.
func (s *serials) soaSignature(ctx context.Context, number uint16, now time.Time) (_ *soaSignature, ok bool) {
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
	if err != nil || at == nil || at.Signer() == nil {
		return nil, false
	}
	if have.isFresh(now) && have.signer == at.Signer() && now.Sub(have.made).Abs() < soaSignInterval {
		return have, true
	}
	soa, _ := at.Apex()
	if have.isFresh(now) && have.signer == at.Signer() && have.serial == soa.Serial {
		// Another zone has changed.
		next := *have
		next.changes = changes
		z.seal.Store(&next)
		return &next, true
	}
	made, err := newSOASignature(at.Signer(), soa, changes, now)
	if err != nil {
		return nil, false
	}
	z.seal.Store(made)
	return made, true
}

// isFresh reports whether the signatures are valid for long enough.
func (s *soaSignature) isFresh(now time.Time) bool {
	if s == nil {
		return false
	}
	age := now.Sub(s.made)
	return age > -zonesign.SignatureEarly/2 && age < zonesign.SignatureFresh // or the clock was wrong when it was made
}
