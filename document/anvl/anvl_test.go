package anvl

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Element
	}{
		{"", nil},
		{"\n\r\n# nothing\n", nil},
		{"who: Proust, Marcel\nwhat: Remembrance", []Element{{"who", "Proust, Marcel"}, {"what", "Remembrance"}}},
		{"who: Proust,\n   Marcel\r\n\t of Paris\rwhen: 1922\r\n", []Element{{"who", "Proust, Marcel of Paris"}, {"when", "1922"}}},
		{"who:\n  Proust", []Element{{"who", "Proust"}}},
		{"who: a\n# in between\n  b", []Element{{"who", "a b"}}},
		{"who: a\n   \n  b", []Element{{"who", "a b"}}},
		{"\ufeffwho: a", []Element{{"who", "a"}}},
		{"a%3Ab : x%25%0Ay", []Element{{"a:b", "x%\ny"}}},
		{"a: %c3%A9 é", []Element{{"a", "é é"}}},
		{"_target: https://example.org/a:b", []Element{{"_target", "https://example.org/a:b"}}},
		{"a:", []Element{{"a", ""}}},
		{"a: %20x%20", []Element{{"a", " x "}}},
		{"a: x\u2028b: y", []Element{{"a", "x\u2028b: y"}}}, // not the end of a line
	} {
		got, err := Parse(c.text)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\nc":                            "anvl.colon-missing 2",
		"a: b\n: c":                          "anvl.label-empty 2",
		"a: b\n%20 : c\n : d":                "", // a space is a label; what follows continues
		"a: b\n\n c":                         "anvl.nothing-to-continue 3",
		" a: b":                              "anvl.nothing-to-continue 1",
		"a: b\na: c":                         "anvl.label-repeated 2",
		"a: b\n%61: c":                       "anvl.label-repeated 2",
		"a: 5%":                              "anvl.percent-encoding 1",
		"a: %4":                              "anvl.percent-encoding 1",
		"a: %4g":                             "anvl.percent-encoding 1",
		"a: x\n  %4\n  1":                    "anvl.percent-encoding 1", // of the element that begins there
		"%zz: x":                             "anvl.percent-encoding 1",
		"a: %e9":                             "anvl.encoded-not-utf8 1",
		"a: b\nc: \xe9t\xe9":                 "anvl.not-utf8 2",
		"\xff\xfea\x00:\x00":                 "anvl.not-utf8 1", // UTF-16
		"#\xff":                              "anvl.not-utf8 1",
		strings.Repeat("x", 1<<20):           "anvl.colon-missing 1",
		many(MaxElements + 1):                "anvl.too-many-elements 10001",
		many(MaxElements):                    "",
		"a: " + strings.Repeat("%", 1<<20):   "anvl.percent-encoding 1",
		"a:" + strings.Repeat("\n b", 1<<18): "",
	} {
		_, err := Parse(text)
		code := ""
		if m, ok := stele.Reason(err).(*stele.Message); err != nil && ok {
			code = m.Code + " " + m.Params[0].Value
		}
		if code != want || err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("%.40q: %q, %v; want %q", text, code, err, want)
		}
	}
}

func many(n int) string {
	var b []byte
	for i := range n {
		b = Append(b, "e"+strconv.Itoa(i), "v")
	}
	return string(b)
}

// TestAppend: what is written has the lines that a client expects, and no more.
func TestAppend(t *testing.T) {
	for _, c := range []struct{ label, value, want string }{
		{"erc.who", "Lima, A.", "erc.who: Lima, A.\n"},
		{"_status", "unavailable | x\r\n_target: https://evil.example", "_status: unavailable | x%0D%0A_target: https://evil.example\n"},
		{"a:b #c%", "5%", "a%3Ab%20%23c%25: 5%25\n"},
		{"a", " x\u00a0", "a: %20x%C2%A0\n"},
		{"a", "x\u2028y\u2029z\u0085\x00\x0b\u202e", "a: x%E2%80%A8y%E2%80%A9z%C2%85%00%0B%E2%80%AE\n"},
		{"a", "", "a: \n"},
	} {
		if got := string(Append(nil, c.label, c.value)); got != c.want {
			t.Errorf("%q, %q: %q", c.label, c.value, got)
		}
	}
	long := strings.Repeat("word ", 40) + "end"
	if got := string(AppendFolded(nil, "a", long)); strings.Count(got, "\n\t") < 2 || len(got) > len(long)+20 {
		t.Errorf("%q", got)
	}
}

// TestRoundTrip: any labels and values come back as they were, in one line each.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(" \t\r\n%:#é\u2028\u00a0\ufeffaA0_.-"))))
		labels := rapid.SliceOfDistinct(piece.Filter(func(s string) bool { return s != "" }), func(s string) string { return s }).Draw(t, "labels")
		var want []Element
		var b, folded []byte
		for _, label := range labels {
			e := Element{label, piece.Draw(t, "value")}
			want = append(want, e)
			b = Append(b, e.Label, e.Value)
			folded = AppendFolded(folded, e.Label, strings.TrimSpace(e.Value))
		}
		if lines := strings.Split(string(b), "\n"); len(lines) != len(want)+1 {
			t.Fatalf("%d lines of %d elements: %q", len(lines), len(want), b)
		}
		got, err := Parse(string(b))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", b, got, err, want)
		}
		if _, err := Parse(string(folded)); err != nil {
			t.Fatalf("%q: %v", folded, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "who: a\n b\n# c\nwhat: %25", "a%3Ab: x\r\rc: d", "\ufeffa:b", "a: %e9", ":: ark:/99999/fk4\n", " x", "a: b\na: c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid || list != nil {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		var b []byte
		for _, e := range list {
			b = Append(b, e.Label, e.Value)
		}
		again, err := Parse(string(b))
		if err != nil || !slices.Equal(again, list) {
			t.Fatalf("%q: %q, %v; want %q", b, again, err, list)
		}
	})
}
