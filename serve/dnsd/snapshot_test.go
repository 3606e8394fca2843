package dnsd

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
)

// replicated is a store with a copy that lags, which is read while the store is away.
type replicated struct {
	stele.Store
	copied stele.Store

	mu    sync.Mutex
	away  bool
	since time.Time // it went
	when  func(call string)
}

// lose has a copy read.
func (s *replicated) lose(copied stele.Store) {
	s.away, s.copied, s.since = true, copied, s.since.Add(time.Second)
}

// mute is a store that does not tell when it lags.
type mute struct{ stele.Store }

// of returns what is read for a call.
func (s *replicated) of(call string) stele.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.when != nil {
		s.when(call)
	}
	if s.away {
		return s.copied
	}
	return s.Store
}

// on has something done before each call.
func (s *replicated) on(do func(call string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.when, s.away = do, false
}

func (s *replicated) Lagging() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.away
}

func (s *replicated) LastChange(ctx context.Context) (uint64, error) {
	return s.of("last").LastChange(ctx)
}

func (s *replicated) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return s.of("changes").Changes(ctx, after)
}

func (s *replicated) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return s.of("namespaces").Namespaces(ctx)
}

func (s *replicated) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	return s.of("record").Record(ctx, name)
}

func (s *replicated) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return s.of("history").History(ctx, id)
}

func (s *replicated) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for r, err := range s.of("scan").Scan(ctx, scheme, prefix, after) {
			if !yield(r, err) {
				return
			}
		}
		s.of("scanned")
	}
}

// TestTransferFromACopy loses the store while a zone is sent: a transfer that may have
// something older than its serial says is never ended as if it were whole.
func TestTransferFromACopy(t *testing.T) {
	const zone = "z.example."
	fill := func(names ...string) *press {
		p := newPress(t)
		p.publish("urn:example", zone, ":", 2) // where case counts
		p.secondaries("urn:example", everybody)
		for _, name := range names {
			p.register("urn:example:q:"+name, "N2L https://example.org/old")
		}
		return p
	}
	p, behind, empty := fill("a", "b", "B", "c"), fill("a", "b", "B", "c").store, fill().store
	both := &replicated{Store: p.store}
	p.zones.store = both
	s := p.serve(Options{})
	first, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := ends(t, first)
	if _, err := p.registrar.Update(p.ctx, p.id("urn:example:q:b"), 0, func(r *stele.Record) error {
		r.Targets = []stele.Target{target("N2L https://example.org/new")}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	now, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		lost   string // with which call
		back   string
		copied stele.Store
		mute   bool
		serial uint32 // that the secondary has
	}{
		"whole, as it begins":       {lost: "namespaces", copied: behind},
		"whole":                     {lost: "scan", copied: behind},
		"whole, nobody tells":       {lost: "scan", copied: behind, mute: true},
		"whole, an empty copy":      {lost: "scan", copied: empty, mute: true},
		"whole, for a moment":       {lost: "scan", back: "last", copied: behind},
		"difference, as it begins":  {lost: "namespaces", copied: behind, serial: begin},
		"difference":                {lost: "record", copied: behind, serial: begin},
		"difference, nobody tells":  {lost: "record", copied: behind, mute: true, serial: begin},
		"difference, an empty copy": {lost: "scan", copied: empty, mute: true, serial: begin},
		"difference, for a moment":  {lost: "record", back: "last", copied: behind, serial: begin},
	} {
		t.Run(name, func(t *testing.T) {
			if p.zones.store = both; test.mute {
				p.zones.store = mute{both}
			}
			gone := false
			both.on(func(call string) {
				switch {
				case call == test.lost && !gone:
					gone = true
					both.lose(test.copied)
				case call == test.back:
					both.away = false
				}
			})
			list, _, err := take(s, zone, test.serial, nil)
			both.on(nil)
			if err == nil || !gone {
				t.Errorf("the store was lost: %v; the secondary has\n%v", gone, list)
			}
			list, _, err = take(s, zone, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(t, now), lines(t, list)); diff != "" || ends(t, list) != ends(t, now) {
				t.Errorf("when it asks again (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeltaOfACopy asks for a delta while only a copy can be read: the chain may
// know more, so it is of no use, and the zone is sent whole.
func TestDeltaOfACopy(t *testing.T) {
	const zone = "z.example."
	p := newPress(t)
	p.publish("urn:paradisec", zone, ":", 1)
	p.secondaries("urn:paradisec", everybody)
	p.signed(zonesign.Transfer, zone)
	both := &replicated{Store: p.store}
	p.zones.store = both
	s := p.serve(Options{})
	whole, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.register("urn:paradisec:a", "N2L https://example.org/")
	for _, away := range []bool{false, true} {
		if away {
			both.mu.Lock()
			both.lose(p.store)
			both.mu.Unlock()
		}
		list, _, err := take(s, zone, ends(t, whole), nil)
		if err != nil {
			t.Fatal(err)
		}
		if sent := list[1].Header().Rrtype != dns.TypeSOA; sent != away {
			t.Errorf("away %v: sent whole %v", away, sent)
		}
	}
}

// TestDeltaDoesNotBlock registers names each time that the store is read for a
// delta: neither waits for the other, and the delta is complete.
func TestDeltaDoesNotBlock(t *testing.T) {
	const zone = "z.example."
	p := newPress(t)
	p.publish("urn:example", zone, ":", 2)
	p.secondaries("urn:example", everybody)
	p.signed(zonesign.Transfer, zone)
	both := &replicated{Store: p.store}
	p.zones.store = both
	s := p.serve(Options{})
	whole, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	serial, copied := ends(t, whole), lines(t, whole)
	links := p.zones.nsec3Chains[zone].chain
	for round := range 5 {
		p.register(fmt.Sprintf("urn:example:first:%d", round), "N2L https://example.org/")
		n, busy := 0, false
		both.on(func(string) {
			if busy || !p.zones.applied.mu.TryLock() {
				return // only writers need that lock, and they wait for the store anyway
			}
			p.zones.applied.mu.Unlock()
			// If the chain were held while the store is read, the record below could never
			// be registered.
			if links.Watches() == 0 && n == 2 || n == 6 {
				return
			}
			n++
			busy = true
			both.mu.Unlock() // register reads, too
			p.register(fmt.Sprintf("urn:example:p%d:n%d", round, n), "N2L https://example.org/")
			both.mu.Lock()
			busy = false
		})
		list, _, err := take(s, zone, serial, nil)
		both.on(nil)
		if err != nil {
			t.Fatal(err)
		}
		serial = apply(t, copied, list, serial)
		if n < 3 {
			t.Errorf("round %d: nothing changed while the links were compared", round)
		}
	}
	list, _, err := take(s, zone, serial, nil)
	if err != nil {
		t.Fatal(err)
	}
	serial = apply(t, copied, list, serial)
	if whole, _, err = take(s, zone, 0, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(t, whole), copied); diff != "" || ends(t, whole) != serial {
		t.Errorf("(-zone +copy):\n%s", diff)
	}
	if n := links.Watches(); n > 0 {
		t.Errorf("%d watches of the chain go on", n)
	}
}

// TestAppliedForgets has records noted once more after they were met in the feed, as its
// follower does: they are not kept, and no record that is not met yet is forgotten.
func TestAppliedForgets(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 1)
	var a applied
	if _, err := a.begin(p.ctx, p.store); err != nil {
		t.Fatal(err)
	}
	look := func(want uint64) {
		t.Helper()
		if got, err := a.look(p.ctx, p.store); err != nil || got != want {
			t.Fatalf("known up to %d, %v; want %d", got, err, want)
		}
	}
	last := a.upTo
	var missing *stele.Record
	for i := range 200 {
		r := p.register(fmt.Sprintf("urn:paradisec:n%d", i), "N2L https://example.org/")
		switch {
		case missing == nil: // its writer is slower than that of the next one
			missing = r
			look(last)
			continue
		case i%2 == 1:
			a.note(r)
			look(last)
			a.note(missing)
		}
		last += 2
		look(last)
		for _, again := range []*stele.Record{missing, r} { // by the follower
			a.note(again)
		}
		missing = nil
		if n := len(a.done) + len(a.older); n > 4 {
			t.Fatalf("%d records are kept", n)
		}
	}
	slow := p.register("urn:paradisec:slow", "N2L https://example.org/")
	for i := range 5 {
		a.note(p.register(fmt.Sprintf("urn:paradisec:m%d", i), "N2L https://example.org/"))
		look(last) // until that one is known, none of those after it may be forgotten
	}
	a.note(slow)
	for range 2 {
		look(last + 6)
	}
	if n := len(a.done) + len(a.older); n > 0 {
		t.Errorf("%d records are kept for ever", n)
	}
}
