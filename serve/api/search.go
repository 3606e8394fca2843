package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/search"
)

func (h *Handler) searchOperations() []operation {
	return []operation{{
		name: "searchRecords", method: http.MethodGet, path: "search", group: "Records",
		summary: "Search records by words",
		about: "The records that were changed last come first. A record is found if it has all words of q in its names, its metadata or the URLs of its targets, in upper or lower case, with or without diacritics; " +
			"riv* stands for all words that begin so, and words in double quotes must follow each other. A URL or a host is found by its words. If q is the name of a record, in any spelling, the answer has that record only. " +
			"The search has the records of namespaces in which the caller is a reader. What was written before the request is found, unless the index is behind: the answer says so.",
		asks: known, scope: auth.ScopeRead,
		query: []parameter{
			{name: "q", max: search.MaxText, about: "words, a name, a URL or a host; without it all records are found that the other parameters ask for", example: "rivers para"},
			{name: "namespace", about: "only those whose identifiers begin with this prefix, or are of this scheme", example: "ark:12345"},
			{name: "state", choices: []string{string(stele.Reserved), string(stele.Active), string(stele.Withdrawn)}, about: "only those in this state"},
			{name: "visibility", choices: []string{string(search.Public), string(search.Restricted)}, about: "only those that are public, or restricted to some readers"},
			{name: "host", max: search.MaxFilter, about: "only those with a target on this host", example: "example.org"},
			{name: "by", max: search.MaxFilter, about: "only those that this user has changed last", example: "ann"},
			{name: "after", kind: momentKind, about: "only those that were changed last at this time or later", example: "2026-11-01T00:00:00Z"},
			{name: "before", kind: momentKind, about: "only those that were changed last before this time"},
			{name: "registeredAfter", kind: momentKind, about: "only those that were registered at this time or later"},
			{name: "registeredBefore", kind: momentKind, about: "only those that were registered before this time"},
			limitParameter,
			cursorParameter,
		},
		answers: []answer{{status: 200, about: "A page of what was found.", value: apijson.SearchPage{}}},
		gathers: true,
		serve:   h.searchRecords,
	}}
}

// searchRecords searches records.
func (h *Handler) searchRecords(c *call) error {
	if h.o.Search == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: stele.Messagef("search.index-missing", "this server has no search index; its log says why")}
	}
	q, err := h.searchQuery(c)
	if err != nil {
		return err
	}
	found, err := h.o.Search.Find(c.ctx, q)
	if err != nil {
		return err
	}
	page := newPage(c)
	for i, rec := range found.Records {
		if len(page.body) >= maxPage {
			found.Next = found.Documents[i-1]
			break
		}
		page.addRecord(rec)
	}
	b := append(page.body, ']')
	if found.Next > 0 {
		b = append(b, `,"next":"`...)
		b = append(append(b, h.cursor(strconv.FormatUint(found.Next, 10))...), '"')
	}
	b = strconv.AppendUint(append(b, `,"indexed":`...), found.At.Change, 10)
	b = strconv.AppendUint(append(b, `,"behind":`...), found.Behind(), 10)
	return c.replyJSON(http.StatusOK, append(b, '}'))
}

// searchQuery reads what a request asks for.
func (h *Handler) searchQuery(c *call) (q search.Query, err error) {
	q = search.Query{
		Text: c.text("q"), State: stele.State(c.text("state")), Visibility: search.Visibility(c.text("visibility")), By: c.text("by"), Limit: int(c.number("limit")),
		ModifiedFrom: given(c, "after"), ModifiedBefore: given(c, "before"), CreatedFrom: given(c, "registeredAfter"), CreatedBefore: given(c, "registeredBefore"),
	}
	if host := c.text("host"); host != "" {
		q.Host = stele.Target{URL: "https://" + host + "/"}.Host()
	}
	if prefix := c.text("namespace"); prefix != "" {
		if q.Namespace, err = h.beginning(prefix); err != nil {
			return q, amiss(c, "namespace", err)
		}
	}
	if cursor := c.text("cursor"); cursor != "" {
		text, err := h.readCursor(cursor)
		if err != nil {
			return q, err
		}
		if q.Cursor, err = strconv.ParseUint(text, 10, 64); err != nil || q.Cursor == 0 {
			return q, invalidf("page.search-cursor-invalid", `"{cursor}" is not a cursor of a search; use next of the page before as it is`, cursor)
		}
	}
	return q, nil
}

// given returns the time in a parameter; zero if it is not there.
func given(c *call, name string) (t time.Time) {
	if c.text(name) != "" {
		t = c.moment(name)
	}
	return t
}
