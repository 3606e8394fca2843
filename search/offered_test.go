package search

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/offered"
	"github.com/stele-id/stele/store/mem"
)

// countingSource counts the records that are read from a store.
type countingSource struct {
	Source
	read atomic.Int64
}

func (s *countingSource) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	s.read.Add(1)
	return s.Source.Record(ctx, name)
}

// newOffered opens an index over a store that counts.
func newOffered(t *testing.T) (stele.Store, *countingSource, *Index) {
	t.Helper()
	store := mem.New(func() time.Time { return clock })
	source := &countingSource{Source: store}
	x, err := Open(t.Context(), Options{Folder: filepath.Join(t.TempDir(), "index"), Source: source})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return store, source, x
}

// ingested are records of an import, as the store has them.
func ingested(t *testing.T, store stele.Store, from, to int, title string) (list []*stele.Record) {
	t.Helper()
	for i := from; i < to; i++ {
		r := newRecord(fmt.Sprintf("ark:1/x%06d", i), title)
		r.Version = 1
		list = append(list, r)
	}
	errs, err := store.Ingest(t.Context(), list, nil, nil, nil)
	for _, e := range append(errs, err) {
		if e != nil {
			t.Fatal(e)
		}
	}
	return list
}

// countFound returns how many records have a word.
func countFound(t *testing.T, x *Index, word string) (n int) {
	t.Helper()
	q := Query{Text: word, Limit: MaxLimit}
	for {
		page, err := x.Find(t.Context(), &q, everything)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Records)
		if q.Cursor = page.Next; q.Cursor == 0 {
			return n
		}
	}
}

// TestBuildersAreKept checks that an import uses the memory of a block again for the next, and that it is gone when the rest is indexed.
func TestBuildersAreKept(t *testing.T) {
	store, _, x := newOffered(t)
	var used *builder
	for from := range 2 {
		x.Offer(ingested(t, store, from*blockSize, (from+1)*blockSize, "river"))
		if err := x.catchUp(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if x.builders == nil || len(x.builders.list) != 1 || used != nil && x.builders.list[0] != used {
			t.Fatalf("after block %d: %+v", from, x.builders)
		}
		used = x.builders.list[0]
	}
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x.builders != nil {
		t.Errorf("an index that follows keeps %d builders", len(x.builders.list))
	}
	if n := countFound(t, x, "river"); n != 2*blockSize {
		t.Errorf("%d found", n)
	}
}

// TestOffered imports more than a block. Whole blocks are indexed while it runs and the rest at
// the end, and no record that was offered is read from the store.
func TestOffered(t *testing.T) {
	store, source, x := newOffered(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.KeepUp(ctx) }()
	const n = blockSize + 5000
	for from := 0; from < n; from += 15_000 {
		x.Offer(ingested(t, store, from, min(from+15_000, n), "rios"))
		x.Notify()
	}
	for x.Status().Change < blockSize-1 {
		time.Sleep(time.Millisecond)
	}
	if at := x.Status().Change; at != blockSize-1 {
		t.Errorf("indexed up to %d, which is in the middle of a block", at)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := source.read.Load(); got != 0 {
		t.Errorf("%d records were read", got)
	}
	if s := x.Status(); s.Documents != n || x.offers.Size() != 0 || x.offers.Left() != 0 {
		t.Errorf("%d documents; %d bytes are kept", s.Documents, x.offers.Size())
	}
	page, err := x.Find(t.Context(), &Query{Text: "rios", Limit: MaxLimit}, everything)
	if err != nil || len(page.Records) != MaxLimit {
		t.Fatalf("%d records, %v", len(page.Records), err)
	}
}

// TestOfferedNot has records that can't be used as they are offered: some are there in a later
// version, some are offered too late, and of some the version was never committed. The index has
// what the store has.
func TestOfferedNot(t *testing.T) {
	store, source, x := newOffered(t)
	list := ingested(t, store, 0, 30, "rios")
	for _, r := range list[:10] {
		next := *r
		next.Version, next.Metadata = 2, stele.Metadata{"what": "mares"}
		if err := store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{&next}}); err != nil {
			t.Fatal(err)
		}
	}
	never := *list[29]
	never.Version, never.Metadata = 2, stele.Metadata{"what": "lagos"}
	x.Offer(append(list[:20:20], &never))
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rios, mares, lagos := countFound(t, x, "rios"), countFound(t, x, "mares"), countFound(t, x, "lagos"); rios != 20 || mares != 10 || lagos != 0 {
		t.Errorf("found %d, %d and %d", rios, mares, lagos)
	}
	if source.read.Load() == 0 {
		t.Error("nothing was read from the store")
	}
	x.Offer(list[20:]) // they are indexed already
	ingested(t, store, 40, 41, "rios")
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x.offers.Size() != 0 || x.offers.Left() != 0 {
		t.Errorf("%d bytes are kept for ever", x.offers.Size())
	}
}

// slowPosition is a source that lets a commit happen before it says where the feed stands.
type slowPosition struct {
	*countingSource
	before func()
}

func (s *slowPosition) Position(ctx context.Context) (stele.Position, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.countingSource.Position(ctx)
}

// TestOfferedMeanwhile has a commit that is seen in the feed before its records are offered: the
// index uses those that are offered while it reads the feed.
func TestOfferedMeanwhile(t *testing.T) {
	store, source, x := newOffered(t)
	ingested(t, store, 0, 10, "rios")
	x.o.Source = &slowPosition{source, func() { x.Offer(ingested(t, store, 10, 500, "rios")) }}
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := source.read.Load(); got != 10 {
		t.Errorf("%d records were read, not those 10 that were not offered", got)
	}
	if countFound(t, x, "rios") != 500 || x.offers.Size() != 0 {
		t.Errorf("%d records found; %d bytes are kept", countFound(t, x, "rios"), x.offers.Size())
	}
	// The first ones were indexed before they were offered.
	list := ingested(t, store, 500, 600, "rios")
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.read.Store(0)
	x.Offer(append(list, ingested(t, store, 600, 700, "rios")...))
	if err := x.CatchUp(t.Context()); err != nil || source.read.Load() != 0 || countFound(t, x, "rios") != 700 {
		t.Errorf("%d records were read, %d found, %v", source.read.Load(), countFound(t, x, "rios"), err)
	}
}

// TestOfferedBound offers more than fits: the rest is read from the store.
func TestOfferedBound(t *testing.T) {
	store, source, x := newOffered(t)
	list := ingested(t, store, 0, 10, "rios")
	x.offers = offered.New(0)
	x.Offer(list)
	if x.offers.Size() != 0 {
		t.Error("more is kept than fits")
	}
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if source.read.Load() != 10 || countFound(t, x, "rios") != 10 {
		t.Errorf("%d records were read", source.read.Load())
	}
}

// TestOfferedLate has records offered after they were indexed, block by block: they are not kept.
// What was offered is forgotten when the index is erased, since it may be what had to go.
func TestOfferedLate(t *testing.T) {
	store, _, x := newOffered(t)
	list := ingested(t, store, 0, blockSize, "rios")
	if err := x.catchUp(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	x.Offer(list)
	more := ingested(t, store, blockSize, 2*blockSize, "rios")
	x.Offer(more)
	if err := x.catchUp(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if x.offers.Left() != 1 { // that of the last change, which is in the next block
		t.Errorf("%d records are kept", x.offers.Left())
	}
	x.Offer(list[:1])
	if err := x.CatchUp(t.Context()); err != nil || x.offers.Size() != 0 || x.offers.Left() != 0 {
		t.Errorf("%d bytes are kept without a change, %v", x.offers.Size(), err)
	}
	x.Offer(list[:1])
	if err := x.Erase(t.Context()); err != nil || x.offers.Size() != 0 || x.offers.Left() != 0 {
		t.Errorf("%d bytes are kept after the index is erased, %v", x.offers.Size(), err)
	}
}
