package stele_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestParseVersionHeader(t *testing.T) {
	const g = "0123456789abcdef0123456789abcdef"
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
		{[]string{g + "."}, 0, false},
		{[]string{"." + g}, 0, false},
		{[]string{strings.ToUpper(g) + ".17"}, 0, false},
		{[]string{g[1:] + ".17"}, 0, false},
		{[]string{strings.Repeat("0", 32) + ".17"}, 0, false},
		{[]string{g + ".17.18"}, 0, false},
	} {
		got, err := stele.ParseVersionHeader(tt.values)
		if got.Change != tt.want || !got.Generation.IsZero() || (err == nil) != tt.ok || err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %d, %v", tt.values, got, err)
		}
	}
	got, err := stele.ParseVersionHeader([]string{g + ".17"})
	if err != nil || got.Change != 17 || got.Generation.String() != g || got.String() != g+".17" {
		t.Errorf("%v, %v", got, err)
	}
}
