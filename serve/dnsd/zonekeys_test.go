package dnsd

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestKeys takes a zone through its first key and a roll, as a person would.
func TestKeys(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.zones.now = func() time.Time { return now }
	p.zones.signing = func(ns *stele.Namespace) signing {
		if ns.Publication.Zone == "paradisec.example." {
			return signTransfer
		}
		return unsigned
	}
	keys := &Keys{Store: p.registrar, Zones: p.zones, Now: p.zones.now, Random: rand.Reader}
	const zone = "Paradisec.example"
	first, err := keys.Begin(p.ctx, zone, AlgorithmECDSA, false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := keys.Begin(p.ctx, zone, AlgorithmEd25519, true); err != nil || len(again.Keys) != 1 || again.Keys[0].ID != first.Keys[0].ID {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if k := first.Keys[0]; !k.Private.IsZero() || k.State() != KeyActive || len(first.DS) != 2 || len(first.Steps) != 0 {
		t.Errorf("%+v", first)
	}
	rolled, err := keys.Roll(p.ctx, zone, RoleCSK)
	if err != nil || len(rolled.Keys) != 2 || len(rolled.DS) != 4 || len(rolled.Steps) != 1 {
		t.Fatalf("%+v, %v", rolled, err)
	}
	// The TTL of keys is an hour, and secondaries ask each hour.
	if from := rolled.Steps[0].From; from != now.Add(time.Hour+spreadSecondary) || !rolled.Steps[0].Parent {
		t.Errorf("%+v", rolled.Steps)
	}
	if _, err := keys.Next(p.ctx, zone, RoleCSK, 0, true, false); !errors.Is(err, stele.Conflict) {
		t.Errorf("too soon: %v", err)
	}
	now = rolled.Steps[0].From
	if _, err := keys.Next(p.ctx, zone, RoleCSK, 0, false, false); !errors.Is(err, stele.Conflict) {
		t.Errorf("before the parent has it: %v", err)
	}
	if _, err := keys.Next(p.ctx, zone, RoleCSK, 0, true, false); err != nil {
		t.Fatal(err)
	}
	status, err := keys.Status(p.ctx, zone, 48*time.Hour)
	if err != nil || len(status.Steps) != 1 || status.Steps[0].From != now.Add(48*time.Hour+spreadSecondary) {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := keys.Status(p.ctx, "none.example", 0); !errors.Is(err, stele.NotFound) {
		t.Errorf("no zone: %v", err)
	}
}

// TestRefreshAll makes signatures anew when their time has come, and the serial grows
// then.
func TestRefreshAll(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.zones.now = func() time.Time { return now }
	p.zones.signing = func(*stele.Namespace) signing { return signTransfer }
	keys := &Keys{Store: p.registrar, Zones: p.zones, Now: p.zones.now, Random: rand.Reader}
	if _, err := keys.Begin(p.ctx, "paradisec.example.", AlgorithmEd25519, false); err != nil {
		t.Fatal(err)
	}
	_, first := p.exportSigned("paradisec.example.")
	for _, test := range []struct {
		after time.Duration
		anew  bool
	}{{time.Hour, false}, {signaturesAnew - 2*time.Hour, false}, {time.Hour, true}, {time.Hour, false}, {-48 * time.Hour, false}} {
		now = now.Add(test.after)
		if err := keys.RefreshAll(p.ctx); err != nil {
			t.Fatal(err)
		}
		_, text := p.exportSigned("paradisec.example.")
		if anew := text != first; anew != test.anew {
			t.Errorf("after %v: made anew %v", test.after, anew)
		}
		first = text
	}
	before := first
	if _, err := keys.Refresh(p.ctx, "paradisec.example."); err != nil {
		t.Fatal(err)
	}
	if _, text := p.exportSigned("paradisec.example."); text != before {
		t.Error("the time of signatures went back")
	}
}
