package dnsrr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const plainLine = `x1.example.org. 3600 IN NAPTR 100 10 "u" "http+N2L" "!^urn:example:x1$!https://example.org/1!" .`

// TestPlainRule holds that rules as programs write them are read by plainRule, and others are not.
func TestPlainRule(t *testing.T) {
	for text, want := range map[string]bool{
		plainLine: true,
		`x1.example.org. NAPTR 1 2 "" "" "" a.b.`:         true,
		`x1.example.org.   IN  NAPTR  1  2  "s" "" ""  .`: true,
		`x1 IN NAPTR 1 2 "u" "" "" .`:                     false, // below the origin
		`x1.example.org. IN NAPTR 1 2 "u" "" "a\\b" .`:    false,
		`x1.example.org. IN NAPTR 1 2 u "" "" .`:          false,
		`x1.example.org. IN NAPTR 1 70000 "u" "" "" .`:    false,
		`x1.example.org. IN NAPTR 1 2 "u" "" "" . more`:   false,
		`x1.example.org. IN URI 1 2 "https://a.example/"`: false,
		``: false,
	} {
		if _, ok := plainRule(text, 60); ok != want {
			t.Errorf("%s: %t", text, ok)
		}
	}
}

// FuzzPlainRule holds that plainRule reads what the reader for all records reads.
func FuzzPlainRule(f *testing.F) {
	for _, text := range []string{plainLine, `a. NAPTR 1 2 "" "" "" .`, `a. 0 NAPTR 65535 0 ";" "(" ")" b.`, `_a.b. 1 IN NAPTR 01 2 "a" "b" "c d" _x._y.`, `IN. IN NAPTR 1 2 "" "" "" .`, `1. 1 NAPTR 1 1 "" "" "" 1.`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := plainRule(text, 60)
		if !ok {
			return
		}
		want, err := parseEntry(text, "example.org.", 60)
		if err != nil {
			t.Fatalf("%q is read as %+v; the library says: %v", text, got, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
		if got.Data() != want.Data() {
			t.Errorf("%q: %s is not %s", text, got.Data(), want.Data())
		}
	})
}
