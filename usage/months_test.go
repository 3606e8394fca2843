package usage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestMonths reads the sums of all names in the order of their texts, those of long names too, whose cells stand in another one.
func TestMonths(t *testing.T) {
	h := newHouse(t)
	long := "ark:12345/" + strings.Repeat("z", maxCellText)
	names := []string{"ark:12345/x1", "ark:12345/x10", long[:maxCellText], "ark:54321/x1"}
	for _, end := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		names = append(names, long+end)
	}
	for _, days := range []int{0, 3, 20} { // November twice, and December
		h.at(time.Duration(days) * 24 * time.Hour)
		for _, name := range names {
			h.counter.Redirected(h.id(name), h.ann, firefox, "https://www.example.net/")
		}
		h.flush()
	}
	b := &Book{Registrar: h.r, Schemes: h.schemes}
	if has, err := b.HasMonths(t.Context()); !has || err != nil {
		t.Errorf("has months: %v, %v", has, err)
	}
	for _, test := range []struct {
		until  Date
		prefix string
		rows   int
	}{
		{Date{2026, time.December}, "", 24},
		{Date{2026, time.November}, "", 12},
		{Date{2026, time.November}, "ark:12345/x1", 2},
		{Date{2026, time.December}, long + "c", 2},
		{Date{2026, time.October}, "", 0},
	} {
		var got []string
		for m, err := range b.Months(t.Context(), stele.NamespaceKey{Scheme: "ark", Prefix: test.prefix}, test.until) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.ID.String()+"\n"+m.Month.String())
			want := uint64(1)
			if m.Month.Month == time.November {
				want = 2
			}
			if m.Counts[Regulars] != want || m.Counts.Named()["regular"] != want || len(m.Counts.Named()) != 2 {
				t.Errorf("%s in %s: %v", m.ID, m.Month, m.Counts.Named())
			}
		}
		if len(got) != test.rows || !slices.IsSorted(got) {
			t.Errorf("%d rows until %s of %q, sorted %v", len(got), test.until, clip(test.prefix, 20), slices.IsSorted(got))
		}
	}
	if d, err := ParseDate("2026-11"); err != nil || d != (Date{2026, time.November}) {
		t.Errorf("parsed %v, %v", d, err)
	}
	if _, err := ParseDate("2026-13"); err == nil {
		t.Error("there is no month 13")
	}
}
