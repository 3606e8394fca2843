// Package deskpage makes the pages of the desk, where curators keep names: what they need
// first, forms that say what is wrong beside the field, lists, histories.
//
// Pages are HTML that works without scripts; one script improves them. They are well-formed
// XML, by which the tests read them. The package decides nothing and looks nothing up: serve/desk
// fills in plain structures, and everything in them is text. All words come from package language.
package deskpage

import (
	"bytes"
	"embed"
	"html/template"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// Policy is the Content-Security-Policy under which the pages work.
const Policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed pages/*.html assets/*
var files embed.FS

// Pages holds the templates of each language. It is used by many goroutines at once.
type Pages struct {
	languages map[string]func() (*spoken, error) // by language; they are parsed when they are first used
	buffers   sync.Pool                          // of *bytes.Buffer
}

// spoken is the pages in a language.
type spoken struct {
	frame *frame
	pages map[string]*page // by name
	words *rowWords
}

// New makes the pages from the embedded templates, and adds the style sheet and the script to the assets of the public
// pages. Templates of a language are parsed for its first page.
func New(public *web.Pages, catalog *language.Catalog) (*Pages, error) {
	style, err := public.AddAsset(files, "assets/desk.css", "text/css; charset=utf-8")
	if err != nil {
		return nil, err
	}
	script, err := public.AddAsset(files, "assets/desk.js", "text/javascript; charset=utf-8")
	if err != nil {
		return nil, err
	}
	var styles template.HTML
	for _, p := range append(slices.Clone(public.StylePaths()), style) {
		styles += template.HTML(`<link rel="stylesheet" href="` + escaped.Replace(p) + `"/>` + "\n")
	}
	p := &Pages{languages: make(map[string]func() (*spoken, error))}
	for _, l := range catalog.Languages() {
		constants := map[string]any{"styleLinks": styles, "lang": l.Tag, "icon": public.IconPath(), "site": public.SiteName(), "logo": public.LogoPath(), "script": script}
		own := template.FuncMap{
			"styleLinks": func() template.HTML { return styles },
			"icon":       public.IconPath,
			"site":       public.SiteName,
			"logo":       public.LogoPath,
			"script":     func() string { return script },
		}
		p.languages[l.Tag] = sync.OnceValues(func() (*spoken, error) { return parse(l, own, constants) })
	}
	return p, nil
}

// parse parses the templates for a language, with functions of this site and what they return.
func parse(l *language.Language, own template.FuncMap, constants map[string]any) (*spoken, error) {
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		return nil, err
	}
	parts := template.New("frame.html").Funcs(web.Functions()).Funcs(functions(l)).Funcs(own)
	if _, err := parts.ParseFS(files, "pages/frame.html", "pages/parts.html"); err != nil {
		return nil, err
	}
	s := &spoken{words: newRowWords(newAgos(l)), pages: make(map[string]*page)}
	for _, name := range names {
		t, err := parts.Clone()
		if err != nil {
			return nil, err
		}
		if t, err = t.ParseFS(files, name); err != nil {
			return nil, err
		}
		web.Fold(t, l.Text, constants)
		s.pages[strings.TrimSuffix(path.Base(name), ".html")] = newPage(t)
	}
	web.Fold(parts, l.Text, constants)
	s.frame, err = newFrame(l, parts)
	return s, err
}

// longText is how many bytes of a text are shown on one line to be changed.
const longText = 200

// functions are those of templates that say something in a language.
func functions(l *language.Language) template.FuncMap {
	past := newAgos(l)
	return template.FuncMap{
		"t":       l.Text,
		"lang":    func() string { return l.Tag },
		"number":  l.Number,
		"day":     l.Day,
		"moment":  l.Moment,
		"problem": l.Problem,
		"state":   func(s stele.State) string { return l.Text("state." + string(s)) },
		"role":    func(r stele.Role) string { return l.Text("role." + string(r)) },
		"ago":     past.ago,
		"long":    func(text string) bool { return len(text) > longText || strings.Contains(text, "\n") },
		"args": func(list []ProposalRow, now time.Time) any {
			return struct {
				List []ProposalRow
				Now  time.Time
			}{list, now}
		},
		"list": func(list ...string) []string { return list },

		"hole":    hole,
		"options": options,
		"link":    link,
	}
}

// agos has how long ago something was, as a language says it: to choose a plural form takes as
// long as the rest of a row of a list.
type agos struct {
	language             *language.Language
	minutes, hours, days []string
}

func newAgos(l *language.Language) *agos {
	a := &agos{language: l}
	for _, unit := range []struct {
		key  string
		most int
		to   *[]string
	}{{"ago.minutes", 60, &a.minutes}, {"ago.hours", 24, &a.hours}, {"ago.days", 7, &a.days}} {
		for n := range unit.most {
			*unit.to = append(*unit.to, l.Text(unit.key, "count", n))
		}
	}
	return a
}

// ago says how long ago a time was, and its day if that is more than a week.
func (a *agos) ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return a.language.Text("ago.now")
	case d < time.Hour:
		return a.minutes[d/time.Minute]
	case d < 24*time.Hour:
		return a.hours[d/time.Hour]
	case d < 7*24*time.Hour:
		return a.days[d/(24*time.Hour)]
	}
	return a.language.Day(t)
}

// maxKept is how many bytes a buffer may have that is kept for another page.
const maxKept = 256 << 10

// View is what a page shows: a pointer to one of the structures that have a [Frame].
type View interface{ frame() *Frame }

// Write writes a page by one call of w.Write, or nothing. w must not keep what it is given.
func (p *Pages) Write(w io.Writer, l *language.Language, page string, view View) error {
	s, err := p.languages[l.Tag]()
	if err != nil {
		return err
	}
	b, _ := p.buffers.Get().(*bytes.Buffer)
	if b == nil {
		b = new(bytes.Buffer)
	}
	defer func() {
		if b.Cap() <= maxKept {
			b.Reset()
			p.buffers.Put(b)
		}
	}()
	f := view.frame()
	f.page, f.words = b, s.words
	defer func() { f.page = nil }()
	if err := s.frame.write(b, s.pages[page], view); err != nil {
		return stele.Messagef("web.page-failed", "page {page}: {cause}", page, err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
