package mint

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// Granularity is the distance between two dates of a temporal distributor's
// grid: a minute, a second, or a power of ten of a second down to 10^-18. The
// zero Granularity is a second. (The report's set G, chapter 6.)
type Granularity int8

// Granularities are the negative decimal exponent of a second, except for the
// minute.
const (
	Minute      Granularity = -1
	Second      Granularity = 0
	Millisecond Granularity = 3
	Microsecond Granularity = 6
	Nanosecond  Granularity = 9
	finest      Granularity = MaxFraction
)

// IsValid reports whether r is a granularity of the grid.
func (r Granularity) IsValid() bool { return r >= Minute && r <= finest }

// units are the names of the granularities that have one, each 1000 times finer
// than the one before it.
var units = [...]string{"s", "ms", "us", "ns", "ps", "fs", "as"}

// String returns r as ParseGranularity reads it: 1m, 1s, 100ms, 10us.
func (r Granularity) String() string {
	switch {
	case !r.IsValid():
		return fmt.Sprintf("Granularity(%d)", int8(r))
	case r == Minute:
		return "1m"
	}
	unit := (r + 2) / 3
	return "1" + strings.Repeat("0", int(unit*3-r)) + units[unit]
}

// ParseGranularity reads a granularity: 1m (or 60s), 1s, 100ms, 10ms, 1ms, 100us
// and so on down to 1as. Other distances are on no grid.
func ParseGranularity(text string) (Granularity, error) {
	switch text {
	case "60s":
		return Minute, nil
	case "1µs", "10µs", "100µs":
		text = strings.Replace(text, "µ", "u", 1)
	}
	for r := Minute; r <= finest; r++ {
		if r.String() == text {
			return r, nil
		}
	}
	return 0, stele.Messagef("mint-date.granularity-unknown", `"{text}" is not a granularity: use 1m, 1s, 100ms, 10ms, 1ms, 100us and so on down to 1as`, text)
}

// scale[r] is granularity r in attoseconds, for a second and less.
var scale = func() (s [finest + 1]uint64) {
	for r, step := finest, uint64(1); r >= 0; r, step = r-1, step*10 {
		s[r] = step
	}
	return s
}()

// floor returns the last date of r's grid that is not after d.
func (r Granularity) floor(d Date) Date {
	if r <= Second {
		if r == Minute {
			d.sec -= d.sec % 60
		}
		return Date{d.sec, 0}
	}
	return Date{d.sec, d.atto - d.atto%scale[r]}
}

// after returns the date that is r after d. It may lie past the year 9999, which
// no clock reaches: nothing is issued then.
func (r Granularity) after(d Date) Date {
	if r == Minute {
		d.sec += 60
		return d
	}
	d.atto += scale[r]
	if d.atto >= second {
		d.atto -= second
		d.sec++
	}
	return d
}

// before returns the date that is r before d, which is on r's grid. It may lie
// before 1970, as a bound and never as a date that is issued.
func (r Granularity) before(d Date) Date {
	if r == Minute {
		d.sec -= 60
		return d
	}
	if d.atto < scale[r] {
		d.atto += second
		d.sec--
	}
	d.atto -= scale[r]
	return d
}
