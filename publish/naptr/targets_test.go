package naptr

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// TestApart checks that the target that the web takes first has the lowest preference in
// the DNS too: targets of different kinds and equal order never look alike to a client, and
// mirrors always do.
func TestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := inOrder(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stele.Target {
			return stele.Target{
				Service: stele.N2L, Type: rapid.SampledFrom([]string{"", "text/html", "application/pdf"}).Draw(t, "type"),
				Language: rapid.SampledFrom([]string{"", "en", "EN"}).Draw(t, "language"),
				Order:    rapid.Uint16Range(1, 2).Draw(t, "order"), Preference: rapid.Uint16Range(10, 12).Draw(t, "preference"),
			}
		}), 0, 9).Draw(t, "targets"))
		before := slices.Clone(list)
		got := apart(list)
		if !slices.Equal(list, before) {
			t.Fatal("the targets of the record itself changed")
		}
		for i, a := range list {
			for k, b := range list[:i] {
				x, y := got[k].Preference, got[i].Preference
				equal := a.Order == b.Order && a.Preference == b.Preference
				same := a.Type == b.Type && strings.EqualFold(a.Language, b.Language)
				switch {
				case a.Order != b.Order:
				case equal && same && x != y:
					t.Fatalf("mirrors %d and %d have preferences %d and %d in %v", k, i, x, y, got)
				case equal && !same && x == y, !equal && x >= y:
					t.Fatalf("%d and %d have preferences %d and %d in %v", k, i, x, y, got)
				}
			}
		}
	})
}
