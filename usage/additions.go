package usage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// How many texts a cell keeps. Of names that lead nowhere more are kept than are shown: a name that is not among the first at
// noon may be in the evening.
const (
	keptHosts  = 200
	keptFailed = 400
	keptLands  = 26 * 26
)

// dayDelta is what is to be added to a day of a month.
type dayDelta struct {
	day int
	delta
}

// additions returns what the tally has collected, and forgets it.
func (t *tally) additions() []addition {
	for _, d := range t.records {
		if d.space.Scheme != "" {
			sum := t.spaceDelta(d.space, d.day)
			for i, n := range d.delta {
				sum[i] += n
			}
		}
	}
	return t.collect(func(*recordDelta) stele.NamespaceKey { return stele.NamespaceKey{} })
}

// linked is additions where what a name adds to its namespace is made with what is added to the name, in the same commit. So whatever is written of these,
// a namespace has the figures of its names.
func (t *tally) linked() []addition {
	return t.collect(func(d *recordDelta) stele.NamespaceKey { return d.space })
}

// monthCell is what is to be added to the figures of a month.
type monthCell struct {
	text  string
	days  []dayDelta
	space string // the cell of the namespace that gets the same; "": none
	above string // its text
}

func (m *monthCell) additions(name string) addition {
	a := addition{cell: name, add: func(value []byte) ([]byte, error) { return addDays(m.text, value, m.days) }}
	if m.space != "" {
		a.with = []addition{{cell: m.space, add: func(value []byte) ([]byte, error) { return addDays(m.above, value, m.days) }}}
	}
	return a
}

// collect returns what the tally has collected, and forgets it: link returns the namespace that gets what is added to a name too.
func (t *tally) collect(link func(*recordDelta) stele.NamespaceKey) (list []addition) {
	cells := make(map[string]*monthCell, len(t.records)+len(t.spaces))
	add := func(name, text string, day int32, d *delta) *monthCell {
		c := cells[name]
		if c == nil {
			c = &monthCell{text: text}
			cells[name] = c
		}
		number := dateOf(day).Day()
		if monthNumber(day) <= t.rolled {
			number = 0
		}
		c.days = append(c.days, dayDelta{number, *d})
		return c
	}
	for _, d := range t.records {
		if d.delta == (delta{}) {
			continue
		}
		c := add(recordCell(d.id, monthNumber(d.day)), d.id.String(), d.day, &d.delta)
		if key := link(d); key.Scheme != "" {
			c.space, c.above = spaceCell(key, monthNumber(d.day)), key.Prefix
		}
	}
	for key, d := range t.spaces {
		if *d != (delta{}) {
			add(spaceCell(key.space, monthNumber(key.day)), key.space.Prefix, key.day, d)
		}
	}
	for name, c := range cells {
		list = append(list, c.additions(name))
	}
	list = append(list, textAdditions(t.hosts, func(s spaceText) string {
		return cellName(hostCells, s.space.Scheme, s.space.Prefix, monthNumber(s.day))
	}, keptHosts, true)...)
	list = append(list, textAdditions(t.lands, func(s spaceText) string {
		return cellName(landCells, s.space.Scheme, s.space.Prefix, monthNumber(s.day))
	}, keptLands, true)...)
	list = append(list, textAdditions(t.failed, func(s spaceText) string { return failedCell(s.space, s.day) }, keptFailed, false)...)
	t.forgetDeltas()
	return list
}

func monthNumber(day int32) int { return DateOf(dateOf(day)).number() }

// addDays adds to the figures of a month.
func addDays(text string, value []byte, days []dayDelta) ([]byte, error) {
	var m Month
	if value != nil {
		_, rest, err := cutText(text, value)
		if err != nil {
			return nil, err
		}
		if m, err = parseMonth(rest); err != nil {
			return nil, err
		}
	}
	for _, d := range days {
		day := d.day
		if len(m.Days) > 0 && m.Days[0].Day == 0 {
			day = 0 // the days were added up
		}
		d.delta.addTo(m.day(day))
	}
	b := appendMonth(nil, &m)
	if len(b) == 0 {
		return nil, nil
	}
	return withText(text, b), nil
}

// textAdditions returns what adds counted texts to their cells.
func textAdditions(counted map[spaceText]uint64, cell func(spaceText) string, most int, other bool) (list []addition) {
	by := make(map[string][]Tally)
	texts := make(map[string]string)
	for key, n := range counted {
		name := cell(key)
		by[name] = append(by[name], Tally{key.text, n})
		texts[name] = key.space.Prefix
	}
	for name, more := range by {
		list = append(list, addition{cell: name, add: func(value []byte) ([]byte, error) { return addTexts(texts[name], value, more, most, other) }})
	}
	return list
}

func addTexts(text string, value []byte, more []Tally, most int, other bool) ([]byte, error) {
	var have []Tally
	if value != nil {
		_, rest, err := cutText(text, value)
		if err != nil {
			return nil, err
		}
		if have, err = parseTexts(rest); err != nil {
			return nil, err
		}
	}
	return withText(text, appendTexts(nil, top(merged(have, more), most, other))), nil
}

// merged returns texts with the sums of their counts.
func merged(lists ...[]Tally) (sum []Tally) {
	for _, list := range lists {
		sum = append(sum, list...)
	}
	slices.SortFunc(sum, func(a, b Tally) int { return strings.Compare(a.Text, b.Text) })
	n := 0
	for i := range sum {
		if n > 0 && sum[n-1].Text == sum[i].Text {
			sum[n-1].Count += sum[i].Count
		} else {
			sum[n] = sum[i]
			n++
		}
	}
	return sum[:n]
}

// byCount orders texts by count, the greatest first, and then by text.
func byCount(a, b Tally) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
}

// began notes when counting began, if that is not known yet.
func began(now time.Time) addition {
	return addition{cell: beginCell, add: func(value []byte) ([]byte, error) {
		if value != nil {
			return value, nil
		}
		return []byte(now.UTC().Format(time.RFC3339)), nil
	}}
}

// zoneAdditions returns what adds the answers of the name server to their hours. They count for the hour in which they are written.
func (c *Counter) zoneAdditions(now time.Time) (list []addition) {
	now = now.UTC()
	hour := uint64((now.Day()-1)*24 + now.Hour())
	for zone, n := range c.o.Zones() {
		more := n - c.zones[zone]
		if n < c.zones[zone] {
			more = n
		}
		c.zones[zone] = n
		if more == 0 {
			continue
		}
		list = append(list, addition{cell: zoneCell(zone, DateOf(now).number()), add: func(value []byte) ([]byte, error) {
			hours, err := parseHours(value)
			if err != nil {
				return nil, err
			}
			return appendHours(nil, addHour(hours, hour, more)), nil
		}})
	}
	return list
}

// Hour is how many answers of the DNS an hour had.
type Hour struct {
	Hour  uint64 // of the month, from 0
	Count uint64
}

func zoneCell(zone string, month int) string {
	return string(appendMonthNumber(append(append([]byte(zoneCells), zone...), 0), month))
}

func addHour(hours []Hour, hour, more uint64) []Hour {
	at, ok := slices.BinarySearchFunc(hours, hour, func(h Hour, hour uint64) int { return cmp.Compare(h.Hour, hour) })
	if !ok {
		hours = slices.Insert(hours, at, Hour{Hour: hour})
	}
	hours[at].Count += more
	return hours
}

// appendHours appends the stored form of hours: of each how many it is after the one before, and its count.
func appendHours(b []byte, hours []Hour) []byte {
	next := uint64(0)
	for _, h := range hours {
		b = binary.AppendUvarint(binary.AppendUvarint(b, h.Hour-next), h.Count)
		next = h.Hour + 1
	}
	return b
}

func parseHours(b []byte) (hours []Hour, err error) {
	next := uint64(0)
	for len(b) > 0 {
		skip, size := binary.Uvarint(b)
		if size <= 0 || skip > 31*24 {
			return nil, errDamaged()
		}
		count, more := binary.Uvarint(b[size:])
		if more <= 0 || next+skip >= 31*24 {
			return nil, errDamaged()
		}
		hours = append(hours, Hour{next + skip, count})
		next += skip + 1
		b = b[size+more:]
	}
	return hours, nil
}

// keepDays and keepFailed are how many days figures of days, and names that lead nowhere, are kept.
const (
	keepDays   = 400
	keepFailed = 8
)

// rolledMonth returns the last month whose days are added up at a time.
func rolledMonth(now time.Time) int {
	return DateOf(now.UTC().AddDate(0, 0, -keepDays)).number() - 1
}

// sumMonth returns the stored form of a month with all its days added up: text is what stands in the name of the cell.
func sumMonth(text string, value []byte) ([]byte, error) {
	full, rest, err := cutText(text, value)
	if err != nil {
		return nil, err
	}
	m, err := parseMonth(rest)
	if err != nil {
		return nil, err
	}
	sum := Month{Days: []Day{{Counts: m.Sum()}}}
	return withText(full, appendMonth(nil, &sum)), nil
}
