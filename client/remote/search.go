package remote

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// SearchQuery asks for records by words. The zero value asks for all that the user may list.
type SearchQuery struct {
	Text       string             // words, with "riv*" for all that begin so; a phrase in double quotes; a name, a URL, a host
	Namespace  stele.NamespaceKey // what the identifiers begin with; zero: anything
	State      stele.State        // "": any
	Visibility string             // public or restricted; "": any
	Host       string             // that a target is on; "": any
	By         string             // the user who changed it last; "": any

	// Times of the last change, from the first on and before the second; zero: no limit.
	From, Before time.Time

	Limit uint64 // at most so many; 0: all

	// Behind is called once, before the first record, with how many changes of the registry are
	// not searched, if there are some; nil: it is not told.
	Behind func(changes uint64)
}

// Search yields the records that a query asks for, the last changed first, as far as the user may
// list them.
func (r *Registry) Search(ctx context.Context, q SearchQuery) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		query := q.values()
		for count := uint64(0); ; {
			var page apijson.SearchPage
			if err := r.fetch(ctx, "search", &ask{method: http.MethodGet, path: "search", query: query, again: true}, &page); err != nil {
				yield(nil, err)
				return
			}
			if page.Behind > 0 && q.Behind != nil && !query.Has("cursor") {
				q.Behind(page.Behind)
			}
			for _, item := range page.Items {
				rec, err := r.readRecord(item)
				if !yield(rec, under("search", stele.ID{}, err)) || err != nil {
					return
				}
				if count++; count == q.Limit {
					return
				}
			}
			if page.Next == "" || page.Next == query.Get("cursor") {
				return
			}
			query.Set("cursor", page.Next)
		}
	}
}

// values returns the parameters of a query.
func (q *SearchQuery) values() url.Values {
	limit := uint64(pageSize)
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	query := url.Values{"limit": {strconv.FormatUint(limit, 10)}}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("q", q.Text)
	if q.Namespace.Scheme != "" {
		set("namespace", q.Namespace.String())
	}
	set("state", string(q.State))
	set("visibility", q.Visibility)
	set("host", q.Host)
	set("by", q.By)
	if !q.From.IsZero() {
		set("after", q.From.UTC().Format(time.RFC3339Nano))
	}
	if !q.Before.IsZero() {
		set("before", q.Before.UTC().Format(time.RFC3339Nano))
	}
	return query
}
