package desk

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/chart"
	"github.com/stele-id/stele/web/deskpage"
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
	longTable    = 31   // lines; a longer table is folded
	maxBars      = 1000 // of a chart: a longer period has no chart
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
	drawn, err := c.usagePeriods(report)
	if err != nil {
		return nil, err
	}
	drawn.chart.Small = true
	v.Chart, err = drawn.chart.HTML()
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
	return &deskpage.UseSettings{Key: key.String(), CountAll: u.CountAll, MaySet: role.Includes(stele.RoleOwner), By: u.By, Changed: u.Changed}, err
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
	all := c.r.PostForm.Get("count-all") == "yes"
	if _, err := c.h.o.Registrar.SetUsageSettings(c.ctx, ns.Key(), func(u *registrar.UsageSettings) { u.CountAll = all }); err != nil {
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
	drawn, err := c.usagePeriods(report)
	if err != nil {
		return err
	}
	if len(drawn.chart.Columns) > 0 {
		if v.Chart, err = drawn.chart.HTML(); err != nil {
			return err
		}
	}
	v.Table = drawn.table
	v.Table.CSV = q.at("usage.csv", "from", q.From, "until", q.Until, "by", q.By)
	fact := func(key string, n uint64, note string) {
		v.Facts = append(v.Facts, deskpage.Fact{Number: n, Text: c.language.Text(key), Note: note})
	}
	t := &report.Total
	fact("use.resolutions", t.Regular+t.Machine, "")
	fact("use.unique", t.RegularUnique+t.MachineUnique, c.language.Text("use.unique-hint"))
	if !q.record {
		fact("use.visitors", t.Visitors, "")
	}
	fact("use.descriptions", t.Descriptions, "")
	if !q.record {
		fact("use.failures", t.Failures, "")
	}
	fact("use.robots", t.Robots, "")
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

// drawnUsage is a report as a chart and as a table.
type drawnUsage struct {
	chart chart.Chart
	table deskpage.Figures
}

// usagePeriods makes a chart and a table of a report by months or days. Periods in which nothing happened are there too, and in the
// table the last one comes first.
func (c *call) usagePeriods(report *apijson.Usage) (*drawnUsage, error) {
	var times [3]time.Time // the first day, the last one, and when counting began
	for i, text := range []string{report.From, report.Until, report.Began} {
		layout := time.DateOnly
		if i == 2 {
			layout = time.RFC3339
		}
		var err error
		if times[i], err = time.Parse(layout, text); err != nil {
			return nil, err
		}
	}
	rows := make(map[string]*apijson.UsageRow, len(report.Rows))
	for i := range report.Rows {
		rows[report.Rows[i].Period] = &report.Rows[i]
	}
	p := c.usageSpan(report.By, times[0], times[1])
	began := p.begin(times[2].UTC())
	now := p.begin(c.h.o.Now().UTC())
	all := !report.Record
	d := &drawnUsage{chart: chart.Chart{Number: c.language.Number}, table: deskpage.Figures{Caption: c.language.Text("use.table"), First: c.language.Text(p.head), Heads: c.usageHeads(all)}}
	d.chart.Label = c.language.Text("use.chart", "from", c.language.Day(times[0]), "until", c.language.Day(times[1]))
	month := "" // whose days were added up
	for at := range p.each {
		row := rows[at.Format(p.layout)]
		words := p.words(at)
		text := at.Format("2006-01")
		sum := rows[text]
		merged := report.By == byDay && sum != nil
		if merged && month != text { // a line for the month, before what is left of its days
			month = text
			line := c.language.Month(at)
			d.table.Rows = append(d.table.Rows, deskpage.FigureRow{Text: line, Values: usageValues(sum, all)})
			d.chart.Columns = append(d.chart.Columns, chart.Column{
				Short: c.language.ShortMonth(at), Long: at.Format("2006"), Parts: [2]uint64{sum.Regular, sum.Machine},
				Title: c.language.Text("use.bar", "period", line, "people", sum.Regular, "programs", sum.Machine),
			})
		}
		if (merged || at.After(now)) && row == nil {
			continue
		}
		col := chart.Column{Open: at.Equal(now)}
		col.Short, col.Long = p.below(at)
		switch {
		case row != nil || !at.Before(began):
			row = cmp.Or(row, new(apijson.UsageRow))
			line := deskpage.FigureRow{Text: words, Values: usageValues(row, all)}
			if col.Open {
				line.Note = c.language.Text("use.open")
			}
			d.table.Rows = append(d.table.Rows, line)
			col.Parts = [2]uint64{row.Regular, row.Machine}
			col.Title = c.language.Text("use.bar", "period", words, "people", row.Regular, "programs", row.Machine)
		default:
			col.Title = c.language.Text("use.bar-uncounted", "period", words)
		}
		d.chart.Columns = append(d.chart.Columns, col)
	}
	slices.Reverse(d.table.Rows)
	d.table.Folded = len(d.table.Rows) > longTable
	d.table.Total = &deskpage.FigureRow{Text: c.language.Text("use.sum"), Values: usageValues(&report.Total, all)}
	if len(d.chart.Columns) > maxBars {
		d.chart.Columns = nil
	}
	return d, nil
}

// usageHeads returns the heads of the columns of a table; all: those that namespaces have too.
func (c *call) usageHeads(all bool) (heads []string) {
	for _, key := range []string{"use.people", "use.people-unique", "use.programs", "use.programs-unique", "use.column-descriptions", "use.column-robots"} {
		heads = append(heads, c.language.Text(key))
	}
	if all {
		heads = append(heads, c.language.Text("use.column-failures"), c.language.Text("use.column-visitors"))
	}
	return heads
}

func usageValues(r *apijson.UsageRow, all bool) []uint64 {
	list := []uint64{r.Regular, r.RegularUnique, r.Machine, r.MachineUnique, r.Descriptions, r.Robots}
	if all {
		list = append(list, r.Failures, r.Visitors)
	}
	return list
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
	lines := [][]string{append([]string{"period"}, csvHeads()...)}
	for i := range report.Rows {
		lines = append(lines, csvLine(report.Rows[i].Period, usageValues(&report.Rows[i], true)...))
	}
	return c.sendCSV("usage.csv", lines)
}

func csvHeads() []string {
	return []string{"regular", "regular_unique", "machine", "machine_unique", "descriptions", "robots", "failures", "visitors"}
}

// csvLine returns a line of a file of figures.
func csvLine(first string, values ...uint64) []string {
	line := []string{bulk.Neutralise(first)}
	for _, n := range values {
		line = append(line, strconv.FormatUint(n, 10))
	}
	return line
}

// sendCSV sends a file.
func (c *call) sendCSV(name string, lines [][]string) error {
	head := c.w.Header()
	head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	head.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if err := csv.NewWriter(c.w).WriteAll(lines); err != nil && c.r.Context().Err() == nil && !errors.Is(err, http.ErrHandlerTimeout) {
		c.h.o.Log.DebugContext(c.ctx, "a file of figures was not sent whole", "error", err.Error())
	}
	return nil
}
