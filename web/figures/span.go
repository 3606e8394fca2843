package figures

import (
	"strconv"
	"time"

	"github.com/stele-id/stele/web/language"
)

// span is a row of periods: months or days.
type span struct {
	head   string                               // key of what a period is called
	layout string                               // of its text in reports
	begin  func(time.Time) time.Time            // of the period of a time
	words  func(time.Time) string               // for people
	below  func(time.Time) (short, long string) // a bar
	each   func(yield func(time.Time) bool)     // in order
}

// fewDays is up to how many days each has its number below its bar.
const fewDays = 31

// newSpan returns the periods from one day to another.
func newSpan(l *language.Language, by string, from, until time.Time) span {
	if by == byDay {
		return daySpan(l, from, until)
	}
	s := span{head: "use.month", layout: "2006-01", words: l.Month}
	s.begin = func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }
	first, last := s.begin(from), s.begin(until)
	many := last.Sub(first) > 500*24*time.Hour
	s.below = func(t time.Time) (short, long string) {
		january := t.Month() == time.January
		if !many || january {
			short = l.ShortMonth(t)
		}
		if january || t.Equal(first) && t.Month() != time.December && !many {
			long = strconv.Itoa(t.Year())
		}
		return short, long
	}
	s.each = Steps(first, last, func(t time.Time) time.Time { return t.AddDate(0, 1, 0) })
	return s
}

func daySpan(l *language.Language, from, until time.Time) span {
	s := span{head: "use.day", layout: time.DateOnly, words: l.Day}
	s.begin = func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	many := until.Sub(from) > fewDays*24*time.Hour
	s.below = func(t time.Time) (short, long string) {
		if !many {
			short = strconv.Itoa(t.Day())
		}
		if t.Day() == 1 || t.Equal(from) && t.Day() < 27 {
			short, long = strconv.Itoa(t.Day()), l.ShortMonth(t)
		}
		return short, long
	}
	s.each = Steps(from, until, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) })
	return s
}

// maxSteps bounds a row of periods, whatever its ends are.
const maxSteps = 40_000

// Steps yields times from one to another.
func Steps(from, until time.Time, next func(time.Time) time.Time) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		for at, n := from, 0; !at.After(until) && n < maxSteps; at, n = next(at), n+1 {
			if !yield(at) {
				return
			}
		}
	}
}
