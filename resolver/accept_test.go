package resolver

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

func TestParseAccept(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   []Preference
	}{
		{"", nil},
		{" ,\t, ", nil},
		{"text/html", []Preference{{Range: "text/html", Q: 1000}}},
		{"Text/HTML;Q=0.5", []Preference{{Range: "text/html", Q: 500}}},
		{"a/b;q=0, a/c;q=0.0, a/d;q=0.001, a/e;q=0.12, a/f;q=1, a/g;q=1., a/h;q=1.000, a/i;q=0.", []Preference{
			{Range: "a/b", Q: 0}, {Range: "a/c", Q: 0}, {Range: "a/d", Q: 1}, {Range: "a/e", Q: 120}, {Range: "a/f", Q: 1000}, {Range: "a/g", Q: 1000}, {Range: "a/h", Q: 1000}, {Range: "a/i", Q: 0}}},
		{"audio/*; q=0.2, audio/basic", []Preference{{Range: "audio/*", Q: 200}, {Range: "audio/basic", Q: 1000}}}, // RFC 9110's examples
		{"text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5", []Preference{
			{Range: "text/*", Q: 300}, {Range: "text/plain", Q: 700}, {Range: "text/plain;format=flowed", Q: 1000}, {Range: "text/plain;format=fixed", Q: 400}, {Range: "*/*", Q: 500}}},
		{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", []Preference{ // Java's
			{Range: "text/html", Q: 1000}, {Range: "image/gif", Q: 1000}, {Range: "image/jpeg", Q: 1000}, {Range: "*/*", Q: 200}, {Range: "*/*", Q: 200}}},
		{`a/b;Charset="utf-8";q=0.1;x="a,\"b;c";`, []Preference{{Range: `a/b;charset=utf-8;x="a,\"b;c"`, Q: 100}}},
		{`application/ld+json;profile="http://www.w3.org/ns/json-ld#compacted"`, []Preference{{Range: `application/ld+json;profile="http://www.w3.org/ns/json-ld#compacted"`, Q: 1000}}},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", []Preference{
			{Range: "text/html", Q: 1000}, {Range: "application/xhtml+xml", Q: 1000}, {Range: "application/xml", Q: 900}, {Range: "image/avif", Q: 1000}, {Range: "image/webp", Q: 1000},
			{Range: "image/apng", Q: 1000}, {Range: "*/*", Q: 800}, {Range: "application/signed-exchange;v=b3", Q: 700}}},
	} {
		got, err := ParseAccept(tt.header)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", tt.header, err, diff)
		}
	}
}

func TestParseAcceptLanguage(t *testing.T) {
	for header, want := range map[string][]Preference{
		"":                          nil,
		"da, en-gb;q=0.8, en;q=0.7": {{Range: "da", Q: 1000}, {Range: "en-gb", Q: 800}, {Range: "en", Q: 700}}, // RFC 9110's example
		"pt-BR , *;q=0.001":         {{Range: "pt-br", Q: 1000}, {Range: "*", Q: 1}},
		"zh-Hant-TW;q=0,de-1996":    {{Range: "zh-hant-tw", Q: 0}, {Range: "de-1996", Q: 1000}},
	} {
		got, err := ParseAcceptLanguage(header)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", header, err, diff)
		}
	}
}

func TestBadHeaders(t *testing.T) {
	type parser func(string) ([]Preference, error)
	for _, tt := range []struct {
		parse  parser
		header string
		pos    int
	}{
		{ParseAccept, "text", 4},
		{ParseAccept, "text/", 5},
		{ParseAccept, "/html", 0},
		{ParseAccept, "*/html", 2},
		{ParseAccept, "a/b c/d", 4},
		{ParseAccept, "a/b;q", 5},
		{ParseAccept, "a/b;q=", 6},
		{ParseAccept, "a/b;q=.", 6},
		{ParseAccept, "a/b;q=2", 6},
		{ParseAccept, "a/b;q=00.5", 6},
		{ParseAccept, "a/b;q=1.001", 6},
		{ParseAccept, "a/b;q=0.1234", 6},
		{ParseAccept, "a/b;q=-1", 6},
		{ParseAccept, "a/b;q=0.x", 6},
		{ParseAccept, "a/b;q=1e0", 6},
		{ParseAccept, "a/b;q=0,1", 9},
		{ParseAccept, `a/b;q="1"`, 6},
		{ParseAccept, "a/b;q=1;q=1", 8},
		{ParseAccept, "a/b;c=", 6},
		{ParseAccept, `a/b;c="d`, 6},
		{ParseAccept, `a/b;c="\`, 6},
		{ParseAccept, "a/b;c=\"\r\n\"", 7},
		{ParseAccept, "a/b;c=\"\\\x00\"", 8},
		{ParseAccept, "a/b,\n", 4},
		{ParseAccept, "a/\u0430", 2},
		{ParseAccept, "a/b\u0430", 3},
		{ParseAccept, strings.Repeat("a/b,", maxPreferences+1), 4 * maxPreferences},
		{ParseAccept, strings.Repeat(",", maxHeader+1), maxHeader},
		{ParseAcceptLanguage, "e_n", 1},
		{ParseAcceptLanguage, "-en", 0},
		{ParseAcceptLanguage, "en-", 3},
		{ParseAcceptLanguage, "abcdefghi", 0},
		{ParseAcceptLanguage, "en-abcdefghi", 3},
		{ParseAcceptLanguage, "1996", 0},
		{ParseAcceptLanguage, "*-en", 1},
		{ParseAcceptLanguage, "en;level=1", 3},
		{ParseAcceptLanguage, "en;", 3},
		{ParseAcceptLanguage, "en;q=1.5", 5},
	} {
		list, err := tt.parse(tt.header)
		syntax, ok := errors.AsType[*stele.SyntaxError](err)
		if !ok || list != nil || !errors.Is(err, stele.Invalid) || syntax.Pos != tt.pos {
			t.Errorf("%.40q: %v, %v; want an error at %d", tt.header, list, err, tt.pos)
		}
	}
	if list, err := ParseAccept(strings.Repeat("a/b,", maxPreferences)); err != nil || len(list) != maxPreferences {
		t.Errorf("%d items: %d, %v", maxPreferences, len(list), err)
	}
}

// asHeader writes a preference as in a header.
func asHeader(p Preference) string {
	q := "1"
	if p.Q < 1000 {
		q = "0." + strconv.Itoa(1000 + p.Q)[1:]
	}
	return p.Range + ";q=" + q
}

// checkHeader checks what holds of every header: an error, or preferences within
// bounds that are read again as they are.
func checkHeader(t *testing.T, parse func(string) ([]Preference, error), header string) {
	list, err := parse(header)
	if err != nil {
		if _, ok := errors.AsType[*stele.SyntaxError](err); !ok || list != nil {
			t.Fatalf("%q: %v, %v", header, list, err)
		}
		return
	}
	var again []string
	for _, p := range list {
		if p.Q < 0 || p.Q > 1000 || p.Range == "" {
			t.Fatalf("%q: %+v", header, p)
		}
		again = append(again, asHeader(p))
	}
	text := strings.Join(again, ",")
	if len(text) > maxHeader { // weights were added
		return
	}
	if reread, err := parse(text); err != nil || !slices.Equal(list, reread) {
		t.Fatalf("%q is %v, which is %v, %v", header, list, reread, err)
	}
	if ddds.GradeType("text/html;a=b", list).Fit > Refused || gradeLanguage("pt-BR", list).Fit > Refused {
		t.Fatalf("%q: no grade", header)
	}
}

func FuzzParseAccept(f *testing.F) {
	for _, s := range []string{"text/html", "text/*;q=0.3, text/plain;format=flowed;q=1.000, */*;q=.5", "*", `a/b;c="d\"e,;";q=0`, "a/b;;;c=d;,,", "a/b;q=1;q=1", "a/b;c=\"\x80\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) { checkHeader(t, ParseAccept, header) })
}

func FuzzParseAcceptLanguage(f *testing.F) {
	for _, s := range []string{"da, en-gb;q=0.8, en;q=0.7", "*", "zh-Hant-TW;q=0", "en;", "a-1-b-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) { checkHeader(t, ParseAcceptLanguage, header) })
}
