package usage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// sorted are records in the order of their cells.
type sorted struct {
	records *records
	order   []uint32 // places of those that are left
	rolled  int      // the last month whose days are not kept apart
}

// sort returns the records in the order of their cells. Most names of a scheme have the same beginning: it compares the seven bytes after it first.
func (r *records) sort(rolled int) *sorted {
	ranks := r.ranks()
	same := make([][]byte, len(r.schemes))
	for i := range r.list {
		d := &r.list[i]
		text, begin := r.text(d), same[d.scheme]
		text = text[:min(len(text), maxCellText-7)] // after that, cells of long names have another order
		if begin == nil {
			same[d.scheme] = text
			continue
		}
		n := min(len(begin), len(text))
		for !bytes.Equal(begin[:n], text[:n]) {
			n--
		}
		same[d.scheme] = begin[:n]
	}
	type key struct {
		head uint64
		at   uint32
	}
	keys := make([]key, len(r.list))
	for i := range r.list {
		d := &r.list[i]
		var head [8]byte
		head[0] = ranks[d.scheme]
		copy(head[1:], r.text(d)[len(same[d.scheme]):])
		keys[i] = key{binary.BigEndian.Uint64(head[:]), uint32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return r.compare(&r.list[a.at], &r.list[b.at])
	})
	s := &sorted{records: r, order: make([]uint32, len(keys)), rolled: rolled}
	for i, k := range keys {
		s.order[i] = k.at
	}
	return s
}

// ranks returns the places of schemes in their order.
func (r *records) ranks() []byte {
	list := slices.Sorted(slices.Values(r.schemes))
	ranks := make([]byte, len(r.schemes))
	for i, scheme := range r.schemes {
		ranks[i] = byte(slices.Index(list, scheme))
	}
	return ranks
}

// compare orders records of a scheme as their cells are, and those of a cell by day.
func (r *records) compare(a, b *recordDelta) int {
	x, y := r.text(a), r.text(b)
	if n := maxCellText; len(x) > n && len(y) > n && bytes.Equal(x[:n], y[:n]) && !bytes.Equal(x, y) {
		scheme := r.schemes[a.scheme]
		return bytes.Compare(appendRecordCell(nil, scheme, x, 0), appendRecordCell(nil, scheme, y, 0))
	}
	if c := bytes.Compare(x, y); c != 0 {
		return c
	}
	return cmp.Compare(a.day, b.day) // and so by month
}

// take returns what is to be added to the next cells, about as many as a commit has, and removes it.
func (s *sorted) take() []addition {
	r := s.records
	n := min(len(s.order), cellsAtOnce)
	for 0 < n && n < len(s.order) && r.isSameCell(s.order[n-1], s.order[n]) {
		n++
	}
	cells := make([]monthCell, n)
	list := make([]addition, n)
	var names []byte
	ends := make([]int, n)
	for i, at := range s.order[:n] {
		d := &r.list[at]
		month := monthNumber(d.day)
		names = appendRecordCell(names, r.schemes[d.scheme], r.text(d), month)
		ends[i] = len(names)
		if month > s.rolled {
			cells[i].first.day = dateOf(d.day).Day()
		}
		for f, n := range d.delta {
			cells[i].first.delta[f] = int64(n)
		}
		if d.size > maxCellText {
			cells[i].text = string(r.text(d))
		}
		list[i].adder = &cells[i]
	}
	all, begin := string(names), 0
	for i, end := range ends {
		list[i].cell = all[begin:end]
		begin = end
	}
	s.order = s.order[n:]
	return joinDays(list)
}

// isSameCell reports whether the records at two places have the same cell.
func (r *records) isSameCell(a, b uint32) bool {
	x, y := &r.list[a], &r.list[b]
	return x.scheme == y.scheme && monthNumber(x.day) == monthNumber(y.day) && bytes.Equal(r.text(x), r.text(y))
}

// lacks reports whether a line is not to be gathered: because its cell is not after one, or does not begin with a prefix.
func lacks(l *journalLine, prefix, after string, scratch *[]byte) bool {
	if prefix == "" && after == "" {
		return false
	}
	*scratch = appendRecordCell((*scratch)[:0], l.scheme, l.text, monthNumber(l.day))
	return string(*scratch) <= after || !strings.HasPrefix(string(*scratch), prefix)
}
