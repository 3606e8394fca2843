package remote

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// pageSize is how many items a page of a list has: the maximum of the API.
const pageSize = 1000

// Listing selects records of a registry.
type Listing struct {
	// Key is what their identifiers begin with. The zero key stands for all, and needs At.
	Key stele.NamespaceKey

	At    stele.Location // records with a target there; zero: all
	State stele.State    // records in this state; "": all
	After string         // records after this identifier, or for a Key after this text
	Limit uint64         // at most so many; 0: all
}

// List yields the records that a listing selects, in order. The user must be a reader of
// the namespace; List leaves out records that the user may not see.
func (r *Registry) List(ctx context.Context, l Listing) iter.Seq2[*stele.Record, error] {
	limit := uint64(pageSize)
	if l.Limit > 0 {
		limit = min(limit, l.Limit)
	}
	query := url.Values{"limit": {strconv.FormatUint(limit, 10)}}
	if l.Key.Scheme != "" {
		query.Set("prefix", l.Key.String())
	}
	switch {
	case l.At.URL != "":
		query.Set("pointing", l.At.URL)
	case l.At.Host != "":
		query.Set("pointing", l.At.Host)
	}
	if l.State != "" {
		query.Set("state", string(l.State))
	}
	if after := textOf(l.After); after != "" {
		query.Set("after", after)
	}
	q := &ask{method: http.MethodGet, path: "records", query: query, again: true}
	if textOf(l.After) == l.After {
		return r.pages(ctx, "list", q, l.Limit)
	}
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range r.pages(ctx, "list", q, 0) {
			if err == nil && rec.ID.String() <= l.After {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
			if l.Limit--; l.Limit == 0 {
				return
			}
		}
	}
}

// textOf returns the beginning of a text, up to the first character that servers refuse.
// Callers put such a character at the end of a name to skip all names that begin with it.
func textOf(text string) string {
	for i, c := range text {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			return text[:i]
		}
	}
	return text
}

// pages yields the records of a list, page by page, at most limit unless that is 0.
func (r *Registry) pages(ctx context.Context, op string, q *ask, limit uint64) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		count := uint64(0)
		for item, err := range r.items(ctx, q) {
			var rec *stele.Record
			if err == nil {
				rec, err = r.readRecord(item)
			}
			if !yield(rec, under(op, stele.ID{}, err)) || err != nil {
				return
			}
			if count++; count == limit {
				return
			}
		}
	}
}

// items yields the items of a list, page by page.
func (r *Registry) items(ctx context.Context, q *ask) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		page := *q
		for cursor := ""; ; {
			a, err := r.call(ctx, &page)
			if err != nil {
				yield(nil, err)
				return
			}
			var list apijson.Page
			if err := a.decode(&list); err != nil {
				yield(nil, err)
				return
			}
			for _, item := range list.Items {
				if !yield(item, nil) {
					return
				}
			}
			if list.Next == "" || list.Next == cursor {
				return
			}
			cursor = list.Next
			page.query = url.Values{"cursor": {cursor}}
			for name, values := range q.query {
				if name != "after" { // the cursor replaces it
					page.query[name] = values
				}
			}
		}
	}
}

// Export yields the records whose names begin with key, in order and without their version
// numbers; with history all versions of each, the oldest first. The user must be a reader of
// the namespace.
func (r *Registry) Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error] {
	q := &ask{method: http.MethodGet, path: "export", again: true, query: url.Values{"prefix": {key.String()}, "history": {strconv.FormatBool(history)}}}
	return func(yield func(*stele.Record, error) bool) {
		s, err := r.open(ctx, q, nil, r.o.Timeout)
		if err != nil {
			yield(nil, under("export", stele.ID{}, err))
			return
		}
		defer s.Close()
		for text, err := range textLines(s) {
			var rec *stele.Record
			if err == nil {
				rec, err = r.readRecord(text)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// ExportLines writes the lines of an export as the server writes them: records, and with namespaces these before
// them, how far their minters are, and which bytes names stand for. Without a key it exports everything, which takes an
// administrator.
func (r *Registry) ExportLines(ctx context.Context, key stele.NamespaceKey, namespaces, history bool, out io.Writer, progress func(rows int)) error {
	q := &ask{method: http.MethodGet, path: "export", again: true, query: url.Values{"history": {strconv.FormatBool(history)}, "namespaces": {strconv.FormatBool(namespaces)}}}
	if key.Scheme != "" {
		q.query.Set("prefix", key.String())
	}
	s, err := r.open(ctx, q, nil, r.o.Timeout)
	if err != nil {
		return under("export", stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return err
		}
		if !json.Valid(text) {
			return unread(stele.Messagef("api.export-line-unreadable", "a line of the export is not JSON"))
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
		if progress != nil {
			progress(1)
		}
	}
	return nil
}
