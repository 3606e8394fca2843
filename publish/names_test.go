package publish

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNextVariant(t *testing.T) {
	// All texts of three letters a, b in any case, in order of bytes.
	rapid.Check(t, func(t *rapid.T) {
		lower := rapid.StringMatching(`[ab1]{1,6}`).Draw(t, "lower")
		found := rapid.StringMatching(`[abAB12]{0,7}`).Draw(t, "found")
		got, ok := nextVariant(found, lower, sharedFold(found, lower))
		want := ""
		for _, v := range allVariants(lower) {
			if v > found && (want == "" || v < want) {
				want = v
			}
		}
		if got != want || ok != (want != "") {
			t.Fatalf("behind %q comes %q, %v; want %q", found, got, ok, want)
		}
	})
}

func allVariants(lower string) []string {
	list := []string{""}
	for i := range len(lower) {
		var next []string
		for _, v := range list {
			next = append(next, v+lower[i:i+1])
			if c := strings.ToUpper(lower[i : i+1]); c != lower[i:i+1] {
				next = append(next, v+c)
			}
		}
		list = next
	}
	return list
}
