package search

import (
	"context"
	"errors"
	"strings"

	"github.com/stele-id/stele"
)

// Finder finds records for callers. All fields must be set.
type Finder struct {
	Index   *Index
	Schemes *stele.Schemes

	// Get returns a record by any of its names, if the caller of the context may see it;
	// NotFound otherwise.
	Get func(ctx context.Context, name stele.ID) (*stele.Record, error)

	// Sight returns what the caller of the context may find; within is the prefix to which the
	// search is limited.
	Sight func(ctx context.Context, within stele.NamespaceKey) (Sight, error)
}

// Find returns a page of the records that a query asks for and that the caller may find. A text
// that is a registered name, in any spelling, leads to its record and to no other, if the
// caller may see it. Otherwise it is [Index.Find].
func (f *Finder) Find(ctx context.Context, q Query) (Page, error) {
	sight, err := f.Sight(ctx, q.Namespace)
	if err != nil {
		return Page{}, err
	}
	if q.Cursor == 0 && len(q.Text) <= MaxText {
		record, err := f.named(ctx, &q)
		if err != nil {
			return Page{}, err
		}
		if record != nil {
			s := f.Index.Status()
			return Page{Records: []*stele.Record{record}, Documents: []uint64{0}, At: stele.Position{Change: s.Last}, Last: s.Last}, nil
		}
	}
	return f.Index.Find(ctx, &q, sight)
}

// named returns the record whose name is the text of the query; nil if there is none.
func (f *Finder) named(ctx context.Context, q *Query) (*stele.Record, error) {
	text := strings.TrimSpace(q.Text)
	if text == "" {
		return nil, nil
	}
	id, err := f.Schemes.Parse(text)
	if err != nil {
		return nil, nil // it is not a name
	}
	record, err := f.Get(ctx, id)
	switch {
	case errors.Is(err, stele.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !q.filters(record):
		return nil, nil
	}
	return record, nil
}
