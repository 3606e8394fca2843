package publish_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestKeys takes a zone through its first key and a roll, as a person would.
func TestKeys(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.SetClock(func() time.Time { return now })
	p.SetSigning(func(ns *stele.Namespace) zonesign.Mode {
		if ns.Publication.Zone == "paradisec.example." {
			return zonesign.Transfer
		}
		return zonesign.Unsigned
	})
	keys := &zonekey.Manager{Store: p.Registrar, Zones: p.Zones, Now: p.Now, Random: rand.Reader}
	const zone = "Paradisec.example"
	first, err := keys.Begin(p.Ctx, zone, zonekey.ECDSA, false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := keys.Begin(p.Ctx, zone, zonekey.Ed25519, true); err != nil || len(again.Keys) != 1 || again.Keys[0].Tag != first.Keys[0].Tag {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if k := first.Keys[0]; k.State != zonekey.Active || len(first.DS) != 2 || len(first.Steps) != 0 {
		t.Errorf("%+v", first)
	}
	rolled, err := keys.Roll(p.Ctx, zone, zonekey.CSK)
	if err != nil || len(rolled.Keys) != 2 || len(rolled.DS) != 4 || len(rolled.Steps) != 1 {
		t.Fatalf("%+v, %v", rolled, err)
	}
	// The TTL of keys is an hour, and secondaries ask each hour.
	if from := rolled.Steps[0].From; from != now.Add(time.Hour+publish.SpreadSecondary) || !rolled.Steps[0].Parent {
		t.Errorf("%+v", rolled.Steps)
	}
	if _, err := keys.Next(p.Ctx, zone, zonekey.CSK, 0, true, false); !errors.Is(err, stele.Conflict) {
		t.Errorf("too soon: %v", err)
	}
	now = rolled.Steps[0].From
	if _, err := keys.Next(p.Ctx, zone, zonekey.CSK, 0, false, false); !errors.Is(err, stele.Conflict) {
		t.Errorf("before the parent has it: %v", err)
	}
	if _, err := keys.Next(p.Ctx, zone, zonekey.CSK, 0, true, false); err != nil {
		t.Fatal(err)
	}
	status, err := keys.Status(p.Ctx, zone, 48*time.Hour)
	if err != nil || len(status.Steps) != 1 || status.Steps[0].From != now.Add(48*time.Hour+publish.SpreadSecondary) {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := keys.Status(p.Ctx, "none.example", 0); !errors.Is(err, stele.NotFound) {
		t.Errorf("no zone: %v", err)
	}
}

// TestRefreshAll makes signatures anew when their time has come, and the serial grows
// then.
func TestRefreshAll(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.SetClock(func() time.Time { return now })
	p.SetSigning(func(*stele.Namespace) zonesign.Mode { return zonesign.Transfer })
	keys := &zonekey.Manager{Store: p.Registrar, Zones: p.Zones, Now: p.Now, Random: rand.Reader}
	if _, err := keys.Begin(p.Ctx, "paradisec.example.", zonekey.Ed25519, false); err != nil {
		t.Fatal(err)
	}
	_, first := exportSigned(p, "paradisec.example.")
	for _, test := range []struct {
		after time.Duration
		anew  bool
	}{{time.Hour, false}, {7*24*time.Hour - 2*time.Hour, false}, {time.Hour, true}, {time.Hour, false}, {-48 * time.Hour, false}} {
		now = now.Add(test.after)
		if err := keys.RefreshAll(p.Ctx); err != nil {
			t.Fatal(err)
		}
		_, text := exportSigned(p, "paradisec.example.")
		if anew := text != first; anew != test.anew {
			t.Errorf("after %v: made anew %v", test.after, anew)
		}
		first = text
	}
	before := first
	if _, err := keys.Refresh(p.Ctx, "paradisec.example."); err != nil {
		t.Fatal(err)
	}
	if _, text := exportSigned(p, "paradisec.example."); text != before {
		t.Error("the time of signatures went back")
	}
}

// TestUnsign has a zone go without signatures: the wait counts from when its parent was
// said to have no DS records, and that is kept.
func TestUnsign(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.SetClock(func() time.Time { return now })
	p.SetSigning(func(*stele.Namespace) zonesign.Mode { return zonesign.Online })
	keys := &zonekey.Manager{Store: p.Registrar, Zones: p.Zones, Now: p.Now, Random: rand.Reader}
	const zone, wait = "paradisec.example.", publish.DefaultParentTTL + publish.SpreadShared
	unsign := func(atParent, wantDone bool, from time.Time) {
		t.Helper()
		status, done, err := keys.Unsign(p.Ctx, zone, 0, atParent, false)
		if err != nil || done != wantDone || !status.Unsigned.Equal(from) || status.IsUnsigning() == done {
			t.Fatalf("%+v, %v, %v", status, done, err)
		}
	}
	for range 2 { // it begins anew when the zone is signed again
		if status, err := keys.Begin(p.Ctx, zone, zonekey.ECDSA, false); err != nil || status.IsUnsigning() {
			t.Fatal(status, err)
		}
		unsign(false, false, time.Time{})
		now = now.Add(72 * time.Hour) // until the parent has removed them
		unsign(false, false, time.Time{})
		unsign(true, false, now.Add(wait))
		from := now.Add(wait)
		for _, early := range []time.Duration{wait, time.Second} {
			now = from.Add(-early)
			if _, _, err := keys.Unsign(p.Ctx, zone, 0, true, false); !errors.Is(err, stele.Conflict) {
				t.Errorf("%v too soon: %v", early, err)
			}
		}
		unsign(false, false, from)
		now = from
		unsign(true, true, from)
	}
}

// TestOwnParent checks that the owner does not have to say that the parent has no DS
// records: a parent in the same registry has none as soon as they are not wanted.
func TestOwnParent(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Publish("urn:inner", "inner.paradisec.example.", ":", 1)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.SetClock(func() time.Time { return now })
	p.SetSigning(func(*stele.Namespace) zonesign.Mode { return zonesign.Online })
	keys := &zonekey.Manager{Store: p.Registrar, Zones: p.Zones, Now: p.Now, Random: rand.Reader}
	const zone, wait = "inner.paradisec.example.", publish.DefaultTTL*time.Second + publish.SpreadShared
	if _, err := keys.Begin(p.Ctx, zone, zonekey.ECDSA, false); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.ChangeAlgorithm(p.Ctx, zone, zonekey.Ed25519); err != nil {
		t.Fatal(err)
	}
	for _, to := range []zonekey.State{zonekey.Published, zonekey.Active, zonekey.Leaving, zonekey.Removed} {
		status, err := keys.Status(p.Ctx, zone, 0)
		if err != nil || len(status.Steps) != 1 || status.Steps[0].To != to || status.Steps[0].Parent || !status.Steps[0].From.Equal(now.Add(wait)) {
			t.Fatalf("before %s: %+v, %v", to, status, err)
		}
		now = status.Steps[0].From
		if _, err := keys.Next(p.Ctx, zone, "", 0, false, false); err != nil {
			t.Fatal(err)
		}
	}
	status, done, err := keys.Unsign(p.Ctx, zone, 0, false, false)
	if err != nil || done || !status.Unsigned.Equal(now.Add(wait)) {
		t.Fatalf("%+v, %v, %v", status, done, err)
	}
	now = status.Unsigned
	if _, done, err := keys.Unsign(p.Ctx, zone, 0, false, false); err != nil || !done {
		t.Errorf("%v, %v", done, err)
	}
}
