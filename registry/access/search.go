package access

import (
	"context"
	"iter"
	"os"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/search"
)

// searchVariable names the folder of the search index in the environment, as the setting of a
// server with that name does.
const searchVariable = "STELE_SEARCH_INDEX"

// SearchIndex opens the search index of the registry, unless it is open.
func (f *Local) SearchIndex(ctx context.Context) (*search.Index, error) {
	r := f.Registry
	if r.Search != nil {
		return r.Search.Index, nil
	}
	folder := os.Getenv(searchVariable)
	if folder == "" && r.Place() != (registry.Place{}) {
		var err error
		if folder, err = r.Place().SearchFolder(); err != nil {
			return nil, err
		}
	}
	if err := r.OpenSearch(ctx, folder, nil); err != nil {
		return nil, err
	}
	return r.Search.Index, nil
}

// Index keeps the search index up with what is committed from now on. The function that it
// returns waits until all of that is indexed, or its context ends.
func (l *Registry) Index(ctx context.Context) (finish func(context.Context) error, err error) {
	f, near := l.Backend.(*Local)
	if !near {
		return nil, &stele.Error{Op: "search", Kind: stele.Invalid, Err: stele.Messagef("search.index-of-server", "a server keeps its search index by itself; leave out --index")}
	}
	index, err := f.SearchIndex(ctx)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { _ = index.KeepUp(running) }) // what it misses is indexed at the end
	return func(ctx context.Context) error {
		cancel()
		work.Wait()
		return index.CatchUp(ctx)
	}, nil
}

// Search yields the records that a query asks for. It indexes what is not in the index yet
// before.
func (f *Local) Search(ctx context.Context, q remote.SearchQuery) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		index, err := f.SearchIndex(ctx)
		if err == nil {
			err = index.CatchUp(ctx)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		ask := search.Query{
			Text: q.Text, Namespace: q.Namespace, State: q.State, Visibility: search.Visibility(q.Visibility), By: q.By,
			ModifiedFrom: q.From, ModifiedBefore: q.Before, Limit: search.MaxLimit,
		}
		if q.Host != "" {
			ask.Host = stele.Target{URL: "https://" + q.Host + "/"}.Host()
		}
		for count := uint64(0); ; {
			page, err := f.Registry.Search.Find(ctx, ask)
			if err != nil {
				yield(nil, err)
				return
			}
			if page.Behind() > 0 && q.Behind != nil && ask.Cursor == 0 {
				q.Behind(page.Behind())
			}
			for _, rec := range page.Records {
				if !yield(rec, nil) {
					return
				}
				if count++; count == q.Limit {
					return
				}
			}
			if ask.Cursor = page.Next; ask.Cursor == 0 {
				return
			}
		}
	}
}
