package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// testLog shows what a store logs in the test's output.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// openOn opens a store on a file system in memory, with memtables that are full
// soon.
func openOn(t testing.TB, fs vfs.FS, folder string) *Store {
	t.Helper()
	s, err := Open(t.Context(), folder, Options{
		Now: time.Now, FS: fs, Log: testLog(t), Retry: 200 * time.Microsecond, CacheSize: 1 << 20, memTable: 1 << 16, recent: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ark(t testing.TB, text string) stele.ID {
	t.Helper()
	id, err := stele.NewID("ark", "ark:12345/"+text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sample makes a version of a record with a target, and an alias if asked.
func sample(t testing.TB, name string, version uint64, aliases ...stele.ID) *stele.Record {
	return &stele.Record{
		ID: ark(t, name), Aliases: aliases, State: stele.Active, Version: version,
		Targets:  []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://h%d.example/%s", version%3, name), Order: 100, Preference: 10}},
		Metadata: stele.Metadata{stele.What: strings.Repeat(name, 10)},
		Created:  time.Unix(1, 0).UTC(), Modified: time.Unix(int64(version), 0).UTC(), By: "ana",
	}
}

// acknowledged knows what was acknowledged.
type acknowledged struct {
	mu    sync.Mutex
	known map[stele.ID]uint64 // the last version that was acknowledged
}

func (l *acknowledged) add(records ...*stele.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[stele.ID]uint64)
	}
	for _, r := range records {
		l.known[r.ID] = r.Version
	}
}

func (l *acknowledged) copy() map[stele.ID]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[stele.ID]uint64, len(l.known))
	for id, v := range l.known {
		m[id] = v
	}
	return m
}

// wantAll fails unless the store has all that is known, and no fault.
func wantAll(t testing.TB, s *Store, known map[stele.ID]uint64) {
	t.Helper()
	for id, version := range known {
		r, err := s.Record(t.Context(), id)
		if err != nil {
			t.Errorf("acknowledged and lost: version %d of %q: %v", version, id, err)
		} else if r.Version < version {
			t.Errorf("acknowledged and lost: version %d of %q; there is %d", version, id, r.Version)
		}
	}
	wantSound(t, s)
}

func wantSound(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Verify(t.Context(), func(problem *stele.Message) { t.Errorf("Verify reports: %s", problem) }); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// waitReady waits until the store can write.
func waitReady(t testing.TB, s *Store) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if err = s.Ready(t.Context()); err == nil {
			return
		}
	}
	t.Fatalf("the store is not ready after two minutes: %v", err)
}

// worker commits, updates and ingests until the context ends. It keeps what was
// acknowledged, and fails on errors that a failing disk does not cause.
type worker struct {
	t            testing.TB
	s            *Store
	name         string
	acknowledged *acknowledged
	known        []*stele.Record // as far as the worker knows
	n            int
}

// step does one thing. It reports whether it was acknowledged.
func (w *worker) step(ctx context.Context, rng *rand.Rand) bool {
	w.n++
	name := fmt.Sprintf("%s-%d", w.name, w.n)
	switch k := rng.IntN(10); {
	case k == 0:
		var records []*stele.Record
		for i := range 20 {
			records = append(records, sample(w.t, fmt.Sprintf("%s-i%d", name, i), 1))
		}
		errs, err := w.s.Ingest(ctx, records, nil, nil, nil)
		if err == nil {
			err = errors.Join(errs...)
		}
		if w.keep(err, records...) {
			w.known = append(w.known, records[0])
		}
		return err == nil
	case k < 4 && len(w.known) > 0:
		i := rng.IntN(len(w.known))
		r := sample(w.t, strings.TrimPrefix(w.known[i].ID.String(), "ark:12345/"), w.known[i].Version+1, w.known[i].Aliases...)
		err := w.s.Apply(ctx, &stele.Commit{Records: []*stele.Record{r}})
		if w.keep(err, r) {
			w.known[i] = r
		} else if stele.KindOf(err) == stele.Conflict {
			// An update of unknown fate was kept after all.
			w.known[i] = r
		}
		return err == nil
	default:
		r := sample(w.t, name, 1, ark(w.t, name+"-alias"))
		err := w.s.Apply(ctx, &stele.Commit{
			Records: []*stele.Record{r},
			Counter: func(stele.ID) (stele.NamespaceKey, uint64) { return stele.NamespaceKey{Scheme: "ark"}, 0 },
		})
		if w.keep(err, r) {
			w.known = append(w.known, r)
		}
		return err == nil
	}
}

// keep notes what was acknowledged.
func (w *worker) keep(err error, records ...*stele.Record) bool {
	if err == nil {
		w.acknowledged.add(records...)
		return true
	}
	if k := stele.KindOf(err); k != stele.Unavailable && k != stele.Conflict && !errors.Is(err, context.Canceled) {
		w.t.Errorf("a commit to a failing disk: %v", err)
	}
	return false
}

// TestEveryWrite lets writes of a workload fail, one at a time and several in a row, at
// faultPoints places of it. Nothing acknowledged is lost, and the store recovers.
func TestEveryWrite(t *testing.T) {
	length := func() int64 {
		disk := &faulty{FS: vfs.NewMem()}
		s := openOn(t, disk, "db")
		begin := disk.ops.Load()
		workload(t, s, &acknowledged{})
		mustClose(t, s)
		return disk.ops.Load() - begin
	}()
	step := max(1, length/faultPoints)
	t.Logf("%d writes", length)
	for n := int64(1); n < length; n += step {
		for _, c := range []struct {
			name  string
			count int64
			fault error
			torn  bool
		}{{"once", 1, errBroken, false}, {"torn", 1, errFull, true}, {"for a while", 30, errFull, true}} {
			name := fmt.Sprintf("write %d %s", n, c.name)
			disk := &faulty{FS: vfs.NewMem()}
			s := openOn(t, disk, "db")
			disk.failAfter(n, c.count, "", c.fault, c.torn)
			var l acknowledged
			workload(t, s, &l)
			disk.heal()
			waitReady(t, s)
			wantAll(t, s, l.copy())
			if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{sample(t, "last", 1)}}); err != nil {
				t.Errorf("%s: a commit after all: %v", name, err)
			}
			mustClose(t, s)
			s = openOn(t, disk, "db")
			wantAll(t, s, l.copy())
			mustClose(t, s)
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// workload does the same things each time, whatever becomes of them.
func workload(t testing.TB, s *Store, l *acknowledged) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	w := &worker{t: t, s: s, name: "w", acknowledged: l}
	for range 150 {
		if !w.step(t.Context(), rng) {
			// Reads go on, whatever the disk does.
			for id, version := range l.copy() {
				if r, err := s.Record(t.Context(), id); err != nil || r.Version < version {
					t.Errorf("Record(%q) while the disk fails: %v", id, err)
				}
				break
			}
		}
	}
}

// TestMarkers crashes whenever a file is made or removed that says which manifest is the
// right one. On a disk that loses any of what was not synced all is there nevertheless.
func TestMarkers(t *testing.T) {
	disk := &watched{MemFS: vfs.NewCrashableMem()}
	s := openOn(t, disk, "db")
	r := sample(t, "kept", 1)
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	var crashed []*vfs.MemFS
	disk.watch(func() {
		for seed := range uint64(10) {
			crashed = append(crashed, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 0))}))
		}
	})
	mustClose(t, openOn(t, disk, "db")) // with a new manifest
	disk.watch(nil)
	if len(crashed) < 20 {
		t.Fatalf("%d disks: Pebble made or removed no markers", len(crashed))
	}
	for _, one := range crashed {
		s := openOn(t, one, "db")
		wantAll(t, s, map[stele.ID]uint64{r.ID: 1})
		mustClose(t, s)
	}
}

// watched is a disk that tells when markers were made or removed.
type watched struct {
	*vfs.MemFS
	mu   sync.Mutex
	told func()
}

func (w *watched) watch(told func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = told
}

func (w *watched) tell(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told != nil && strings.Contains(name, "marker.") {
		w.told()
	}
}

func (w *watched) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := w.MemFS.Create(name, c)
	w.tell(name)
	return file, err
}

func (w *watched) Remove(name string) error {
	err := w.MemFS.Remove(name)
	w.tell(name)
	return err
}

// TestFailingDisk lets several goroutines write to a disk that fails at random, and
// crashes now and then.
func TestFailingDisk(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 8 {
		disk := &faulty{FS: vfs.NewCrashableMem()}
		s := openOn(t, disk, "db")
		var l acknowledged
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 4 {
			own := rand.New(rand.NewPCG(seed, uint64(round*10+i+1)))
			wg.Go(func() {
				w := &worker{t: t, s: s, name: fmt.Sprintf("r%dw%d", round, i), acknowledged: &l}
				for ctx.Err() == nil {
					w.step(ctx, own)
				}
			})
		}
		for range 4 {
			kinds := []string{"", ".log", "MANIFEST", "db/0", "ingest", ".sst", "marker"}
			disk.failAfter(rng.Int64N(200), 1+rng.Int64N(20), kinds[rng.IntN(len(kinds))], []error{errFull, errBroken}[rng.IntN(2)], rng.IntN(2) == 0)
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			// A crash in the middle: what was acknowledged before is there.
			known := l.copy()
			other := openOn(t, disk.crash(rng), "db")
			wantAll(t, other, known)
			mustClose(t, other)
		}
		stop()
		wg.Wait()
		disk.heal()
		waitReady(t, s)
		wantAll(t, s, l.copy())
		mustClose(t, s)
		s = openOn(t, disk, "db")
		wantAll(t, s, l.copy())
		mustClose(t, s)
		if t.Failed() {
			t.Fatalf("round %d, %d acknowledged", round, len(l.known))
		}
	}
}
