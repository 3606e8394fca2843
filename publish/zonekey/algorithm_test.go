package zonekey

import (
	"crypto/rand"
	"testing"
	"time"
)

// TestChangeAlgorithm takes a zone to another algorithm: no step goes before its time, and
// the old keys stay until no cache has their DS records, however late the parent removes
// them.
func TestChangeAlgorithm(t *testing.T) {
	for _, split := range []bool{false, true} {
		now := time.Unix(1_700_000_000, 0)
		r := written(t, newRing(t, "z.example.", ECDSA, split, now))
		if err := r.ChangeAlgorithm(Ed25519, now, rand.Reader); err != nil {
			t.Fatal(err)
		}
		pass := func(wait time.Duration, atParent bool, to State) {
			t.Helper()
			now = now.Add(wait - time.Second)
			notYet(t, r, "", now, true)
			now = now.Add(time.Second)
			if step, err := r.Next("", keyTimes, now, atParent, false); err != nil || step.To != to {
				t.Fatal(step, err)
			}
			r = written(t, r)
		}
		pass(2*time.Hour+time.Minute, false, Published)
		notYet(t, r, "", now.Add(time.Hour+time.Minute), false)
		pass(time.Hour+time.Minute, true, Active)

		now = now.Add(72 * time.Hour) // until the parent has removed the old ones
		notYet(t, r, "", now, false)
		step, err := r.Next("", keyTimes, now, true, false)
		if err != nil || !step.Parent || !step.From.Equal(now.Add(24*time.Hour+time.Minute)) {
			t.Fatal(step, err)
		}
		r = written(t, r)
		if old, _ := r.sides(); old[0].State() != Retired {
			t.Errorf("the parent has just removed its DS record, and the old key is %s", old[0].State())
		}
		notYet(t, r, "", step.From, false)
		pass(24*time.Hour+time.Minute, true, Leaving)
		pass(time.Hour+time.Minute, false, Removed)
		for _, k := range r.Current() {
			if k.Algorithm != Ed25519 || k.State() != Active {
				t.Errorf("%s of the algorithm %d is %s", k.Role, k.Algorithm, k.State())
			}
		}
	}
}
