package usage

import (
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// ParseMoment reads a date, which stands for its end, or a time; both in UTC if they
// do not say otherwise.
func ParseMoment(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, stele.Messagef("argument.not-a-date", `"{text}" is not a date; write 2024-05-17, or 2024-05-17T10:00:00Z`, text)
}

// ParseAgo reads a date, which stands for its beginning, a time, or how long ago. Nothing
// is the zero time.
func ParseAgo(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	if n := len(text) - 1; text[n] == 'd' {
		if days, err := strconv.ParseUint(text[:n], 10, 16); err == nil {
			return now.AddDate(0, 0, -int(days)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := ParseMoment(text)
	if err != nil {
		return t, stele.Messagef("argument.not-a-time-or-age", `"{text}" is not a time; write 2024-05-17, 2024-05-17T10:00:00Z, or how long ago, such as 12h or 7d`, text)
	}
	return t, nil
}

// ParseExpiry reads when a token expires; the zero time is never.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if text != "" {
		units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'y': auth.TokenLife}
		unit, ok := units[text[len(text)-1]]
		if n, err := strconv.ParseUint(text[:len(text)-1], 10, 16); ok && err == nil && n > 0 {
			// Added one by one: thousands of years are more than a Duration holds.
			for range n {
				now = now.Add(unit)
			}
			return now.UTC(), nil
		}
	}
	if at, err := ParseMoment(text); err == nil {
		return at.UTC(), nil
	}
	return time.Time{}, stele.Messagef("argument.not-an-expiry", `"{text}" is neither a duration such as 90d or 1y, nor a date such as 2027-06-30, nor never`, text)
}
