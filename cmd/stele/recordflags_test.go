package main

import (
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2024-05-17":                time.Date(2024, 5, 17, 23, 59, 59, 999999999, time.UTC),
		"2024-02-29":                time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.UTC),
		"2024-05-17T10:00:00Z":      time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC),
		"2024-05-17T10:00:00.5Z":    time.Date(2024, 5, 17, 10, 0, 0, 5e8, time.UTC),
		"2024-05-17T10:00:00-03:00": time.Date(2024, 5, 17, 13, 0, 0, 0, time.UTC),
		"2024-05-17T10:00":          time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC),
		"2024-05-17 10:00:01":       time.Date(2024, 5, 17, 10, 0, 1, 0, time.UTC),
	} {
		if got, err := parseMoment(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2024", "2024-02-30", "17.5.2024", "now"} {
		if got, err := parseMoment(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
