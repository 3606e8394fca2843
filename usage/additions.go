package usage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"
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

// additions returns what the tally has collected and others, in the order of their cells, and forgets it. The figures of many names go to a journal, whose next
// parts have the cells that part returns.
func (t *tally) additions(part func() string, others ...addition) []addition {
	var last *delta // of the namespace and the day of the name before
	var of spaceDay
	for i := range t.records.list {
		d := &t.records.list[i]
		if d.space == 0 {
			continue
		}
		if key := (spaceDay{t.records.spaces[d.space].key, d.day}); last == nil || of != key {
			last, of = t.spaceDelta(key.space, key.day), key
		}
		for f, n := range d.delta {
			last[f] += int64(n)
		}
	}
	if len(t.records.list) > journalFrom {
		return t.collect(append(others, t.journal(part)...), nil)
	}
	return t.collect(others, t.recordAdditions(false))
}

// linked is additions where what a name adds to its namespace is made with what is added to the name, in the same commit. So whatever is written of these,
// a namespace has the figures of its names.
func (t *tally) linked() []addition {
	t.addRules()
	return t.collect(nil, t.recordAdditions(true))
}

// monthCell is what is to be added to the figures of a month.
type monthCell struct {
	text  string // if it is long
	first dayDelta
	more  []dayDelta // most have none
}

// add is for [addition].
func (m *monthCell) add(value []byte) ([]byte, error) {
	if len(m.more) == 0 {
		return addDays(m.text, value, &m.first)
	}
	days := []*dayDelta{&m.first}
	for i := range m.more {
		days = append(days, &m.more[i])
	}
	return addDays(m.text, value, days...)
}

// collect returns what the tally has collected of namespaces, and others, in the order of their cells, and then those of names. It forgets all.
func (t *tally) collect(others, names []addition) []addition {
	for key, d := range t.spaces {
		if *d != (delta{}) {
			others = append(others, addition{cell: spaceCell(key.space, monthNumber(key.day)), adder: &monthCell{text: key.space.Prefix, first: dayDelta{t.numberOf(key.day), *d}}})
		}
	}
	sortCells(others)
	others = joinDays(others)
	others = append(others, textAdditions(t.hosts, func(s spaceText) string {
		return cellName(hostCells, s.space.Scheme, s.space.Prefix, monthNumber(s.day))
	}, keptHosts, true)...)
	others = append(others, textAdditions(t.lands, func(s spaceText) string {
		return cellName(landCells, s.space.Scheme, s.space.Prefix, monthNumber(s.day))
	}, keptLands, true)...)
	others = append(others, textAdditions(t.failed, func(s spaceText) string { return failedCell(s.space, s.day) }, keptFailed, false)...)
	sortCells(others)
	sortCells(names)
	names = joinDays(names)
	t.forgetDeltas()
	return append(others, names...)
}

// addRules adds what rules answered to the figures of namespaces. It comes with no name.
func (t *tally) addRules() {
	for i := range t.records.list {
		d := &t.records.list[i]
		if !d.rule || d.space == 0 {
			continue
		}
		to := t.spaceDelta(t.records.spaces[d.space].key, d.day)
		for f, n := range d.delta {
			to[f] += int64(n)
		}
	}
}

// recordAdditions returns what is to be added to the figures of names: if it is linked, namespaces get what is added to their names with it.
func (t *tally) recordAdditions(link bool) []addition {
	cells := make([]monthCell, 0, len(t.records.list))
	list := make([]addition, 0, len(t.records.list))
	names := t.recordCells()
	day, number := int32(0), t.numberOf(0)
	for i := range t.records.list {
		d := &t.records.list[i]
		if d.rule || d.delta == [figures]int32{} {
			continue
		}
		if d.day != day {
			day, number = d.day, t.numberOf(d.day)
		}
		c := monthCell{first: dayDelta{day: number}}
		for f, n := range d.delta {
			c.first.delta[f] = int64(n)
		}
		if d.size > maxCellText {
			c.text = string(t.records.text(d))
		}
		cells = append(cells, c)
		a := addition{cell: names[i], adder: &cells[len(cells)-1]}
		if key := t.records.spaces[d.space].key; link && key.Scheme != "" {
			a.with = []addition{{cell: spaceCell(key, monthNumber(d.day)), adder: &monthCell{text: key.Prefix, first: c.first}}}
		}
		list = append(list, a)
	}
	return list
}

// numberOf returns the day of the month under which figures of a day are kept: 0 after the days of the month were added up.
func (t *tally) numberOf(day int32) int {
	if monthNumber(day) <= t.rolled {
		return 0
	}
	return dateOf(day).Day()
}

// namesAtOnce is how many names of cells share memory.
const namesAtOnce = 1000

// recordCells returns the names of the cells of all records.
func (t *tally) recordCells() []string {
	names := make([]string, 0, len(t.records.list))
	var all []byte
	ends := make([]int, 0, namesAtOnce)
	day, month := int32(0), monthNumber(0)
	for i := range t.records.list {
		d := &t.records.list[i]
		if d.day != day {
			day, month = d.day, monthNumber(d.day)
		}
		all = appendRecordCell(all, t.records.schemes[d.scheme], t.records.text(d), month)
		if ends = append(ends, len(all)); len(ends) < namesAtOnce && i < len(t.records.list)-1 {
			continue
		}
		text, begin := string(all), 0
		for _, end := range ends {
			names = append(names, text[begin:end])
			begin = end
		}
		all, ends = all[:0], ends[:0]
	}
	return names
}

// joinDays makes one addition of those to the same month, which follow each other.
func joinDays(list []addition) []addition {
	n := 0
	for i := range list {
		if n == 0 || list[n-1].cell != list[i].cell {
			list[n] = list[i]
			n++
			continue
		}
		to, ok := list[n-1].adder.(*monthCell)
		from, isMonth := list[i].adder.(*monthCell)
		if !ok || !isMonth {
			list[n] = list[i]
			n++
			continue
		}
		to.more = append(to.more, from.first)
		list[n-1].with = append(list[n-1].with, list[i].with...)
	}
	clear(list[n:])
	return list[:n]
}

// sortCells sorts additions by cell; which of those to the same cell is the first does not matter. The names of the cells of most have the same
// beginning: it compares the eight bytes after it first.
func sortCells(list []addition) {
	if len(list) == 0 {
		return
	}
	same := len(list[0].cell)
	for i := range list {
		for same = min(same, len(list[i].cell)); list[i].cell[:same] != list[0].cell[:same]; {
			same--
		}
	}
	type key struct {
		head uint64
		at   int
	}
	keys := make([]key, len(list))
	for i := range list {
		var head [8]byte
		copy(head[:], list[i].cell[same:])
		keys[i] = key{binary.BigEndian.Uint64(head[:]), i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(strings.Compare(list[a.at].cell, list[b.at].cell), cmp.Compare(a.at, b.at))
	})
	sorted := make([]addition, len(list))
	for i, k := range keys {
		sorted[i] = list[k.at]
	}
	copy(list, sorted)
}

func monthNumber(day int32) int { return DateOf(dateOf(day)).number() }

// addDays adds to the figures of a month.
func addDays(text string, value []byte, days ...*dayDelta) ([]byte, error) {
	var month []byte
	if value != nil {
		var err error
		if _, month, err = cutText(text, value); err != nil {
			return nil, err
		}
	}
	for _, d := range days {
		var err error
		if month, err = addDay(month, d.day, &d.delta); err != nil {
			return nil, err
		}
	}
	if len(month) == 0 {
		return nil, nil
	}
	return withText(text, month), nil
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
		list = append(list, addition{cell: name, adder: addFunc(func(value []byte) ([]byte, error) { return addTexts(texts[name], value, more, most, other) })})
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
	return addition{cell: beginCell, adder: addFunc(func(value []byte) ([]byte, error) {
		if value != nil {
			return value, nil
		}
		return []byte(now.UTC().Format(time.RFC3339)), nil
	})}
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
		list = append(list, addition{cell: zoneCell(zone, DateOf(now).number()), adder: addFunc(func(value []byte) ([]byte, error) {
			hours, err := parseHours(value)
			if err != nil {
				return nil, err
			}
			return appendHours(nil, addHour(hours, hour, more)), nil
		})})
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
