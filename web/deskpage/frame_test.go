package deskpage_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/language"
)

// TestFrame: all holes of the frame are filled, what fills them is text and no markup, and pages are
// well-formed. Visitors get no navigation, and users no links of administrators.
func TestFrame(t *testing.T) {
	const hostile = `"><script>alert('x')</script>&amp;` + "\u202e\x00"
	const shown = `&#34;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;`
	catalog, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	public, err := web.New(catalog, web.Face{})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := deskpage.New(public, catalog)
	if err != nil {
		t.Fatal(err)
	}
	write := func(f deskpage.Frame) string {
		t.Helper()
		var b strings.Builder
		if err := pages.Write(&b, catalog.English(), "names", &deskpage.Names{Frame: f}); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(b.String()))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
		}
		if strings.ContainsAny(b.String(), "\uE000\uE001") || strings.Contains(b.String(), "<script>") {
			t.Errorf("a hole is left, or markup:\n%s", b.String())
		}
		return b.String()
	}
	check := func(page string, has bool, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if strings.Contains(page, text) != has {
				t.Errorf("%s is there: %t\n%s", text, !has, page)
			}
		}
	}
	signedIn := []string{`<form class="find"`, "<nav ", `<a href="/.desk/account"`}
	page := write(deskpage.Frame{Title: hostile})
	check(page, true, "<title>"+shown, `name="next" value=""/>`)
	check(page, false, signedIn...)
	check(page, false, `role="status"`, `class="same"`, `<button class="plain"`)

	page = write(deskpage.Frame{
		Title: hostile, User: hostile, Admin: true, Section: "account", Query: hostile, Here: hostile, Notice: hostile,
		Languages: []deskpage.LanguageLink{{Tag: hostile, Name: hostile}}, Problems: []deskpage.Problem{{Text: hostile}}, Same: []deskpage.Same{{Label: hostile, Text: hostile}},
	})
	check(page, true, signedIn...)
	check(page, true, "<title>"+catalog.English().Text("frame.problem-mark")+" "+shown, `name="q" value="`+shown, `<a href="/.desk/account" aria-current="page"><bdi>`+shown, `<a href="/.desk/people">`,
		`<main id="main">`+"\n"+`<p class="done" role="status">`+shown, `<code>`+shown, `name="next" value="`+shown, `name="tag" value="`+shown, ` lang="`+shown)

	page = write(deskpage.Frame{User: "ann", Section: "names"})
	check(page, true, `<a href="/.desk/names" aria-current="page">`, `<a href="/.desk/account"><bdi>ann</bdi></a>`)
	check(page, false, "/.desk/people")
}

// Templates are parsed for the first page of a language: those of all languages can be, by several readers at once.
func TestLanguagesParse(t *testing.T) {
	catalog, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	public, err := web.New(catalog, web.Face{})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := deskpage.New(public, catalog)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 2 {
		for _, l := range catalog.Languages() {
			readers.Go(func() {
				var desk, home strings.Builder
				if err := pages.Write(&desk, l, "names", &deskpage.Names{}); err != nil || !strings.Contains(desk.String(), `lang="`+l.Tag+`"`) {
					t.Errorf("the page of names in %s: %v", l.Tag, err)
				}
				if err := public.Home(&home, &web.Home{Frame: web.Frame{Language: l}}); err != nil || !strings.Contains(home.String(), `lang="`+l.Tag+`"`) {
					t.Errorf("the first page in %s: %v", l.Tag, err)
				}
			})
		}
	}
	readers.Wait()
}
