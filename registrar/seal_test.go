package registrar

import (
	"context"
	"iter"
	"testing"

	"github.com/stele-id/stele"
)

// An alias of a record that stays here would have two owners: nothing is sealed as long as there is one.
func TestSealInward(t *testing.T) {
	f := newFixture(t)
	key, below, other := f.space("ark:12345/"), f.space("ark:12345/x5"), f.space("ark:99999/")
	rec := f.record("ark:99999/f", "https://example.org/f")
	rec.Aliases = []stele.ID{f.id("ark:12345/x5g"), f.id("ark:12345/h")}
	must(f.Register(f.admin, rec))(t)
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	refused := func(count string) {
		t.Helper()
		_, err := f.SealNamespace(f.admin, key)
		want(t, err, stele.Conflict, count+" aliases in ark:12345", "ark:12345/x5g of ark:99999/f", "Offer the namespaces of these records")
		for _, k := range []stele.NamespaceKey{key, below} {
			if ns := must(f.Namespace(f.admin, k))(t); ns.HandOver.State != stele.Offered {
				t.Errorf("%s is %q", k, ns.HandOver.State)
			}
		}
	}
	refused("2")
	must(f.OfferNamespace(f.admin, other, "third.example.org/.log", testAddress))(t)
	refused("2")
	_, err := f.SealNamespace(as("ana"), key)
	want(t, err, stele.Forbidden)
	must(f.OfferNamespace(f.admin, other, testHeir, testAddress))(t)
	if p := must(f.PlanSeal(f.admin, key, nil))(t); p.Inward.Count != 0 {
		t.Errorf("the plan has %+v", p.Inward)
	}
	must(f.SealNamespace(f.admin, key))(t)
}

// busyStore is a store in which something is written as soon as records were read.
type busyStore struct {
	stele.Store
	prefix string // with which records were read
	write  func()
}

func (s *busyStore) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		s.Store.Scan(ctx, scheme, prefix, after)(yield)
		if write := s.write; write != nil && scheme == "ark" && prefix == s.prefix {
			s.write = nil
			write()
		}
	}
}

// An alias that is added while the records are read is found after the seal, which is undone.
func TestSealInwardMeanwhile(t *testing.T) {
	f := newFixture(t)
	busy := &busyStore{Store: f.store}
	f.store = busy
	f.start()
	key := f.space("ark:12345/")
	f.space("ark:99999/")
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	busy.write = func() {
		rec := f.record("ark:99999/f", "https://example.org/f")
		rec.Aliases = []stele.ID{f.id("ark:12345/g")}
		must(f.Register(f.admin, rec))(t)
	}
	_, err := f.SealNamespace(f.admin, key)
	want(t, err, stele.Conflict, "1 aliases in ark:12345")
	if ns := must(f.Namespace(f.admin, key))(t); ns.HandOver.State != stele.Offered || ns.HandOver.Heir != testHeir {
		t.Errorf("the hand-over is %+v", ns.HandOver)
	}
	f.registered("ark:12345/goes-on")
	busy.write = func() { f.registered("ark:99999/other") } // which concerns no alias
	must(f.Update(f.admin, f.id("ark:12345/goes-on"), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "x"}; return nil }))(t)
	must(f.OfferNamespace(f.admin, f.key("ark:99999/"), testHeir, testAddress))(t)
	must(f.SealNamespace(f.admin, key))(t)
}

// A caller that goes away during the look after the seal does not end it: the seal is undone.
func TestSealInwardAlone(t *testing.T) {
	f := newFixture(t)
	busy := &busyStore{Store: f.store}
	f.store = busy
	f.start()
	key := f.space("ark:12345/")
	f.space("ark:99999/")
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	ctx, cancel := context.WithCancel(f.admin)
	busy.write = func() {
		rec := f.record("ark:99999/f", "https://example.org/f")
		rec.Aliases = []stele.ID{f.id("ark:12345/g")}
		must(f.Register(f.admin, rec))(t)
		busy.write = cancel
	}
	_, err := f.SealNamespace(ctx, key)
	want(t, err, stele.Conflict, "1 aliases in ark:12345")
	if ns := must(f.Namespace(f.admin, key))(t); ctx.Err() == nil || ns.HandOver.State != stele.Offered {
		t.Errorf("the hand-over is %+v", ns.HandOver)
	}
}

// A namespace that is sealed although an alias in it would stay here, since the process was killed after the seal, is found as soon as it is sealed again. It stays sealed.
func TestSealInwardAgain(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/")
	f.space("ark:99999/")
	rec := f.record("ark:99999/f", "https://example.org/f")
	rec.Aliases = []stele.ID{f.id("ark:12345/g")}
	must(f.Register(f.admin, rec))(t)
	must(f.OfferNamespace(f.admin, key, testHeir, testAddress))(t)
	before := must(f.store.Namespace(f.admin, key))(t)
	next := cloneNamespace(before)
	next.HandOver.State = stele.Sealed
	f.stampNamespace(f.admin, before, next)
	if err := f.store.Apply(f.admin, &stele.Commit{Namespaces: []*stele.Namespace{next}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(f.admin); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := f.SealNamespace(f.admin, key)
		want(t, err, stele.Conflict, "ark:12345/g of ark:99999/f")
		if ns := must(f.Namespace(f.admin, key))(t); ns.HandOver.State != stele.Sealed {
			t.Errorf("the hand-over is %+v", ns.HandOver)
		}
	}
	must(f.ForwardNamespace(f.admin, key))(t)
	must(f.SealNamespace(f.admin, key))(t) // which the heir answers for
}
