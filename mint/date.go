package mint

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/stele-id/stele"
)

const (
	second  = 1_000_000_000_000_000_000 // attoseconds in a second
	nano    = 1_000_000_000             // attoseconds in a nanosecond
	endUnix = 253_402_300_800           // 10000-01-01T00:00:00Z
)

// MaxFraction is how many decimal digits the fraction of a [Date] has at most.
const MaxFraction = 18

// Date is an exact point in Unix time (UTC, no leap seconds), from 1970 to the
// end of the year 9999: whole seconds and a decimal fraction of at most
// [MaxFraction] digits. It is comparable with ==. The zero Date is
// 1970-01-01T00:00:00Z.
//
// time.Time ends at nanoseconds, and labels with finer dates are legal.
type Date struct {
	sec  int64
	atto uint64 // fraction in attoseconds, less than a second
}

// NewDate returns the date that is sec seconds and atto attoseconds after the
// beginning of 1970.
func NewDate(sec int64, atto uint64) (Date, error) {
	if sec < 0 || sec >= endUnix || atto >= second {
		return Date{}, stele.Messagef("mint-date.out-of-range", "{seconds}.{attoseconds} is not a date from 1970 to 9999", sec, fmt.Sprintf("%018d", atto))
	}
	return Date{sec, atto}, nil
}

// DateOf returns t as a Date, exactly.
func DateOf(t time.Time) (Date, error) {
	return NewDate(t.Unix(), uint64(t.Nanosecond())*nano)
}

// Unix returns the whole seconds since the beginning of 1970.
func (d Date) Unix() int64 { return d.sec }

// Attoseconds returns the fraction of the second, from 0 to 10^18-1.
func (d Date) Attoseconds() uint64 { return d.atto }

// Time returns d in UTC, cut to nanoseconds.
func (d Date) Time() time.Time { return time.Unix(d.sec, int64(d.atto/nano)).UTC() }

// Compare returns -1, 0 or +1 as d is before, at or after e.
func (d Date) Compare(e Date) int {
	if c := cmp.Compare(d.sec, e.sec); c != 0 {
		return c
	}
	return cmp.Compare(d.atto, e.atto)
}

// Fraction returns the fraction without its trailing zeros, as an integer and
// the number of its digits: .05 is 5 in 2 digits. No fraction is 0 in 0.
func (d Date) Fraction() (value uint64, digits int) {
	if d.atto == 0 {
		return 0, 0
	}
	value, digits = d.atto, MaxFraction
	for value%1_000_000 == 0 {
		value, digits = value/1_000_000, digits-6
	}
	for value%10 == 0 {
		value, digits = value/10, digits-1
	}
	return value, digits
}

// String returns d in RFC 3339 with its whole fraction: 2009-02-16T17:46:00.05Z.
func (d Date) String() string {
	b := time.Unix(d.sec, 0).UTC().AppendFormat(make([]byte, 0, 40), "2006-01-02T15:04:05")
	if value, digits := d.Fraction(); digits > 0 {
		b = fmt.Appendf(b, ".%0*d", digits, value)
	}
	return string(append(b, 'Z'))
}

// until returns how long it takes from d to e, rounded up to nanoseconds; the
// largest Duration if it takes longer. e is after d.
func (d Date) until(e Date) time.Duration {
	sec, atto := e.sec-d.sec, e.atto
	if atto < d.atto {
		sec, atto = sec-1, atto+second
	}
	atto -= d.atto
	if sec > math.MaxInt64/int64(time.Second)-1 {
		return math.MaxInt64
	}
	return time.Duration(sec)*time.Second + time.Duration((atto+nano-1)/nano)
}
