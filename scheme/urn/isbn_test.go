package urn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// suggested parses a text that must be wrong, and returns what it may mean.
func suggested(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) []string {
	t.Helper()
	_, err := New().Parse(text)
	e, ok := errors.AsType[*stele.SyntaxError](err)
	if !ok || !errors.Is(err, stele.Invalid) || err == stele.ErrForeign {
		t.Fatalf("Parse(%q): %v; want a SyntaxError", text, err)
	}
	return e.Suggestions
}

func TestISBNSuggestions(t *testing.T) {
	for text, want := range map[string][]string{
		// The last two digits of 9780306406157 swapped; then what a wrong digit at
		// each place would mean, the last first, except in the prefix.
		"urn:isbn:9780306406175": {
			"urn:isbn:9783006406175", "urn:isbn:9780036406175", "urn:isbn:9780306406157",
			"urn:isbn:9780306406171", "urn:isbn:9780306406195", "urn:isbn:9780306406775", "urn:isbn:9780306408175",
			"urn:isbn:9780306466175", "urn:isbn:9780306606175", "urn:isbn:9780302406175", "urn:isbn:9780326406175",
			"urn:isbn:9780906406175", "urn:isbn:9782306406175",
		},
		// Of ten digits; canonical forms are offered all the same.
		"ISBN 0-306-40615-3": {
			"urn:isbn:9780306406157", "urn:isbn:9780306406850", "urn:isbn:9780306403156", "urn:isbn:9780306426155",
			"urn:isbn:9780306206153", "urn:isbn:9780309406154", "urn:isbn:9780346406155", "urn:isbn:9780906406151",
			"urn:isbn:9781306406154",
		},
		// A prefix of which two digits are swapped.
		"urn:isbn:9870306406157": {"urn:isbn:9780306406157"},
		// A right article number that is not a book's: no digit is wrong.
		"urn:isbn:4006381333931": nil,
		// Wrong in other ways than by a check digit.
		"urn:isbn:978030640615":  nil,
		"urn:isbn:9790260000438": nil, // printed music
		"urn:isbn:97803O64O6157": nil,
		// A letter in place of a digit, and an X swapped with its neighbour.
		"urn:isbn:97803O6406157": {"urn:isbn:9780306406157"},
		"urn:isbn:978030640615Y": {"urn:isbn:9780306406157"},
		"urn:isbn:08044295X7":    {"urn:isbn:9780804429573", "urn:isbn:9780804429535"},
	} {
		if diff := cmp.Diff(want, suggested(t, text)); diff != "" {
			t.Errorf("suggestions for %q:\n%s", text, diff)
		}
	}
}

// TestISBNX checks that an X is offered as a check digit, and nowhere else.
func TestISBNX(t *testing.T) {
	got := suggested(t, "isbn:0804429570")
	if !slices.Contains(got, "urn:isbn:9780804429573") { // 080442957X
		t.Errorf("a wrong digit in place of X: %q", got)
	}
	got = suggested(t, "isbn:080442975X")
	if !slices.Contains(got, "urn:isbn:9780804429573") {
		t.Errorf("swapped digits before X: %q", got)
	}
}

// book draws the digits of an ISBN, with ten and with thirteen digits.
func book(t *rapid.T) (ten, thirteen string) {
	nine := rapid.StringMatching(`[0-9]{9}`).Draw(t, "digits")
	sum10, sum13 := 0, 9+3*7+8
	for i, c := range nine {
		sum10 += (i + 1) * int(c-'0')
		sum13 += []int{3, 1}[i%2] * int(c-'0')
	}
	// The textbook's other way to put it: the tenth digit is the sum of place
	// times digit, modulo 11.
	ten = nine + string("0123456789X"[sum10%11])
	thirteen = "978" + nine + string("0987654321"[sum13%10])
	return ten, thirteen
}

func TestISBNForms(t *testing.T) {
	scheme := New()
	rapid.Check(t, func(t *rapid.T) {
		ten, thirteen := book(t)
		for _, text := range []string{"urn:isbn:" + ten, "urn:isbn:" + thirteen, "isbn:" + strings.ToLower(ten), "ISBN-13: " + thirteen} {
			x, err := scheme.Explain(text)
			if err != nil {
				t.Fatalf("Explain(%q): %v", text, err)
			}
			if x.ID.String() != "urn:isbn:"+thirteen || x.Parts.Get("isbn10") != ten || x.Parts.Get("isbn13") != thirteen {
				t.Fatalf("Explain(%q) = %q, %v", text, x.ID, x.Parts)
			}
		}
	})
}

// TestISBNRepair checks that one wrong digit is always noticed and that the right
// number is among the suggestions; and that each suggestion is right.
func TestISBNRepair(t *testing.T) {
	scheme := New()
	rapid.Check(t, func(t *rapid.T) {
		ten, thirteen := book(t)
		right := rapid.SampledFrom([]string{ten, thirteen}).Draw(t, "form")
		wrong := []byte(right)
		first := len(right) - 10 // the prefix stays
		i := rapid.IntRange(first, len(right)-1).Draw(t, "place")
		if i+1 < len(right) && right[i] != right[i+1] && right[i+1] != 'X' && rapid.Bool().Draw(t, "swap") {
			wrong[i], wrong[i+1] = wrong[i+1], wrong[i]
		} else {
			wrong[i] = byte('0' + rapid.IntRange(0, 9).Draw(t, "digit"))
		}
		if _, err := scheme.Parse("urn:isbn:" + string(wrong)); err == nil {
			// Thirteen digits do not show the swap of two that differ by five.
			if d := int(wrong[i]) - int(right[i]); d != 0 && (len(right) == 10 || d != 5 && d != -5) {
				t.Fatalf("%s for %s is not noticed", wrong, right)
			}
			return
		}
		all := suggested(t, "urn:isbn:"+string(wrong))
		if !slices.Contains(all, "urn:isbn:"+thirteen) {
			t.Errorf("%s for %s: only %q are suggested", wrong, right, all)
		}
		checkSuggestions(t, scheme, all)
	})
}

// checkSuggestions checks that all are canonical names, each given once.
func checkSuggestions(t *rapid.T, scheme stele.Scheme, all []string) {
	if len(all) > maxSuggestions {
		t.Errorf("%d suggestions", len(all))
	}
	for i, text := range all {
		if id, err := scheme.Parse(text); err != nil || id.String() != text {
			t.Errorf("%q is suggested, and gives %q, %v", text, id, err)
		}
		if slices.Contains(all[:i], text) {
			t.Errorf("%q is suggested twice", text)
		}
	}
}
