package stele_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestID(t *testing.T) {
	s := recordtest.Toys(t, "ab", "cd")
	id, err := s.Parse("ab:Name")
	if err != nil {
		t.Fatal(err)
	}
	if id.Scheme() != "ab" || id.String() != "ab:name" || !id.IsValid() {
		t.Errorf("%q %q", id.Scheme(), id)
	}
	other, err := s.Parse("ab:NAME")
	if err != nil || other != id {
		t.Errorf("%q is another ID than %q, %v", other, id, err)
	}
	m := map[stele.ID]int{id: 1}
	if m[other] != 1 {
		t.Error("an ID is not a key")
	}
	if (stele.ID{}).IsValid() || (stele.ID{}).String() != "" || (stele.ID{}).Scheme() != "" {
		t.Error("the zero ID must be invalid and empty")
	}
}

func TestNewIDRefuses(t *testing.T) {
	for _, c := range []struct{ scheme, text string }{
		{"", "x"}, {"Ab", "x"}, {"a1", "x"}, {"a-b", "x"},
		{"ab", ""}, {"ab", "\x00"}, {"ab", "a\nb"}, {"ab", "\xff"}, {"ab", "a\u202eb"}, {"ab", strings.Repeat("x", stele.MaxText+1)},
	} {
		if id, err := stele.NewID(c.scheme, c.text); err == nil || id.IsValid() || !errors.Is(err, stele.Invalid) {
			t.Errorf("NewID(%q, %.20q) = %v, %v", c.scheme, c.text, id, err)
		}
	}
	if _, err := stele.NewID("ab", strings.Repeat("x", stele.MaxText)); err != nil {
		t.Error(err)
	}
}

func TestIDCompare(t *testing.T) {
	var ids []stele.ID
	for _, c := range [][2]string{{"b", "a"}, {"a", "z"}, {"a", "b"}, {"b", "A"}} {
		id, err := stele.NewID(c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.SortFunc(ids, stele.ID.Compare)
	if got := fmt.Sprint(ids); got != "[b z A a]" {
		t.Error(got)
	}
	if ids[0].Compare(ids[0]) != 0 {
		t.Error("an ID is not equal to itself")
	}
}

func TestIDMarshalling(t *testing.T) {
	s := recordtest.Toys(t, "ab")
	id, err := s.Parse("ab:x<y>")
	if err != nil {
		t.Fatal(err)
	}
	enc, err := json.Marshal(map[stele.ID]stele.ID{id: id})
	if err != nil || string(enc) != `{"ab:x\u003cy\u003e":"ab:x\u003cy\u003e"}` {
		t.Errorf("%s, %v", enc, err)
	}
	var back stele.ID
	if err := json.Unmarshal([]byte(`"AB:X"`), s.Reader(&back)); err == nil {
		t.Errorf("an unknown scheme is read as %q", back)
	}
	if err := json.Unmarshal([]byte(`"ab:X\u003cy>"`), s.Reader(&back)); err != nil || back != id {
		t.Errorf("%q, %v", back, err)
	}
	if err := s.Reader(&back).UnmarshalText(make([]byte, 1<<20)); !errors.Is(err, stele.Invalid) || back != id {
		t.Errorf("a megabyte: %v, and the ID is now %q", err, back)
	}
	if _, err := json.Marshal(stele.ID{}); err == nil {
		t.Error("the zero ID is marshalled")
	}
	if _, err := (stele.ID{}).MarshalText(); !errors.Is(err, stele.Invalid) {
		t.Errorf("the zero ID: %v", err)
	}
}

func TestPrefix(t *testing.T) {
	id, err := stele.NewID("ab", "ab:cde")
	if err != nil {
		t.Fatal(err)
	}
	p := id.Prefix(4)
	if p.String() != "ab:c" || p.Scheme() != "ab" || !p.IsValid() {
		t.Errorf("%q", p)
	}
	if p != id.Prefix(4) {
		t.Error("prefixes do not compare")
	}
	for _, n := range []int{-1, 0, 6, 7} {
		if q := id.Prefix(n); q.IsValid() {
			t.Errorf("the first %d bytes: %q", n, q)
		}
	}
}

func TestSchemes(t *testing.T) {
	s := recordtest.Toys(t, "ab", "cd")
	var names []string
	for scheme := range s.All() {
		names = append(names, scheme.Name())
	}
	if got := strings.Join(names, " "); got != "ab cd" {
		t.Error(got)
	}
	if s.Lookup("cd") != recordtest.Toy("cd") || s.Lookup("ef") != nil {
		t.Error("Lookup")
	}
	for text, want := range map[string]string{
		"cd:":                    "cd: at byte 3: nothing follows",
		"ef:x":                   "no known scheme (ab, cd)",
		"":                       "no text",
		" ab:x":                  "spaces",
		"%61b:x":                 "percent-encoded",
		"x%3ay":                  "percent-encoded",
		"аb:x":                   "at byte 0: this is an identifier of no known scheme (ab, cd); it has 'а' (U+0430, which looks like 'a')",
		"ab:\x00":                "control character U+0000",
		strings.Repeat("x", 5e3): "5000 bytes",
	} {
		_, err := s.Parse(text)
		_, xerr := s.Explain(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, stele.Invalid) {
			t.Errorf("Parse(%.20q): %v, want %q", text, err, want)
		}
		if xerr == nil || xerr.Error() != err.Error() {
			t.Errorf("Explain(%.20q): %v, want %v", text, xerr, err)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{{"ab:x", "ab:X", true}, {"ab:x", "cd:x", false}, {"ab:x", "", false}, {"", "", false}} {
		same, err := s.Equivalent(c.a, c.b)
		if same != c.same || (err != nil) != (c.a == "" || c.b == "") {
			t.Errorf("%q and %q: %v, %v", c.a, c.b, same, err)
		}
	}
	id, err := s.Parse("cd:x")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(s.Parents(id)); len(got) != 1 || got[0].String() != "cd:" {
		t.Errorf("parents %v", got)
	}
	if got := s.Spellings(id); len(got) != 1 || got[0].Text != "cd:X" {
		t.Errorf("spellings %v", got)
	}
	if len(slices.Collect(s.Parents(stele.ID{}))) > 0 || len(s.Spellings(stele.ID{})) > 0 {
		t.Error("the zero ID has parents or spellings")
	}
}

func TestNewSchemesRefuses(t *testing.T) {
	for _, list := range [][]stele.Scheme{{recordtest.Toy("ab"), recordtest.Toy("ab")}, {recordtest.Toy("")}, {recordtest.Toy("A")}} {
		if _, err := stele.NewSchemes(list...); err == nil {
			t.Errorf("%v is a list of schemes", list)
		}
	}
}

func TestError(t *testing.T) {
	id, err := stele.NewID("ab", "ab:c")
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]*stele.Error{
		"get ab:c: not found":  {Op: "get", ID: id, Kind: stele.NotFound},
		"ab:c: EOF":            {ID: id, Err: io.EOF},
		"mint: wait a moment":  {Op: "mint", Kind: stele.Unavailable, Err: errors.New("wait a moment")},
		"internal":             {},
		"parse: at byte 3: no": stele.Invalidf("", 3, "x.y", "no").(*stele.Error),
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
		wrapped := fmt.Errorf("outside: %w", e)
		if stele.KindOf(wrapped) != e.Kind || !errors.Is(wrapped, e.Kind) || errors.Is(wrapped, stele.Gone) {
			t.Errorf("%v: kind %v", e, stele.KindOf(wrapped))
		}
	}
	if !errors.Is(&stele.Error{Err: io.EOF}, io.EOF) {
		t.Error("the reason is lost")
	}
	if stele.KindOf(io.EOF) != stele.Internal {
		t.Error("an error of nobody's is internal")
	}
	seen := make(map[string]bool)
	for k := stele.Internal; k <= stele.Unavailable; k++ {
		if seen[k.String()] || k.String() == "" {
			t.Errorf("kind %d is named %q", k, k)
		}
		seen[k.String()] = true
	}
	if got := stele.Kind(200).Error(); got != "Kind(200)" {
		t.Error(got)
	}
}

func TestCheckText(t *testing.T) {
	for text, want := range map[string]string{
		"a\x00":        "at byte 1: control character U+0000",
		"12345678\x7f": "at byte 8: control character U+007F",
		"1234567\x7f9": "at byte 7: control character U+007F",
		"a\u0085b":     "at byte 1: control character U+0085",
		"a\u202eb":     "at byte 1: bidirectional control character U+202E",
		"a\u2066b":     "at byte 1: bidirectional",
		"a\u200db":     "at byte 1: invisible character U+200D",
		"\ufeffa":      "at byte 0: invisible",
		"a\u2028b":     "at byte 1: invisible",
		"a\ufe0fb":     "at byte 1: invisible",
		"a\u3164b":     "at byte 1: invisible",
		"a\u115fb":     "at byte 1: invisible",
		"a\u034fb":     "at byte 1: invisible",
		"a\u2800b":     "at byte 1: invisible",
		"a\u0378b":     "at byte 1: private or unassigned",
		"a\ue000b":     "at byte 1: private",
		"é\xff":        "at byte 2: byte 0xFF is not UTF-8",
		"\xed\xa0\x80": "at byte 0: byte 0xED is not UTF-8",
		"":             "at byte 0: there is no text",
	} {
		if err := stele.CheckText("ab", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"a", "12345678", "héllo wörld / ñ", "中文", strings.Repeat("~ ", stele.MaxText/2)} {
		if err := stele.CheckText("", text); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// The fast way through ASCII finds what the slow one does.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.ByteRange(' ', '~'), 0, 40).Draw(t, "text")
		if len(b) > 0 && rapid.Bool().Draw(t, "spoiled") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		s := string(b)
		first := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
		if first < 0 {
			first = len(s)
		}
		n := stele.Plain(s)
		if n > first || first-n >= 8 || first == len(s) && len(s) >= 8 && n != len(s) {
			t.Fatalf("%q: %d bytes are plain, want about %d", s, n, first)
		}
	})
}

func TestLooksLike(t *testing.T) {
	for odd, want := range map[rune]rune{'а': 'a', 'Ο': 'O', 'ａ': 'a', '０': '0', '\u2011': '-', 'a': 0, 'é': 0, '中': 0, '\uff5f': 0} {
		if got := stele.LooksLike(odd); got != want {
			t.Errorf("%U looks like %q, want %q", odd, got, want)
		}
	}
	for odd, ascii := range stele.LookAlikes {
		if odd < utf8.RuneSelf || ascii >= utf8.RuneSelf || ascii < ' ' {
			t.Errorf("%U looks like %U", odd, ascii)
		}
	}
	for r, want := range map[rune]string{'x': `'x'`, 'é': `'é' (U+00E9)`, 'с': `'с' (U+0441, which looks like 'c')`, '\n': `'\n'`} {
		if got := stele.Describe(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestParts(t *testing.T) {
	p := stele.Parts{{Name: "host", Value: "h"}, {Name: "port", Value: 80, Note: "a note"}, {Name: "dirs", Value: []string{"a", "b"}}}
	enc, err := json.Marshal(p)
	if err != nil || string(enc) != `{"host":"h","port":80,"dirs":["a","b"]}` {
		t.Errorf("%s, %v", enc, err)
	}
	if enc, err := json.Marshal(stele.Parts(nil)); err != nil || string(enc) != `{}` && string(enc) != `null` {
		t.Errorf("%s, %v", enc, err)
	}
	if _, err := json.Marshal(stele.Parts{{Name: "f", Value: func() {}}}); err == nil {
		t.Error("a function is marshalled")
	}
	if p.Get("port") != 80 || p.Get("none") != nil {
		t.Error("Get")
	}
}

func BenchmarkCheckText(b *testing.B) {
	text := "https://resolver.example.org/ark:/12345/x54xz321/s3/f8.05v.tiff"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := stele.CheckText("", text); err != nil {
			b.Fatal(err)
		}
	}
}
