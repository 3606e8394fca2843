// Package schemetest is the suite that every scheme must pass. It takes a
// scheme's own samples, checks the obligations of [stele.Scheme] on each, and
// then on what random changes make of them, so that a new scheme is tested on
// input that its author did not think of.
package schemetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// Hostile is input on which no scheme may fail; it seeds every fuzz target.
var Hostile = []string{
	"", " ", "/", ":", "?", "#", "%", "%%", "%4", "%00", "\x00", "\n", "\r\nLocation: x",
	"\xff\xfe", "\xc3\x28", "\xed\xa0\x80", "\u202e", "a\u200bb", "\ufeffurn:a1:b",
	"urn:", "ark:", "hdl:", "doi:", "http://", "https://", "https:///", "https://[::1]/",
	"ibi/", "rep/", "urn:lsid:", "http://@/", "https://a@b/ark:/12345/x",
	"%75%72%6E%3A%61%31%3A%62", "аrk:12345/x1", "ark:١٢٣٤٥/x", "ｕｒｎ:isbn:0",
	"urn:isbn:\u202e9780000000002", "10.1000/\u0000", "1/2", "1/", "/1", ".../x", "W/2", "X/2",
	strings.Repeat("a", 5000), strings.Repeat("/", 4000), strings.Repeat("%41", 1300),
	"ark:12345/" + strings.Repeat("-", 4000), "urn:a1:" + strings.Repeat("?", 4000),
	"10.1/" + strings.Repeat("/", 4000), strings.Repeat("W", 4000) + "/" + strings.Repeat("W", 90),
}

// Run checks that scheme keeps the obligations of [stele.Scheme], on the samples
// and on texts made from them.
func Run(t *testing.T, scheme stele.Scheme, samples Samples) {
	for _, c := range samples.checks() {
		t.Run(c.name, func(t *testing.T) { c.check(t, scheme) })
	}
	t.Run("hostile", func(t *testing.T) {
		for _, in := range Hostile {
			Check(t, scheme, in)
		}
		Check(t, scheme, strings.Repeat("x", 1<<20))
	})
	t.Run("changed", func(t *testing.T) {
		texts := samples.texts()
		rapid.Check(t, func(t *rapid.T) { Check(t, scheme, Change(t, texts)) })
	})
}

// Fuzz makes a fuzz target of the scheme's obligations, with the samples and
// [Hostile] as its seeds.
func Fuzz(f *testing.F, scheme stele.Scheme, samples Samples) {
	for _, text := range samples.texts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { Check(t, scheme, text) })
}

// Change draws a sample and changes a few bytes of it: deletes, doubles, swaps,
// replaces, or joins it with another.
func Change(t *rapid.T, texts []string) string {
	b := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
	const spice = "aZ09wWxX2:/.-_@%?#+=~*$()';,!&<>\"\\^`{|}[] \x00\x7f\u202eа‐é"
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		c := spice[rapid.IntRange(0, len(spice)-1).Draw(t, "byte")]
		switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
		case op == 0:
			b = append(b[:at:at], append([]byte{c}, b[at:]...)...)
		case op == 1 && at < len(b):
			b[at] = c
		case op == 2 && at < len(b):
			b = append(b[:at:at], b[at+1:]...)
		case op == 3 && at+1 < len(b):
			b[at], b[at+1] = b[at+1], b[at]
		case op == 4 && at < len(b):
			b[at] ^= 0x20
		case op == 5:
			b = append(b[:at:at], rapid.SampledFrom(texts).Draw(t, "other")...)
		}
	}
	return string(b)
}

// TB is what Check needs of a test: *testing.T, *testing.F and *rapid.T have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Check checks every obligation of [stele.Scheme] on one text, whatever it is.
func Check(t TB, scheme stele.Scheme, text string) {
	t.Helper()
	checkPrefix(t, scheme, text)
	id, err := scheme.Parse(text)
	x, xerr := scheme.Explain(text)
	if (err == nil) != (xerr == nil) || err != nil && err.Error() != xerr.Error() {
		t.Errorf("%q: Parse says %v, Explain says %v", text, err, xerr)
	}
	if err != nil {
		checkError(t, text, id, err)
		return
	}
	if x.ID != id {
		t.Errorf("%q: Parse gives %q, Explain gives %q", text, id, x.ID)
	}
	if id.Scheme() != scheme.Name() {
		t.Errorf("%q: an ID of scheme %q from scheme %q", text, id.Scheme(), scheme.Name())
	}
	again, err := scheme.Parse(id.String())
	if err != nil || again != id {
		t.Errorf("%q: its canonical form %q gives %q, %v", text, id, again, err)
	}
	checkExplanation(t, text, x)
	checkParents(t, scheme, id)
	checkSpellings(t, scheme, id, x)
	if u, ok := scheme.(stele.URIScheme); ok {
		checkURI(t, u, id)
	}
}

func checkError(t TB, text string, id stele.ID, err error) {
	t.Helper()
	if id.IsValid() {
		t.Errorf("%q: both an ID, %q, and an error, %v", text, id, err)
	}
	if !errors.Is(err, stele.Invalid) {
		t.Errorf("%q: the error is of kind %v, want invalid: %v", text, stele.KindOf(err), err)
	}
	syntax, ok := errors.AsType[*stele.SyntaxError](err)
	if !ok {
		t.Errorf("%q: no SyntaxError in %v", text, err)
		return
	}
	if syntax.Pos < 0 || syntax.Pos > len(text) {
		t.Errorf("%q: position %d of the error is outside: %v", text, syntax.Pos, err)
	}
	if syntax.Reason == nil || syntax.Reason.Error() == "" || syntax.Reason.Code == "" {
		t.Errorf("%q: an error without a reason", text)
	}
	if stele.CheckText("", err.Error()[:min(len(err.Error()), stele.MaxText)]) != nil {
		t.Errorf("%q: the message carries control characters: %q", text, err.Error())
	}
	if len(err.Error()) > 2*stele.MaxText {
		t.Errorf("%.50q...: a message of %d bytes", text, len(err.Error()))
	}
}

func checkExplanation(t TB, text string, x stele.Explanation) {
	t.Helper()
	if x.Form == "" {
		t.Errorf("%q: an explanation without a form", text)
	}
	for _, w := range x.Warnings {
		if !strings.HasSuffix(w, ".") || strings.Contains(w, "\n") {
			t.Errorf("%q: the warning %q is not a sentence on one line", text, w)
		}
	}
	seen := make(map[string]bool)
	for _, part := range x.Parts {
		if seen[part.Name] {
			t.Errorf("%q: two parts are named %q", text, part.Name)
		}
		seen[part.Name] = true
		switch part.Value.(type) {
		case string, int, []string:
		default:
			t.Errorf("%q: part %s is a %T", text, part.Name, part.Value)
		}
	}
	enc, err := json.Marshal(x.Parts)
	if err != nil || !json.Valid(enc) || bytes.IndexByte(enc, '\n') >= 0 {
		t.Errorf("%q: parts as JSON: %s, %v", text, enc, err)
	}
}

func checkParents(t TB, scheme stele.Scheme, id stele.ID) {
	t.Helper()
	shorter := len(id.String())
	for p := range scheme.Parents(id) {
		if p.Scheme() != id.Scheme() || !strings.HasPrefix(id.String(), p.String()) {
			t.Errorf("%q: parent %q is not a prefix", id, p)
		}
		if len(p.String()) >= shorter {
			t.Errorf("%q: parent %q is not shorter than the one before", id, p)
			return
		}
		shorter = len(p.String())
		if !scheme.Cuts(id, shorter) {
			t.Errorf("%q: parent %q is not a cut", id, p)
		}
		if again, _, err := scheme.ParsePrefix(p.String()); shorter < longestPrefix && (err != nil || again != p) {
			t.Errorf("%q: its parent %q is read as the prefix %q, %v", id, p, again, err)
		}
	}
	for _, n := range []int{-1, 0, len(id.String()), len(id.String()) + 1} {
		if scheme.Cuts(id, n) {
			t.Errorf("%q: it may be cut after %d bytes, which leaves nothing, or nothing out", id, n)
		}
	}
	for range scheme.Parents(id) {
		break // an iterator must end when yield returns false
	}
}

// checkPrefix checks the obligations of ParsePrefix on any text.
func checkPrefix(t TB, scheme stele.Scheme, text string) {
	t.Helper()
	p, below, err := scheme.ParsePrefix(text)
	if err != nil {
		if p.IsValid() {
			t.Errorf("%q: both a prefix, %q, and an error, %v", text, p, err)
		}
		checkError(t, text, below, err)
		return
	}
	if p.Scheme() != scheme.Name() || below.Scheme() != scheme.Name() {
		t.Errorf("%q: a prefix of scheme %q, with a name of scheme %q below it, from scheme %q", text, p.Scheme(), below.Scheme(), scheme.Name())
		return
	}
	if !strings.HasPrefix(below.String(), p.String()) {
		t.Errorf("%q: the name %q does not begin with the prefix %q", text, below, p)
	} else if !scheme.Cuts(below, len(p.String())) {
		t.Errorf("%q: the name %q may not be cut after the prefix %q", text, below, p)
	}
	if id, err := scheme.Parse(below.String()); err != nil || id != below {
		t.Errorf("%q: the name %q below the prefix is read as %q, %v", text, below, id, err)
	}
	if again, _, err := scheme.ParsePrefix(p.String()); err != nil || again != p {
		t.Errorf("%q: the prefix %q is read as %q, %v", text, p, again, err)
	}
}

// longestPrefix is how long a parent may be that must be a prefix: a name below a longer one
// may be above [stele.MaxText].
const longestPrefix = stele.MaxText - 100

// checkURI looks whether a name is a URI in canonical form, and each parent the beginning of
// one (RFC 3404, section 4.1).
func checkURI(t TB, scheme stele.URIScheme, id stele.ID) {
	t.Helper()
	schemes, rest := scheme.URI(id.String())
	if len(schemes) == 0 {
		t.Errorf("%q: no URI", id)
		return
	}
	for _, s := range schemes {
		u, err := url.Parse(s + ":" + rest)
		if err != nil || u.Scheme != s || u.Fragment != "" || u.RawQuery != "" || strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
			t.Errorf("%q: %s:%s is not a URI in canonical form: %v", id, s, rest, err)
		}
	}
	for p := range scheme.Parents(id) {
		same, begin := scheme.URI(p.String())
		if !slices.Equal(same, schemes) || !strings.HasPrefix(rest, begin) {
			t.Errorf("%q: its URI is %q:%q, and that of its parent %q:%q", id, schemes, rest, same, begin)
		}
	}
}

func checkSpellings(t TB, scheme stele.Scheme, id stele.ID, x stele.Explanation) {
	t.Helper()
	all := scheme.Spellings(id)
	if !reflect.DeepEqual(all, x.Spellings) && len(all)+len(x.Spellings) > 0 {
		t.Errorf("%q: Spellings %q, but explained as %q", id, all, x.Spellings)
	}
	for _, s := range all {
		if s.Name == "" || s.Text == id.String() {
			t.Errorf("%q: spelling %q %q needs a name and another text", id, s.Name, s.Text)
		}
		if back, err := scheme.Parse(s.Text); len(s.Text) <= stele.MaxText && (err != nil || back != id) {
			t.Errorf("%q: its spelling %q gives %q, %v", id, s.Text, back, err)
		}
	}
}
