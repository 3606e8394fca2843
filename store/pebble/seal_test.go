package pebble

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// TestSealEveryWrite lets each write of a seal fail, and crashes after it: what was said
// to be sealed is, and the store never takes a commit while it says that it is sealed.
func TestSealEveryWrite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sealed, failed := 0, 0
	for n := int64(1); n <= 8; n++ {
		for _, reason := range []string{"moved", ""} {
			disk := &faulty{FS: vfs.NewCrashableMem()}
			s := openOn(t, disk, "db")
			if reason == "" { // it is removed
				if err := s.Seal(t.Context(), "moved before"); err != nil {
					t.Fatal(err)
				}
			}
			disk.failAfter(n, 1, "", errBroken, true)
			err := s.Seal(t.Context(), reason)
			crashed := openOn(t, disk.crash(rng), "db")
			if err == nil {
				sealed++
				wantSeal(t, crashed, reason)
			} else if failed++; stele.KindOf(err) != stele.Unavailable {
				t.Errorf("write %d failed, and Seal said %v", n, err)
			}
			mustClose(t, crashed)
			disk.heal()
			waitOpen(t, s)
			now, serr := s.Sealed(t.Context())
			if serr != nil || err == nil && now != reason {
				t.Errorf("after Seal(%q), which said %v, the store is sealed with %q, %v", reason, err, now, serr)
			}
			wantSeal(t, s, now)
			mustClose(t, s)
			s = openOn(t, disk, "db")
			wantSeal(t, s, now)
			wantSound(t, s)
			mustClose(t, s)
		}
	}
	if sealed == 0 || failed == 0 {
		t.Errorf("%d seals succeeded and %d failed; there should be some of both", sealed, failed)
	}
}

// waitOpen waits until the store can write, or is sealed and could if it were not.
func waitOpen(t *testing.T, s *Store) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s.current.Load().failstop.broken() == nil && s.writable("test", 0) == nil {
			return
		}
	}
	t.Fatal("the store is not open again after two minutes")
}

// wantSeal checks that a store is sealed for a reason, or is not, in what it says and in
// what it does.
func wantSeal(t *testing.T, s *Store, reason string) {
	t.Helper()
	if got, err := s.Sealed(t.Context()); err != nil || got != reason {
		t.Errorf("Sealed = %q, %v; want %q", got, err, reason)
	}
	last, err := s.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := sample(t, "probe", last+1)
	err = s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}})
	if sealed := errors.Is(err, stele.ErrSealed); sealed != (reason != "") || !sealed && err != nil {
		t.Errorf("a commit to a store that is sealed with %q: %v", reason, err)
	}
}
