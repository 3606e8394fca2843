package search

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// counted is a store that counts the records that are read.
type counted struct {
	stele.Store
	reads int
}

func (c *counted) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	c.reads++
	return c.Store.Record(ctx, name)
}

// TestRecent: the records of a page are read once. What changed is read again, and a search that has not
// caught up with the registry reads all.
func TestRecent(t *testing.T) {
	source := &counted{Store: mem.New(func() time.Time { return clock })}
	put := func(id, title string, version uint64) {
		t.Helper()
		r := newRecord(id, title)
		r.Version = version
		if err := source.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		put(fmt.Sprintf("ark:12345/x%d", i), "rios", 1)
	}
	x, err := Open(t.Context(), Options{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	find := func(reads int, titles ...string) {
		t.Helper()
		source.reads = 0
		page, err := x.Find(t.Context(), &Query{Limit: 5}, everything)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range page.Records {
			got = append(got, r.Metadata[stele.What])
		}
		if want := strings.Join(titles, ","); strings.Join(got, ",") != want {
			t.Errorf("found %v, want %s", got, want)
		}
		if source.reads != reads {
			t.Errorf("read %d records, want %d", source.reads, reads)
		}
	}
	find(6, "rios", "rios", "rios", "rios", "rios")
	find(0, "rios", "rios", "rios", "rios", "rios")

	put("ark:12345/x8", "mar", 2)
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	find(1, "mar", "rios", "rios", "rios", "rios")
	find(0, "mar", "rios", "rios", "rios", "rios")

	x.turn <- struct{}{} // another goroutine writes the index, for longer than the search waits
	x.patience = time.Millisecond
	put("ark:12345/x8", "serra", 3)
	find(6, "serra", "rios", "rios", "rios", "rios")
	<-x.turn
	x.patience = Patience
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	find(1, "serra", "rios", "rios", "rios", "rios")

	// What a copy says that lags, or lagged while it was read, may be earlier than the index, and is not kept.
	since, lags := time.Unix(1, 0), true
	x.o.Lagging = func() (time.Time, bool) { return since, lags }
	find(6, "serra", "rios", "rios", "rios", "rios")
	lags = false
	find(0, "serra", "rios", "rios", "rios", "rios")
	put("ark:12345/x8", "ilha", 4)
	if err := x.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := 0
	x.o.Lagging = func() (time.Time, bool) {
		calls++
		return time.Unix(int64(calls), 0), false // it lagged between two calls
	}
	find(1, "ilha", "rios", "rios", "rios", "rios")
	find(1, "ilha", "rios", "rios", "rios", "rios")
}

// TestRecentBounds: what is kept is of one generation, and bounded.
func TestRecentBounds(t *testing.T) {
	one, other := stele.NewGenerationID(), stele.NewGenerationID()
	var r recent
	list := make([]candidate, 3*maxRecent)
	for i := range list {
		rec := newRecord(fmt.Sprintf("ark:12345/x%d", i), "rios")
		if i == len(list)-1 {
			rec.Metadata[stele.What] = strings.Repeat("rio ", maxRecentSize)
		}
		list[i] = candidate{number: uint64(i), id: rec.ID, record: rec}
	}
	r.keep(one, list)
	ask := func(generation stele.GenerationID, i int) bool {
		asked := []candidate{{number: list[i].number, id: list[i].id}}
		missing := r.fill(generation, asked)
		if (missing == 0) != (asked[0].record == list[i].record) {
			t.Errorf("document %d: %d are missing, and the record is %v", i, missing, asked[0].record)
		}
		return missing == 0
	}
	for i, want := range map[int]bool{0: false, maxRecent: false, 2 * maxRecent: true, len(list) - 2: true, len(list) - 1: false} {
		if ask(one, i) != want {
			t.Errorf("document %d is kept: %t", i, !want)
		}
	}
	if ask(other, 2*maxRecent) {
		t.Error("a record of another generation is used")
	}
	r.keep(other, list[:1])
	if !ask(other, 0) || ask(other, 2*maxRecent) || ask(one, 2*maxRecent) {
		t.Error("records of an earlier generation are kept")
	}
}
