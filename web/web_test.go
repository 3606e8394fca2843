package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

var update = flag.Bool("update", false, "write the golden files anew")

func asIs(s string) string { return s }

func TestGolden(t *testing.T) {
	p := pages(t)
	for name, view := range views(t, asIs) {
		t.Run(name, func(t *testing.T) {
			got := hashless(write(t, p, view))
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// hashless leaves the checksums of assets out, which change with the style.
func hashless(page string) string {
	return regexp.MustCompile(`\.[0-9a-f]{16}\.`).ReplaceAllString(page, ".")
}

// element is a tag of a page, as XML reads it.
type element struct {
	name  string
	attrs map[string]string
	text  string // directly in it
}

// read reads a page by encoding/xml, strictly: it has to be well formed.
func read(t reporter, page string) (all []*element) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(page))
	var open []*element
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well formed: %v in\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: make(map[string]string)}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(token)
			}
		case xml.Comment, xml.ProcInst:
			t.Fatalf("%T %q", token, token)
		}
	}
	if len(all) == 0 || all[0].name != "html" {
		t.Fatalf("no html element in\n%s", page)
	}
	return all
}

// shape is a page without its texts: what markup it has.
func shape(all []*element) (tags []string) {
	for _, e := range all {
		var names []string
		for name := range e.attrs {
			names = append(names, name)
		}
		slices.Sort(names)
		tags = append(tags, e.name+" "+strings.Join(names, " "))
	}
	return tags
}

// TestAccessible holds each page against what WCAG asks of markup, and against
// the policy: no style, no script except in one page, nothing from elsewhere.
func TestAccessible(t *testing.T) {
	p := pages(t)
	for name, view := range views(t, asIs) {
		t.Run(name, func(t *testing.T) {
			all := read(t, write(t, p, view))
			count := make(map[string]int)
			ids := make(map[string]bool)
			level := 0
			for _, e := range all {
				count[e.name]++
				if id := e.attrs["id"]; id != "" {
					if ids[id] {
						t.Errorf("two elements have the id %s", id)
					}
					ids[id] = true
				}
				if len(e.name) == 2 && e.name[0] == 'h' && e.name[1] >= '1' && e.name[1] <= '6' {
					if n := int(e.name[1] - '0'); n > level+1 {
						t.Errorf("heading %s follows h%d", e.name, level)
					} else {
						level = n
					}
				}
				judge(t, e)
			}
			for _, e := range all {
				for _, ref := range []string{e.attrs["aria-labelledby"], e.attrs["aria-describedby"], e.attrs["for"], strings.TrimPrefix(e.attrs["href"], "#")} {
					if ref != "" && !strings.ContainsAny(ref, "/:") && !ids[ref] {
						t.Errorf("%s refers to %s, which is not there", e.name, ref)
					}
				}
			}
			// The bars of a chart have titles too.
			if all[0].attrs["lang"] != "en" || count["main"] != 1 || count["h1"] != 1 || count["title"]-count["g"] != 1 || count["header"] != 1 || count["footer"] != 1 {
				t.Errorf("language or landmarks are missing: %v", count)
			}
			if count["input"] != count["label"] || count["input"] == 0 {
				t.Errorf("%d inputs, %d labels", count["input"], count["label"])
			}
		})
	}
}

// judge holds one element against the rules.
func judge(t *testing.T, e *element) {
	t.Helper()
	for name, value := range e.attrs {
		if name == "style" || strings.HasPrefix(name, "on") {
			t.Errorf("%s has %s=%q", e.name, name, value)
		}
		if name == "src" && !strings.HasPrefix(value, AssetPath) || e.name == "link" && name == "href" && !strings.HasPrefix(value, "/") {
			t.Errorf("%s loads %q", e.name, value)
		}
	}
	_, alt := e.attrs["alt"]
	switch {
	case e.name == "script" && !isOwnScript(e), e.name == "style" || e.name == "iframe" || e.name == "object":
		t.Errorf("there is a %s", e.name)
	case e.name == "img" && !alt, e.name == "svg" && e.attrs["aria-label"] == "":
		t.Errorf("%s has no text for those who don't see it", e.name)
	case e.name == "th" && e.attrs["scope"] == "":
		t.Errorf("th %q has no scope", e.text)
	case e.name == "title" && strings.TrimSpace(e.text) == "":
		t.Error("the title is empty")
	}
}

// isOwnScript reports whether an element is the script of the page that registers the site as the
// handler of links.
func isOwnScript(e *element) bool {
	return strings.HasPrefix(e.attrs["src"], AssetPath+"protocol.") && strings.TrimSpace(e.text) == ""
}

// TestLinks holds that only what is safe to follow can be followed.
func TestLinks(t *testing.T) {
	p := pages(t)
	var hrefs []string
	for _, e := range read(t, write(t, p, views(t, asIs)["choices"])) {
		if e.name == "a" {
			hrefs = append(hrefs, e.attrs["href"])
		}
	}
	want := []string{"#main", "/", "/", "/.about", "/api/v1", "/.desk/", "https://example.org/rivers.html", "ftp://ftp.example.org/rivers.zip",
		"https://example.org/rivers.xml?a=1&b=2", "https://example.org/promise", "https://example.org/x", "/.info/ark:12345/x5rivers",
		"/.about", "/.docs/", "/.language/pt-BR?next=%2F.info%2Fark%3A12345%2Fx5rivers"}
	if diff := cmp.Diff(want, hrefs); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	for _, url := range []string{"", "javascript:alert(1)", "JavaScript://x/%0Aalert(1)", "data:text/html,x", "//evil.example", "vbscript:x", "file:///etc/passwd",
		"https:///x", "https://", "http:x", " https://example.org", "https://example.org/\nx", "https://example.org/é", "rsync://example.org/", "https://example.org/\"onclick=x", "\\\\evil", "/\\evil"} {
		if got := href(url); got != "" {
			t.Errorf("href(%q) = %q", url, got)
		}
	}
}

// nasty are texts that want to be markup, or to be read otherwise than written.
var nasty = []string{
	"<script>alert(1)</script>", "</script>", "</title><h1>", `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "<!--", "-->", "]]>", "&lt;b&gt;", "&#x3c;",
	"{{.}}", "{{template \"main\"}}", "\x00", "\x1b[31m", "\r\n", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041", "\ufffe", "\xff\xfe", "\xed\xa0\x80", "javascript:alert(1)",
	"</textarea>", "<svg onload=alert(1)>", "`", "\\u003cscript", "é漢🪨", "https://example.org/<b>", "/.info/\"x",
}

// TestHostile says terrible things in every text of every page. The page's markup
// stays what it is, and what was said is there as text.
func TestHostile(t *testing.T) {
	p := pages(t)
	polite := make(map[string][]string)
	for name, view := range views(t, func(s string) string { return s + "x<" }) { // no link either
		polite[name] = tags(read(t, write(t, p, view)))
	}
	for _, bad := range nasty {
		for name := range polite {
			hostile(t, p, name, bad, polite[name])
		}
	}
	names := slices.Sorted(maps.Keys(polite))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "page")
		hostile(t, p, name, rapid.String().Draw(t, "bad"), polite[name])
	})
}

// hostile adds a bad text to every text of a page with known markup.
func hostile(t reporter, p *Pages, name, bad string, want []string) {
	t.Helper()
	say := func(s string) string { return s + bad }
	page := write(t, p, views(t, say)[name])
	got := read(t, page)
	for _, e := range got {
		if e.name == "script" && !isOwnScript(e) || e.name == "b" || strings.HasPrefix(e.attrs["href"], "javascript:") {
			t.Fatalf("%s has %v in\n%s", name, e, page)
		}
		for attr := range e.attrs {
			if strings.HasPrefix(attr, "on") {
				t.Fatalf("%s has %v in\n%s", name, e, page)
			}
		}
	}
	said := visible(say("Rivers of Pará"), hiddenInProse)
	if name == "info" && !slices.ContainsFunc(got, func(e *element) bool { return e.name == "bdi" && e.text == said }) {
		t.Fatalf("%q is not in\n%s", said, page)
	}
	if diff := cmp.Diff(want, tags(got)); diff != "" {
		t.Fatalf("the markup of %s changes (-polite +hostile):\n%s", name, diff)
	}
	if !utf8.ValidString(page) || strings.ContainsFunc(page, func(r rune) bool { return r != '\n' && r != '\t' && hiddenInProse(r) }) {
		t.Fatalf("%s has hidden characters:\n%q", name, page)
	}
}

// tags is the shape of a page, except links, which depend on the address.
func tags(all []*element) []string {
	return slices.DeleteFunc(shape(all), func(s string) bool {
		return strings.HasPrefix(s, "a ") || strings.HasPrefix(s, "link ") || s == "p " // of a link alone
	})
}

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ text, name, prose string }{
		{"plain é 漢", "plain é 漢", "plain é 漢"},
		{"a\u202eb", "a⟨U+202E⟩b", "a⟨U+202E⟩b"},
		{"a\u200db", "a⟨U+200D⟩b", "a\u200db"},
		{"a\nb", "a⟨U+000A⟩b", "a\nb"},
		{"a\u00a0b", "a⟨U+00A0⟩b", "a\u00a0b"},
		{"a\x00\x1b", "a⟨U+0000⟩⟨U+001B⟩", "a⟨U+0000⟩⟨U+001B⟩"},
		{"a\xff", "a\ufffd", "a\ufffd"},
		{"\U000e0041", "⟨U+E0041⟩", "⟨U+E0041⟩"},
	} {
		if got := visible(tt.text, hiddenInName); got != tt.name {
			t.Errorf("name %q: got %q, want %q", tt.text, got, tt.name)
		}
		if got := visible(tt.text, hiddenInProse); got != tt.prose {
			t.Errorf("prose %q: got %q, want %q", tt.text, got, tt.prose)
		}
	}
}

// TestBounded shows 10,000 of everything.
func TestBounded(t *testing.T) {
	v := views(t, asIs)["info"].(*Info)
	for range 10_000 {
		v.Targets = append(v.Targets, v.Targets[0])
		v.Aliases = append(v.Aliases, v.Aliases[0])
		v.Metadata = append(v.Metadata, v.Metadata[0])
		v.History = append(v.History, v.History[0])
	}
	page := write(t, pages(t), v)
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if !strings.Contains(page, "And 9,807 more") {
		t.Error("it does not say how many targets are missing")
	}
}

func TestAssets(t *testing.T) {
	p := pages(t)
	seen := 0
	for _, e := range read(t, write(t, p, &Home{})) {
		for _, attr := range []string{"href", "src"} {
			name, ok := strings.CutPrefix(e.attrs[attr], AssetPath)
			if !ok {
				continue
			}
			seen++
			a, ok := p.Asset(name)
			content := a.Content
			if !ok || len(content) == 0 || a.MediaType == "" {
				t.Errorf("%s is not there", name)
			}
			if bytes.Contains(content, []byte("@import")) || bytes.Contains(content, []byte("url(")) {
				t.Errorf("%s loads something", name)
			}
		}
	}
	if seen != 3 {
		t.Errorf("the page refers to %d assets, not to style, icon and icon", seen)
	}
	for _, name := range []string{"", "stele.css", "../web.go", "assets/stele.css"} {
		if _, ok := p.Asset(name); ok {
			t.Errorf("Asset(%q) is there", name)
		}
	}
}

func TestPromise(t *testing.T) {
	for _, l := range pages(t).catalog.Languages() {
		seen := make(map[string]bool)
		for _, level := range []stele.Level{stele.Unstated, stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed} {
			words := Promise(l, stele.Persistence{Level: level})
			if seen[words] || !strings.HasSuffix(words, ".") {
				t.Errorf("%q: %s", level, words)
			}
			seen[words] = true
		}
	}
	if got := Promise(pages(t).English(), stele.Persistence{Level: stele.Stable, Until: "2040-01-01"}); !strings.HasSuffix(got, " This holds until 2040-01-01.") {
		t.Error(got)
	}
}

// failing is a writer that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteFails(t *testing.T) {
	if err := pages(t).Home(failing{}, &Home{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func BenchmarkInfo(b *testing.B) {
	p, v := pages(b), views(b, asIs)["info"].(*Info)
	for b.Loop() {
		if err := p.Info(io.Discard, v); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleNewQR() {
	code, err := NewQR("https://resolver.example/ark:12345/x1")
	fmt.Println(code.Size, len(code.Path) > 0, err)
	// Output: 37 true <nil>
}
