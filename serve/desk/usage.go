package desk

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/figures"
)

// UsageBook reads figures of use, and judges who may see them: [usage.Book].
type UsageBook interface {
	Report(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error)
	Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error)
	Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error)
}

// What figures are about, as addresses of pages say it.
const (
	byMonth = "month"
	byDay   = "day"

	ofRecord    = "record"
	ofNamespace = "namespace"
)

const (
	recentMonths = 13
	recentDays   = 30
)

// usageURL returns the address of a page of figures.
func usageURL(page string, values url.Values) string { return Root + page + "?" + values.Encode() }

// useCard returns the use of a record or a namespace for its page, and where there is more; nil if the user may not see it.
func (c *call) useCard(of, name, at string) (*deskpage.UseCard, error) {
	if c.h.o.Usage == nil {
		return nil, nil
	}
	report, err := c.h.o.Usage.Report(c.ctx, apijson.UsageQuery{Name: name, Of: of})
	switch kind := stele.KindOf(err); {
	case err == nil:
	case kind == stele.Forbidden, kind == stele.Unauthenticated, kind == stele.NotFound:
		return nil, nil
	default:
		return nil, err
	}
	v := &deskpage.UseCard{URL: at}
	total := report.Total.Regular + report.Total.Machine
	switch {
	case report.Began == "":
		v.Total = c.language.Text("use.not-begun")
		return v, nil
	case report.Total == apijson.UsageRow{}:
		v.Total = c.language.Text("use.never")
		return v, nil
	}
	v.Total = c.language.Text("use.total", "count", total, "months", recentMonths)
	drawn, err := figures.Draw(c.language, report, c.h.o.Now())
	if err != nil {
		return nil, err
	}
	v.Chart, err = drawn.Small().HTML()
	return v, err
}

// usageQuery is what a page of figures shows.
type usageQuery struct {
	apijson.UsageQuery
	key            stele.NamespaceKey // of a namespace
	values         url.Values         // that say what it is about: a name or a namespace
	show           string             // one part of the figures of a namespace; "": all, in short
	of, text, back string             // title, name, and URL of the page
	record         bool
	scheme         string // of the record
}

// readUsageQuery reads what a page of figures should show.
func (c *call) readUsageQuery() (*usageQuery, error) {
	if c.h.o.Usage == nil {
		return nil, stele.Errorf("show usage", stele.ID{}, stele.NotFound, "usage.not-kept", "this server has no figures of use")
	}
	values := c.r.URL.Query()
	q := &usageQuery{UsageQuery: apijson.UsageQuery{From: values.Get("from"), Until: values.Get("until"), By: byMonth}}
	if values.Get("by") == byDay {
		q.By = byDay
	}
	if values.Has("id") {
		rec, err := c.record(values)
		if err != nil {
			return nil, err
		}
		q.Name, q.of, q.text, q.back, q.record = rec.ID.String(), rec.Metadata["what"], spelled(rec), recordURL(rec.ID), true
		q.scheme = rec.ID.Scheme()
		q.Of, q.values = ofRecord, url.Values{"id": {q.Name}}
		return q, nil
	}
	ns, _, err := c.namespaceOf(values)
	if err != nil {
		return nil, err
	}
	q.key = ns.Key()
	q.Name, q.of, q.text, q.back = ns.Prefix, ns.Title, ns.Key().String(), spaceURL("namespace", ns.Key())
	q.Of, q.values = ofNamespace, url.Values{"namespace": {ns.Key().String()}}
	if _, ok := usageParts[values.Get("show")]; ok {
		q.show = values.Get("show")
	}
	return q, nil
}

// at returns the address of the page with another period.
func (q *usageQuery) at(page string, pairs ...string) string {
	values := copied(q.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return usageURL(page, values)
}

// showUsage shows the figures of a name or a namespace.
func (c *call) showUsage() error {
	q, err := c.readUsageQuery()
	if err != nil {
		return err
	}
	v := &deskpage.Usage{Frame: c.frame("use.title", "names"), Of: q.of, ID: q.text, Back: q.back, Record: q.record}
	if !q.record {
		v.Section = "namespaces"
	}
	report, wrong, err := c.readUsage(q)
	if err != nil {
		return err
	}
	if part := usageParts[q.show]; q.show == "" || part.periods {
		c.choosePeriod(v, q, wrong)
	}
	if report == nil {
		v.Problems = wrong.problems()
		return c.show(http.StatusBadRequest, "usage", v)
	}
	switch {
	case report.Began == "": // the page says so
	case q.show != "":
		err = c.fillPart(v, q)
	default:
		err = c.fillUsage(v, q, report)
	}
	if err != nil {
		return err
	}
	if !q.record && q.show == "" {
		if v.Settings, err = c.usageSettings(q.key); err != nil {
			return err
		}
	}
	v.Same = c.sameUsage(q)
	return c.show(http.StatusOK, "usage", v)
}

// usageSettings returns how the use of a namespace is counted.
func (c *call) usageSettings(key stele.NamespaceKey) (*deskpage.UseSettings, error) {
	role, err := c.h.o.Registrar.RoleIn(c.ctx, key)
	if err != nil {
		return nil, err
	}
	u, err := c.h.o.Registrar.UsageSettings(c.ctx, key)
	page := ""
	if u.Public {
		page = "/.usage/" + (&url.URL{Path: key.String()}).EscapedPath() + "?of=namespace"
	}
	return &deskpage.UseSettings{URL: page, Key: key.String(), CountAll: u.CountAll, Public: u.Public, MaySet: role.Includes(stele.RoleOwner), By: u.By, Changed: u.Changed}, err
}

// saveUsageSettings changes how the use of a namespace is counted.
func (c *call) saveUsageSettings() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, _, err := c.namespaceOf(c.r.PostForm)
	if err != nil {
		return err
	}
	all, public := c.r.PostForm.Get("count-all") == "yes", c.r.PostForm.Get("public") == "yes"
	if _, err := c.h.o.Registrar.SetUsageSettings(c.ctx, ns.Key(), func(u *registrar.UsageSettings) { u.CountAll, u.Public = all, public }); err != nil {
		return err
	}
	c.redirect(spaceURL("usage", ns.Key()) + "&done=saved")
	return nil
}

// readUsage returns the figures; nil, and what is wrong, if the period can't be right.
func (c *call) readUsage(q *usageQuery) (*apijson.Usage, *faults, error) {
	wrong := new(faults)
	for field, text := range map[string]string{"from": q.From, "until": q.Until} {
		if !isPeriod(text) {
			wrong.note(field, c.language.Problem(stele.Messagef("desk.period-invalid", `"{text}" is not a month or a day; write a month such as 2026-01, or a day such as 2026-01-31`, text)))
		}
	}
	if wrong.any() {
		return nil, wrong, nil
	}
	report, err := c.h.o.Usage.Report(c.ctx, q.UsageQuery)
	if code, _ := stele.CodeOf(err); code == "usage.period-reversed" {
		return nil, wrong, wrong.judge(c, err, func(_, _ string) string { return "from" })
	}
	return report, wrong, err
}

// isPeriod reports whether a text is a month or a day, or empty.
func isPeriod(text string) bool {
	layout := time.DateOnly
	if len(text) == len("2006-01") {
		layout = "2006-01"
	}
	at, err := time.Parse(layout, text)
	return text == "" || err == nil && at.Year() >= 1970
}

// choosePeriod offers other periods.
func (c *call) choosePeriod(v *deskpage.Usage, q *usageQuery, f *faults) {
	now := c.h.o.Now().UTC()
	add := func(text string, pairs ...string) {
		current := true
		for i, value := range []string{q.From, q.Until, q.By} {
			want := ""
			if at := slices.Index(pairs, []string{"from", "until", "by"}[i]); at >= 0 {
				want = pairs[at+1]
			}
			current = current && (value == want || i == 2 && value == byMonth && want == "")
		}
		v.Periods = append(v.Periods, deskpage.Choose{Text: text, URL: q.at("usage", append(pairs, "show", q.show)...), Current: current})
	}
	add(c.language.Text("use.days"), "from", now.AddDate(0, 0, 1-recentDays).Format(time.DateOnly), "by", byDay)
	add(c.language.Text("use.recent"))
	for year := now.Year(); year > now.Year()-2; year-- {
		text := strconv.Itoa(year)
		add(c.language.Text("use.year", "year", text), "from", text+"-01", "until", text+"-12")
	}
	for name := range q.values {
		v.Kept = append(v.Kept, deskpage.Kept{Name: name, Value: q.values.Get(name)})
	}
	if q.show != "" {
		v.Kept = append(v.Kept, deskpage.Kept{Name: "show", Value: q.show})
	}
	v.From, v.Until = f.input("from", q.From), f.input("until", q.Until)
	for _, by := range []string{byMonth, byDay} {
		v.By = append(v.By, deskpage.Option{Value: by, Text: c.language.Text("useby." + by), Chosen: q.By == by})
	}
}

// fillUsage puts the figures into the page.
func (c *call) fillUsage(v *deskpage.Usage, q *usageQuery, report *apijson.Usage) error {
	var err error
	if v.Began, err = time.Parse(time.RFC3339, report.Began); err != nil {
		return err
	}
	drawn, err := figures.Draw(c.language, report, c.h.o.Now())
	if err != nil {
		return err
	}
	if len(drawn.Chart.Columns) > 0 {
		if v.Chart, err = drawn.Chart.HTML(); err != nil {
			return err
		}
	}
	v.Table = drawn.Table
	v.Table.CSV = q.at("usage.csv", "from", q.From, "until", q.Until, "by", q.By)
	v.Facts = figures.Facts(c.language, report)
	if q.record {
		return nil
	}
	return c.fillLists(v, q)
}

// sameUsage returns the command and the request for the same figures.
func (c *call) sameUsage(q *usageQuery) []deskpage.Same {
	command, path, asks := "stele usage "+shellWord(q.Name), "statistics", url.Values{"prefix": {q.Name}}
	add := func(name, value string) {
		if value != "" {
			command += " --" + name + " " + shellWord(value)
			asks.Set(name, value)
		}
	}
	part := usageParts[q.show]
	if q.show == "" || part.periods {
		add("from", q.From)
		add("until", q.Until)
	}
	if q.record {
		if _, err := c.h.o.Registrar.Namespace(c.ctx, stele.NamespaceKey{Scheme: q.scheme, Prefix: q.Name}); err == nil {
			add("of", q.Of) // the command would print the figures of the namespace
		}
	}
	switch {
	case q.show == "" && q.By != byMonth:
		add("by", q.By)
	case q.show == partNames:
		add("by", part.by)
		add("limit", strconv.Itoa(wholePart))
	case q.show == partUnused:
		command, path = command+" --unused", "unusednames"
	case q.show != "":
		add("by", part.by)
		path = "usagebreakdown"
	}
	return []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: command},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" '` + c.base() + "/api/v1/" + path + "?" + asks.Encode() + "'"},
	}
}

// usageCSV sends figures as a file.
func (c *call) usageCSV() error {
	q, err := c.readUsageQuery()
	if err != nil {
		return err
	}
	report, _, err := c.readUsage(q)
	switch {
	case err != nil:
		return err
	case report == nil:
		return c.showUsage() // which says what is wrong
	}
	if q.show != "" {
		return c.partCSV(q)
	}
	return c.sendCSV("usage.csv", report.Table())
}

// sendCSV sends a table as a file.
func (c *call) sendCSV(name string, table iter.Seq[[]string]) error {
	head := c.w.Header()
	head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	head.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if _, err := c.w.Write(bulk.AppendTable(nil, table)); err != nil && c.r.Context().Err() == nil && !errors.Is(err, http.ErrHandlerTimeout) {
		c.h.o.Log.DebugContext(c.ctx, "a file of figures was not sent whole", "error", err.Error())
	}
	return nil
}
