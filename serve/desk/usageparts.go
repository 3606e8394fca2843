package desk

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/chart"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/figures"
)

// usagePart is a part of the figures of a namespace, with a page of its own.
type usagePart struct {
	title, note string // keys
	first       string // key of the head of the first column
	by          string // what the API calls it
	periods     bool   // the period can be chosen
}

// Parts of the figures of a namespace, as addresses of pages have them.
const (
	partNames     = "names"
	partReferrers = "referrers"
	partCountries = "countries"
	partFailed    = "failed"
	partUnused    = "unused"
	partDNS       = "dns"
)

var usageParts = map[string]usagePart{
	partNames:     {title: "use.top", first: "use.name", by: "name", periods: true},
	partReferrers: {title: "use.referrers", note: "use.referrers-note", first: "use.site", by: "referrer", periods: true},
	partCountries: {title: "use.countries", first: "use.country", by: "country", periods: true},
	partFailed:    {title: "use.failed", note: "use.failed-note", first: "use.name", by: "failure"},
	partUnused:    {title: "use.unused", note: "use.unused-note", first: "use.name"},
	partDNS:       {title: "use.dns", by: "dns"},
}

// How many lines of a part the overview, its own page and its file have.
const (
	shortPart = 10
	wholePart = 100
	filePart  = 100_000
)

// largeSpace is how many names a namespace may have for the overview to look for the most used ones.
const largeSpace = 20_000

// fillLists puts the parts of the figures of a namespace into its page, each with its first lines.
func (c *call) fillLists(v *deskpage.Usage, q *usageQuery) error {
	count, err := c.h.o.Store.Count(c.ctx, q.key)
	if err != nil {
		return err
	}
	for _, show := range []string{partNames, partReferrers, partCountries, partFailed} {
		if show == partNames && count > largeSpace { // all figures of its names would be read
			v.Lists = append(v.Lists, deskpage.UseList{ID: show, Title: c.language.Text("use.top"), Note: c.language.Text("use.large"), More: q.at("usage", "from", q.From, "until", q.Until, "show", show), MoreText: c.language.Text("use.top-more")})
			continue
		}
		list, err := c.usageList(q, show, shortPart)
		switch {
		case err != nil:
			return err
		case show == partCountries && len(list.Figures.Rows) == 0: // which most servers do not count
			continue
		case len(list.Figures.Rows) < shortPart:
			list.More = ""
		}
		v.Lists = append(v.Lists, *list)
	}
	dns, err := c.usageDNS(q)
	if err != nil {
		return err
	}
	if dns != nil {
		v.Lists = append(v.Lists, *dns)
	}
	// To look for names that were not used takes a while, so it has a page of its own.
	v.Lists = append(v.Lists, deskpage.UseList{ID: partUnused, Title: c.language.Text("use.unused"), Note: c.language.Text("use.unused-note"), More: q.at("usage", "show", partUnused), MoreText: c.language.Text("use.unused-show")})
	return nil
}

// fillPart puts one part into a page of its own.
func (c *call) fillPart(v *deskpage.Usage, q *usageQuery) error {
	v.Overview = q.at("usage", "from", q.From, "until", q.Until)
	var list *deskpage.UseList
	var err error
	switch q.show {
	case partUnused:
		list, err = c.usageUnused(q)
	case partDNS:
		list, err = c.usageDNS(q)
	default:
		if list, err = c.usageList(q, q.show, wholePart); err == nil {
			list.More = ""
		}
	}
	if err == nil && list != nil {
		v.Lists = append(v.Lists, *list)
	}
	return err
}

// usageList returns names that were used most, or a breakdown.
func (c *call) usageList(q *usageQuery, show string, limit int) (*deskpage.UseList, error) {
	part := usageParts[show]
	l := &deskpage.UseList{ID: show, Title: c.language.Text(part.title), None: c.language.Text("use.none"), MoreText: c.language.Text("use.more")}
	l.Figures = figures.Table{Caption: l.Title, First: c.language.Text(part.first), Heads: []string{c.language.Text("use.times")}, CSV: q.at("usage.csv", "from", q.From, "until", q.Until, "show", show)}
	l.More = q.at("usage", "from", q.From, "until", q.Until, "show", show)
	if part.note != "" {
		l.Note = c.language.Text(part.note)
	}
	ask := apijson.UsageQuery{Name: q.Name, Of: q.Of, From: q.From, Until: q.Until, By: part.by, Limit: limit}
	if show == partNames {
		l.MoreText = c.language.Text("use.top-more")
		report, err := c.h.o.Usage.Report(c.ctx, ask)
		if err != nil {
			return nil, err
		}
		for i := range report.Rows {
			row := &report.Rows[i]
			l.Figures.Rows = append(l.Figures.Rows, c.nameRow(row.Name, row.Regular+row.Machine))
		}
	} else {
		b, err := c.h.o.Usage.Breakdown(c.ctx, ask)
		if err != nil {
			return nil, err
		}
		for _, row := range b.Rows {
			line := figures.Row{Text: row.Text, Name: true, Values: []uint64{row.Count}}
			if show == partCountries {
				line.Text, line.Note, line.Name = c.language.Country(row.Text), row.Text, false
			}
			l.Figures.Rows = append(l.Figures.Rows, line)
		}
		if b.Other > 0 {
			l.Figures.Rows = append(l.Figures.Rows, figures.Row{Text: c.language.Text("use.other"), Values: []uint64{b.Other}})
		}
	}
	shares(l.Figures.Rows)
	return l, nil
}

// nameRow returns a name with its title.
func (c *call) nameRow(name string, values ...uint64) figures.Row {
	row := figures.Row{Text: name, Name: true, Values: values}
	id, err := c.h.o.Schemes.Parse(name)
	if err != nil {
		return row
	}
	if rec, err := c.h.o.Registrar.Get(c.ctx, id); err == nil { // its figures are there even if it can't be seen
		row.URL = usageURL("usage", map[string][]string{"id": {name}})
		if title := rec.Metadata["what"]; title != "" {
			row.Text, row.Note = title, name
		}
	}
	return row
}

// shares sets what part of the greatest figure each one is.
func shares(rows []figures.Row) {
	var most uint64
	for i := range rows {
		most = max(most, rows[i].Values[0])
	}
	for i := range rows {
		rows[i].Share = int(float64(rows[i].Values[0]) / float64(max(most, 1)) * 100)
	}
}

// usageUnused returns a page of names that were not used.
func (c *call) usageUnused(q *usageQuery) (*deskpage.UseList, error) {
	u, err := c.h.o.Usage.Unused(c.ctx, apijson.UnusedQuery{Name: q.Name, After: c.r.URL.Query().Get("after"), Limit: wholePart})
	if err != nil {
		return nil, err
	}
	l := &deskpage.UseList{ID: partUnused, Title: c.language.Text("use.unused"), Note: c.language.Text("use.unused-note"), None: c.language.Text("use.unused-none"), MoreText: c.language.Text("names.next")}
	l.Figures = figures.Table{Caption: l.Title, First: c.language.Text("use.name"), CSV: q.at("usage.csv", "show", partUnused)}
	since, sinceErr := time.Parse("2006-01", u.Since)
	began, beganErr := time.Parse(time.RFC3339, u.Began)
	if sinceErr == nil && beganErr == nil && began.After(since) {
		l.Note = c.language.Text("use.unused-since", "month", c.language.Month(since), "day", began)
	}
	for _, one := range u.Names {
		row := c.nameRow(one.Name)
		if made, err := time.Parse(time.RFC3339, one.Created); err == nil {
			if row.Note != "" {
				row.Note += " · "
			}
			row.Note += c.language.Text("use.made", "day", made)
		}
		l.Figures.Rows = append(l.Figures.Rows, row)
	}
	if u.Next != "" {
		l.More, l.None = q.at("usage", "show", partUnused, "after", u.Next), c.language.Text("use.unused-looking")
	}
	return l, nil
}

// usageDNS returns the answers of the DNS for the zone of a namespace; nil if it has none.
func (c *call) usageDNS(q *usageQuery) (*deskpage.UseList, error) {
	b, err := c.h.o.Usage.Breakdown(c.ctx, apijson.UsageQuery{Name: q.Name, By: usageParts[partDNS].by})
	if code, _ := stele.CodeOf(err); code == "usage.no-zone" {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	from, err := time.Parse(time.DateOnly, b.From)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]uint64, len(b.Rows))
	for _, row := range b.Rows {
		counts[row.Text] = row.Count
	}
	now := c.h.o.Now().UTC().Truncate(time.Hour)
	drawn := chart.Chart{Label: c.language.Text("use.dns-chart"), Number: c.language.Number}
	for at := range figures.Steps(from, now, func(t time.Time) time.Time { return t.Add(time.Hour) }) {
		n := counts[at.Format(time.RFC3339)]
		col := chart.Column{Parts: [2]uint64{n}, Title: c.language.Text("use.dns-bar", "period", c.language.Moment(at), "count", n), Open: at.Equal(now)}
		if at.Hour() == 12 { // the day stands below its middle
			col.Short, col.Long = strconv.Itoa(at.Day()), c.language.ShortMonth(at)
		}
		drawn.Columns = append(drawn.Columns, col)
	}
	l := &deskpage.UseList{ID: partDNS, Title: c.language.Text("use.dns"), Note: c.language.Text("use.dns-note", "count", b.Total, "zone", b.Zone)}
	l.Figures.CSV = q.at("usage.csv", "show", partDNS)
	l.Chart, err = drawn.HTML()
	return l, err
}

// partCSV sends one part as a file.
func (c *call) partCSV(q *usageQuery) error {
	part := usageParts[q.show]
	ask := apijson.UsageQuery{Name: q.Name, Of: q.Of, From: q.From, Until: q.Until, By: part.by, Limit: filePart}
	switch q.show {
	case partUnused:
		return c.unusedCSV(q)
	case partNames:
		report, err := c.h.o.Usage.Report(c.ctx, ask)
		if err != nil {
			return err
		}
		return c.sendCSV(q.show+".csv", report.Table())
	}
	b, err := c.h.o.Usage.Breakdown(c.ctx, ask)
	if err != nil {
		return err
	}
	return c.sendCSV(q.show+".csv", b.Table())
}

// unusedCSV sends all names that were not used. If it fails on its way, the connection is cut off, so that the file is not taken for
// a whole one.
func (c *call) unusedCSV(q *usageQuery) error {
	ask := apijson.UnusedQuery{Name: q.Name, Limit: 1000}
	u, err := c.h.o.Usage.Unused(c.ctx, ask)
	if err != nil {
		return err
	}
	head := c.w.Header()
	head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	head.Set("Content-Disposition", `attachment; filename="unused.csv"`)
	rc := http.NewResponseController(c.w)
	w := csv.NewWriter(c.w)
	_ = w.Write([]string{"name", "created"}) // Error tells
	for {
		if c.h.o.Patience > 0 {
			_ = rc.SetWriteDeadline(c.h.o.Now().Add(c.h.o.Patience))
		}
		for _, one := range u.Names {
			_ = w.Write([]string{bulk.Neutralise(one.Name), one.Created})
		}
		if w.Flush(); w.Error() != nil || u.Next == "" {
			return nil // it is whole, or the client has left
		}
		ask.After = u.Next
		if u, err = c.h.o.Usage.Unused(c.ctx, ask); err != nil {
			if c.r.Context().Err() == nil {
				c.h.o.Log.ErrorContext(c.ctx, "a file of names that were not used could not be sent whole", "error", err.Error())
			}
			_ = rc.SetWriteDeadline(time.Unix(1, 0)) // the end of the body can't be written then
			return nil
		}
	}
}
