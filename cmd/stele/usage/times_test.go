package usage

import (
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
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
		if got, err := ParseMoment(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2024", "2024-02-30", "17.5.2024", "now"} {
		if got, err := ParseMoment(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestParseAgo(t *testing.T) {
	now := time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                     {},
		"2024-05-01":           time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC),
		"2024-05-01T10:00:00Z": time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC),
		"7d":                   now.AddDate(0, 0, -7),
		"12h":                  now.Add(-12 * time.Hour),
	} {
		if got, err := ParseAgo(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-1h", "99999999d", "yesterday"} {
		if got, err := ParseAgo(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestParseExpiry(t *testing.T) {
	now := time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"never":      {},
		"3h":         now.Add(3 * time.Hour),
		"90d":        now.AddDate(0, 0, 90),
		"2w":         now.AddDate(0, 0, 14),
		"2y":         now.Add(2 * auth.TokenLife),
		"2027-06-30": time.Date(2027, 6, 30, 23, 59, 59, 999999999, time.UTC),
	} {
		if got, err := ParseExpiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0d", "d", "-1d", "70000d", "soon"} {
		if got, err := ParseExpiry(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if got, err := ParseExpiry("9000y", now); err != nil || got.Year() < 11000 {
		t.Errorf("a long time is %v, %v", got, err)
	}
}
