package mint

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDateLimits(t *testing.T) {
	for _, bad := range []struct {
		sec  int64
		atto uint64
	}{{-1, 0}, {endUnix, 0}, {0, second}, {1 << 62, 1 << 63}} {
		if d, err := NewDate(bad.sec, bad.atto); err == nil {
			t.Errorf("NewDate(%d, %d) = %v", bad.sec, bad.atto, d)
		}
	}
	for _, bad := range []time.Time{
		{}, time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if d, err := DateOf(bad); err == nil {
			t.Errorf("DateOf(%v) = %v", bad, d)
		}
	}
}

func TestDateString(t *testing.T) {
	for want, d := range map[string]Date{
		"1970-01-01T00:00:00Z":                    {},
		"9999-12-31T23:59:59.999999999999999999Z": {endUnix - 1, second - 1},
		"2009-02-16T17:46:00.05Z":                 {1234806360, second / 20},
		"2009-02-16T17:46:00.000000000000000001Z": {1234806360, 1},
	} {
		if got := d.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// DateOf and Time are exact to the nanosecond, and String agrees with time's.
func TestDateIsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, endUnix-1).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		d, err := DateOf(at)
		if err != nil || !d.Time().Equal(at) || d.String() != at.Format(time.RFC3339Nano) {
			t.Fatalf("%v: %v, %v", at, d, err)
		}
		value, digits := d.Fraction()
		if back, _ := NewDate(d.Unix(), value*scale[digits]); back != d {
			t.Fatalf("fraction of %v: %d in %d digits", d, value, digits)
		}
	})
}

func TestGranularity(t *testing.T) {
	for want, in := range map[string]string{
		"1m": "60s", "1s": "1s", "100ms": "100ms", "10ms": "10ms", "1ms": "1ms", "100us": "100µs", "1us": "1us",
		"1ns": "1ns", "10ps": "10ps", "1as": "1as",
	} {
		r, err := ParseGranularity(in)
		if err != nil || r.String() != want {
			t.Errorf("%s: %v, %v", in, r, err)
		}
	}
	for r := Minute; r <= finest; r++ {
		if back, err := ParseGranularity(r.String()); err != nil || back != r {
			t.Errorf("%v: %v, %v", r, back, err)
		}
	}
	for _, bad := range []string{"", "0", "2s", "1000ms", "10s", "1h", "-1s", "1", "0.1as", "1 s", "60m"} {
		if r, err := ParseGranularity(bad); err == nil {
			t.Errorf("%q is read as %v", bad, r)
		}
	}
	for r, want := range map[Granularity]string{Minute: "1m", Second: "1s", Millisecond: "1ms", Microsecond: "1us", Nanosecond: "1ns"} {
		if r.String() != want {
			t.Errorf("%s is written %s", want, r)
		}
	}
	if Granularity(-2).IsValid() || Granularity(19).IsValid() || Granularity(19).String() != "Granularity(19)" {
		t.Error("19 and -2 are no granularities")
	}
}
