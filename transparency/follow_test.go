package transparency

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/offered"
	"github.com/stele-id/stele/internal/recordtest"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/pebble"
)

// counted counts the records that are read.
type counted struct {
	stele.Store
	read atomic.Int64
}

func (c *counted) Gather(ctx context.Context, ids []stele.ID) ([]*stele.Record, error) {
	c.read.Add(int64(len(ids)))
	return c.Store.(stele.Gatherer).Gather(ctx, ids)
}

func (c *counted) Record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	c.read.Add(1)
	return c.Store.Record(ctx, id)
}

func (c *counted) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	c.read.Add(1)
	return c.Store.Version(ctx, id, version)
}

// inFolder opens a Pebble store for a test.
func inFolder(t testing.TB) func(now func() time.Time) stele.Store {
	return func(now func() time.Time) stele.Store {
		s, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{Now: now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// importAll imports records, as bulk does.
func (h *house) importAll(first, count int) {
	h.Helper()
	for ; count > 0; first, count = first+4000, count-4000 {
		list, at := make([]*stele.Record, 0, 4000), h.clock()
		for i := range min(count, 4000) {
			n := first + i
			list = append(list, &stele.Record{
				ID: h.id(fmt.Sprintf("ark:%d/i%d", 12345+n%2*87654, n)), State: stele.Active, Created: at, Modified: at,
				Targets:  []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/%d", n), Order: 100, Preference: 10}},
				Metadata: stele.Metadata{"what": fmt.Sprintf("Thing %d", n), "who": "Gomes, Ana", "when": "1992"}, By: "ana", Version: 1, Import: 3,
			})
		}
		errs, err := h.store.Ingest(h.ctx, list, nil, nil, nil)
		h.must(err)
		for _, err := range errs {
			h.must(err)
		}
		h.log.Offer(list)
		h.log.Notify()
	}
}

// While an import runs the log keeps up by whole blocks, reads nothing that it was offered, and has merged runs of its index.
func TestLogKeepsUp(t *testing.T) {
	source := new(counted)
	h := newHouse(t, func(now func() time.Time) stele.Store { source.Store = inFolder(t)(now); return source })
	ctx, stop := context.WithCancel(h.ctx)
	ended := make(chan error)
	go func() { ended <- h.log.KeepUp(ctx) }()
	for h.log.following.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	const imported = 9*blockLeaves + 100
	h.importAll(0, imported)
	stop()
	h.must(<-ended)
	h.catchUp()
	if n := source.read.Load(); n > 0 {
		t.Errorf("%d records were read that were offered", n)
	}
	if h.log.offers.Size() != 0 || h.log.offers.Left() != 0 {
		t.Errorf("%d bytes of records are kept", h.log.offers.Size())
	}
	// Some change again, some are new and are not offered.
	for i := range 300 {
		h.put(fmt.Sprintf("ark:99999/i%d", 2*i+1), "https://example.org/2")
		h.put(fmt.Sprintf("ark:12345/new%d", i), "https://example.org/2")
	}
	h.catchUp()
	h.wantSound()
	p, err := h.log.load(h.ctx)
	h.must(err)
	if p.Size != imported+2+600 || p.Indexed != 9 || len(p.Merged) != 0 {
		t.Errorf("%d leaves, %d blocks in the index, %d to be removed", p.Size, p.Indexed, len(p.Merged))
	}
	left := map[string]int{}
	for c, err := range h.r.LogList(h.ctx, "log index ", "") {
		h.must(err)
		left[c.Name[:len("log index 0")]]++
	}
	if left["log index 0"] != 1<<parts(0) || left["log index 1"] != 1<<parts(1) {
		t.Errorf("cells of the index: %v", left)
	}
}

// Offers of an import wait for room as long as the log keeps up, and no longer.
func TestLogOfferWaits(t *testing.T) {
	source := new(counted)
	h := newHouse(t, func(now func() time.Time) stele.Store { source.Store = inFolder(t)(now); return source })
	h.log.offers = offered.New(9000 * 150) // two lists of 4000, or a little more
	ctx, stop := context.WithCancel(h.ctx)
	ended := make(chan error)
	go func() { ended <- h.log.KeepUp(ctx) }()
	for h.log.keeping.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	const imported = 10 * 4000
	h.importAll(0, imported)
	stop()
	h.must(<-ended)
	h.catchUp()
	if n := source.read.Load(); n > imported/2 {
		t.Errorf("%d of %d records were read that were offered", n, imported)
	}
	if h.log.offers.Size() != 0 {
		t.Errorf("%d bytes of records are kept", h.log.offers.Size())
	}
	h.importAll(imported, 100) // nothing follows, and nothing waits
	if h.log.offers.Size() != 0 {
		t.Errorf("%d bytes of records are kept that nothing follows", h.log.offers.Size())
	}
}

// What was offered too late, or is not what was committed, is not kept, and not logged.
func TestLogOfferedLate(t *testing.T) {
	h := newHouse(t, nil)
	h.log.following.Add(1)
	h.importAll(0, 10)
	h.catchUp()
	other, err := h.store.Record(h.ctx, h.id("ark:12345/i0"))
	h.must(err)
	h.log.Offer([]*stele.Record{other})
	h.put("ark:12345/i0", "https://example.org/2")
	h.catchUp()
	if h.log.offers.Size() != 0 || h.log.offers.Left() != 0 {
		t.Errorf("%d bytes of records are kept", h.log.offers.Size())
	}
	h.wantSound()
}

// The leaf that is made from memory that is used again is the one that is made again from what is kept.
func TestLogMakesTheSame(t *testing.T) {
	m := new(maker)
	rapid.Check(t, func(t *rapid.T) {
		e := entry{
			change: stele.Change{Seq: 5, ID: recordtest.GoodID.Draw(t, "id"), Version: rapid.Uint64().Draw(t, "version"), At: recordtest.GoodTime.Draw(t, "at")},
			listed: rapid.Bool().Draw(t, "listed"),
		}
		copy(e.seed[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "seed"))
		copy(e.key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
		switch rapid.IntRange(0, 4).Draw(t, "of") {
		case 0:
			e.space = recordtest.GoodNamespace.Draw(t, "namespace")
			e.change.ID, e.change.Namespace = stele.ID{}, e.space.Key()
		case 1: // it was not kept
		case 2:
			e.record = recordtest.AnyRecord.Draw(t, "any record")
		default:
			e.record = recordtest.GoodRecord.Draw(t, "record")
		}
		m.make(&e)
		kind, name := subject(&e.change)
		leaf := Leaf{Kind: kind, Name: name, Version: e.change.Version, At: e.change.At}
		if !e.listed {
			leaf.Name, leaf.Blind = "", Blind(e.key, kind, name)
		}
		if d, ok := documentsOf(&e); ok {
			public, full := e.seed.salts()
			leaf.Form, leaf.Public, leaf.Full = leafForm, Digest(public, d.public), Digest(full, d.full)
		}
		if leaf.Hash() != e.kept.hash || (leaf.Form != 0) != (e.kept.flags&flagNoted != 0) {
			t.Fatalf("another leaf than %s", leaf.Append(nil))
		}
	})
}

// documents are the two documents of a version.
type documents struct{ public, full []byte }

// documentsOf returns the documents of an entry, each written for itself. False if there are none.
func documentsOf(e *entry) (d documents, ok bool) {
	var err error
	switch {
	case e.record != nil:
		if d.full, err = document.CanonicalRecord(e.record); err != nil {
			return d, false
		}
		d.public = []byte(noDocument)
		if p := PublicRecord(e.record); p != nil {
			d.public, err = document.CanonicalRecord(p)
		}
	case e.space != nil:
		if d.full, err = document.CanonicalNamespace(e.space); err != nil {
			return d, false
		}
		d.public, err = document.CanonicalNamespace(PublicNamespace(e.space))
	default:
		return d, false
	}
	return d, err == nil
}

// Leaves of an import are made without allocations.
func TestLogMakesInPlace(t *testing.T) {
	e := entry{
		change: stele.Change{Seq: 5, ID: stele.StoredID("ark", "ark:12345/x54xz321"), Version: 1, At: time.Unix(1_900_000_000, 5000)},
		record: &stele.Record{ID: stele.StoredID("ark", "ark:12345/x54xz321"), State: stele.Active, Metadata: stele.Metadata{"who": "a", "what": "b", "when": "c"},
			Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1"}}, By: "ana", Created: time.Unix(1_900_000_000, 5000), Version: 1},
	}
	m := new(maker)
	if n := testing.AllocsPerRun(100, func() { m.make(&e) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// BenchmarkCatchUp logs an import that was not offered, and one that was.
func BenchmarkCatchUp(b *testing.B) {
	for name, offered := range map[string]bool{"read": false, "offered": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				h := newHouse(b, inFolder(b))
				if offered {
					h.log.following.Add(1)
				}
				h.importAll(0, 100_000)
				b.StartTimer()
				h.catchUp()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/leaf")
		})
	}
}

var _ Keeper = (*registrar.Registrar)(nil)
