package minting_test

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
)

// TestAdvanceMinters puts a registry in the place of another, and repeats no name of it.
func TestAdvanceMinters(t *testing.T) {
	old, f := newFixture(t), newFixture(t)
	for _, f := range []*fixture{old, f} {
		f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		f.space("ark:12345/x5", minter(noid(".sdddd")))
	}
	f.space("ark:12345/y5", minter(noid(".sdddd")))
	key := f.key("ark:12345/x5")
	later := old.space("ark:12345/z5", minter(noid(".sdddd")))
	old.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
	old.jump(time.Hour)
	must(old.Mint(old.admin, key, 100))(t)
	must(old.Mint(old.admin, later, 5))(t)
	must(old.Mint(old.admin, old.key("sid.inpe.br/mtc-m18"), 1))(t)
	must(old.Mint(old.admin, old.key("102.100.272/"), 1))(t)
	given := must(old.MinterStatus(old.admin, key))(t).Given
	must(f.Mint(f.admin, f.key("ark:12345/y5"), 3))(t)

	want(t, f.AdvanceMinters(as("ann"), old.store.MinterStates(old.admin)), stele.Forbidden)
	for range 2 { // calling it twice does no harm
		if err := f.AdvanceMinters(f.admin, old.store.MinterStates(old.admin)); err != nil {
			t.Fatal(err)
		}
	}
	if s := must(f.MinterStatus(f.admin, key))(t); s.Given != given || !s.Shut {
		t.Errorf("%+v, want %d names given, and shut", s, given)
	}
	must(f.Mint(f.admin, f.key("ark:12345/y5"), 3))(t)
	_, err := f.Mint(f.admin, f.key("sid.inpe.br/mtc-m18"), 1)
	want(t, err, stele.Unavailable, "behind")
	// What only the old one knew is known when it is made again.
	f.space("ark:12345/z5", minter(noid(".sdddd")))
	_, err = f.Mint(f.admin, later, 1)
	want(t, err, stele.Conflict, "skip it ahead")
	f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
	_, err = f.Mint(f.admin, f.key("102.100.272/"), 1)
	want(t, err, stele.Unavailable, "behind")
	if got := f.problems(); got != nil {
		t.Errorf("problems: %q", got)
	}
}

// TestShutTemplate takes over a namespace whose names another registry gives.
func TestShutTemplate(t *testing.T) {
	f := newFixture(t)
	key := f.key("ark:12345/x5")
	want(t, f.ShutTemplate(as("ann"), key, noid(".sdddd"), minting.Progress{}), stele.Forbidden)
	for range 2 {
		if err := f.ShutTemplate(f.admin, key, noid(".sdddd"), minting.Progress{}); err != nil {
			t.Fatal(err)
		}
	}
	f.space("ark:12345/x5", minter(noid(".sdddd")))
	_, err := f.Mint(f.admin, key, 1)
	want(t, err, stele.Conflict, "skip it ahead")
	if err := f.SkipCounter(f.admin, key, 70); err != nil {
		t.Fatal(err)
	}
	labels := must(f.Mint(f.admin, key, 1))(t)
	if got := labels[0].ID.String(); got != "ark:12345/x50070" {
		t.Errorf("the first name is %s", got)
	}
	// One that is in use can be shut, too.
	if err := f.ShutTemplate(f.admin, key, noid(".sdddd"), minting.Progress{}); err != nil {
		t.Fatal(err)
	}
	_, err = f.Mint(f.admin, key, 1)
	want(t, err, stele.Conflict, "skip it ahead")
	f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
	want(t, f.ShutTemplate(f.admin, f.key("102.100.272/"), noid(".sd"), minting.Progress{}), stele.Conflict, "dates")
}
