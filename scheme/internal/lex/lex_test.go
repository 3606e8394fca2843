package lex

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCase(t *testing.T) {
	for in, want := range map[string][2]string{
		"":                {"", ""},
		"aBc-19":          {"abc-19", "ABC-19"},
		"straße ıİ\u212a": {"straße ıİ\u212a", "STRAßE ıİ\u212a"}, // only ASCII moves: the last is the Kelvin sign
	} {
		if Lower(in) != want[0] || Upper(in) != want[1] {
			t.Errorf("%q: %q, %q", in, Lower(in), Upper(in))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		ascii := rapid.StringMatching(`[ -~]*`).Draw(t, "ascii")
		if Lower(ascii) != strings.ToLower(ascii) || Upper(ascii) != strings.ToUpper(ascii) {
			t.Fatalf("%q: %q, %q", ascii, Lower(ascii), Upper(ascii))
		}
		if Lower(Upper(s)) != Lower(s) || len(Upper(s)) != len(s) {
			t.Fatalf("%q", s)
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a/]{0,8}`).Draw(t, "s")
		b1, a1, f1 := Cut(s, '/')
		b2, a2, f2 := strings.Cut(s, "/")
		if b1 != b2 || a1 != a2 || f1 != f2 {
			t.Fatalf("%q: %q %q %v", s, b1, a1, f1)
		}
	})
}

func TestBegins(t *testing.T) {
	for s, want := range map[string]bool{"": false, "urn:": true, "URN:": true, "hdl:": true, "ark:": false, "1": false, "\x15": false, "é": false} {
		if Begins(s, "uh") != want {
			t.Errorf("%q", s)
		}
	}
}

func TestCutFold(t *testing.T) {
	for _, c := range []struct {
		s, rest string
		ok      bool
	}{{"URN:x", "x", true}, {"urn:", "", true}, {"urn", "urn", false}, {"u\x52N:", "", true}, {"urn;x", "urn;x", false}, {"urn\x1ax", "urn\x1ax", false}} {
		if rest, ok := CutFold(c.s, "urn:"); rest != c.rest || ok != c.ok {
			t.Errorf("%q: %q, %v", c.s, rest, ok)
		}
	}
}

// Decoding agrees with net/url, and an offset in the decoded text leads back to
// where its byte stands.
func TestUnescape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([a-z]|%[0-9a-fA-F]{2}|%.?){0,6}`).Draw(t, "s")
		got, bad := Unescape(s)
		want, err := url.PathUnescape(s)
		if (bad >= 0) != (err != nil) || err == nil && got != want {
			t.Fatalf("%q: %q, %d; want %q, %v", s, got, bad, want, err)
		}
		if bad >= 0 {
			return
		}
		for n := range len(got) {
			i := Offset(s, n)
			if s[i] != got[n] && s[i] != '%' {
				t.Fatalf("%q: byte %d of %q is not at %d", s, n, got, i)
			}
		}
		if Offset(s, len(got)) != len(s) || Offset(s, len(s)+9) != len(s) {
			t.Fatalf("%q: its end is at %d", s, Offset(s, len(got)))
		}
	})
}

func TestParseLink(t *testing.T) {
	for in, want := range map[string]Link{
		"http://a":                  {Host: "a", PathPos: 8},
		"HTTPS://u@A:1/p//q?x?y#z?": {Host: "u@A:1", Path: "/p//q", PathPos: 13, Query: "x?y", HasQuery: true, Fragment: "z?"},
		"https:///p?":               {Path: "/p", PathPos: 8, HasQuery: true},
		"http://a#b":                {Host: "a", PathPos: 8, Fragment: "b"},
		"http://a?b/c":              {Host: "a", PathPos: 8, Query: "b/c", HasQuery: true},
	} {
		got, ok := ParseLink(in)
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "http:/", "http:a", "ftp://a", "httpx://a", "//a", "http;//a"} {
		if got, ok := ParseLink(in); ok {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func TestDomain(t *testing.T) {
	long := strings.Repeat("a", 63)
	for in, want := range map[string]int{
		"a": -1, "A-1.b2.c": -1, long: -1, long + "." + long + "." + long + "." + long[:61]: -1,
		"": 0, "a.": 2, ".a": 0, "a..b": 2, "-a": 0, "a.-b": 2, "a-.b": 1, "a_b": 1, "a b": 1, "é": 0, long + "a": 63,
		long + "." + long + "." + long + "." + long[:62]: 253,
	} {
		if got := Domain(in); got != want {
			t.Errorf("%.20q: %d, want %d", in, got, want)
		}
	}
}
