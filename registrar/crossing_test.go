package registrar

import (
	"testing"

	"github.com/stele-id/stele"
)

// crossed returns a registry with ark:12345, which is sealed, and ark:99999, which is offered to the same heir: a record of it has an alias in ark:12345.
func crossed(t *testing.T) (f *fixture, busy *busyStore, key, other stele.NamespaceKey) {
	t.Helper()
	f = newFixture(t)
	busy = &busyStore{Store: f.store}
	f.store = busy
	f.start()
	key, other = f.space("ark:12345/"), f.space("ark:99999/", owner("ana"))
	f.space("urn:example")
	rec := f.record("ark:99999/f", "https://example.org/f")
	rec.Aliases = []stele.ID{f.id("ark:12345/h")}
	must(f.Register(f.admin, rec))(t)
	for _, k := range []stele.NamespaceKey{key, other} {
		must(f.OfferNamespace(f.admin, k, testHeir, testAddress))(t)
	}
	return f, busy, key, other
}

// A seal may count on an offer. So the offer is neither taken back nor given to another registry while the seal holds.
func TestOfferKept(t *testing.T) {
	f, _, key, other := crossed(t)
	must(f.OfferNamespace(f.admin, other, "third.example.org/.log", testAddress))(t)
	must(f.CancelHandOver(f.admin, other, false))(t) // nothing is sealed
	must(f.OfferNamespace(f.admin, other, testHeir, testAddress))(t)
	must(f.SealNamespace(f.admin, key))(t)
	f.space("ark:99999/f") // which takes the record over, and is not offered
	kept := func() {
		t.Helper()
		for _, sealed := range []bool{false, true} {
			_, err := f.CancelHandOver(f.admin, other, sealed)
			want(t, err, stele.Conflict, "1 aliases of records in ark:99999", "sealed for "+testHeir, "ark:12345/h of ark:99999/f")
		}
		_, err := f.OfferNamespace(f.admin, other, "third.example.org/.log", testAddress)
		want(t, err, stele.Conflict, "ark:12345/h of ark:99999/f")
		_, err = f.OfferNamespace(f.admin, other, testHeir, "https://elsewhere.example.org/")
		want(t, err, stele.Conflict, "ark:12345/h of ark:99999/f")
		if ns := must(f.Namespace(f.admin, other))(t); ns.HandOver.State != stele.Offered || ns.HandOver.Heir != testHeir || ns.HandOver.Address != testAddress {
			t.Errorf("the hand-over is %+v", ns.HandOver)
		}
	}
	kept()
	must(f.OfferNamespace(f.admin, other, testHeir, testAddress))(t) // which changes nothing
	must(f.ForwardNamespace(f.admin, key))(t)
	kept()
	must(f.CancelHandOver(f.admin, key, true))(t)
	must(f.CancelHandOver(f.admin, other, false))(t)
}

// An offer that has no such alias is taken back at any time, and one that got it while the records were read is not.
func TestOfferKeptMeanwhile(t *testing.T) {
	f, busy, key, other := crossed(t)
	free := f.space("ark:55555/")
	must(f.OfferNamespace(f.admin, free, testHeir, testAddress))(t)
	third := f.space("ark:77777/")
	must(f.OfferNamespace(f.admin, third, testHeir, testAddress))(t)
	must(f.SealNamespace(f.admin, third))(t)
	must(f.CancelHandOver(f.admin, free, false))(t)
	busy.prefix, busy.write = "ark:99999", func() { must(f.SealNamespace(f.admin, key))(t) }
	_, err := f.CancelHandOver(f.admin, other, false)
	want(t, err, stele.Conflict, "ark:12345/h of ark:99999/f")
	if busy.write != nil {
		t.Error("the records were not read")
	}
}

// A bundle of a namespace that was handed over has all records with aliases there.
func TestBundleInward(t *testing.T) {
	f, _, key, other := crossed(t)
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Owner = "bruno"; return nil }))(t)
	before := must(f.Bundling(f.admin, key))(t)
	must(f.SealNamespace(f.admin, key))(t)
	_, err := f.Bundling(f.admin, key)
	want(t, err, stele.Conflict, "1 aliases", "with ark:99999, too", "ark:12345/h of ark:99999/f")
	if _, err = f.Bundling(as("bruno"), key); err == nil || stele.KindOf(err) != stele.Conflict {
		t.Errorf("the owner of the aliases: %v", err)
	}
	want(t, before.Carries(f.admin, []*stele.Namespace{must(f.Namespace(f.admin, key))(t)}), stele.Conflict, "ark:12345/h")
	must(f.Bundling(f.admin, key, other))(t)
	must(f.Bundling(f.admin))(t)
	must(f.Bundling(f.admin, other))(t) // of which nothing is sealed
	must(f.ForwardNamespace(f.admin, key))(t)
	_, err = f.Bundling(f.admin, key)
	want(t, err, stele.Conflict, "ark:12345/h")
}
