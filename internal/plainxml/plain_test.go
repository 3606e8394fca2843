package plainxml

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// agrees holds that a document which Plain reads is the same for Parse, and reports whether Plain read it.
func agrees(t interface{ Fatalf(string, ...any) }, text string, limits Limits) bool {
	got, ok := Plain(text, limits)
	if !ok {
		return false
	}
	want, err := Parse(strings.NewReader(text), limits)
	if err != nil {
		t.Fatalf("Plain reads %q, and Parse does not: %v", text, err)
	}
	if !isSame(want, got) {
		t.Fatalf("Plain reads %q as %s, and Parse as %s", text, marshalled(got), marshalled(want))
	}
	return true
}

// isSame compares elements. Package cmp takes twice as long for each level.
func isSame(a, b *Element) bool {
	return a.Name == b.Name && a.Text == b.Text && slices.Equal(a.Attr, b.Attr) && slices.EqualFunc(a.Children, b.Children, isSame)
}

func marshalled(e *Element) string {
	text, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestPlain(t *testing.T) {
	for _, text := range []string{
		"<a/>",
		" <a>\n\tx &amp; y &lt;&gt;&quot;&apos;</a>\n",
		`<record identifier="ark:/99999/fk4"><element name="_target">https://example.org/?a=1&amp;b=2</element><element name="erc.what">Pará</element></record>`,
		`<a xmlns="urn:x" k="1"><b>x<c/>y</b><d xmlns="">z</d><p:e xmlns:p="urn:p" p:f="g" f="h" xml:lang="en"/><p:e/></a>`,
		`<a  b=">" c="'"  />`,
	} {
		if !agrees(t, text, Limits{}) {
			t.Errorf("Plain does not read %q", text)
		}
	}
}

// TestNotPlain has documents that Plain leaves to others: those that are not well-formed, or beyond a limit, and those with what it does
// not know.
func TestNotPlain(t *testing.T) {
	for _, text := range []string{
		"", "x", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a b/>", "<a b=c/>", `<a b="c"d="e"/>`, `<a b="<"/>`, `<a b="c" b="d"/>`, `<a xmlns:p="u" xmlns:q="u" p:b="" q:b=""/>`,
		"<a>&b;</a>", "<a>&#65;</a>", "<a>&amp</a>", "<a>]]></a>", "<a>\r</a>", "<a>\x01</a>", "<a>\xff</a>", "<a>\uffff</a>", "<é/>", "<a:b:c/>", "<:a/>", "<a:/>", "<1/>", "< a/>", "<a",
		"<!-- --><a/>", `<?xml version="1.0"?><a/>`, "<!DOCTYPE a><a/>", "<a><![CDATA[x]]></a>", "\ufeff<a/>",
		strings.Repeat("<a>", 65) + strings.Repeat("</a>", 65), "<a>" + strings.Repeat("<b/>", 10_000) + "</a>", "<a>" + strings.Repeat("x", 1<<20) + "</a>",
		"<a>" + strings.Repeat("x", maxCopied+1) + "<b/>y</a>",
	} {
		if agrees(t, text, Limits{}) {
			t.Errorf("Plain reads %.60q", text)
		}
	}
	if _, ok := Plain("<a>"+strings.Repeat("x", 11)+"</a>", Limits{Token: 10}); ok {
		t.Error("Plain reads a text that is too long")
	}
	if _, ok := Plain(`<a b="1" c="2"/>`, Limits{Attributes: 1}); ok {
		t.Error("Plain reads too many attributes")
	}
	if _, ok := Plain(`<a b="1"><c d="2"/></a>`, Limits{AllAttributes: 1}); ok {
		t.Error("Plain reads too many attributes of all elements")
	}
}

// nested has elements inside each other that declare a namespace each, around others whose names are looked up among all of them.
func nested(declarations, names int) string {
	var b strings.Builder
	for i := range declarations {
		fmt.Fprintf(&b, `<a xmlns:p%d="u">`, i)
	}
	b.WriteString(strings.Repeat("<p0:b/>", names))
	b.WriteString(strings.Repeat("</a>", declarations))
	return b.String()
}

// TestPlainSpaces: Plain reads as many declarations as documents have, and leaves more to others, which don't go through all for each name.
// Those that are not in force any more don't count.
func TestPlainSpaces(t *testing.T) {
	for declarations, want := range map[int]bool{1: true, maxSpaces: true, maxSpaces + 1: false} {
		if got := agrees(t, nested(declarations, 3), Limits{}); got != want {
			t.Errorf("%d declarations: Plain reads them: %t", declarations, got)
		}
	}
	var one strings.Builder
	for i := range maxSpaces + 1 {
		fmt.Fprintf(&one, ` xmlns:p%d="u"`, i)
	}
	if agrees(t, "<a"+one.String()+"/>", Limits{}) {
		t.Error("Plain reads too many declarations of one element")
	}
	if !agrees(t, "<a>"+strings.Repeat(`<b xmlns:p="u"/>`, 5*maxSpaces)+"</a>", Limits{}) {
		t.Error("Plain does not read declarations that follow each other")
	}
}

// TestPlainRandom makes documents of pieces that stand in such documents, whether they fit together or not.
func TestPlainRandom(t *testing.T) {
	pieces := []string{"<a>", "</a>", "<b:c>", "</b:c>", "<d/>", `<a xmlns="u">`, `<a xmlns:b="v" b:e="f">`, `<a xml:lang="x" g="&lt;">`, "x", " ", "\n", "&amp;", "é", "]]>", "&#9;", "<!---->", `<a g="1" g="2">`}
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(pieces)-1), 0, 12).Draw(t, "pieces") {
			b.WriteString(pieces[i])
		}
		text := b.String()
		if rapid.Bool().Draw(t, "closed") {
			text = closed(text)
		}
		if agrees(t, text, Limits{Depth: 6}) {
			read++
		}
	})
	if read == 0 {
		t.Error("Plain read none of the documents")
	}
}

// closed puts a text into an element, and ends all elements that are open in it.
func closed(text string) string {
	var open []string
	for rest := text; ; {
		_, tag, ok := strings.Cut(rest, "<")
		if !ok {
			break
		}
		tag, rest, _ = strings.Cut(tag, ">")
		switch name, _, _ := strings.Cut(tag, " "); {
		case strings.HasPrefix(tag, "/") && len(open) > 0:
			open = open[:len(open)-1]
		case !strings.HasPrefix(tag, "/") && !strings.HasPrefix(tag, "!") && !strings.HasSuffix(tag, "/"):
			open = append(open, name)
		}
	}
	for i := len(open) - 1; i >= 0; i-- {
		text += "</" + open[i] + ">"
	}
	return "<r>" + text + "</r>"
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"<a/>", `<a xmlns:b="c"><b:d e="f">&lt;</b:d></a>`, `<a xmlns="u"><b xmlns=""/>x<c xml:d="e"/></a>`, "<a>\n<b>é</b> &amp;</a> ", `<a b="c"d="e"/>`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { agrees(t, text, Limits{Bytes: 1 << 16}) })
}
