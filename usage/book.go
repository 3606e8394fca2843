package usage

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar"
)

// Book reads the figures of a registry, for callers who may see them: readers of a namespace.
type Book struct {
	Registrar *registrar.Registrar
	Schemes   *stele.Schemes
	Log       *slog.Logger // gets what can't be read; may be nil

	public publicReports
}

// damaged notes that a cell can't be read. A report goes on without it.
func (b *Book) damaged(count *int, cell string, err error) {
	*count++
	if b.Log != nil {
		b.Log.Error("figures of use can't be read, a report leaves them out", "cell", strconv.Quote(cell), "error", err.Error())
	}
}

// What figures are of.
const (
	ofRecord    = "record"
	ofNamespace = "namespace"
)

// Orders of rows.
const (
	byMonth = "month"
	byDay   = "day"
	byName  = "name"
)

// maxRows is how many rows a report has at most.
const maxRows = 100_000

// span is a period, in days since 1970; both ends belong to it.
type span struct{ from, until int32 }

// period reads the period of a query.
func (b *Book) period(q *apijson.UsageQuery) (s span, err error) {
	now := b.Registrar.Now()
	s = span{dayOf(DateOf(now).Next(-12).begin().Unix()), dayOf(now.Unix())}
	if q.Until != "" {
		if s.until, err = readDay("until", q.Until, true); err != nil {
			return s, err
		}
		s.from = dayOf(DateOf(dateOf(s.until)).Next(-12).begin().Unix())
	}
	if q.From != "" {
		if s.from, err = readDay("from", q.From, false); err != nil {
			return s, err
		}
	}
	if s.from > s.until {
		return s, refuse(stele.Invalid, "usage.period-reversed", "the period begins on {from}, after its end on {until}", dateText(s.from), dateText(s.until))
	}
	return s, nil
}

// readDay reads a month or a day; of a month it is the first day, or the last.
func readDay(field, text string, last bool) (int32, error) {
	if at, err := time.Parse(time.DateOnly, text); err == nil && at.Year() >= 1970 {
		return dayOf(at.Unix()), nil
	}
	at, err := time.Parse("2006-01", text)
	if err != nil || at.Year() < 1970 {
		return 0, refuse(stele.Invalid, "usage.day-malformed", `{field} is "{text}"; write a month such as 2026-01, or a day such as 2026-01-31`, field, text)
	}
	if last {
		at = at.AddDate(0, 1, -1)
	}
	return dayOf(at.Unix()), nil
}

func dateText(day int32) string { return dateOf(day).Format(time.DateOnly) }

// Report returns figures of use. The errors are those of [registrar.Registrar.UsedRecord] and
// [registrar.Registrar.SightOfUsage]; Invalid if the query can't be right.
func (b *Book) Report(ctx context.Context, q apijson.UsageQuery) (*apijson.Usage, error) {
	s, err := b.period(&q)
	if err != nil {
		return nil, err
	}
	r := &apijson.Usage{Name: q.Name, From: dateText(s.from), Until: dateText(s.until), By: cmp.Or(q.By, byMonth), Rows: []apijson.UsageRow{}}
	if r.By != byMonth && r.By != byDay && r.By != byName {
		return nil, refuse(stele.Invalid, "usage.by-unknown", `"{by}" is not an order of figures; there are month, day and name`, r.By)
	}
	if q.Limit < 0 || q.Limit > maxRows {
		return nil, limitOutOfRange(q.Limit)
	}
	if r.Began, err = b.began(ctx); err != nil {
		return nil, err
	}
	rec, public, err := b.asked(ctx, &q)
	switch {
	case err != nil:
		return nil, err
	case rec != nil:
		if public {
			s = b.wholeMonths(r, s)
		}
		return r, b.record(ctx, r, s, rec.ID)
	}
	key, err := b.Registrar.ParsePrefix(q.Name)
	if err != nil {
		return nil, err
	}
	return r, b.prefix(ctx, r, s, key, q.Limit)
}

// wholeMonths makes a report one of what all may see: the period has whole months that are over, so that a caller can neither ask for one of a
// day, nor learn from how the figures of this month grow when a name was used.
func (b *Book) wholeMonths(r *apijson.Usage, s span) span {
	over := dayOf(DateOf(b.Registrar.Now()).begin().Unix()) - 1 // the last day of the month before
	s.until = min(dayOf(DateOf(dateOf(s.until)).Next(1).begin().Unix())-1, over)
	s.from = min(firstOf(s.from), firstOf(s.until))
	r.From, r.Until, r.Public = dateText(s.from), dateText(s.until), true
	return s
}

// asked returns the record that a query asks for; nil if it asks for a namespace, or all names with a prefix. Public says that the caller may see what all see.
func (b *Book) asked(ctx context.Context, q *apijson.UsageQuery) (rec *stele.Record, public bool, err error) {
	switch q.Of {
	case ofNamespace:
		return nil, false, nil
	case "":
		if key, err := b.Registrar.ParsePrefix(q.Name); err == nil {
			if _, err := b.Registrar.Namespace(asServer(ctx), key); err == nil {
				return nil, false, nil
			}
		}
	case ofRecord:
	default:
		return nil, false, refuse(stele.Invalid, "usage.of-unknown", `"{of}" has no figures; there are those of a record and of a namespace`, q.Of)
	}
	id, err := b.Schemes.Parse(q.Name)
	if err == nil {
		rec, err = b.Registrar.UsedRecord(ctx, id)
	}
	if isRefusal(err) && isPublicOrder(q.By) {
		found, _, fault := b.Registrar.PubliclyUsed(ctx, id)
		if fault == nil || stele.KindOf(fault) != stele.NotFound {
			return found, true, fault
		}
	}
	if err != nil && q.Of == "" && (!id.IsValid() || stele.KindOf(err) == stele.NotFound) {
		return nil, false, nil
	}
	return rec, false, err
}

// isRefusal reports whether an error says that a caller may not see all figures.
func isRefusal(err error) bool {
	kind := stele.KindOf(err)
	return err != nil && (kind == stele.Forbidden || kind == stele.Unauthenticated)
}

// isPublicOrder reports whether figures are asked for in the order in which they may be public: by month. By day one reader would be visible to
// a person who knows when the reader was there, and the public can't list names.
func isPublicOrder(by string) bool { return by == "" || by == byMonth }

// began returns when counting began; "" if it did not.
func (b *Book) began(ctx context.Context) (string, error) {
	value, err := b.Registrar.UsageCell(asServer(ctx), beginCell)
	return string(value), err
}

func limitOutOfRange(limit int) error {
	return refuse(stele.Invalid, "usage.limit-out-of-range", "the limit is {limit}; write a number up to {most}, or none for all names", limit, maxRows)
}

func tooManyRows() error {
	return refuse(stele.Exhausted, "usage.too-many-rows", "more than {most} rows; ask for a longer prefix, a shorter period, or with a limit for the names that were used most", maxRows)
}

// record reports a record.
func (b *Book) record(ctx context.Context, r *apijson.Usage, s span, id stele.ID) error {
	r.Name, r.Record = id.String(), true
	sums := newSums(r.By, 0)
	name := recordCell(id, 0)
	prefix := name[:len(name)-2]
	for c, err := range b.names(ctx, prefix, "") {
		if err != nil {
			return err
		}
		if len(c.Name) != len(prefix)+2 {
			continue // of a name that begins so
		}
		m, err := readMonth(id.String(), c.Value)
		if err != nil {
			b.damaged(&r.Damaged, c.Name, err)
			continue
		}
		if err := sums.add(id.String(), monthOf(c.Name[len(prefix):]), &m, s); err != nil {
			return err
		}
	}
	sums.fill(r)
	return nil
}

// prefix reports the names with a prefix: by name, or the sums of its namespaces. Where it is not the prefix of a
// namespace, its names are added up.
func (b *Book) prefix(ctx context.Context, r *apijson.Usage, s span, key stele.NamespaceKey, limit int) error {
	sight, err := b.Registrar.SightOfUsage(ctx, key)
	if isRefusal(err) && isPublicOrder(r.By) {
		if found, fault := b.publicSums(ctx, r, s, key); found || fault != nil {
			return fault
		}
	}
	if err != nil {
		return err
	}
	kind := recordCells
	if r.By != byName {
		if _, err := b.Registrar.Namespace(ctx, key); err == nil {
			kind = spaceCells
		}
	}
	sums := newSums(r.By, limit)
	if err := b.addUp(ctx, r, s, key, kind, sight, sums); err != nil {
		return err
	}
	sums.fill(r)
	return nil
}

// addUp adds up the figures of the names with a prefix that a caller may see, or those of its namespaces.
func (b *Book) addUp(ctx context.Context, r *apijson.Usage, s span, key stele.NamespaceKey, kind string, sight registrar.UsageSight, sums *sums) error {
	cells := 0
	list := b.names
	if kind != recordCells {
		list = b.Registrar.UsageList
	}
	for c, err := range list(asServer(ctx), kind+key.Scheme+"\x00"+clip(key.Prefix, maxCellText), "") {
		if err != nil {
			return err
		}
		if cells++; r.Public && cells > maxPublicCells {
			return tooManySpaces()
		}
		scheme, text, rest, ok := cutCell(c.Name[len(kind):], 2)
		if !ok || !s.touches(monthOf(rest)) {
			continue
		}
		text, value, err := cutText(text, c.Value)
		switch {
		case err != nil:
			b.damaged(&r.Damaged, c.Name, err)
			continue
		case kind == spaceCells && !(namespaces.IsBelow(b.Schemes, text, key.Prefix) && sight.Sees(stele.NamespaceKey{Scheme: scheme, Prefix: text})):
			continue // it may only begin with the same letters
		case kind == recordCells && !(b.Schemes.IsWithin(stele.StoredID(scheme, text), key.Prefix) && sight.Lists(stele.StoredID(scheme, text))):
			continue
		}
		m, err := parseMonth(value)
		if err != nil {
			b.damaged(&r.Damaged, c.Name, err)
			continue
		}
		if err := sums.add(text, monthOf(rest), &m, s); err != nil {
			return err
		}
	}
	return nil
}

// Top returns the figures of the names with a prefix that were used most, n at most. The errors are those of [Book.Report].
func (b *Book) Top(ctx context.Context, prefix, from, until string, n int) (*apijson.Usage, error) {
	return b.Report(ctx, apijson.UsageQuery{Name: prefix, From: from, Until: until, By: byName, Limit: n})
}

// touches reports whether a month has days of the period.
func (s span) touches(month int) bool {
	d := dateAt(month)
	return dayOf(d.begin().Unix()) <= s.until && dayOf(d.Next(1).begin().Unix()) > s.from
}

// sums adds figures up, by period or by name.
type sums struct {
	by    string
	limit int // of names, those that were used most; 0: all
	rows  map[string]*Counts
	total Counts
}

func newSums(by string, limit int) *sums {
	if by != byName {
		limit = 0
	}
	return &sums{by: by, limit: limit, rows: make(map[string]*Counts)}
}

// add adds the days of a month that are in the period. The sum of a whole month, whose days are not known any more, counts if the
// period has its first day.
func (t *sums) add(name string, month int, m *Month, s span) error {
	date := dateAt(month)
	first := dayOf(date.begin().Unix())
	for i := range m.Days {
		d := &m.Days[i]
		at := first + int32(max(d.Day-1, 0))
		if at < s.from || at > s.until {
			continue
		}
		key := name
		switch {
		case t.by == byMonth, t.by == byDay && d.Day == 0:
			key = date.String()
		case t.by == byDay:
			key = dateText(at)
		}
		row := t.rows[key]
		if row == nil {
			switch {
			case t.limit > 0 && len(t.rows) >= 2*t.limit:
				t.forgetRare()
			case t.limit == 0 && len(t.rows) >= maxRows:
				return tooManyRows()
			}
			row = new(Counts)
			t.rows[key] = row
		}
		row.Add(&d.Counts)
		t.total.Add(&d.Counts)
	}
	return nil
}

// forgetRare forgets names that are not among the most used ones. The cells of a name follow one another, so all that are there
// when the next name begins are whole.
func (t *sums) forgetRare() {
	for _, row := range t.sorted()[t.limit:] {
		delete(t.rows, row.Name)
	}
}

// sorted returns the rows: periods in their order, names with the most used first.
func (t *sums) sorted() []apijson.UsageRow {
	list := make([]apijson.UsageRow, 0, len(t.rows))
	for key, c := range t.rows {
		row := newRow(c)
		if t.by == byName {
			row.Name = key
		} else {
			row.Period = key
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b apijson.UsageRow) int {
		if t.by != byName {
			return strings.Compare(a.Period, b.Period)
		}
		return cmp.Or(cmp.Compare(b.Regular+b.Machine, a.Regular+a.Machine), strings.Compare(a.Name, b.Name))
	})
	return list
}

// fill puts the sums into a report.
func (t *sums) fill(r *apijson.Usage) {
	r.Rows = t.sorted()
	if t.limit > 0 && len(r.Rows) > t.limit {
		r.Rows = r.Rows[:t.limit]
	}
	r.Total = newRow(&t.total)
}

func newRow(c *Counts) apijson.UsageRow {
	return apijson.UsageRow{
		Regular: c[Regulars], RegularUnique: c[RegularUnique], Machine: c[Machines], MachineUnique: c[MachineUnique],
		Descriptions: c[Descriptions], Robots: c[Robots], Failures: c[Failures], Visitors: c[Visitors],
	}
}
