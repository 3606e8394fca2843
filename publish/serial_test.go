package publish_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
)

// serialStore is a store whose serials are read late, or not at all.
type serialStore struct {
	publish.Store
	mu     sync.Mutex
	before func(context.Context) error
}

func (s *serialStore) set(before func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *serialStore) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return func(yield func(stele.ZoneState, error) bool) { yield(stele.ZoneState{}, err) }
		}
	}
	return s.Store.ZoneStates(ctx)
}

const serialZone = "paradisec.example."

// newSerialRegistry makes a registry whose serials a test holds up.
func newSerialRegistry(t *testing.T) (*publishtest.Registry, *serialStore) {
	t.Helper()
	store := new(serialStore)
	p := publishtest.New(t, func(o *publish.ZonesOptions) { store.Store, o.Store = o.Store, store })
	p.Publish("urn:paradisec", serialZone, ":", 3)
	return p, store
}

// askSerial returns the serial that an answer has.
func askSerial(t *testing.T, p *publishtest.Registry) uint32 {
	t.Helper()
	zone, err := p.Zones.Zone(t.Context(), serialZone)
	if err != nil {
		t.Fatal(err)
	}
	soa, _ := zone.Apex()
	return soa.Serial
}

// TestSerialsTogether has two answers need the serial of a zone after a change, as a notice
// and a query do: the second one waits for the first, and none has the serial from before.
func TestSerialsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := newSerialRegistry(t)
		before := askSerial(t, p)
		p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Mailbox = "someone@example.org" })
		held := make(chan struct{})
		store.set(func(context.Context) error { <-held; return nil })
		got := make(chan uint32, 2)
		for range 2 {
			go func() { got <- askSerial(t, p) }()
			synctest.Wait()
		}
		store.set(nil)
		close(held)
		for range 2 {
			if serial := <-got; !stele.SerialAfter(serial, before) {
				t.Errorf("an answer after the change has serial %d, and it was %d before", serial, before)
			}
		}
		p.Zones.Close()
	})
}

// TestSerialsLate has a store fail after a change. Answers have the serial from before, since
// nothing else can be read. When the store answers again, that counts as a change, so that
// no cache keeps the old serial and secondaries are told.
func TestSerialsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, store := newSerialRegistry(t)
		before := askSerial(t, p)
		store.set(func(ctx context.Context) error { <-ctx.Done(); return errors.New("the store is away") })
		p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Mailbox = "someone@example.org" })
		for range 3 {
			if serial := askSerial(t, p); serial != before {
				t.Errorf("serial %d could not be read", serial)
			}
		}
		changes := p.Zones.Changed()
		p.TakeTold()
		time.Sleep(time.Minute)
		if n := p.Zones.Changed(); n != changes {
			t.Errorf("%d changes before the store answers", n-changes)
		}
		store.set(nil)
		time.Sleep(time.Minute)
		if n := p.Zones.Changed(); n != changes+1 {
			t.Errorf("%d changes after the store answers", n-changes)
		}
		if told := p.TakeTold(); len(told) != 1 || told[0] != nil {
			t.Errorf("told of %q", told)
		}
		if serial := askSerial(t, p); !stele.SerialAfter(serial, before) {
			t.Errorf("the serial is %d, and was %d before", serial, before)
		}
		p.Zones.Close()
	})
}
