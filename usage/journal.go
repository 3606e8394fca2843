package usage

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"strings"

	"github.com/stele-id/stele/registrar"
)

// The journal of a server is where figures of names wait that were counted in intervals with many names. To read, add to and write a cell for each
// name in each interval costs a busy server several per cent of its time; to append a line for each costs next to nothing. A fold adds
// the lines of many intervals to the cells, see fold.
//
// A part of a journal is a cell, with the number of the part in its name. It has lines:
//
//	00, day since 1970 as uvarint, length of the scheme as uvarint, scheme    the lines that follow are of this day and scheme
//	mask, figures, length of the name as uvarint, name                        bits say which figures are not 0; these as varints
const (
	journalFrom = cellsAtOnce // names of an interval; fewer are added to their cells at once, with one commit
	partSize    = 1 << 19     // bytes of a part, after which another one begins
	partsAtOnce = 8           // in a commit
)

// journalLine is what is to be added to the figures of a name on a day.
type journalLine struct {
	day    int32
	scheme string
	text   []byte // valid until the next line
	delta  [figures]int32
}

// journalPart is what an addition writes: it adds to nothing.
type journalPart struct {
	value []byte
	lines int
}

// add is for [addition].
func (p *journalPart) add(value []byte) ([]byte, error) {
	if value != nil {
		return nil, errDamaged() // no other server writes this part, and this one writes it once
	}
	return p.value, nil
}

// weight returns how many figures an addition has.
func (a *addition) weight() int {
	if p, ok := a.adder.(*journalPart); ok {
		return p.lines
	}
	return 1
}

func weigh(list []addition) (sum int) {
	for i := range list {
		sum += list[i].weight()
	}
	return sum
}

// partCell returns the name of the cell of a part.
func partCell(server string, number uint64) string {
	return fmt.Sprintf("%s%s%016x", journalCells, server, number)
}

// cutPart returns the server and the number of a part.
func cutPart(cell string) (server string, number uint64, ok bool) {
	rest, ok := strings.CutPrefix(cell, journalCells)
	if !ok || len(rest) <= 16 {
		return "", 0, false
	}
	at := len(rest) - 16
	n, err := fmt.Sscanf(rest[at:], "%016x", &number)
	return rest[:at], number, n == 1 && err == nil
}

// journal returns additions that append what was counted of names to a journal, whose next parts have the cells that part returns.
func (t *tally) journal(part func() string) (list []addition) {
	var b []byte
	lines, day, scheme := 0, int32(0), -1
	flush := func() {
		if lines > 0 {
			list = append(list, addition{cell: part(), adder: &journalPart{b, lines}})
		}
		b, lines, scheme = nil, 0, -1
	}
	for i := range t.records.list {
		d := &t.records.list[i]
		if d.rule || d.delta == [figures]int32{} {
			continue
		}
		if b == nil {
			b = make([]byte, 0, min(partSize, len(t.records.texts)+8*(len(t.records.list)-i))+1<<10)
		}
		if day != d.day || scheme != int(d.scheme) {
			day, scheme = d.day, int(d.scheme)
			b = binary.AppendUvarint(append(b, 0), uint64(day))
			b = binary.AppendUvarint(b, uint64(len(t.records.schemes[scheme])))
			b = append(b, t.records.schemes[scheme]...)
		}
		b = appendLine(b, &d.delta, t.records.text(d))
		if lines++; len(b) >= partSize {
			flush()
		}
	}
	flush()
	return list
}

func appendLine(b []byte, delta *[figures]int32, text []byte) []byte {
	at := len(b)
	b = append(b, 0)
	for f, n := range delta {
		if n != 0 {
			b[at] |= 1 << f
			b = binary.AppendVarint(b, int64(n))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// parsePart calls a function for each line of a part. It returns an error, and has not called it, if the part is damaged.
func parsePart(value []byte, line func(*journalLine)) error {
	for _, f := range []func(*journalLine){func(*journalLine) {}, line} {
		l := journalLine{day: -1}
		for b := value; len(b) > 0; {
			var err error
			if b, err = l.parse(b); err != nil {
				return err
			}
			if l.text != nil {
				f(&l)
			}
		}
	}
	return nil
}

// parse reads what a part begins with, and returns the rest. There is no text if it is not a line of a name.
func (l *journalLine) parse(b []byte) ([]byte, error) {
	mask := b[0]
	b, l.text = b[1:], nil
	if mask == 0 {
		day, size := binary.Uvarint(b)
		if size <= 0 || day > math.MaxInt32 {
			return nil, errDamaged()
		}
		scheme, b, ok := cutSized(b[size:])
		if !ok {
			return nil, errDamaged()
		}
		l.day = int32(day)
		if l.scheme != string(scheme) {
			l.scheme = string(scheme)
		}
		return b, nil
	}
	l.delta = [figures]int32{}
	for f := range l.delta {
		if mask&(1<<f) == 0 {
			continue
		}
		n, size := binary.Varint(b)
		if size <= 0 || n != int64(int32(n)) {
			return nil, errDamaged()
		}
		l.delta[f] = int32(n)
		b = b[size:]
	}
	text, b, ok := cutSized(b)
	if !ok || len(text) == 0 || l.day < 0 {
		return nil, errDamaged()
	}
	l.text = text
	return b, nil
}

// cutSized cuts bytes, before which stands how many there are, from the beginning.
func cutSized(b []byte) (content, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// gather adds a line to what is to be added to the figures of its name. There is room for all.
func (r *records) gather(seed maphash.Seed, l *journalLine) {
	scheme := r.scheme(l.scheme)
	if scheme < 0 { // there are not so many schemes
		return
	}
	hash := hashOfDay(maphash.Bytes(seed, l.text)+uint64(scheme)*0xd6e8feb86659fd93, l.day)
	to := r.find(hash)
	if to < 0 {
		r.texts = append(r.texts, l.text...)
		to = r.insert(recordDelta{hash: hash, size: uint32(len(l.text)), day: l.day, scheme: uint8(scheme)})
	}
	for f, n := range l.delta {
		r.list[to].delta[f] += n
	}
}

// insert adds an entry whose text stands at the end of all texts, and returns its place.
func (r *records) insert(d recordDelta) int {
	d.text = uint32(len(r.texts)) - d.size
	r.index.add(d.hash, uint32(len(r.list)))
	r.list = append(r.list, d)
	return len(r.list) - 1
}

// appendRecordCell appends the name of the cell of a name in a month.
func appendRecordCell(b []byte, scheme string, text []byte, month int) []byte {
	b = append(append(append(b, recordCells...), scheme...), 0)
	if isLong(string(text)) {
		b = registrar.AppendUsageText(b, string(text))
	} else {
		b = append(b, text...)
	}
	return appendMonthNumber(append(b, 0), month)
}
