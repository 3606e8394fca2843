package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// gathering is a store that reads many records at once.
type gathering struct {
	stele.Store
	t    *testing.T
	asks int // how often it was asked for several
	most int // how many at once
}

func (g *gathering) Gather(ctx context.Context, names []stele.ID) (list []*stele.Record, err error) {
	if !slices.IsSortedFunc(names, stele.ID.Compare) {
		g.t.Errorf("the names are not in order: %v", names)
	}
	g.asks, g.most = g.asks+1, max(g.most, len(names))
	for _, name := range names {
		r, err := g.Record(ctx, name)
		if err != nil && !errors.Is(err, stele.NotFound) {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// TestGathered: a store that reads many records at once is asked for as many as a page may need, and the
// pages are those that a store gives one by one.
func TestGathered(t *testing.T) {
	store := mem.New(func() time.Time { return clock })
	for i := range 300 {
		title := "rios"
		if i%3 == 0 {
			title = "os rios e o mar"
		}
		r := newRecord(fmt.Sprintf("ark:12345/x%d", i*7919%300), title)
		r.Version = 1
		if err := store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	many := &gathering{Store: store, t: t}
	indexes := make(map[bool]*Index)
	for both, source := range map[bool]Source{false: store, true: many} {
		x, err := Open(t.Context(), Options{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if err := x.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		indexes[both] = x
	}
	for _, text := range []string{"", "rios", `"rios e o mar"`, `"mar rios"`, "ri*", "x7919"} {
		for _, limit := range []int{1, 7, 50, 200} {
			many.asks, many.most = 0, 0
			indexes[false].recent.places, indexes[true].recent.places = nil, nil
			q := Query{Text: text, Limit: limit}
			for n := 0; ; n++ {
				one, err := indexes[false].Find(t.Context(), &q, everything)
				if err != nil {
					t.Fatal(err)
				}
				together, err := indexes[true].Find(t.Context(), &q, everything)
				if err != nil {
					t.Fatal(err)
				}
				if !cmp.Equal(one.Documents, together.Documents) || one.Next != together.Next || one.Looked != together.Looked ||
					!slices.EqualFunc(one.Records, together.Records, (*stele.Record).Equal) {
					t.Fatalf("%q, page %d of %d: %d records, next %d, looked at %d; together %d, %d, %d", text, n, limit,
						len(one.Records), one.Next, one.Looked, len(together.Records), together.Next, together.Looked)
				}
				if q.Cursor = one.Next; q.Cursor == 0 {
					break
				}
			}
			if text == "rios" && (many.asks == 0 || many.most > min(limit+1, readTogether)) {
				t.Errorf("pages of %d: %d were read together, and %d times", limit, many.most, many.asks)
			}
		}
	}
}
