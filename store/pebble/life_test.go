package pebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// TestReadOnly: after a failed write the store says so, reads, refuses to write, and
// comes back by itself when the disk does.
func TestReadOnly(t *testing.T) {
	disk := &faulty{FS: vfs.NewMem()}
	s := openOn(t, disk, "db")
	defer mustClose(t, s)
	old := sample(t, "old", 1, ark(t, "alias"))
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{old}})
	disk.failAfter(1, 1<<40, "", errFull, true)
	lost := sample(t, "lost", 1)
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{lost}}); !errors.Is(err, stele.Unavailable) {
		t.Errorf("a commit that the disk refused: %v", err)
	}
	for range 3 {
		if err := s.Ready(t.Context()); !errors.Is(err, stele.Unavailable) || !strings.Contains(err.Error(), "opens itself again") {
			t.Errorf("Ready: %v", err)
		}
		if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{sample(t, "more", 1)}}); !errors.Is(err, stele.Unavailable) {
			t.Errorf("a commit while the disk is full: %v", err)
		}
		if _, err := s.Ingest(t.Context(), numbered(t, "i", 10), nil, nil, nil); !errors.Is(err, stele.Unavailable) {
			t.Errorf("an ingest while the disk is full: %v", err)
		}
		if err := s.Backup(t.Context(), "backup"); !errors.Is(err, stele.Unavailable) {
			t.Errorf("a backup while the disk is full: %v", err)
		}
		for _, name := range old.Names() {
			if r, err := s.Record(t.Context(), name); err != nil || r.Version != 1 {
				t.Errorf("a read while the disk is full: %v", err)
			}
		}
		// What was not acknowledged is not seen, though Pebble has it in memory.
		if _, err := s.Record(t.Context(), lost.ID); !errors.Is(err, stele.NotFound) {
			t.Errorf("a record of unknown fate is shown: %v", err)
		}
		if n, err := s.LastChange(t.Context()); err != nil || n != 1 {
			t.Errorf("LastChange: %d, %v", n, err)
		}
		time.Sleep(3 * time.Millisecond) // while it tries to open itself
	}
	disk.heal()
	waitReady(t, s)
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "new", 1)}})
	wantAll(t, s, map[stele.ID]uint64{old.ID: 1, ark(t, "new"): 1})
}

// TestCloseReadOnly: a store whose disk has failed can be closed, and nothing that was
// acknowledged is lost.
func TestCloseReadOnly(t *testing.T) {
	for _, kind := range []string{"", ".log", "MANIFEST", "db/0"} {
		disk := &faulty{FS: vfs.NewMem()}
		s := openOn(t, disk, "db")
		var l acknowledged
		disk.failAfter(20, 1<<40, kind, errBroken, false)
		workload(t, s, &l)
		mustClose(t, s)
		disk.heal()
		s = openOn(t, disk, "db")
		wantAll(t, s, l.copy())
		mustClose(t, s)
	}
}

// TestLeave: a caller that gives up before its commit is taken has no effect; one that
// does so later is told that the outcome is unknown.
func TestLeave(t *testing.T) {
	disk := &faulty{FS: vfs.NewMem()}
	s := openOn(t, disk, "db")
	defer mustClose(t, s)
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "first", 1)}})
	goOn := disk.stall()
	defer goOn()
	put := func(ctx context.Context, name string) <-chan error {
		done := make(chan error, 1)
		go func() { done <- s.Apply(ctx, &stele.Commit{Records: []*stele.Record{sample(t, name, 1)}}) }()
		return done
	}
	until := func(ok func() bool) {
		t.Helper()
		for range 60_000 {
			if ok() {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("it takes too long")
	}
	taken, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	first := put(taken, "taken")
	until(func() bool { return disk.stalled.Load() > 0 }) // the committer waits for the disk
	waits, giveUpToo := context.WithCancel(t.Context())
	second := put(waits, "waits")
	until(func() bool { return len(s.queue) > 0 })
	giveUpToo()
	if err := <-second; err != context.Canceled {
		t.Errorf("gave up in the queue: %v", err)
	}
	giveUp()
	if err := <-first; !errors.Is(err, stele.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("gave up while the disk works: %v", err)
	}
	goOn()
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "last", 1)}})
	if _, err := s.Record(t.Context(), ark(t, "waits")); !errors.Is(err, stele.NotFound) {
		t.Errorf("a commit that was left: %v", err)
	}
	wantAll(t, s, map[stele.ID]uint64{ark(t, "first"): 1, ark(t, "taken"): 1, ark(t, "last"): 1})
}

// TestDurableReads: no reader sees a commit that is not on the disk yet.
func TestDurableReads(t *testing.T) {
	disk := &faulty{FS: vfs.NewMem()}
	s := openOn(t, disk, "db")
	defer mustClose(t, s)
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "a", 1)}})
	goOn := disk.stall()
	done := make(chan error, 1)
	go func() { done <- s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{sample(t, "a", 2)}}) }()
	for range 20 {
		if r, err := s.Record(t.Context(), ark(t, "a")); err != nil || r.Version != 1 {
			t.Errorf("before it is durable: %v, %v", r, err)
		}
		time.Sleep(time.Millisecond)
	}
	goOn()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r, err := s.Record(t.Context(), ark(t, "a")); err != nil || r.Version != 2 {
		t.Errorf("when it is durable: %v, %v", r, err)
	}
}

// TestIngestBeside: commits go on while tables are built, and take names that an
// ingest wants too. Each name is given once.
func TestIngestBeside(t *testing.T) {
	s := openOn(t, vfs.NewMem(), "db")
	defer mustClose(t, s)
	given := make(map[stele.ID]int)
	var mu sync.Mutex
	note := func(id stele.ID) {
		mu.Lock()
		defer mu.Unlock()
		given[id]++
	}
	const all, chunk = 10_000, 1000
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := w; ctx.Err() == nil; i += 3 {
				r := sample(t, fmt.Sprintf("n%06d", i*7%all), 1)
				switch err := s.Apply(ctx, &stele.Commit{Records: []*stele.Record{r}}); {
				case err == nil:
					note(r.ID)
				case !errors.Is(err, stele.Conflict) && ctx.Err() == nil:
					t.Errorf("Apply: %v", err)
				}
			}
		})
	}
	for from := 0; from < all; from += chunk {
		var records []*stele.Record
		for i := range chunk {
			records = append(records, sample(t, fmt.Sprintf("n%06d", from+i), 1))
		}
		errs, err := s.Ingest(t.Context(), records, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range errs {
			switch {
			case err == nil:
				note(records[i].ID)
			case !errors.Is(err, stele.Conflict):
				t.Errorf("Ingest: %v", err)
			}
		}
	}
	stop()
	wg.Wait()
	if s.Ready(t.Context()) != nil || len(given) < all-3 { // three may have been given as the context ended
		t.Errorf("%d names were given, want %d", len(given), all)
	}
	for id, n := range given {
		if n != 1 {
			t.Errorf("%q was given %d times", id, n)
		}
	}
	wantSound(t, s)
}

// TestBackupFails: a failed backup does not affect the store.
func TestBackupFails(t *testing.T) {
	disk := &faulty{FS: vfs.NewMem()}
	s := openOn(t, disk, "db")
	defer mustClose(t, s)
	mustIngest(t, s, numbered(t, "a", 100))
	for _, folder := range []string{"db", "db/backup", "db/ingest/x"} {
		if err := s.Backup(t.Context(), folder); !errors.Is(err, stele.Invalid) {
			t.Errorf("a backup to %q: %v", folder, err)
		}
	}
	for n := range int64(12) {
		disk.failAfter(n, 1<<40, "copy", errFull, n%2 == 0)
		err := s.Backup(t.Context(), "copy")
		disk.heal()
		if !errors.Is(err, stele.Unavailable) {
			t.Errorf("a backup to a full disk: %v", err)
		}
		if _, err := disk.Stat("copy"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something is left of a backup that failed: %v", err)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Fatalf("after a backup that failed: %v", err)
		}
	}
	if err := s.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	other := openOn(t, disk, "copy")
	wantSound(t, other)
	mustClose(t, other)
}

// TestCloseInLoop: a store can be closed from the body of a loop over it.
func TestCloseInLoop(t *testing.T) {
	s := openOn(t, vfs.NewMem(), "db")
	mustIngest(t, s, numbered(t, "a", 1000))
	n := 0
	var last error
	for _, err := range s.Scan(t.Context(), "ark", "", "") {
		if n++; n == 3 {
			mustClose(t, s)
		}
		last = err
	}
	if n < 3 || n > 1000 || !errors.Is(last, stele.Unavailable) {
		t.Errorf("%d items, and then %v", n, last)
	}
}

// TestFolder: the folder is made with all above it, and one folder is one folder,
// however its path is written.
func TestFolder(t *testing.T) {
	above := t.TempDir()
	folder := filepath.Join(above, "a", "b", "c")
	s, err := Open(t.Context(), folder, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	link := filepath.Join(above, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{link, folder + "/.", filepath.Join(above, "a") + "//b/../b/c/"} {
		if other, err := Open(t.Context(), same, Options{Now: time.Now}); !errors.Is(err, stele.Unavailable) {
			t.Errorf("%q was opened a second time: %v", same, err)
			if err == nil {
				mustClose(t, other)
			}
		}
	}
	for _, bad := range []struct {
		folder string
		now    func() time.Time
	}{{"", time.Now}, {folder, nil}} {
		if _, err := Open(t.Context(), bad.folder, Options{Now: bad.now}); !errors.Is(err, stele.Invalid) {
			t.Errorf("Open(%q): %v", bad.folder, err)
		}
	}
}

// TestLeftovers: tables of an ingest that a crash cut off are removed.
func TestLeftovers(t *testing.T) {
	fs := vfs.NewMem()
	mustClose(t, openOn(t, fs, "db"))
	writeAll(t, fs, "db/ingest/names.sst", []byte("half a table"))
	s := openOn(t, fs, "db")
	defer mustClose(t, s)
	if left, err := fs.List("db/ingest"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	mustIngest(t, s, numbered(t, "a", 10))
	if left, err := fs.List("db/ingest"); err != nil || len(left) > 0 {
		t.Errorf("left after an ingest: %q, %v", left, err)
	}
}
