package plainxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func TestParse(t *testing.T) {
	e, err := Parse(strings.NewReader(`<?xml version="1.0" encoding="UTF-8"?><!-- c --><a xmlns="urn:x" k="1"><b>x &amp; &#233;<c/>y</b><d xmlns="">z</d></a>`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	b := e.Child("b")
	if e.Name != (xml.Name{Space: "urn:x", Local: "a"}) || e.Get("k") != "1" || b == nil || b.Text != "x & éy" || b.Child("c") == nil || e.Child("d").Name.Space != "" || e.Child("d").Text != "z" || e.Child("e") != nil {
		t.Errorf("got %+v, %+v", e, b)
	}
}

func TestRefused(t *testing.T) {
	var many strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, ` a%d=""`, i)
	}
	for text, code := range map[string]string{
		"":           "xml.empty",
		"  <!-- -->": "xml.empty",
		"<a>":        "xml.syntax",
		"<a></b>":    "xml.syntax",
		"x<a/>":      "xml.text-outside",
		"<a/>x":      "xml.text-outside",
		"<a/><b/>":   "xml.second-root",
		`<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;">]><a>&d;</a>`: "xml.declaration",
		`<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>`:                    "xml.declaration",
		`<a>&b;</a>`:                      "xml.syntax",
		`<a><?php x ?></a>`:               "xml.instruction",
		`<?xml-stylesheet href="x"?><a/>`: "xml.instruction",
		`<?xml version="1.0" encoding="ISO-8859-1"?><a/>`: "xml.unreadable",
		`<a b="1" b="2"/>`:                              "xml.attribute-twice",
		"<a>\xff</a>":                                   "xml.syntax",
		"<a" + many.String() + "/>":                     "xml.too-many-attributes",
		strings.Repeat("<a>", 65):                       "xml.too-deep",
		"<a>" + strings.Repeat("<b/>", 10_000) + "</a>": "xml.too-many-elements",
		"<a>" + strings.Repeat("x", 1<<20) + "</a>":     "xml.too-long",
	} {
		_, err := Parse(strings.NewReader(text), Limits{})
		if got, _ := stele.CodeOf(err); got != code || !errors.Is(err, stele.Invalid) {
			t.Errorf("%.60q: %v (%s), not %s", text, err, got, code)
		}
	}
}

// TestAllAttributes: a document may have as many attributes as its limit says, however few elements have them; what the limit is follows from
// that of elements.
func TestAllAttributes(t *testing.T) {
	for _, tt := range []struct {
		attributes int // of two elements
		limits     Limits
		ok         bool
	}{
		{5, Limits{AllAttributes: 10}, true},
		{6, Limits{AllAttributes: 11}, false},
		{32, Limits{Elements: 3}, true}, // one element may have 64
		{33, Limits{Elements: 3}, false},
		{50, Limits{Elements: 10}, true},
		{51, Limits{Elements: 10}, false},
		{64, Limits{Elements: -1}, true},
		{64, Limits{Elements: 3, AllAttributes: -1}, true},
	} {
		var attributes strings.Builder
		for i := range tt.attributes {
			fmt.Fprintf(&attributes, ` b%d="c"`, i)
		}
		_, err := Parse(strings.NewReader("<d><a"+attributes.String()+"/><a"+attributes.String()+"/></d>"), tt.limits)
		if code, _ := stele.CodeOf(err); tt.ok && err != nil || !tt.ok && code != "xml.too-many-attributes-in-all" {
			t.Errorf("%d attributes of two elements, %+v: %v", tt.attributes, tt.limits, err)
		}
	}
}

// endless is a document that does not end.
type endless struct{ begun bool }

func (e *endless) Read(b []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(b, "<a>"), nil
	}
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// A decoder of files reads documents of any length, and no token of any length.
func TestDecoder(t *testing.T) {
	d := NewDecoder(&endless{}, Limits{Bytes: -1, Token: 10_000, Elements: -1})
	for {
		if _, err := d.Token(); err != nil {
			if code, _ := stele.CodeOf(err); code != "xml.token-too-long" {
				t.Error(err)
			}
			break
		}
	}
	long := io.MultiReader(strings.NewReader("<a>"), strings.NewReader(strings.Repeat("<b>x</b>\n", 200_000)), strings.NewReader("</a>"))
	d = NewDecoder(long, Limits{Bytes: -1, Token: 10_000, Elements: -1})
	n := 0
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 800_002 {
		t.Errorf("%d tokens", n)
	}
}

func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Parse(io.MultiReader(strings.NewReader("<a>"), &failing{broken}), Limits{}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// Text that is written is read back.
func TestWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool {
			return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r < 0xD800 || r >= 0xE000 && r < 0xFFFE || r >= 0x10000
		})).Draw(t, "text")
		var b bytes.Buffer
		b.WriteString(`<a b="`)
		Write(&b, text)
		b.WriteString(`">`)
		Write(&b, text)
		b.WriteString("</a>")
		e, err := Parse(&b, Limits{})
		if err != nil || e.Text != text || e.Get("b") != text {
			t.Fatalf("%q: %+v, %v", text, e, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "<a/>", `<a xmlns:b="c"><b:d e="f">&lt;</b:d></a>`, "<!DOCTYPE a><a/>", "<a>" + strings.Repeat("<b>", 70)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Parse(bytes.NewReader(b), Limits{Bytes: 1 << 16})
		if (e == nil) == (err == nil) {
			t.Fatalf("%v, %v", e, err)
		}
		if err != nil && !errors.Is(err, stele.Invalid) {
			t.Fatal(err)
		}
	})
}
