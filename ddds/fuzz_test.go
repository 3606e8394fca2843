package ddds

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// FuzzExpression reads anything as an expression. What is taken compiles, can be
// applied, and comes back as it was.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`!^urn:cid:.+@([^\.]+\.)(.*)$!\2!i`,
		`!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\2.\1.example.!i`,
		`![]a[.-.][=b=][:alpha:]\]!x!`,
		`|a\|b|\||`,
		`/[\/]/\//`,
		`!((a{10}){10}){10}|(b*)*!\1\2\3!`,
		"!(a|ab)(c|bcd)(d*)!\\1\\2\\3!",
		"!\xff!\u212a!i",
	} {
		f.Add(seed, "urn:paradisec:AB1:001:A")
	}
	f.Fuzz(func(t *testing.T, field, text string) {
		e, err := ParseExpression(field)
		if err != nil {
			if k := stele.KindOf(err); k != stele.Invalid && k != stele.Exhausted {
				t.Fatalf("%q: %v", field, err)
			}
			plain(t, err.Error())
			return
		}
		if e.String() != field {
			t.Fatalf("%q becomes %q", field, e)
		}
		if len(text) > 256 {
			text = text[:256]
		}
		if _, _, err := e.Apply(text); err != nil && stele.KindOf(err) != stele.Exhausted {
			t.Fatalf("%q, translated to %s: %v", field, e.ere.translate(false), err)
		}
		re, err := regexp.Compile(e.ere.translate(false))
		if err != nil || re.NumSubexp() != e.ere.groups {
			t.Fatalf("%q has %d groups, translated to %s: %v", field, e.ere.groups, re, err)
		}
		re.Longest()
		if got, want := e.match(text), re.FindStringSubmatchIndex(text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v", field, text, got, want)
		}
	})
}

// FuzzRule reads anything as a rule in both dialects. What is taken can be walked,
// and what can be written is read back the same.
func FuzzRule(f *testing.F) {
	f.Add("", "", `!^urn:x:(.*)$!\1.example.!i`, ".")
	f.Add("s", "thttp+N2L+I2C", "", "_http._tcp.example.")
	f.Add("RES:http", "N2L:application/ld+json+N2C", "!.*!http://example.org/!", "")
	f.Add("DIS:AAA", "N2L", "urn:paradisec:.*", "2001:db8::1")
	f.Add("RES:http", "N2S:RSA", "urn:x:y", "http://example.org/\\1.")
	f.Add("u", "E2U+sip", "!^.*$!sip:a@example.org!", ".")
	f.Fuzz(func(t *testing.T, flags, service, expression, replacement string) {
		for _, d := range []Dialect{Standard, Thesis} {
			fields := Fields{100, 10, flags, service, expression, replacement}
			r, err := ParseRule(fields, d)
			if err != nil {
				plain(t, err.Error())
			}
			if r.String() != fields.String() {
				t.Fatalf("%s becomes %s", fields, &r)
			}
			plain(t, r.String())
			w := &Walker{Database: Map{"start.": {Rules: []Rule{r}}}}
			res, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Trace: true})
			if err == nil && res.Key == "" {
				t.Fatalf("%s gives an empty key", fields)
			}
			if err != nil && stele.KindOf(err) == stele.Internal {
				t.Fatalf("%s: %v", fields, err)
			}
			written, err := r.Fields()
			if err != nil {
				continue
			}
			back, err := ParseRule(written, Standard)
			if err != nil || back.Flag != r.Flag || !back.Services.equal(r.Services) {
				t.Fatalf("%s is written as %s and read as %+v, %v", fields, written, back, err)
			}
		}
	})
}

// plain fails on text that a terminal or a log would act on.
func plain(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		t.Fatalf("%q has a control character", text)
	}
}
