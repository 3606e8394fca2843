package lex

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func TestFindURN(t *testing.T) {
	for _, c := range []struct {
		text string
		want Carrier
		ok   bool
	}{
		{"urn:", Carrier{}, true},
		{"URN:x1:a", Carrier{}, true},
		{"https://h/urn:x1:a", Carrier{Pos: 10, Path: true}, true},
		{"HTTP://h/URN:x1:a", Carrier{Pos: 9, Path: true}, true},
		{"https://h/a/b//urn:x1:a/urn:x2:b", Carrier{Pos: 15, Path: true}, true},
		{"https:///urn:x1:a", Carrier{Pos: 9, Path: true, Hostless: true}, true},
		{"http://h/uri-res/N2L?urn:x1:a", Carrier{Pos: 21}, true},
		{"http://h?urn:x1:a", Carrier{Pos: 9}, true},
		{"http://h/?Urn:x1:a", Carrier{Pos: 10}, true},
		{text: ""},
		{text: "urn"},
		{text: " urn:x1:a"},
		{text: "http://urn:x1:a"},
		{text: "http://h/xurn:x1:a"},
		{text: "http://h/?x=urn:x1:a"},
		{text: "http://h/#urn:x1:a"},
		{text: "http://h/#/urn:x1:a"},
		{text: "http://h/urn%3Ax1:a"},
		{text: "http://h/10.1000/urn:x1:a"},
		{text: "http://h/10.1000/182?urn:x1:a"},
		{text: "http://h/ark:/12345/urn:x1:a"},
		{text: "http://h/hdl:x/urn:x1:a"},
		{text: "http://h/" + strings.Repeat("a/", 1<<20) + "urn:x1:a"},
	} {
		got, ok := FindURN(c.text)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("FindURN(%.40q) = %+v, %v; want %+v, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestSplitURN(t *testing.T) {
	for text, want := range map[string]URN{
		"urn:x1:a":                 {NSS: "a"},
		"urn:x1:a/b:c@d!~%4a":      {NSS: "a/b:c@d!~%4a"},
		"urn:x1:a?+r":              {NSS: "a", R: "r"},
		"urn:x1:a?=q":              {NSS: "a", Q: "q"},
		"urn:x1:a#f":               {NSS: "a", F: "f"},
		"urn:x1:a#":                {NSS: "a"},
		"urn:x1:a#?/?":             {NSS: "a", F: "?/?"},
		"urn:x1:a?+r?=q#f":         {NSS: "a", R: "r", Q: "q", F: "f"},
		"urn:x1:a?+r/?+x?=q?=y?+z": {NSS: "a", R: "r/?+x", Q: "q?=y?+z"},
		"urn:x1:a?+s=N2C&t=a/b":    {NSS: "a", R: "s=N2C&t=a/b"},
	} {
		want.Pos = len("urn:x1:")
		got, err := SplitURN("test", text, Carrier{}, want.Pos)
		if err != nil || got != want {
			t.Errorf("SplitURN(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestSplitURNInPath(t *testing.T) {
	for tail, want := range map[string]URN{
		"":            {NSS: "a"},
		"?":           {NSS: "a", HasQuery: true},
		"?x=y":        {NSS: "a", Query: "x=y", HasQuery: true},
		"?é ?+r#f":    {NSS: "a", Query: "é ?+r", HasQuery: true, F: "f"},
		"?+r?=q#f":    {NSS: "a", R: "r", Q: "q", F: "f"},
		"?+r#f?x=y":   {NSS: "a", R: "r", F: "f?x=y"},
		"#f?no-query": {NSS: "a", F: "f?no-query"},
	} {
		text := "https://h/urn:x1:a" + tail
		want.Pos = len("https://h/urn:x1:")
		got, err := SplitURN("test", text, Carrier{Pos: len("https://h/"), Path: true}, want.Pos)
		if err != nil || got != want {
			t.Errorf("SplitURN(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestSplitURNErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		pos    int
		reason string
	}{
		{"urn:x1:", 7, "the name of the URN is empty"},
		{"urn:x1:?+r", 7, "the name of the URN is empty"},
		{"urn:x1:#f", 7, "the name of the URN is empty"},
		{"urn:x1:/a", 7, "can't begin with '/'"},
		{"urn:x1:a b", 8, `write "%20"`},
		{"urn:x1:a[", 8, `write "%5B"`},
		{"urn:x1:a%4", 8, "two hexadecimal digits"},
		{"urn:x1:a%zz", 8, "two hexadecimal digits"},
		{"urn:x1:аb", 7, "which looks like 'a'"},
		{"urn:x1:a?x", 8, `only as "?+" or "?="`},
		{"urn:x1:a?", 8, `only as "?+" or "?="`},
		{"urn:x1:a?+", 10, "the r-component of the URN is empty"},
		{"urn:x1:a?+?=q", 10, "the r-component of the URN is empty"},
		{"urn:x1:a?+#f", 10, "the r-component of the URN is empty"},
		{"urn:x1:a?+/r", 10, "the r-component of a URN can't begin with '/'"},
		{"urn:x1:a?+??", 10, "the r-component of a URN can't begin with '?'"},
		{"urn:x1:a?=", 10, "the q-component of the URN is empty"},
		{"urn:x1:a?+r?=", 13, "the q-component of the URN is empty"},
		{"urn:x1:a?+r?=?", 13, "the q-component of a URN can't begin with '?'"},
		{"urn:x1:a?+r\\", 11, "in the r-component"},
		{"urn:x1:a?=é", 10, "in the q-component"},
		{"urn:x1:a#f#g", 10, "in the f-component"},
		{"urn:x1:a#%", 9, "in the f-component"},
	} {
		_, err := SplitURN("test", c.text, Carrier{}, len("urn:x1:"))
		e, ok := errors.AsType[*stele.SyntaxError](err)
		if !ok || e.Pos != c.pos || e.Scheme != "test" || !strings.Contains(e.Reason.Error(), c.reason) {
			t.Errorf("SplitURN(%q): %v; want %q at %d", c.text, err, c.reason, c.pos)
		}
	}
	_, err := SplitURN("test", "https:///urn:x1:a", Carrier{Pos: 9, Path: true, Hostless: true}, 16)
	if e, ok := errors.AsType[*stele.SyntaxError](err); !ok || e.Pos != 8 {
		t.Errorf("a URL without a host: %v", err)
	}
}

// TestPchar compares with the grammar, character by character.
func TestPchar(t *testing.T) {
	const grammar = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~" + // unreserved
		"!$&'()*+,;=" + // sub-delims
		":@"
	for c, is := range pchar {
		if is != strings.Contains(grammar, string([]byte{byte(c)})) {
			t.Errorf("pchar[%q] = %v", rune(c), is)
		}
	}
}

func TestFoldURN(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""},
		{"AbC", 0, "AbC"},
		{"AbC", 1, "abC"},
		{"AbC", 99, "abc"},
		{"A%c3%A9B%fFC", 0, "A%C3%A9B%FFC"},
		{"A%c3%A9B", 8, "a%C3%A9b"},
		{"%AA%aa", 6, "%AA%AA"},
	} {
		if got := FoldURN(c.in, c.n); got != c.want {
			t.Errorf("FoldURN(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([a-zA-Z0-9:]|%[0-9a-fA-F]{2}){0,20}`).Draw(t, "s")
		n := rapid.IntRange(0, 70).Draw(t, "n")
		once := FoldURN(s, n)
		if again := FoldURN(once, n); again != once {
			t.Errorf("FoldURN(%q, %d) = %q, and again %q", s, n, once, again)
		}
		if !strings.EqualFold(s, once) {
			t.Errorf("FoldURN(%q, %d) = %q changes more than case", s, n, once)
		}
	})
}

func TestNeedless(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "", "%": "", "%4": "", "%2F": "", "%C3%A9": "", "%41": "%41", "%2F%7ea": "%7e", "a%2Db": "%2D", "%2541": "",
	} {
		if got := needless(in); got != want {
			t.Errorf("needless(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEncodesControl(t *testing.T) {
	for in, want := range map[string]bool{"": false, "a%20": false, "%0a": true, "a%7F": true, "%1": false, "%": false, "%c2%85": false} {
		if EncodesControl(in) != want {
			t.Errorf("%q", in)
		}
	}
}

func TestURNExplained(t *testing.T) {
	none := URN{NSS: "a%2F"}
	if parts, all := none.Components(), none.Warnings(); len(parts)+len(all) != 0 {
		t.Errorf("%+v: %v, %q", none, parts, all)
	}
	u := URN{NSS: "a%41", R: "r", F: "f", HasQuery: true}
	parts, all := u.Components(), u.Warnings()
	if len(parts) != 2 || parts.Get("r") != "r" || parts.Get("f") != "f" {
		t.Errorf("%+v: %v", u, parts)
	}
	if len(all) != 2 || !strings.Contains(all[0], "%41") || !strings.Contains(all[1], "query") {
		t.Errorf("%+v: %q", u, all)
	}
}
