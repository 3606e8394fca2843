package usage

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// askedStore counts how often cells are asked for.
type askedStore struct {
	stele.Store
	scans, cells, reads int
}

func (s *askedStore) Cell(ctx context.Context, name string) ([]byte, error) {
	s.reads++
	return s.Store.Cell(ctx, name)
}

func (s *askedStore) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	s.scans++
	return func(yield func(stele.Cell, error) bool) {
		for c, err := range s.Store.Cells(ctx, prefix, after) {
			s.cells++
			if !yield(c, err) {
				return
			}
		}
	}
}

// manyNames is how many names a year's report is made of.
const manyNames = 100_000

// year returns the book of a namespace of many names that were used in two months of a year.
func year(tb testing.TB, names int) (*Book, *askedStore, context.Context) {
	tb.Helper()
	h := &house{now: noon}
	store := &askedStore{Store: mem.New(h.clock)}
	schemes, err := all.New(all.Config{Now: h.clock})
	if err != nil {
		tb.Fatal(err)
	}
	r := registrar.New(store, schemes, registrar.Options{Now: h.clock})
	admin := auth.With(tb.Context(), auth.Local())
	if _, err := r.AddNamespace(admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345"}); err != nil {
		tb.Fatal(err)
	}
	once := appendMonth(nil, &Month{Days: []Day{{3, Counts{Regulars: 1}}}})
	month := DateOf(noon).number()
	var changes []stele.CellChange
	for n := range names {
		for _, m := range []int{month - 7, month} {
			changes = append(changes, stele.CellChange{Name: recordCell(stele.StoredID("ark", fmt.Sprintf("ark:12345/%06d", n)), m), After: once})
		}
		if len(changes) >= cellsAtOnce || n == names-1 {
			if err := r.KeepUsage(admin, changes...); err != nil {
				tb.Fatal(err)
			}
			changes = changes[:0]
		}
	}
	for m := range 12 {
		space := appendMonth(nil, &Month{Days: []Day{{3, Counts{Regulars: uint64(names)}}}})
		if err := r.KeepUsage(admin, stele.CellChange{Name: spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, month-m), After: space}); err != nil {
			tb.Fatal(err)
		}
	}
	*store = askedStore{Store: store.Store}
	return &Book{Registrar: r, Schemes: schemes}, store, admin
}

// TestYear checks that a year's report of a namespace of 100,000 names is one ordered scan: of a cell for each month if it is by month, and of each
// cell of its names once if it is by name.
func TestYear(t *testing.T) {
	book, store, admin := year(t, manyNames)
	for _, c := range []struct {
		q           apijson.UsageQuery
		rows, cells int
		scans       int // one of names is for journals, of which there are none
	}{
		{apijson.UsageQuery{Name: "ark:12345"}, 12, 12, 1},
		{apijson.UsageQuery{Name: "ark:12345", By: "name"}, manyNames, 2 * manyNames, 2},
		{apijson.UsageQuery{Name: "ark:12345", By: "name", Limit: 100}, 100, 2 * manyNames, 2},
		{apijson.UsageQuery{Name: "ark:12345/0", By: "day"}, 2, 2 * manyNames, 2},
	} {
		*store = askedStore{Store: store.Store}
		r, err := book.Report(admin, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rows) != c.rows || store.scans != c.scans || store.cells != c.cells || store.reads > 1 { // the time when counting began
			t.Errorf("%+v: %d rows, %d scans of %d cells, %d reads", c.q, len(r.Rows), store.scans, store.cells, store.reads)
		}
	}
}

// BenchmarkYear makes the report of a year by name.
func BenchmarkYear(b *testing.B) {
	book, _, admin := year(b, manyNames)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := book.Top(admin, "ark:12345", "", "", 100); err != nil {
			b.Fatal(err)
		}
	}
}
