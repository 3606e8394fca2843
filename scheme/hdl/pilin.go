package hdl

import (
	"time"

	"github.com/stele-id/stele"
)

// PILIN's handles have a suffix that tells when it was asked for (PILIN, Handle
// Suffix Format Policy, 2007): the milliseconds since the epoch of UUIDs, in
// base 31, reversed. Dates from 1609 to 2420 take nine digits; no others are
// read or written.
const (
	pilinDigits = "0123456789BCDFGHJKLMNPQRSTVWXYZ" // no vowels: no words by accident
	pilinBase   = int64(len(pilinDigits))
	pilinLength = 9

	// 1582-10-15T00:00:00Z in milliseconds of Unix time, without leap seconds.
	pilinEpoch = int64(-12219292800000)

	pilinMin = 852_891_037_441 // 31 to the power of 8: less has fewer digits
	pilinMax = pilinMin*pilinBase - 1
)

// EncodePILIN returns the suffix of the millisecond in which t lies: nine
// characters. Dates before 1609-10-24 or after 2420-08-16 have none.
func EncodePILIN(t time.Time) (string, error) {
	// UnixMilli is undefined for dates far off, so seconds are looked at first.
	const first, last = (pilinMin + pilinEpoch) / 1000, (pilinMax + pilinEpoch) / 1000
	if s := t.Unix(); s < first-1 || s > last+1 {
		return "", errPILIN(t)
	}
	n := t.UnixMilli() - pilinEpoch
	if n < pilinMin || n > pilinMax {
		return "", errPILIN(t)
	}
	var b [pilinLength]byte
	for i := range b {
		b[i] = pilinDigits[n%pilinBase]
		n /= pilinBase
	}
	return string(b[:]), nil
}

func errPILIN(t time.Time) error {
	return stele.Messagef("hdl.pilin-date-out-of-range", "{date} is outside of what the {length} characters of a PILIN suffix can hold, 1609-10-24 to 2420-08-16",
		t.UTC().Format(time.DateOnly), pilinLength)
}

// DecodePILIN returns the millisecond that suffix stands for, in UTC. Letters may
// be in any case. ok is false for what EncodePILIN can't have written.
func DecodePILIN(suffix string) (t time.Time, ok bool) {
	if len(suffix) != pilinLength {
		return time.Time{}, false
	}
	n := int64(0)
	for i := pilinLength - 1; i >= 0; i-- {
		d := pilinValue(suffix[i])
		if d < 0 {
			return time.Time{}, false
		}
		n = n*pilinBase + d
	}
	if n < pilinMin {
		return time.Time{}, false
	}
	return time.UnixMilli(n + pilinEpoch).UTC(), true
}

// pilinValue returns the value of a digit, or -1.
func pilinValue(c byte) int64 {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	for i := range len(pilinDigits) {
		if pilinDigits[i] == c {
			return int64(i)
		}
	}
	return -1
}

// pilinDate returns the date in a local name that could be a PILIN suffix: not
// before there was a PILIN, and not in the future.
func pilinDate(local string, now time.Time) (t time.Time, ok bool) {
	t, ok = DecodePILIN(local)
	return t, ok && t.Year() >= 2005 && !t.After(now)
}

// usesPILIN reports whether the naming authority is known to give out PILIN
// suffixes.
func usesPILIN(prefix string) bool { return prefix == "102.100.272" }
