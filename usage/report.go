package usage

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// maxReported is how many names a page of a report has.
const maxReported = 1000

// damagedCode is the code of an exception that some usage is not in a report, in COUNTER's table of exceptions ("Partial Data Returned").
const damagedCode = 3040

// CounterReport returns a page of a report of the use of names with a prefix, by month, in the shape of the reports of COUNTER's Code of Practice for
// Research Data. It reads the figures in their order, and no further than the page. The errors are those of [Book.Report].
func (b *Book) CounterReport(ctx context.Context, q apijson.UsageReportQuery) (*apijson.UsageReport, error) {
	s, err := b.period(&apijson.UsageQuery{From: q.From, Until: q.Until})
	if err != nil {
		return nil, err
	}
	if q.Limit < 0 || q.Limit > maxReported {
		return nil, pageTooLong(q.Limit, maxReported)
	}
	key, err := b.Registrar.ParsePrefix(q.Name)
	if err != nil {
		return nil, err
	}
	sight, err := b.Registrar.SightOfUsage(ctx, key)
	if err != nil {
		return nil, err
	}
	p := &reportPage{book: b, ctx: ctx, span: s, limit: cmp.Or(q.Limit, maxListed), report: &apijson.UsageReport{Names: []apijson.UsageReportName{}}}
	scheme := recordCells + key.Scheme + "\x00"
	after := ""
	if q.After != "" {
		after = string(append(registrar.AppendUsageText([]byte(scheme), q.After), "\x00\xff\xff"...))
	}
	damaged := 0
	for c, err := range b.names(ctx, scheme+clip(key.Prefix, maxCellText), after) {
		if err != nil {
			return nil, err
		}
		_, text, rest, ok := cutCell(c.Name[len(recordCells):], 2)
		if !ok || !s.touches(monthOf(rest)) {
			continue
		}
		full, value, err := cutText(text, c.Value)
		if err != nil {
			b.damaged(&damaged, c.Name, err)
			continue
		}
		id := stele.StoredID(key.Scheme, full)
		if !b.Schemes.IsWithin(id, key.Prefix) || !sight.Lists(id) {
			continue
		}
		m, err := parseMonth(value)
		if err != nil {
			b.damaged(&damaged, c.Name, err)
			continue
		}
		more, err := p.add(id, monthOf(rest), &m)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	p.report.Header = b.reportHeader(key, s, damaged, p.cut)
	p.report.Header.Next = p.next
	return p.report, nil
}

// reportHeader says what a report is about.
func (b *Book) reportHeader(key stele.NamespaceKey, s span, damaged, cut int) apijson.UsageReportHeader {
	h := apijson.UsageReportHeader{
		Name: "Resolution Report", ID: "stele-resolutions", Release: "1", Created: b.Registrar.Now().UTC().Format(time.RFC3339), CreatedBy: "Stele",
		Period:     apijson.UsageReportPeriod{Begin: dateText(s.from), End: dateText(s.until)},
		Filters:    []apijson.UsageReportValue{{Name: "prefix", Value: key.Prefix}},
		Attributes: []apijson.UsageReportValue{}, Exceptions: []apijson.UsageReportFault{},
	}
	if damaged > 0 {
		h.Exceptions = append(h.Exceptions, apijson.UsageReportFault{Code: damagedCode, Message: "Some stored figures could not be read, and are left out", Data: strconv.Itoa(damaged)})
	}
	if cut > 0 {
		h.Exceptions = append(h.Exceptions, apijson.UsageReportFault{Code: damagedCode, Message: "The days of some months are not known any more: a month that the period begins within is left out, and one that it ends within is there as a whole", Data: strconv.Itoa(cut)})
	}
	return h
}

// reportPage collects the names of a report. The cells of a name follow one another.
type reportPage struct {
	book   *Book
	ctx    context.Context
	span   span
	limit  int
	report *apijson.UsageReport
	last   stele.ID
	next   string // the last name, if there are more
	cut    int    // sums of months of which the period has only some days
}

// add adds a month of a name. It returns false if the page is full.
func (p *reportPage) add(id stele.ID, month int, m *Month) (more bool, err error) {
	sums := newSums(byMonth, 0)
	if err := sums.add(id.String(), month, m, p.span); err != nil {
		return false, err
	}
	date := dateAt(month)
	begin, end := dayOf(date.begin().Unix()), dayOf(date.Next(1).begin().Unix())-1
	whole := len(m.Days) > 0 && m.Days[0].Day == 0
	c := &sums.total
	if whole && (begin < p.span.from || end > p.span.until) {
		p.cut++
	}
	if c.Resolutions() == 0 && c[Descriptions] == 0 {
		return true, nil
	}
	names := p.report.Names
	if len(names) == 0 || p.last != id {
		if len(names) == p.limit {
			p.next = p.last.String()
			return false, nil
		}
		name, err := p.name(id)
		if err != nil {
			return false, err
		}
		p.report.Names, p.last = append(names, name), id
	}
	name := &p.report.Names[len(p.report.Names)-1]
	if !whole {
		begin, end = max(p.span.from, begin), min(p.span.until, end)
	}
	figure := apijson.UsageReportFigure{Period: apijson.UsageReportPeriod{Begin: dateText(begin), End: dateText(end)}}
	for _, i := range []apijson.UsageReportInstance{
		{Metric: "total-resolutions", Access: "regular", Count: c[Regulars]},
		{Metric: "unique-resolutions", Access: "regular", Count: c[RegularUnique]},
		{Metric: "total-resolutions", Access: "machine", Count: c[Machines]},
		{Metric: "unique-resolutions", Access: "machine", Count: c[MachineUnique]},
		{Metric: "total-descriptions", Count: c[Descriptions]},
	} {
		if i.Count > 0 {
			figure.Instance = append(figure.Instance, i)
		}
	}
	name.Performance = append(name.Performance, figure)
	return true, nil
}

// name returns a name with the title of its record and its namespace.
func (p *reportPage) name(id stele.ID) (apijson.UsageReportName, error) {
	n := apijson.UsageReportName{
		ID: []apijson.UsageReportID{{Type: id.Scheme(), Value: id.String()}}, Platform: "Stele", PublisherID: []apijson.UsageReportID{}, DataType: "Other",
		Performance: []apijson.UsageReportFigure{},
	}
	rec, err := p.book.Registrar.UsedRecord(p.ctx, id)
	switch {
	case err == nil:
		n.Title = rec.Metadata[stele.What]
	case stele.KindOf(err) == stele.Internal || stele.KindOf(err) == stele.Unavailable:
		return n, err
	}
	ns, err := p.book.Registrar.FindNamespace(asServer(p.ctx), id)
	if err != nil {
		return n, err
	}
	n.Publisher = cmp.Or(ns.Title, ns.Prefix)
	n.PublisherID = append(n.PublisherID, apijson.UsageReportID{Type: "namespace", Value: ns.Prefix})
	return n, nil
}
