package desk

import (
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/web/deskpage"
)

// How many records a list and the first page show.
const (
	pageRows = 50
	homeRows = 10
)

// lastChange says what the last change of a record was.
func (c *call) lastChange(rec *stele.Record) ([]string, error) {
	var before *stele.Record
	if rec.Version > 1 {
		var err error
		if before, err = c.h.o.Registrar.Version(c.ctx, rec.ID, rec.Version-1); err != nil && !errors.Is(err, stele.NotFound) {
			return nil, err
		}
	}
	return c.changes(before, rec), nil
}

// changes says how a version of a record differs from the one before it.
func (c *call) changes(before, rec *stele.Record) (words []string) {
	for _, m := range wording.Changes(before, rec) {
		words = append(words, c.language.Problem(m))
	}
	return words
}

// row returns a record as a list shows it.
func (c *call) row(rec *stele.Record) deskpage.Row {
	row := deskpage.Row{ID: spelled(rec), Title: rec.Metadata["what"], URL: recordURL(rec.ID), State: rec.State, Restricted: len(rec.Readers) > 0, By: rec.By, Modified: rec.Modified}
	if len(rec.Targets) > 0 {
		row.Target = rec.Targets[0].URL
	}
	return row
}

// spelled returns a record's identifier in its owner's spelling.
func spelled(rec *stele.Record) string {
	if rec.Spelling != "" {
		return rec.Spelling
	}
	return rec.ID.String()
}

func recordURL(id stele.ID) string { return Root + "record?id=" + url.QueryEscape(id.String()) }

// query reads what is looked for from the address of the page. Problems are shown beside the form.
func (c *call) query(values url.Values) (*search.Query, []deskpage.Problem) {
	q := &search.Query{Text: strings.TrimSpace(values.Get("q")), State: stele.State(values.Get("state")), Host: strings.ToLower(strings.TrimSpace(values.Get("host"))), By: strings.TrimSpace(values.Get("by")), Limit: pageRows}
	var problems []deskpage.Problem
	add := func(field string, err error) {
		problems = append(problems, deskpage.Problem{Field: field, Text: c.language.Problem(err)})
	}
	if prefix := values.Get("namespace"); prefix != "" {
		key, err := c.h.o.Registrar.ParsePrefix(prefix)
		if err != nil {
			add("namespace", reason(err))
		}
		q.Namespace = key
	}
	if q.State != "" && !slices.Contains(states, q.State) {
		add("state", stele.Messagef("desk.state-unknown", `"{state}" is not a state`, string(q.State)))
	}
	for _, day := range []struct {
		field string
		at    *time.Time
		add   time.Duration
	}{{"since", &q.ModifiedFrom, 0}, {"until", &q.ModifiedBefore, 24 * time.Hour}} {
		text := values.Get(day.field)
		if text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			add(day.field, stele.Messagef("desk.date-invalid", `"{text}" is not a date; write it as 2026-11-16`, text))
			continue
		}
		*day.at = t.Add(day.add)
	}
	if text := values.Get("cursor"); text != "" {
		cursor, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			add("", stele.Messagef("desk.cursor-invalid", "the address of this page is damaged; search again"))
		}
		q.Cursor = cursor
	}
	return q, problems
}

var states = []stele.State{stele.Active, stele.Reserved, stele.Withdrawn}

// names lists records, or searches them.
func (c *call) names() error {
	values := c.r.URL.Query()
	choice, err := c.choices(values.Get("namespace"), false)
	if err != nil {
		return err
	}
	v := &deskpage.Names{Frame: c.frame("names.title", "names"), Choice: choice,
		Host: values.Get("host"), By: values.Get("by"), Since: values.Get("since"), Until: values.Get("until"), Asked: len(values) > 0}
	v.Query = values.Get("q")
	for _, s := range states {
		v.States = append(v.States, deskpage.Option{Value: string(s), Text: c.language.Text("state." + string(s)), Chosen: values.Get("state") == string(s)})
	}
	q, problems := c.query(values)
	if v.Problems = problems; len(problems) > 0 {
		return c.show(http.StatusBadRequest, "names", v)
	}
	if q.Text != "" {
		if id, err := c.h.o.Schemes.Parse(q.Text); err == nil {
			if rec, err := c.h.o.Registrar.Get(c.ctx, id); err == nil { // a name in any spelling leads to its record
				c.redirect(recordURL(rec.ID))
				return nil
			}
		}
	}
	if c.h.o.Find == nil {
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Text("names.no-search")})
		return c.show(http.StatusServiceUnavailable, "names", v)
	}
	v.Same = c.sameNames(q)
	page, err := c.h.o.Find(c.ctx, *q)
	if stele.KindOf(err) == stele.Invalid && err != nil {
		v.Problems = append(v.Problems, deskpage.Problem{Field: "q", Text: c.language.Problem(reason(err))})
		return c.show(http.StatusBadRequest, "names", v)
	} else if err != nil {
		return err
	}
	v.Rows = make([]deskpage.Row, 0, len(page.Records))
	for _, rec := range page.Records {
		v.Rows = append(v.Rows, c.row(rec))
	}
	if page.Next != 0 {
		next := url.Values{}
		for name := range values {
			next.Set(name, values.Get(name))
		}
		next.Set("cursor", strconv.FormatUint(page.Next, 10))
		v.Next = Root + "names?" + next.Encode()
	}
	if len(v.Rows) > 0 {
		values.Del("cursor")
		v.CSV, v.Labels = Root+"names.csv?"+values.Encode(), Root+"labels?"+values.Encode()
	}
	if behind := page.Behind(); behind > 0 {
		v.Notice = c.language.Text("names.behind", "count", int64(behind))
	}
	return c.show(http.StatusOK, "names", v)
}

// namesCSV sends what a search finds as a file. Columns are those of 'stele import'. If it fails on
// its way, the connection is cut off, so that the file is not taken for a whole one.
func (c *call) namesCSV() error {
	q, problems := c.query(c.r.URL.Query())
	if len(problems) > 0 || c.h.o.Find == nil {
		return c.names()
	}
	q.Limit = search.MaxLimit
	page, err := c.h.o.Find(c.ctx, *q)
	if err != nil {
		return err
	}
	head := c.w.Header()
	head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	head.Set("Content-Disposition", `attachment; filename="names.csv"`)
	rc := http.NewResponseController(c.w)
	w := csv.NewWriter(c.w)
	_ = w.Write([]string{"id", "url", "state", "what", "who", "when", "modified", "by"}) // Error tells
	for {
		if c.h.o.Patience > 0 { // a client that reads gets the whole file, however long it is
			_ = rc.SetWriteDeadline(c.h.o.Now().Add(c.h.o.Patience))
		}
		for _, rec := range page.Records {
			_ = w.Write(csvRow(rec))
		}
		if w.Flush(); w.Error() != nil {
			return nil // the client has left
		}
		if page.Next == 0 {
			return nil
		}
		q.Cursor = page.Next
		if page, err = c.h.o.Find(c.ctx, *q); err != nil {
			if c.r.Context().Err() == nil {
				c.h.o.Log.ErrorContext(c.ctx, "a file of names could not be sent whole", "error", err.Error())
			}
			_ = rc.SetWriteDeadline(time.Unix(1, 0)) // the end of the body can't be written then
			return nil
		}
	}
}

// csvRow returns a record as a line of the file.
func csvRow(rec *stele.Record) []string {
	target := ""
	if len(rec.Targets) > 0 {
		target = rec.Targets[0].URL
	}
	cells := []string{rec.ID.String(), target, string(rec.State), rec.Metadata["what"], rec.Metadata["who"], rec.Metadata["when"], rec.Modified.UTC().Format(time.RFC3339), rec.By}
	for i := range cells {
		cells[i] = bulk.Neutralise(cells[i])
	}
	return cells
}

// roleFor returns the user's role where a record is.
func (c *call) roleFor(id stele.ID) (stele.Role, error) {
	ns, err := c.h.o.Registrar.FindNamespace(c.ctx, id)
	if errors.Is(err, stele.NotFound) {
		if c.who.Administers(auth.ScopeWrite) {
			return stele.RoleOwner, nil
		}
		return stele.NoRole, nil
	} else if err != nil {
		return stele.NoRole, err
	}
	return c.h.o.Registrar.RoleIn(c.ctx, ns.Key())
}
