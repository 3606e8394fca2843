package dnsd

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestChangeAlgorithm takes a zone to another algorithm: no step goes before its time, and
// the old keys stay until nobody has their DS records, however late the parent removes
// them.
func TestChangeAlgorithm(t *testing.T) {
	for _, split := range []bool{false, true} {
		now := time.Unix(1_700_000_000, 0)
		r := written(t, newRing(t, "z.example.", AlgorithmECDSA, split, now))
		if err := r.ChangeAlgorithm(AlgorithmEd25519, now, rand.Reader); err != nil {
			t.Fatal(err)
		}
		pass := func(wait time.Duration, atParent bool, to KeyState) {
			t.Helper()
			now = now.Add(wait - time.Second)
			notYet(t, r, "", now, true)
			now = now.Add(time.Second)
			if step, err := r.Next("", keyTimes, now, atParent, false); err != nil || step.To != to {
				t.Fatal(step, err)
			}
			r = written(t, r)
		}
		pass(2*time.Hour+time.Minute, false, KeyPublished)
		notYet(t, r, "", now.Add(time.Hour+time.Minute), false)
		pass(time.Hour+time.Minute, true, KeyActive)

		now = now.Add(72 * time.Hour) // until the parent has removed the old ones
		notYet(t, r, "", now, false)
		step, err := r.Next("", keyTimes, now, true, false)
		if err != nil || !step.Parent || !step.From.Equal(now.Add(24*time.Hour+time.Minute)) {
			t.Fatal(step, err)
		}
		r = written(t, r)
		if old, _ := r.sides(); old[0].State() != KeyRetired {
			t.Errorf("the parent has just removed its DS record, and the old key is %s", old[0].State())
		}
		notYet(t, r, "", step.From, false)
		pass(24*time.Hour+time.Minute, true, KeyLeaving)
		pass(time.Hour+time.Minute, false, KeyRemoved)
		for _, k := range r.inZone() {
			if k.Algorithm != AlgorithmEd25519 || k.State() != KeyActive {
				t.Errorf("%s of the algorithm %d is %s", k.Role, k.Algorithm, k.State())
			}
		}
	}
}

// TestUnsign has a zone go without signatures: the wait counts from when its parent was
// said to have no DS records, and that is kept.
func TestUnsign(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.zones.now = func() time.Time { return now }
	p.zones.signing = func(*stele.Namespace) signing { return signOnline }
	keys := &Keys{Store: p.registrar, Zones: p.zones, Now: p.zones.now, Random: rand.Reader}
	const zone, wait = "paradisec.example.", defaultParentTTL + spreadShared
	unsign := func(atParent, wantDone bool, from time.Time) {
		t.Helper()
		status, done, err := keys.Unsign(p.ctx, zone, 0, atParent, false)
		if err != nil || done != wantDone || !status.Unsigned.Equal(from) || status.IsUnsigning() == done {
			t.Fatalf("%+v, %v, %v", status, done, err)
		}
	}
	for range 2 { // it begins anew when the zone is signed again
		if status, err := keys.Begin(p.ctx, zone, AlgorithmECDSA, false); err != nil || status.IsUnsigning() {
			t.Fatal(status, err)
		}
		unsign(false, false, time.Time{})
		now = now.Add(72 * time.Hour) // until the parent has removed them
		unsign(false, false, time.Time{})
		unsign(true, false, now.Add(wait))
		from := now.Add(wait)
		for _, early := range []time.Duration{wait, time.Second} {
			now = from.Add(-early)
			if _, _, err := keys.Unsign(p.ctx, zone, 0, true, false); !errors.Is(err, stele.Conflict) {
				t.Errorf("%v too soon: %v", early, err)
			}
		}
		unsign(false, false, from)
		now = from
		unsign(true, true, from)
	}
}

// A parent in the same registry has no DS records as soon as they are not wanted, so nobody
// has to say so.
func TestOwnParent(t *testing.T) {
	p := newPress(t)
	p.paradisec()
	p.publish("urn:inner", "inner.paradisec.example.", ":", 1)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p.zones.now = func() time.Time { return now }
	p.zones.signing = func(*stele.Namespace) signing { return signOnline }
	keys := &Keys{Store: p.registrar, Zones: p.zones, Now: p.zones.now, Random: rand.Reader}
	const zone, wait = "inner.paradisec.example.", DefaultTTL*time.Second + spreadShared
	if _, err := keys.Begin(p.ctx, zone, AlgorithmECDSA, false); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.ChangeAlgorithm(p.ctx, zone, AlgorithmEd25519); err != nil {
		t.Fatal(err)
	}
	for _, to := range []KeyState{KeyPublished, KeyActive, KeyLeaving, KeyRemoved} {
		status, err := keys.Status(p.ctx, zone, 0)
		if err != nil || len(status.Steps) != 1 || status.Steps[0].To != to || status.Steps[0].Parent || !status.Steps[0].From.Equal(now.Add(wait)) {
			t.Fatalf("before %s: %+v, %v", to, status, err)
		}
		now = status.Steps[0].From
		if _, err := keys.Next(p.ctx, zone, "", 0, false, false); err != nil {
			t.Fatal(err)
		}
	}
	status, done, err := keys.Unsign(p.ctx, zone, 0, false, false)
	if err != nil || done || !status.Unsigned.Equal(now.Add(wait)) {
		t.Fatalf("%+v, %v, %v", status, done, err)
	}
	now = status.Unsigned
	if _, done, err := keys.Unsign(p.ctx, zone, 0, false, false); err != nil || !done {
		t.Errorf("%v, %v", done, err)
	}
}
