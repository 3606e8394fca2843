package main

import (
	"fmt"
	"time"
)

// parseMoment reads a date, which stands for its end, or a time; both in UTC if they
// do not say otherwise.
func parseMoment(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.60q is no date; write 2024-05-17, or 2024-05-17T10:00:00Z", text)
}
