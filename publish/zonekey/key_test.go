package zonekey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// testSecretKey encrypts private keys in tests.
const testSecretKey = "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// newRing makes the keys of a zone.
func newRing(t testing.TB, zone string, algorithm uint8, split bool, now time.Time) *Ring {
	t.Helper()
	r, err := ReadRing(zone, nil)
	if err == nil {
		err = r.Begin(algorithm, split, now, rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written returns a ring as it comes back from the cells that it was written to.
func written(t *testing.T, r *Ring) *Ring {
	t.Helper()
	key, err := secret.ParseKey(testSecretKey)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := r.Changes(func(place string, v *secret.Value) error {
		_, err := v.Seal(key, place)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cells := make(map[string][]byte)
	for id, value := range r.held {
		cells[CellPrefix+r.Zone+" "+id] = value
	}
	for _, c := range changes {
		if string(cells[c.Name]) != string(c.Before) {
			t.Errorf("%s was not %q before", c.Name, c.Before)
		}
		cells[c.Name] = c.After
	}
	list := []stele.Cell{{Name: CellPrefix + "other.example. 00001", Value: []byte("{")}}
	for name, value := range cells {
		list = append(list, stele.Cell{Name: name, Value: value})
	}
	back, err := ReadRing(r.Zone, list)
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(place string, _ *secret.Value) error { return fmt.Errorf("%s was written in clear", place) }
	if again, err := back.Changes(sealed); err != nil || len(again) != 0 {
		t.Errorf("what was read is not what was written: %v, %v", again, err)
	}
	if err := back.Open(secret.NewRing(secret.Text{Keep: testSecretKey, Name: "the test"})); err != nil {
		t.Fatal(err)
	}
	return back
}

var keyTimes = Times{Keys: time.Hour, Zone: 2 * time.Hour, Parent: 24 * time.Hour, Spread: time.Minute}

// TestRoll takes each kind of key through a roll: no step goes before its time.
func TestRoll(t *testing.T) {
	for _, test := range []struct {
		role   Role
		remove time.Duration // how long the old key stays
	}{
		{CSK, 24*time.Hour + time.Minute},
		{KSK, 24*time.Hour + time.Minute},
		{ZSK, 2*time.Hour + time.Minute},
	} {
		t.Run(string(test.role), func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			r := written(t, newRing(t, "z.example.", ECDSA, test.role != CSK, now))
			old := r.Keys[0]
			for _, k := range r.Keys {
				if k.Role == test.role {
					old = k
				}
			}
			notYet(t, r, test.role, now, true)
			if _, err := r.Roll(test.role, now, rand.Reader); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Roll(test.role, now, rand.Reader); !errors.Is(err, stele.Conflict) {
				t.Errorf("a second roll: %v", err)
			}
			r = written(t, r)
			now = now.Add(time.Hour + time.Minute - time.Second)
			notYet(t, r, test.role, now, true)
			now = now.Add(time.Second)
			if test.role != ZSK {
				notYet(t, r, test.role, now, false)
			}
			if step, err := r.Next(test.role, keyTimes, now, true, false); err != nil || step.To != Active {
				t.Fatal(step, err)
			}
			r = written(t, r)
			now = now.Add(test.remove - time.Second)
			notYet(t, r, test.role, now, true)
			now = now.Add(time.Second)
			if step, err := r.Next(test.role, keyTimes, now, false, false); err != nil || step.To != Removed || step.Key != old.ID {
				t.Fatal(step, err)
			}
			r = written(t, r)
			i := slices.IndexFunc(r.Keys, func(k *PrivateKey) bool { return k.ID == old.ID })
			if k := r.Keys[i]; k.State() != Removed || !k.Private.IsZero() {
				t.Errorf("the old key: %s, with %v", k.State(), k.Private)
			}
			notYet(t, r, test.role, now, true)
		})
	}
}

// notYet makes sure that the next step is.
func notYet(t *testing.T, r *Ring, role Role, now time.Time, atParent bool) {
	t.Helper()
	if step, err := r.Next(role, keyTimes, now, atParent, false); !errors.Is(err, stele.Conflict) {
		t.Errorf("the step was taken: %v, %v", step, err)
	}
}

func TestForcedRoll(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newRing(t, "z.example.", Ed25519, false, now)
	if _, err := r.Roll(CSK, now, rand.Reader); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(CSK, keyTimes, now, false, true); err != nil {
			t.Fatal(err)
		}
	}
	if keys := r.Current(); len(keys) != 1 || keys[0].State() != Active {
		t.Errorf("%v", keys)
	}
}

func TestRollOfNoKey(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	one := newRing(t, "z.example.", ECDSA, false, now)
	none, err := ReadRing("z.example.", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ring *Ring
		role Role
		want stele.Kind
	}{{one, ZSK, stele.Conflict}, {one, "key", stele.Invalid}, {none, CSK, stele.Conflict}} {
		if _, err := test.ring.Roll(test.role, now, rand.Reader); stele.KindOf(err) != test.want {
			t.Errorf("%s: %v", test.role, err)
		}
	}
}

// TestDigests compares DS records with the vectors of RFC 6605, section 6.1, and RFC 8080,
// section 6.1.
func TestDigests(t *testing.T) {
	for _, test := range []struct{ owner, algorithm, key, tag, digest string }{
		{"example.net.", "ecdsap256sha256", "GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==", "55648", "B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17"},
		{"example.com.", "ed25519", "l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=", "3613", "3AA5AB37EFCE57F737FC1627013FEE07BDF241BD10F3B1964AB55C78E79A304B"},
	} {
		algorithm, err := ParseAlgorithm(test.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		k := &PrivateKey{ID: test.tag, Role: CSK, Algorithm: algorithm, Public: test.key, Published: time.Unix(1, 0)}
		r := &Ring{Zone: test.owner, Keys: []*PrivateKey{k}}
		list := r.DS(3600)
		if want := test.tag + " " + dns.Type(algorithm).String(); len(list) != 2 || !strings.Contains(list[0].Record, test.tag) || !strings.HasSuffix(list[0].Record, test.digest) {
			t.Errorf("%v, want %s with %s", list, want, test.digest)
		}
	}
	if _, err := ParseAlgorithm("rsasha1"); !errors.Is(err, stele.Invalid) {
		t.Errorf("rsasha1: %v", err)
	}
}

// TestDamagedKeys checks that damaged cells give an error, and no key.
func TestDamagedKeys(t *testing.T) {
	for _, value := range []string{"", "{}", `{"role":"csk","algorithm":13}`, "\x00"} {
		r, err := ReadRing("z.example.", []stele.Cell{{Name: CellPrefix + "z.example. 00001", Value: []byte(value)}})
		if err == nil {
			_, err = r.Keys[0].Signer()
		}
		if !errors.Is(err, stele.Internal) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
