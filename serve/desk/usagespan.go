package desk

import (
	"strconv"
	"time"
)

// usageSpan is a row of periods: months or days.
type usageSpan struct {
	head   string                               // key of what a period is called
	layout string                               // of its text in reports
	begin  func(time.Time) time.Time            // of the period of a time
	words  func(time.Time) string               // for people
	below  func(time.Time) (short, long string) // a bar
	each   func(yield func(time.Time) bool)     // in order
}

// fewDays is up to how many days each has its number below its bar.
const fewDays = 31

// usageSpan returns the periods from one day to another.
func (c *call) usageSpan(by string, from, until time.Time) usageSpan {
	if by == byDay {
		return c.daySpan(from, until)
	}
	s := usageSpan{head: "use.month", layout: "2006-01", words: c.language.Month}
	s.begin = func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }
	first, last := s.begin(from), s.begin(until)
	many := last.Sub(first) > 500*24*time.Hour
	s.below = func(t time.Time) (short, long string) {
		january := t.Month() == time.January
		if !many || january {
			short = c.language.ShortMonth(t)
		}
		if january || t.Equal(first) && t.Month() != time.December && !many {
			long = strconv.Itoa(t.Year())
		}
		return short, long
	}
	s.each = steps(first, last, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) })
	return s
}

func (c *call) daySpan(from, until time.Time) usageSpan {
	s := usageSpan{head: "use.day", layout: time.DateOnly, words: c.language.Day}
	s.begin = func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	many := until.Sub(from) > fewDays*24*time.Hour
	s.below = func(t time.Time) (short, long string) {
		if !many {
			short = strconv.Itoa(t.Day())
		}
		if t.Day() == 1 || t.Equal(from) && t.Day() < 27 {
			short, long = strconv.Itoa(t.Day()), c.language.ShortMonth(t)
		}
		return short, long
	}
	s.each = steps(from, until, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) })
	return s
}

// maxSteps bounds a row of periods, whatever its ends are.
const maxSteps = 40_000

// steps yields times from one to another.
func steps(from, until time.Time, next func(time.Time) time.Time) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		for at, n := from, 0; !at.After(until) && n < maxSteps; at, n = next(at), n+1 {
			if !yield(at) {
				return
			}
		}
	}
}
