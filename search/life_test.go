package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/pebble"
)

// newRecord returns a record with a title.
func newRecord(name, title string) *stele.Record {
	return &stele.Record{ID: id(name), State: stele.Active, Created: clock, Modified: clock, By: "ann", Metadata: stele.Metadata{"what": title}}
}

// TestGeneration: an index of another generation is made anew, and so is one of a registry that
// has fewer changes or others.
func TestGeneration(t *testing.T) {
	for name, change := range map[string]func(w *world, other stele.Store){
		"another generation": func(w *world, _ stele.Store) {
			list, err := w.store.Generations(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.store.SetGenerations(t.Context(), list.Last().ID, list.Next(clock, 1, list, 2)); err != nil {
				t.Fatal(err)
			}
		},
		"fewer changes": func(w *world, other stele.Store) { w.source.Store = &sameGeneration{other, w.store} },
		"other changes": func(w *world, other stele.Store) {
			for i := range 5 {
				r := newRecord(fmt.Sprintf("ark:9/x%d", i), "rio")
				r.Version = 1
				if err := other.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
					t.Fatal(err)
				}
				w.records[r.ID] = r
			}
			w.source.Store = &sameGeneration{other, w.store}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			w.open(t)
			defer w.index.Close()
			log := new(bytes.Buffer)
			w.index.o.Log = slog.New(slog.NewTextHandler(log, nil))
			w.put(t, newRecord("ark:1/a", "rio"))
			w.put(t, newRecord("ark:1/b", "rio"))
			w.catchUp(t)
			other := mem.New(func() time.Time { return clock })
			change(w, other)
			w.catchUp(t)
			if !strings.Contains(log.String(), "made anew") {
				t.Errorf("the log says %q", log)
			}
			want := 0
			for id := range w.records {
				if _, err := w.source.Record(t.Context(), id); err == nil {
					want++
				}
			}
			if got := w.find(t, Query{Text: "rio", Limit: 3}, everything); len(got) != want {
				t.Errorf("found %q, and there are %d", got, want)
			}
			if s := w.index.Status(); s.Documents != uint64(want) {
				t.Errorf("%d documents of %d", s.Documents, want)
			}
		})
	}
}

// TestLostVersion: a version that the registry lost is not shown, though the change that replaced it has the same number.
func TestLostVersion(t *testing.T) {
	w := newWorld(t, 0)
	w.open(t)
	defer w.index.Close()
	other := mem.New(func() time.Time { return clock })
	for _, one := range []struct {
		store stele.Store
		title string
		last  string
	}{{w.store, "rio mar", "ark:1/b"}, {other, "rio lago", "ark:1/c"}} {
		for i, r := range []*stele.Record{newRecord("ark:1/a", "rio"), newRecord("ark:1/a", one.title), newRecord(one.last, "rio")} {
			if r.Version = 1; i == 1 {
				r.Version = 2
			}
			if err := one.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	more := newRecord("ark:1/d", "rio") // the next change tells that the feed is another one
	more.Version = 1
	if err := other.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{more}}); err != nil {
		t.Fatal(err)
	}
	title := func() (got string) {
		t.Helper()
		page, err := w.index.Find(t.Context(), &Query{Text: "rio", Limit: 10}, everything)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.ID.String() == "ark:1/a" {
				got = r.Metadata[stele.What]
			}
		}
		return got
	}
	w.catchUp(t)
	if got := title(); got != "rio mar" {
		t.Fatalf("it is called %q", got)
	}
	w.source.Store = &sameGeneration{other, w.store}
	w.catchUp(t)
	if got := title(); got != "rio lago" {
		t.Errorf("it is called %q", got)
	}
	if err := w.index.Erase(t.Context()); err != nil || w.index.recent.places != nil {
		t.Errorf("erased: %v, and records are kept: %t", err, w.index.recent.places != nil)
	}
}

// sameGeneration is a store that claims to be of the generation of another one, as a database
// does that lost its last changes.
type sameGeneration struct {
	stele.Store
	of stele.Store
}

func (s *sameGeneration) Position(ctx context.Context) (stele.Position, error) {
	at, err := s.Store.Position(ctx)
	of, err2 := s.of.Position(ctx)
	return stele.Position{Generation: of.Generation, Change: at.Change}, errors.Join(err, err2)
}

// TestLagging: an index is not made anew because a standby, which lags, is read.
func TestLagging(t *testing.T) {
	w := newWorld(t, 0)
	w.open(t)
	defer w.index.Close()
	w.put(t, newRecord("ark:1/a", "rio"))
	w.catchUp(t)
	w.index.o.Lagging = func() (time.Time, bool) { return time.Unix(1, 0), true }
	w.source.Store = &sameGeneration{mem.New(time.Now), w.store}
	w.catchUp(t)
	if s := w.index.Status(); s.Documents != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestDamage damages each file of an index, in several ways. Whatever happens, the index is
// made anew and finds everything, or was not harmed.
func TestDamage(t *testing.T) {
	w := newWorld(t, 0)
	for i := range 300 {
		w.put(t, newRecord(fmt.Sprintf("ark:1/n%d", i), fmt.Sprintf("rio %d", i)))
	}
	open := func(folder string) *Index {
		t.Helper()
		x, err := Open(t.Context(), Options{Folder: folder, Source: w.source, memory: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		x.tables = 100
		return x
	}
	whole := t.TempDir()
	x := open(whole)
	if err := errors.Join(x.CatchUp(t.Context()), x.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(whole, "*"))
	if err != nil || len(names) < 4 {
		t.Fatalf("%q, %v", names, err)
	}
	damages := map[string]func(path string) error{
		"cut":   func(path string) error { return os.Truncate(path, 40) },
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"gone":  os.Remove,
		"other": func(path string) error {
			text, err := os.ReadFile(path)
			for i := 5; i < len(text); i += 50 {
				text[i] ^= 0x55
			}
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
	}
	for kind, damage := range damages {
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.IsDir() || info.Size() == 0 {
				continue
			}
			t.Run(kind+" "+filepath.Base(name), func(t *testing.T) {
				folder := t.TempDir()
				if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				if err := damage(filepath.Join(folder, filepath.Base(name))); err != nil {
					t.Fatal(err)
				}
				x := open(folder)
				defer x.Close()
				found, tries := 0, 0
				for q := (Query{Text: "rio", Limit: 400}); ; {
					page, err := x.Find(t.Context(), &q, everything)
					if err != nil {
						// The damage was found while the index was read.
						if tries++; stele.KindOf(err) != stele.Unavailable || tries > 5 {
							t.Fatal(err)
						}
						if err := x.CatchUp(t.Context()); err != nil {
							t.Fatal(err)
						}
						found, q.Cursor = 0, 0
						continue
					}
					found += len(page.Records)
					if q.Cursor = page.Next; q.Cursor == 0 {
						break
					}
				}
				if found != 300 {
					t.Errorf("%d of 300 are found", found)
				}
			})
		}
	}
}

// TestFormat: an index that another version of the program wrote is made anew.
func TestFormat(t *testing.T) {
	w := newWorld(t, 0)
	w.open(t)
	w.put(t, newRecord("ark:1/a", "rio"))
	w.catchUp(t)
	if err := errors.Join(w.index.db.Set(keyFormat, []byte{99}, pebbledb.NoSync), w.index.Close()); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	defer w.index.Close()
	if s := w.index.Status(); s.Change != 0 {
		t.Errorf("it was taken as it is: %+v", s)
	}
	if got := w.find(t, Query{Text: "rio", Limit: 3}, everything); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// TestInUse: two processes do not use one index.
func TestInUse(t *testing.T) {
	w := newWorld(t, 0)
	folder := filepath.Join(t.TempDir(), "index")
	x, err := Open(t.Context(), Options{Folder: folder, Source: w.source})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Folder: folder, Source: w.source}); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := Remove(folder); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(x.Close(), Remove(folder), Remove(folder)); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "photographs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Remove(folder); stele.KindOf(err) != stele.Invalid {
		t.Errorf("got %v", err)
	}
}

// TestHidden counts what is looked at: records that a caller may not find are not, whatever
// their number, and pages end where they would end without them.
func TestHidden(t *testing.T) {
	mine := &sees{keys: []stele.NamespaceKey{{Scheme: "ark", Prefix: "ark:1"}}}
	var pages [2]string
	for hidden := range 2 {
		w := newWorld(t, 0)
		w.space(t, mine.keys[0], 1)
		w.open(t)
		defer w.index.Close()
		for i := range 40 {
			if i%4 == 0 {
				w.put(t, newRecord(fmt.Sprintf("ark:1/n%d", i), "rio"))
			}
			for j := range 50 * hidden {
				r := newRecord(fmt.Sprintf("ark:2/n%d-%d", i, j), "rio rios")
				r.State = stele.Reserved
				w.put(t, r)
			}
		}
		w.catchUp(t)
		for _, text := range []string{"rio", "rios", "ri*", ""} {
			for cursor := uint64(0); ; {
				page, err := w.index.Find(t.Context(), &Query{Text: text, Limit: 3, Cursor: cursor}, mine)
				if err != nil {
					t.Fatal(err)
				}
				if page.Looked > len(page.Records)+1 {
					t.Errorf("%q: %d were looked at, for %d", text, page.Looked, len(page.Records))
				}
				pages[hidden] += fmt.Sprintf("%q %d %d %v;", text, page.Looked, len(page.Records), page.Next == 0)
				if cursor = page.Next; cursor == 0 {
					break
				}
			}
		}
	}
	if pages[0] != pages[1] {
		t.Errorf("hidden records make a difference:\n%s\n%s", pages[0], pages[1])
	}
	if page := strings.Count(pages[0], `"rio"`); page != 4 {
		t.Errorf("%d pages of 10 records", page)
	}
}

// TestStores indexes a registry in Pebble, across blocks, with sorted tables as they are written
// there.
func TestStores(t *testing.T) {
	store, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const count = blockSize + 12_000
	var list []*stele.Record
	for i := range count {
		r := newRecord(fmt.Sprintf("ark:1/n%d", i), fmt.Sprintf("rio %d", i/1000))
		r.Version = 1
		list = append(list, r)
	}
	if _, err := store.Ingest(t.Context(), list, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	x, err := Open(t.Context(), Options{Folder: t.TempDir(), Source: store})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // some are changed, in the first block
		r := newRecord(fmt.Sprintf("ark:1/n%d", 5000+i), "rios")
		r.Version = 2
		if err := store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(x.CatchUp(t.Context()), x.Close()); err != nil {
		t.Fatal(err)
	}
	if x, err = Open(t.Context(), Options{Folder: x.o.Folder, Source: store}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"rio 5": 980, "rios": 20, "n5001": 1, "n77": 1, "rio 65": 1000, "n5000 rio": 0} {
		found := 0
		for q := (Query{Text: text, Limit: 300}); ; {
			page, err := x.Find(t.Context(), &q, everything)
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Records)
			if q.Cursor = page.Next; q.Cursor == 0 {
				break
			}
		}
		if found != want {
			t.Errorf("%q: %d, want %d", text, found, want)
		}
	}
	if s := x.Status(); s.Documents != count || s.Behind() != 0 || s.Bytes/count > 150 {
		t.Errorf("got %+v", s)
	}
}

// TestTogether uses an index from many goroutines: changes, searches, one that is made anew, and
// one that is erased. In the end everything is found once.
func TestTogether(t *testing.T) {
	w := newWorld(t, blockSize-20)
	w.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running, work sync.WaitGroup
	running.Go(func() { w.index.Run(ctx) })
	work.Go(func() {
		for i := range 60 {
			r := newRecord(fmt.Sprintf("ark:1/n%d", i), "rio")
			r.Version = 1
			if err := w.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
				t.Error(err)
			}
			w.index.Notify()
		}
	})
	for range 3 {
		work.Go(func() {
			for range 30 {
				if _, err := w.index.Find(t.Context(), &Query{Text: "rio", Limit: 10}, everything); err != nil && stele.KindOf(err) != stele.Unavailable {
					t.Error(err)
				}
				_ = w.index.Status()
			}
		})
	}
	work.Go(func() {
		for range 3 {
			if err := errors.Join(w.index.Rebuild(t.Context(), nil), w.index.Erase(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	work.Wait()
	if got := w.find(t, Query{Text: "rio", Limit: 7}, everything); len(got) != 60 {
		t.Errorf("%d of 60 are found", len(got))
	}
	cancel()
	running.Wait()
	if err := w.index.Close(); err != nil {
		t.Error(err)
	}
}
