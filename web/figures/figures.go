// Package figures makes charts and tables of how often names are used, for the desk and for public pages. It decides nothing: a report says what is in it.
package figures

import (
	"cmp"
	"slices"
	"time"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/chart"
	"github.com/stele-id/stele/web/language"
)

const (
	longTable = 31   // lines; a longer table is folded
	maxBars   = 1000 // of a chart: a longer period has no chart

	byDay = "day"
)

// Fact is a figure that stands by itself.
type Fact struct {
	Number uint64
	Text   string
	Note   string // may be empty
}

// Table is a table of figures.
type Table struct {
	Caption string // for readers who do not see it
	First   string // head of the first column
	Heads   []string
	Rows    []Row
	Total   *Row   // nil if there is none
	CSV     string // URL of the same as a file; may be empty
	Folded  bool   // it is long
}

// Row is a line of such a table.
type Row struct {
	Text   string
	Name   bool   // the text is a name, not words
	URL    string // may be empty
	Note   string // may be empty
	Share  int    // of the greatest figure, in hundredths; 0: none is drawn
	Values []uint64
}

// Drawn is a report as a chart and as a table. The chart has no columns if the period is too long for one.
type Drawn struct {
	Chart chart.Chart
	Table Table
	alone string // label of the chart where the table is not on the page
}

// Small returns the chart as it stands beside a text, on a page without the table.
func (d *Drawn) Small() *chart.Chart {
	small := d.Chart
	small.Small, small.Label = true, d.alone
	return &small
}

// Draw makes a chart and a table of a report by months or days. Periods in which nothing happened are there too, and in the
// table the last one comes first. It fails if the report has a day that is none.
func Draw(l *language.Language, report *apijson.Usage, now time.Time) (*Drawn, error) {
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
	p := newSpan(l, report.By, times[0], times[1])
	began := p.begin(times[2].UTC())
	now = p.begin(now.UTC())
	shown := columnsOf(report)
	d := &Drawn{Chart: chart.Chart{Number: l.Number}, Table: Table{Caption: l.Text("use.table"), First: l.Text(p.head)}}
	for _, c := range shown {
		d.Table.Heads = append(d.Table.Heads, l.Text(c.head))
	}
	d.Chart.Label = l.Text("use.chart", "from", l.Day(times[0]), "until", l.Day(times[1]))
	d.alone = l.Text("use.chart-alone", "from", l.Day(times[0]), "until", l.Day(times[1]))
	month := "" // whose days were added up
	for at := range p.each {
		row := rows[at.Format(p.layout)]
		words := p.words(at)
		text := at.Format("2006-01")
		sum := rows[text]
		merged := report.By == byDay && sum != nil
		if merged && month != text { // a line for the month, before what is left of its days
			month = text
			line := l.Month(at)
			d.Table.Rows = append(d.Table.Rows, Row{Text: line, Values: shown.of(sum)})
			d.Chart.Columns = append(d.Chart.Columns, chart.Column{
				Short: l.ShortMonth(at), Long: at.Format("2006"), Parts: [2]uint64{sum.Regular, sum.Machine},
				Title: l.Text("use.bar", "period", line, "people", sum.Regular, "programs", sum.Machine),
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
			line := Row{Text: words, Values: shown.of(row)}
			if col.Open {
				line.Note = l.Text("use.open")
			}
			d.Table.Rows = append(d.Table.Rows, line)
			col.Parts = [2]uint64{row.Regular, row.Machine}
			col.Title = l.Text("use.bar", "period", words, "people", row.Regular, "programs", row.Machine)
		default:
			col.Title = l.Text("use.bar-uncounted", "period", words)
		}
		d.Chart.Columns = append(d.Chart.Columns, col)
	}
	slices.Reverse(d.Table.Rows)
	d.Table.Folded = len(d.Table.Rows) > longTable
	d.Table.Total = &Row{Text: l.Text("use.sum"), Values: shown.of(&report.Total)}
	if len(d.Chart.Columns) > maxBars {
		d.Chart.Columns = nil
	}
	return d, nil
}

// column is a column of a table.
type column struct {
	head  string // key of its words
	value func(r *apijson.UsageRow) uint64
}

type columns []column

// columnsOf returns the columns that a report has: namespaces have visitors too, and failures, which are not public.
func columnsOf(report *apijson.Usage) columns {
	list := columns{
		{"use.people", func(r *apijson.UsageRow) uint64 { return r.Regular }},
		{"use.people-unique", func(r *apijson.UsageRow) uint64 { return r.RegularUnique }},
		{"use.programs", func(r *apijson.UsageRow) uint64 { return r.Machine }},
		{"use.programs-unique", func(r *apijson.UsageRow) uint64 { return r.MachineUnique }},
		{"use.column-descriptions", func(r *apijson.UsageRow) uint64 { return r.Descriptions }},
		{"use.column-robots", func(r *apijson.UsageRow) uint64 { return r.Robots }},
	}
	if !report.Record && !report.Public {
		list = append(list, column{"use.column-failures", func(r *apijson.UsageRow) uint64 { return r.Failures }})
	}
	if !report.Record {
		list = append(list, column{"use.column-visitors", func(r *apijson.UsageRow) uint64 { return r.Visitors }})
	}
	return list
}

// of returns the values of a row.
func (list columns) of(r *apijson.UsageRow) (values []uint64) {
	for _, c := range list {
		values = append(values, c.value(r))
	}
	return values
}

// Facts returns the sums of a report.
func Facts(l *language.Language, report *apijson.Usage) (facts []Fact) {
	add := func(key string, n uint64, note string) {
		facts = append(facts, Fact{Number: n, Text: l.Text(key), Note: note})
	}
	t := &report.Total
	add("use.resolutions", t.Regular+t.Machine, "")
	add("use.unique", t.RegularUnique+t.MachineUnique, l.Text("use.unique-hint"))
	if !report.Record {
		add("use.visitors", t.Visitors, "")
	}
	add("use.descriptions", t.Descriptions, "")
	if !report.Record && !report.Public {
		add("use.failures", t.Failures, "")
	}
	add("use.robots", t.Robots, "")
	return facts
}
