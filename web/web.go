// Package web makes the pages that people see: what an identifier is, where it
// leads, why it is gone or unknown, and where to type the next one.
//
// Pages are HTML that works without scripts and without anything from elsewhere:
// one style sheet and one icon, both embedded, so that [Policy] can forbid all the
// rest. They are also well-formed XML, by which the tests read them.
//
// The package decides nothing and looks nothing up: a server fills in plain
// structures, and everything in them is text. Only addresses that are safe to
// follow become links. Characters that can't be seen, or that make a text read
// otherwise than it is written, are shown by their numbers.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/stele-id/stele"
)

// AssetPath is the path below which the server answers with [Pages.Asset].
const AssetPath = "/.web/"

// Policy is the Content-Security-Policy under which all pages work.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed pages/*.html assets/*
var files embed.FS

// Pages holds the templates and assets. It is used by many goroutines at once.
type Pages struct {
	templates   map[string]*template.Template
	assets      map[string]asset
	style, icon string // their paths
}

type asset struct {
	content   []byte
	mediaType string
}

// The pages, by the names of their templates.
var pageNames = [...]string{"info", "gone", "missing", "problem", "choices", "home", "explain", "api"}

// New reads the embedded templates. It fails only if they are broken.
func New() (*Pages, error) {
	p := &Pages{templates: make(map[string]*template.Template), assets: make(map[string]asset)}
	var err error
	if p.style, err = p.AddAsset(files, "assets/stele.css", "text/css; charset=utf-8"); err != nil {
		return nil, err
	}
	if p.icon, err = p.AddAsset(files, "assets/icon.svg", "image/svg+xml"); err != nil {
		return nil, err
	}
	frame := template.New("frame.html").Funcs(functions).Funcs(template.FuncMap{"style": p.StylePath, "icon": p.IconPath})
	if _, err := frame.ParseFS(files, "pages/frame.html", "pages/parts.html"); err != nil {
		return nil, err
	}
	for _, name := range pageNames {
		page, err := frame.Clone()
		if err != nil {
			return nil, err
		}
		if p.templates[name], err = page.ParseFS(files, "pages/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// AddAsset adds a file that pages refer to, and returns its path at the server: the name has a
// checksum in it, so that clients may cache the file for ever. It is called before the pages are
// used.
func (p *Pages) AddAsset(files fs.ReadFileFS, name, mediaType string) (string, error) {
	content, err := files.ReadFile(name)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	h.Write(content)
	base, ext, _ := strings.Cut(path.Base(name), ".")
	public := fmt.Sprintf("%s.%016x.%s", base, h.Sum64(), ext)
	p.assets[public] = asset{content, mediaType}
	return AssetPath + public, nil
}

// StylePath returns the path of the style sheet.
func (p *Pages) StylePath() string { return p.style }

// IconPath returns the path of the icon.
func (p *Pages) IconPath() string { return p.icon }

// Functions returns the functions of templates that make text safe to read: other pages use
// them too.
func Functions() template.FuncMap { return maps.Clone(functions) }

// Asset returns a file that pages refer to, by its name below [AssetPath]. The file of a name
// never changes. The caller must not change the content.
func (p *Pages) Asset(name string) (content []byte, mediaType string, ok bool) {
	a, ok := p.assets[name]
	return a.content, a.mediaType, ok
}

// Info writes the page about an identifier.
func (p *Pages) Info(w io.Writer, v *Info) error { return p.write(w, "info", v) }

// Gone writes the page of a withdrawn identifier.
func (p *Pages) Gone(w io.Writer, v *Gone) error { return p.write(w, "gone", v) }

// Missing writes the page for an identifier that is not known here.
func (p *Pages) Missing(w io.Writer, v *Missing) error { return p.write(w, "missing", v) }

// Problem writes the page for any other failure.
func (p *Pages) Problem(w io.Writer, v *Problem) error { return p.write(w, "problem", v) }

// Choices writes the page of an identifier that leads to several places.
func (p *Pages) Choices(w io.Writer, v *Choices) error { return p.write(w, "choices", v) }

// Home writes the first page.
func (p *Pages) Home(w io.Writer, v *Home) error { return p.write(w, "home", v) }

// Explain writes how an answer was found.
func (p *Pages) Explain(w io.Writer, v *Explanation) error { return p.write(w, "explain", v) }

// write writes a page in one piece, or nothing.
func (p *Pages) write(w io.Writer, name string, view any) error {
	var b bytes.Buffer
	if err := p.templates[name].Execute(&b, view); err != nil {
		return stele.Messagef("web.page-failed", "page {page}: {cause}", name, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
