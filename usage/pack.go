package usage

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/stele-id/stele"
)

// Month is the figures of a name or a namespace in a month: those of days, and after a time those of the whole month.
type Month struct {
	Days []Day // by day
}

// Day is the figures of a day of a month; 0 is the whole month.
type Day struct {
	Day int
	Counts
}

// Sum returns the figures of the whole month.
func (m *Month) Sum() (sum Counts) {
	for i := range m.Days {
		sum.Add(&m.Days[i].Counts)
	}
	return sum
}

// appendMonth appends the stored form of a month: for each day on which something happened a byte with the day, a byte
// whose bits say which figures are not 0, and these as [binary.AppendUvarint] writes them.
func appendMonth(b []byte, m *Month) []byte {
	for i := range m.Days {
		b = appendDay(b, m.Days[i].Day, &m.Days[i].Counts)
	}
	return b
}

func appendDay(b []byte, day int, c *Counts) []byte {
	var mask byte
	for f, n := range c {
		if n > 0 {
			mask |= 1 << f
		}
	}
	if mask == 0 {
		return b
	}
	b = append(b, byte(day), mask)
	for _, n := range c {
		if n > 0 {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// parseMonth reads the stored form of a month.
func parseMonth(b []byte) (m Month, err error) {
	for last := -1; len(b) > 0; {
		var d Day
		if b, err = d.parse(b, last); err != nil {
			return Month{}, err
		}
		last = d.Day
		m.Days = append(m.Days, d)
	}
	return m, nil
}

// parse reads the first day of the stored form of a month, which comes after another one, and returns the rest. The figures are 0 before.
func (d *Day) parse(b []byte, last int) ([]byte, error) {
	if len(b) < 2 || int(b[0]) <= last || b[0] > 31 || b[1] == 0 {
		return nil, errDamaged()
	}
	d.Day = int(b[0])
	mask := b[1]
	b = b[2:]
	for ; mask != 0; mask &= mask - 1 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n == 0 {
			return nil, errDamaged()
		}
		d.Counts[bits.TrailingZeros8(mask)] = n
		b = b[size:]
	}
	return b, nil
}

// addDay returns the stored form of a month with figures added to a day, or to the whole month if its days were added up. The other days stay as they are, byte for byte.
func addDay(month []byte, day int, more *delta) ([]byte, error) {
	var counts Counts
	if len(month) > 0 && month[0] == 0 {
		day = 0
	}
	from, until := len(month), len(month)
	rest, last := month, -1
	for len(rest) > 0 {
		var d Day
		at := len(month) - len(rest)
		next, err := d.parse(rest, last)
		if err != nil {
			return nil, err
		}
		switch {
		case d.Day == day:
			from, until, counts = at, len(month)-len(next), d.Counts
		case last < day && day < d.Day:
			from, until = at, at
		}
		rest, last = next, d.Day
	}
	more.addTo(&counts)
	b := make([]byte, 0, len(month)+16)
	b = appendDay(append(b, month[:from]...), day, &counts)
	return append(b, month[until:]...), nil
}

// readMonth reads the value of the cell of a text.
func readMonth(text string, value []byte) (Month, error) {
	_, rest, err := cutText(text, value)
	if err != nil {
		return Month{}, err
	}
	return parseMonth(rest)
}

func errDamaged() error {
	return refuse(stele.Internal, "usage.cell-damaged", "figures of use are damaged; restore a backup, or run 'stele verify'")
}

// Tally is how often a text was counted.
type Tally struct {
	Text  string
	Count uint64
}

// appendTexts appends the stored form of counted texts: of each its length, its bytes and its count.
func appendTexts(b []byte, list []Tally) []byte {
	for _, t := range list {
		b = binary.AppendUvarint(b, uint64(len(t.Text)))
		b = append(b, t.Text...)
		b = binary.AppendUvarint(b, t.Count)
	}
	return b
}

// parseTexts reads the stored form of counted texts.
func parseTexts(b []byte) (list []Tally, err error) {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, errDamaged()
		}
		text := string(b[size : size+int(n)])
		b = b[size+int(n):]
		count, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, errDamaged()
		}
		b = b[size:]
		list = append(list, Tally{text, count})
	}
	return list, nil
}

// top returns the texts that were counted most, the first most ones, and the sum of the others under otherText, if
// other says so. Their order does not depend on chance.
func top(list []Tally, most int, other bool) []Tally {
	var rest uint64
	list = slices.DeleteFunc(list, func(t Tally) bool {
		if t.Text == otherText {
			rest += t.Count
		}
		return t.Text == otherText
	})
	slices.SortFunc(list, byCount)
	for ; len(list) > most; list = list[:len(list)-1] {
		rest += list[len(list)-1].Count
	}
	if other && rest > 0 {
		list = append(list, Tally{otherText, rest})
	}
	return list
}
