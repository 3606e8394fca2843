package mail

import (
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Schedule says when digests are sent, in UTC: the weekly ones on a day, and the daily ones on each day.
type Schedule struct {
	Day          time.Weekday
	Hour, Minute int
}

// ParseSchedule reads a schedule, such as "monday 07:00".
func ParseSchedule(text string) (Schedule, error) {
	day, clock, _ := strings.Cut(text, " ")
	for s := (Schedule{}); s.Day <= time.Saturday; s.Day++ {
		if t, err := time.Parse("15:04", clock); err == nil && len(clock) == len("15:04") && strings.ToLower(s.Day.String()) == day {
			s.Hour, s.Minute = t.Hour(), t.Minute()
			return s, nil
		}
	}
	return Schedule{}, stele.Messagef("mail.schedule-invalid", `"{text}" does not say when digests are sent; write a day and a time in UTC, as in "monday 07:00"`, text)
}

// String returns the schedule as it is written.
func (s Schedule) String() string {
	return fmt.Sprintf("%s %02d:%02d", strings.ToLower(s.Day.String()), s.Hour, s.Minute)
}

// Last returns the last time, not after now, at which digests of a rate are sent.
func (s Schedule) Last(now time.Time, rate auth.DigestRate) time.Time {
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), s.Hour, s.Minute, 0, 0, time.UTC)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	if rate != auth.DigestDaily {
		at = at.AddDate(0, 0, -(int(at.Weekday()-s.Day)+7)%7)
	}
	return at
}

// Period returns how much time passes between digests of a rate.
func Period(rate auth.DigestRate) time.Duration {
	if rate == auth.DigestDaily {
		return 24 * time.Hour
	}
	return 7 * 24 * time.Hour
}
