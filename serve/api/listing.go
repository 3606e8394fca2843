package api

import (
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
)

// prefixParameter is what the names of a list begin with.
var prefixParameter = parameter{name: "prefix", about: "what the identifiers begin with: the prefix of a namespace or below one, a whole name, or a scheme and a colon", example: "ark:12345"}

func (h *Handler) listOperations() []operation {
	return []operation{{
		name: "listRecords", method: http.MethodGet, path: "records", group: "Records",
		summary: "List and search records",
		about: "In the order of their identifiers, for users with the role reader where the prefix belongs. Without a prefix, or with that of a scheme, it is for administrators, unless it is asked what points somewhere. " +
			"Records in namespaces below that one may not list are not there.",
		asks: reader, scope: auth.ScopeRead,
		query: []parameter{
			prefixParameter,
			{name: "pointing", about: "only those with a target at this URL, or on this host", example: "example.org"},
			{name: "state", choices: []string{string(stele.Reserved), string(stele.Active), string(stele.Withdrawn)}, about: "only those in this state"},
			limitParameter,
			{name: "after", about: "only those that come after this text"},
			cursorParameter,
		},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.RecordPage{}}},
		gathers: true,
		serve:   h.listRecords,
	}, {
		name: "getHistory", method: http.MethodGet, path: "history/{id}", group: "Records", tail: identifier,
		summary: "Show all versions of a record",
		about:   "The newest first. Content is left out of versions that the caller could not have seen, of those before a redaction, and, for callers who may not change the record, of disavowed ones.",
		asks:    anyone, scope: auth.ScopeRead,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of versions.", value: apijson.RecordPage{}}},
		fails:   []int{404},
		gathers: true,
		serve:   h.getHistory,
	}}
}

// maxScanned is how many records are looked at for one page.
const maxScanned = 10_000

// listRecords lists records.
func (h *Handler) listRecords(c *call) error {
	want, err := h.wanted(c)
	if err != nil {
		return err
	}
	page := newPage(c)
	for rec, err := range want.from {
		if err != nil {
			return err
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(rec.ID.String())
		if want.has(rec) {
			page.addRecord(rec)
		}
	}
	return page.end()
}

// selection is what a query asks for: those of a list that begin with a prefix and are
// in a state.
type selection struct {
	from  iter.Seq2[*stele.Record, error]
	key   stele.NamespaceKey // zero: all
	state stele.State        // "": any
}

func (s *selection) has(rec *stele.Record) bool {
	return (s.state == "" || rec.State == s.state) &&
		(s.key.Scheme == "" || rec.ID.Scheme() == s.key.Scheme && strings.HasPrefix(rec.ID.String(), s.key.Prefix))
}

// wanted returns what a query asks for.
func (h *Handler) wanted(c *call) (*selection, error) {
	after, err := c.after()
	if err != nil {
		return nil, err
	}
	want := &selection{state: stele.State(c.text("state"))}
	if prefix := c.text("prefix"); prefix != "" {
		if want.key, err = h.beginning(prefix); err != nil {
			return nil, amiss(c, "prefix", err)
		}
	}
	switch place := c.text("pointing"); {
	case place != "":
		want.from, err = h.pointing(c, place, want.key, after)
	case want.key.Scheme == "":
		want.from, err = h.scanAll(c, after)
	default:
		want.from = h.o.Registrar.Scan(c.ctx, want.key, after)
	}
	return want, err
}

// amiss says what is wrong with a parameter.
func amiss(c *call, name string, err error) error {
	return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: name, Err: stele.Reason(err)}}}
}

// scanAll yields the records of all schemes, in order, after a name.
func (h *Handler) scanAll(c *call, after string) (iter.Seq2[*stele.Record, error], error) {
	var from stele.ID
	if after != "" {
		var err error
		if from, err = h.o.Schemes.Parse(after); err != nil {
			return nil, amiss(c, "after", err)
		}
	}
	var schemes []string
	for scheme := range h.o.Schemes.All() {
		schemes = append(schemes, scheme.Name())
	}
	slices.Sort(schemes)
	return func(yield func(*stele.Record, error) bool) {
		for _, scheme := range schemes {
			after := ""
			switch {
			case scheme < from.Scheme():
				continue
			case scheme == from.Scheme():
				after = from.String()
			}
			for rec, err := range h.o.Registrar.Scan(c.ctx, stele.NamespaceKey{Scheme: scheme}, after) {
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}, nil
}

// pointing yields the records that have a target at a URL or on a host. A caller that may not
// list what begins with the prefix gets Forbidden, and not an empty list.
func (h *Handler) pointing(c *call, place string, key stele.NamespaceKey, after string) (iter.Seq2[*stele.Record, error], error) {
	if key.Scheme != "" {
		role, err := h.o.Registrar.RoleIn(c.ctx, key)
		if err != nil {
			return nil, err
		}
		if !role.Includes(stele.RoleReader) {
			return nil, &stele.Error{Op: c.op.name, Kind: stele.Forbidden, Err: stele.Messagef("request.listing-forbidden", `"{user}" may not list {namespace}; ask an administrator, or ask without a prefix`, c.who.Name, key)}
		}
	}
	at := stele.Location{URL: place}
	if !strings.Contains(place, "://") {
		at = stele.Location{Host: strings.ToLower(strings.Trim(place, "[]"))}
	}
	var last stele.ID
	if after != "" {
		var err error
		if last, err = h.o.Schemes.Parse(after); err != nil {
			return nil, amiss(c, "after", err)
		}
	}
	return h.o.Registrar.Pointing(c.ctx, at, last), nil
}

// beginning reads what the names of a list begin with.
func (h *Handler) beginning(text string) (stele.NamespaceKey, error) {
	key, err := h.o.Registrar.ParsePrefix(text)
	if err == nil {
		return key, nil
	}
	id, noName := h.o.Schemes.Parse(text)
	if noName != nil {
		return key, err
	}
	return stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}, nil
}

// getHistory shows all versions of a record.
func (h *Handler) getHistory(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	after, err := c.after()
	if err != nil {
		return err
	}
	before := uint64(math.MaxUint64)
	if after != "" {
		if before, err = strconv.ParseUint(after, 10, 64); err != nil {
			return invalidf("page.history-cursor-invalid", `"{cursor}" is not a cursor of a history; use next of the page before as it is`, after)
		}
	}
	page := newPage(c)
	for rec, err := range h.o.Registrar.HistoryBefore(c.ctx, id, before) {
		if err != nil {
			return h.meant(c, id, err)
		}
		if page.isFull() {
			return page.reply()
		}
		if rec, err = h.visible(c, rec); err != nil {
			return err
		}
		page.pass(strconv.FormatUint(rec.Version, 10))
		page.addRecord(rec)
	}
	return page.end()
}

// after returns the name after which a list goes on: the cursor's, or the parameter's.
func (c *call) after() (string, error) {
	cursor := c.text("cursor")
	if cursor == "" {
		return c.text("after"), nil
	}
	return c.h.readCursor(cursor)
}

// page is a page of a list in the making.
type page struct {
	c       *call
	body    []byte // of the answer, as far as it is made
	count   uint64
	limit   uint64
	scanned int
	last    string // the last that was looked at
}

func newPage(c *call) *page {
	return &page{c: c, limit: c.number("limit"), body: []byte(`{"items":[`)}
}

// isFull reports whether another page begins now.
func (p *page) isFull() bool {
	return p.count >= p.limit || p.scanned >= maxScanned || len(p.body) >= maxPage
}

// pass notes what is looked at, from where the next page goes on.
func (p *page) pass(name string) { p.last, p.scanned = name, p.scanned+1 }

// add adds an item in JSON.
func (p *page) add(item []byte) {
	if p.count > 0 {
		p.body = append(p.body, ',')
	}
	p.body = append(p.body, item...)
	p.count++
}

// addRecord adds a record.
func (p *page) addRecord(rec *stele.Record) {
	if p.count > 0 {
		p.body = append(p.body, ',')
	}
	p.body = document.AppendRecord(p.body, rec)
	p.count++
}

// addValue adds an item.
func (p *page) addValue(v any) error {
	item, err := json.Marshal(v)
	if err != nil {
		return &stele.Error{Op: p.c.op.name, Kind: stele.Internal, Err: err}
	}
	p.add(item)
	return nil
}

// reply answers with a page that another one follows.
func (p *page) reply() error {
	b := append(p.body, `],"next":"`...)
	b = append(b, p.c.h.cursor(p.last)...)
	return p.c.replyJSON(http.StatusOK, append(b, `"}`...))
}

// end answers with the last page.
func (p *page) end() error {
	return p.c.replyJSON(http.StatusOK, append(p.body, `]}`...))
}
