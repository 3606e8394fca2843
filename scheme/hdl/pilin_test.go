package hdl_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/scheme/hdl"
)

// The examples in use, and the first and last suffix of nine characters.
var pilin = map[string]time.Time{
	"Y35XYS0QH": time.Date(2007, time.May, 25, 3, 49, 52, 865e6, time.UTC),
	"0N8J991QH": time.Date(2007, time.May, 30, 5, 50, 34, 750e6, time.UTC),
	"000000001": time.Date(1609, time.October, 24, 10, 10, 37, 441e6, time.UTC),
	"ZZZZZZZZZ": time.Date(2420, time.August, 16, 3, 29, 20, 670e6, time.UTC),
}

func TestPILIN(t *testing.T) {
	for suffix, date := range pilin {
		if got, err := hdl.EncodePILIN(date); err != nil || got != suffix {
			t.Errorf("EncodePILIN(%s) = %q, %v; want %q", date, got, err, suffix)
		}
		// The rest of a millisecond, and the zone, make no difference.
		zone := time.FixedZone("", -9*3600-1800)
		if got, err := hdl.EncodePILIN(date.Add(999_999).In(zone)); err != nil || got != suffix {
			t.Errorf("EncodePILIN(%s + 999999ns) = %q, %v; want %q", date, got, err, suffix)
		}
		for _, s := range []string{suffix, strings.ToLower(suffix)} {
			if got, ok := hdl.DecodePILIN(s); !ok || got != date {
				t.Errorf("DecodePILIN(%q) = %s, %v; want %s", s, got, ok, date)
			}
		}
	}
}

func TestPILINRefused(t *testing.T) {
	for _, date := range []time.Time{
		pilin["000000001"].Add(-1),
		pilin["ZZZZZZZZZ"].Add(time.Millisecond),
		{},
		time.Unix(1<<62, 0),
		time.Unix(-1<<62, 0),
	} {
		if got, err := hdl.EncodePILIN(date); err == nil {
			t.Errorf("EncodePILIN(%v) = %q, want an error", date, got)
		}
	}
	for _, suffix := range []string{
		"", "Y35XYS0Q", "Y35XYS0QHH", "Y35XYS0QA", "Y35XYS0QU", "U35XYS0QH", "Y35XYS0Q0", "000000000", "Y35XYS0Qé", "Y35XYS-QH", "Y35 YS0QH",
	} {
		if got, ok := hdl.DecodePILIN(suffix); ok {
			t.Errorf("DecodePILIN(%q) = %s, want none", suffix, got)
		}
	}
}

// Every millisecond from 1609 to 2420 has one suffix, of nine characters, that
// gives it back.
func TestPILINRoundTrip(t *testing.T) {
	first, last := pilin["000000001"].UnixMilli(), pilin["ZZZZZZZZZ"].UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		date := time.UnixMilli(rapid.Int64Range(first, last).Draw(t, "ms")).UTC()
		suffix, err := hdl.EncodePILIN(date)
		if err != nil || len(suffix) != 9 {
			t.Fatalf("EncodePILIN(%s) = %q, %v", date, suffix, err)
		}
		if got, ok := hdl.DecodePILIN(suffix); !ok || got != date {
			t.Fatalf("DecodePILIN(%q) = %s, %v; want %s", suffix, got, ok, date)
		}
	})
}

// Every text that is read as a suffix is the one that is written.
func TestPILINUnique(t *testing.T) {
	digits := rapid.StringMatching(`[0-9BCDFGHJKLMNPQRSTVWXYZ]{8}[1-9BCDFGHJKLMNPQRSTVWXYZ]`)
	rapid.Check(t, func(t *rapid.T) {
		suffix := digits.Draw(t, "suffix")
		date, ok := hdl.DecodePILIN(suffix)
		if !ok {
			t.Fatalf("DecodePILIN(%q) refuses", suffix)
		}
		if got, err := hdl.EncodePILIN(date); err != nil || got != suffix {
			t.Fatalf("EncodePILIN(%s) = %q, %v; want %q", date, got, err, suffix)
		}
	})
}

func BenchmarkEncodePILIN(b *testing.B) {
	date := pilin["Y35XYS0QH"]
	b.ReportAllocs()
	for b.Loop() {
		hdl.EncodePILIN(date)
	}
}
