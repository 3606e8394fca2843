package pebble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// Below the reserve nothing is written, and everything is read; above it writes are
// accepted again without help.
func TestReserve(t *testing.T) {
	disk := &faulty{FS: vfs.NewMem()}
	s := openOn(t, disk, "store")
	defer mustClose(t, s)
	first := sample(t, "a", 1)
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{first}}); err != nil {
		t.Fatal(err)
	}
	disk.setFree(DefaultReserve - 1)
	err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{sample(t, "b", 1)}})
	if !errors.Is(err, stele.Unavailable) || !strings.Contains(err.Error(), "held in reserve") {
		t.Errorf("a commit below the reserve: %v", err)
	}
	if _, err := s.Ingest(t.Context(), []*stele.Record{sample(t, "b", 1)}, nil, nil, nil); !errors.Is(err, stele.Unavailable) {
		t.Errorf("an ingest below the reserve: %v", err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, stele.Unavailable) {
		t.Errorf("ready below the reserve: %v", err)
	}
	if _, err := s.Record(t.Context(), first.ID); err != nil {
		t.Errorf("a read below the reserve: %v", err)
	}
	if _, err := s.Record(t.Context(), ark(t, "b")); !errors.Is(err, stele.NotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
	disk.setFree(DefaultReserve << 1)
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready with space again: %v", err)
	}
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{sample(t, "b", 1)}}); err != nil {
		t.Errorf("a commit with space again: %v", err)
	}
}

// A second opening is told which process has the folder.
func TestHeld(t *testing.T) {
	folder := t.TempDir()
	s, err := Open(t.Context(), folder, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Open(t.Context(), folder, Options{Now: time.Now}); err == nil {
		mustClose(t, other)
		t.Error("two openings of one folder")
	} else if want := fmt.Sprintf("process %d since ", os.Getpid()); !errors.Is(err, stele.Unavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
	mustClose(t, s)
	if s, err = Open(t.Context(), folder, Options{Now: time.Now}); err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	mustClose(t, s)
}

// After a crash of the machine, which loses all that was not synced, everything that
// was acknowledged is there, whole, and all invariants hold.
func TestMachineCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	total := 0
	for round := range 15 {
		disk := &faulty{FS: vfs.NewCrashableMem()}
		s := openOn(t, disk, "store")
		var done acknowledged
		var workers sync.WaitGroup
		stop := make(chan struct{})
		for n := range 4 {
			workers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					name := fmt.Sprintf("w%dn%d", n, i)
					r := sample(t, name, 1, ark(t, name+"alias"))
					if i%10 == 9 {
						if errs, err := s.Ingest(t.Context(), []*stele.Record{r}, nil, nil, nil); err == nil && errs[0] == nil {
							done.add(r)
						}
					} else if s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}) == nil {
						done.add(r)
					}
				}
			})
		}
		time.Sleep(time.Duration(rng.IntN(20)+1) * time.Millisecond)
		known := done.copy() // what was acknowledged before the lights go out
		crashed := disk.crash(rng)
		close(stop)
		workers.Wait()
		mustClose(t, s)

		s = openOn(t, crashed, "store")
		wantAll(t, s, known)
		wantSound(t, s)
		mustClose(t, s)
		if t.Failed() {
			t.Fatalf("round %d, %d records were acknowledged", round, len(known))
		}
		total += len(known)
	}
	if total == 0 {
		t.Error("nothing was ever acknowledged; the test is blunt")
	}
}

// Other users of the machine can't read a registry, or its backup: credentials and the
// keys of zones are in there.
func TestPrivate(t *testing.T) {
	above := t.TempDir()
	folder, backup := filepath.Join(above, "registry"), filepath.Join(above, "backup")
	s := openOn(t, vfs.Default, folder)
	defer mustClose(t, s)
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{folder, backup} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has the mode %o", filepath.Base(name), mode)
		}
	}
}
