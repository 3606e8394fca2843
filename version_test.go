package stele

import "testing"

func TestParseVersionHeader(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   uint64
		ok     bool
	}{
		{nil, 0, true},
		{[]string{"0"}, 0, true},
		{[]string{"17"}, 17, true},
		{[]string{"18446744073709551615"}, 1<<64 - 1, true},
		{[]string{"18446744073709551616"}, 0, false},
		{[]string{""}, 0, false},
		{[]string{"+17"}, 0, false},
		{[]string{"-17"}, 0, false},
		{[]string{" 17"}, 0, false},
		{[]string{"0x11"}, 0, false},
		{[]string{"1_7"}, 0, false},
		{[]string{"00000000000000000000000017"}, 0, false},
		{[]string{"17", "17"}, 0, false},
		{[]string{"17, 18"}, 0, false},
	} {
		got, err := ParseVersionHeader(tt.values)
		if got != tt.want || (err == nil) != tt.ok || err != nil && KindOf(err) != Invalid {
			t.Errorf("%q: %d, %v", tt.values, got, err)
		}
	}
}
