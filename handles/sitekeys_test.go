package handles

import (
	"context"
	"crypto/rand"
	"net/netip"
	"slices"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/wire/hdl"
)

// TestStaleSite: a site that the record of a prefix has from before rolls of the key is known as ours: it is replaced, and does not
// stay beside the present one.
func TestStaleSite(t *testing.T) {
	f := newFixture(t)
	_, public, err := NewAdminKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := Setup{Prefix: "20.500.1", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, Random: rand.Reader, AdminKey: public}
	if _, err := f.SetUp(f.admin, o); err != nil {
		t.Fatal(err)
	}
	other := text(7, "HS_SITE", string((&hdl.Site{Version: hdl.Latest(), Servers: []hdl.Server{{ID: 1, Key: public}}}).Append(nil)))
	old := append(slices.Clone(f.find("0.NA/20.500.1").Values), other)
	restore := func() { // as it was before the rolls
		t.Helper()
		if _, err := f.r.Update(f.admin, f.id("0.NA/20.500.1"), 0, func(rec *stele.Record) error { rec.Values = slices.Clone(old); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, site *hdl.Site) {
		t.Helper()
		var own, others int
		for _, v := range f.find("0.NA/20.500.1").Values {
			switch {
			case v.Type != "HS_SITE":
			case string(v.Data) == string(site.Append(nil)):
				own++
			case string(v.Data) == string(other.Data):
				others++
			default:
				t.Errorf("%s: a stale site is at index %d", what, v.Index)
			}
		}
		if own != 1 || others != 1 {
			t.Errorf("%s: the record has the site %d times, and that of others %d times", what, own, others)
		}
	}
	// A cell of an earlier version of the program has no list of keys.
	if _, err := f.r.SetHandleSite(f.admin, func(kept *registrar.HandleSite) error { kept.Keys = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.RollSite(f.admin, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	made, err := f.SetUp(f.admin, o)
	if err != nil {
		t.Fatal(err)
	}
	check("set up after a restore", &made.Site)
	restore()
	site, err := f.RollSite(f.admin, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	check("a roll after a restore", site)

	// The client of a roll goes away once the key is replaced.
	ctx, cancel := context.WithCancel(f.admin)
	defer cancel()
	f.store.onSite = cancel
	if site, err = f.RollSite(ctx, rand.Reader); err != nil || ctx.Err() == nil {
		t.Fatalf("%v, and the client is %v", err, ctx.Err())
	}
	check("a roll whose client has left", site)
}
