// Package web makes the pages that people see: what an identifier is, where it
// leads, why it is gone or unknown, and where to type the next one.
//
// Pages are HTML that works without scripts and without anything from elsewhere:
// style sheets, an icon and the site's logo, so that [Policy] can forbid all the
// rest. One page has a script ([ScriptPolicy]). They are also well-formed XML, by which the tests read them. All words come from package
// language, in the language of the reader.
//
// The package decides nothing and looks nothing up: a server fills in plain
// structures, and everything in them is text. Only addresses that are safe to
// follow become links. Characters that can't be seen, or that make a text read
// otherwise than it is written, are shown by their numbers.
package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/language"
)

// AssetPath is the path below which the server answers with [Pages.Asset].
const AssetPath = "/.web/"

// Policy is the Content-Security-Policy under which all pages work.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ScriptPolicy is the Content-Security-Policy of the page that registers the site in a browser as
// the handler of links: only a script can do that.
const ScriptPolicy = Policy + "; script-src 'self'"

//go:embed pages/*.html assets/*
var files embed.FS

// Pages holds the templates of each language, and the assets. It is used by many goroutines at
// once.
type Pages struct {
	catalog   *language.Catalog
	face      Face
	templates map[string]func() (map[string]*template.Template, error) // by language; by name. They are parsed when they are first used
	assets    map[string]Asset
	styles    []string // paths
	icon      string
	script    string // of the page about links
	logo      string // "" if the site has none
}

// Asset is a file that pages refer to. Callers do not change its content. It has no secrets, so that it may be sent compressed.
type Asset struct {
	Content   []byte
	Gzipped   []byte // the content, compressed by gzip; nil if that is not smaller
	MediaType string
}

// The pages, by the names of their templates.
var pageNames = [...]string{"info", "gone", "missing", "problem", "choices", "home", "explain", "api", "about", "protocol", "usage", "log", "docs"}

// New makes the pages from the embedded templates, for the languages of a catalog, and gives them the face of a
// site. It fails if the face is wrong. Templates of a language are parsed for its first page: a server that only redirects needs neither the
// time nor the memory.
func New(catalog *language.Catalog, face Face) (*Pages, error) {
	p := &Pages{catalog: catalog, face: face, templates: make(map[string]func() (map[string]*template.Template, error)), assets: make(map[string]Asset)}
	style, err := p.AddAsset(files, "assets/stele.css", "text/css; charset=utf-8")
	if err != nil {
		return nil, err
	}
	p.styles = []string{style}
	if p.icon, err = p.AddAsset(files, "assets/icon.svg", "image/svg+xml"); err != nil {
		return nil, err
	}
	if p.script, err = p.AddAsset(files, "assets/protocol.js", "text/javascript; charset=utf-8"); err != nil {
		return nil, err
	}
	if err := p.dress(); err != nil {
		return nil, err
	}
	for _, l := range catalog.Languages() {
		p.templates[l.Tag] = sync.OnceValues(func() (map[string]*template.Template, error) { return p.parse(l) })
	}
	return p, nil
}

// parse parses the templates for a language.
func (p *Pages) parse(l *language.Language) (map[string]*template.Template, error) {
	frame := template.New("frame.html").Funcs(functions).Funcs(p.siteFunctions(l)).Funcs(words(l))
	if _, err := frame.ParseFS(files, "pages/frame.html", "pages/parts.html"); err != nil {
		return nil, err
	}
	list := make(map[string]*template.Template)
	for _, name := range pageNames {
		page, err := frame.Clone()
		if err != nil {
			return nil, err
		}
		if list[name], err = page.ParseFS(files, "pages/"+name+".html"); err != nil {
			return nil, err
		}
		Fold(page, l.Text, nil)
	}
	return list, nil
}

// AddAsset adds a file that pages refer to, and returns its path at the server: the name has a
// checksum in it, so that clients may cache the file for ever. It is called before the pages are
// used.
func (p *Pages) AddAsset(files fs.ReadFileFS, name, mediaType string) (string, error) {
	content, err := files.ReadFile(name)
	if err != nil {
		return "", err
	}
	return p.addContent(path.Base(name), content, mediaType), nil
}

// addContent adds a file by its content.
func (p *Pages) addContent(name string, content []byte, mediaType string) string {
	h := fnv.New64a()
	h.Write(content)
	base, ext, _ := strings.Cut(name, ".")
	public := fmt.Sprintf("%s.%016x.%s", base, h.Sum64(), ext)
	p.assets[public] = Asset{content, gzipped(content), mediaType}
	return AssetPath + public
}

// gzipped compresses a file; nil if that does not make it smaller.
func gzipped(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one that it knows
	_, _ = w.Write(content)                               // a buffer takes all
	if _ = w.Close(); b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// StylePaths returns the paths of the style sheets: the one of all sites, and the colours of this
// one if it has some.
func (p *Pages) StylePaths() []string { return p.styles }

// IconPath returns the path of the icon.
func (p *Pages) IconPath() string { return p.icon }

// LogoPath returns the path of the site's logo; "" if it has none.
func (p *Pages) LogoPath() string { return p.logo }

// SiteName returns the name of the site.
func (p *Pages) SiteName() string { return cmp.Or(p.face.Name, "Stele") }

// Language returns the language for a request: what its sender chose, or what the browser
// prefers, or the site's.
func (p *Pages) Language(r *http.Request) *language.Language { return p.catalog.Of(r, "", "") }

// English returns the language in which programs are answered.
func (p *Pages) English() *language.Language { return p.catalog.English() }

// Chosen returns the language with a tag; nil if it is not offered.
func (p *Pages) Chosen(tag string) *language.Language { return p.catalog.Get(tag) }

// Contact returns how to reach the operator; its Text is empty if the site does not say.
func (p *Pages) Contact() Name { return p.face.contact() }

// Functions returns the functions of templates that make text safe to read: other pages use
// them too.
func Functions() template.FuncMap { return maps.Clone(functions) }

// Asset returns a file that pages refer to, by its name below [AssetPath]. The file of a name
// never changes.
func (p *Pages) Asset(name string) (a Asset, ok bool) {
	a, ok = p.assets[name]
	return a, ok
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

// About writes the page about the registry, or one of the operator's texts.
func (p *Pages) About(w io.Writer, v *About) error { return p.write(w, "about", v) }

// Protocol writes the page that registers the site as the handler of links. It works under
// [ScriptPolicy].
func (p *Pages) Protocol(w io.Writer, v *Protocol) error { return p.write(w, "protocol", v) }

// Usage writes the page of how often names are used.
func (p *Pages) Usage(w io.Writer, v *Use) error { return p.write(w, "usage", v) }

// Log writes the page about the transparency log.
func (p *Pages) Log(w io.Writer, v *Log) error { return p.write(w, "log", v) }

// framed is a view of a page.
type framed interface{ frame() *Frame }

// write writes a page in one piece, or nothing.
func (p *Pages) write(w io.Writer, name string, view framed) error {
	l := view.frame().Language
	if l == nil || p.templates[l.Tag] == nil { // the site may not offer it
		l = p.catalog.Languages()[0]
	}
	templates, err := p.templates[l.Tag]()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := templates[name].Execute(&b, view); err != nil {
		return stele.Messagef("web.page-failed", "page {page}: {cause}", name, err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
