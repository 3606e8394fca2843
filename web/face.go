package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/language"
)

// Face is how a site presents itself: what of the pages is the operator's. The zero Face is that
// of Stele.
type Face struct {
	Name    string // of the site or its operator; may be empty
	Logo    []byte // an image: SVG, PNG or JPEG; may be empty
	Contact string // a mail address or a URL; may be empty

	// Accent is the colour of links and buttons, "#8a3b12", and AccentDark the one on dark
	// screens; "" for the usual ones.
	Accent, AccentDark string

	// Texts are the operator's, by their names ("about", "help", "imprint") and by language.
	Texts map[string]map[string]string

	// Archive says that the site is a frozen archive; nil: it is not. No user can sign in then.
	Archive *Archive
}

// Archive is what a frozen archive is of: a registry, by the name of its log, as it was at a time.
type Archive struct {
	Of string
	At time.Time
}

// Limits of what an operator gives.
const (
	MaxLogo     = 256 << 10 // bytes
	maxLogoSide = 4096      // points
	MaxText     = 64 << 10  // bytes
)

// TextNames are the names of the operator's texts.
func TextNames() []string { return []string{"about", "help", "imprint"} }

// dress adds the site's logo and colours to the assets.
func (p *Pages) dress() error {
	var wrong []error
	if len(p.face.Logo) > 0 {
		kind, err := ImageType(p.face.Logo)
		if err != nil {
			wrong = append(wrong, err)
		} else {
			p.logo = p.addContent("logo."+strings.TrimSuffix(strings.TrimPrefix(kind, "image/"), "+xml"), p.face.Logo, kind)
		}
	}
	style, err := faceStyle(p.face.Accent, p.face.AccentDark)
	if err != nil {
		wrong = append(wrong, err)
	} else if style != "" {
		p.styles = append(p.styles, p.addContent("face.css", []byte(style), "text/css; charset=utf-8"))
	}
	return errors.Join(wrong...)
}

// siteFunctions are those of templates that say something about the site.
func (p *Pages) siteFunctions(l *language.Language) template.FuncMap {
	return template.FuncMap{
		"site":    p.SiteName,
		"styles":  p.StylePaths,
		"icon":    p.IconPath,
		"script":  func() string { return p.script },
		"hasLogo": func() bool { return p.logo != "" },
		"logo": func() string {
			if p.logo != "" {
				return p.logo
			}
			return p.icon
		},
		"archive": func() *Archive { return p.face.Archive },
		"has":     func(name string) bool { return len(p.face.Texts[name]) > 0 },
		"contact": func() *Name {
			if c := p.face.contact(); c.Text != "" {
				return &c
			}
			return nil
		},
		"languages": func() []*language.Language {
			if list := p.catalog.Languages(); len(list) > 1 {
				return list
			}
			return nil
		},
		"switch": func(tag, here string) string { return LanguagePath + tag + "?next=" + url.QueryEscape(here) },
	}
}

// LanguagePath is the path below which the server keeps the reader's choice of a language.
const LanguagePath = "/.language/"

// contact returns how to reach the operator.
func (f *Face) contact() Name {
	n := Name{Text: f.Contact, URL: f.Contact}
	if strings.Contains(f.Contact, "@") && !strings.Contains(f.Contact, "/") {
		n.URL = "mailto:" + f.Contact
	}
	return n
}

// Text returns a text of the operator in a language, or in the first one that there is; nil if
// there is none.
func (p *Pages) Text(l *language.Language, name string) []Block {
	texts := p.face.Texts[name]
	if text, ok := texts[l.Tag]; ok {
		return ParseText(text)
	}
	for _, other := range p.catalog.Languages() {
		if text, ok := texts[other.Tag]; ok {
			return ParseText(text)
		}
	}
	return nil
}

// Lead returns the first paragraph of what the operator says about the registry; nil if there is
// none.
func (p *Pages) Lead(l *language.Language) []Span {
	for _, b := range p.Text(l, "about") {
		if b.Kind == "p" {
			return b.Spans
		}
	}
	return nil
}

// ImageType returns the media type of a logo. It refuses one that is too large, that is of
// another type, or that can't be read.
func ImageType(content []byte) (string, error) {
	if len(content) > MaxLogo {
		return "", stele.Messagef("face.logo-too-large", "the logo has more than {most} bytes; make it smaller", MaxLogo)
	}
	for _, of := range []struct {
		mark, kind string
		read       func(io.Reader) (image.Config, error)
	}{
		{"\x89PNG\r\n\x1a\n", "image/png", png.DecodeConfig},
		{"\xff\xd8\xff", "image/jpeg", jpeg.DecodeConfig},
	} {
		if !bytes.HasPrefix(content, []byte(of.mark)) {
			continue
		}
		size, err := of.read(bytes.NewReader(content))
		if err != nil || size.Width > maxLogoSide || size.Height > maxLogoSide {
			return "", stele.Messagef("face.logo-damaged", "the logo is damaged, or has more than {most} points on a side", maxLogoSide)
		}
		return of.kind, nil
	}
	if isSVG(content) {
		return "image/svg+xml", nil
	}
	return "", stele.Messagef("face.logo-type-unknown", "the logo is not an image in SVG, PNG or JPEG")
}

// isSVG reports whether a text is an SVG image that has no script in it: an image in a page runs
// none, but people may open the file itself.
func isSVG(content []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(content))
	first := true
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return !first
		}
		if err != nil {
			return false
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if first && start.Name.Local != "svg" || strings.EqualFold(start.Name.Local, "script") || strings.EqualFold(start.Name.Local, "foreignObject") {
			return false
		}
		first = false
		for _, a := range start.Attr {
			if strings.HasPrefix(strings.ToLower(a.Name.Local), "on") || strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Value)), "javascript:") {
				return false
			}
		}
	}
}

// faceStyle returns the style sheet of a site's colours; "" if it has none.
func faceStyle(light, dark string) (string, error) {
	var rules [2]string
	var wrong []error
	for mode, accent := range [...]string{light, dark} {
		if accent == "" {
			continue
		}
		ink, err := judgeAccent(accent, mode == 1)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		rules[mode] = fmt.Sprintf(":root { --link: %s; --accent: %s; --onaccent: %s; }\n", accent, accent, ink)
	}
	if rules[1] != "" {
		rules[1] = "@media (prefers-color-scheme: dark) { " + strings.TrimSpace(rules[1]) + " }\n"
	}
	if rules[0] != "" {
		rules[0] = "@media (prefers-color-scheme: light) { " + strings.TrimSpace(rules[0]) + " }\n"
	}
	return rules[0] + rules[1], errors.Join(wrong...)
}

// CheckAccent says what is wrong with a colour of links and buttons: text in it must have a
// contrast of 4.5 to 1 with what it stands on (WCAG 2.2, 1.4.3).
func CheckAccent(colour string, dark bool) error {
	_, err := judgeAccent(colour, dark)
	return err
}

// leastContrast is that of text.
const leastContrast = 4.5

// judgeAccent returns the colour of text on an accent.
func judgeAccent(accent string, dark bool) (ink string, err error) {
	css, err := files.ReadFile("assets/stele.css")
	if err != nil {
		return "", err
	}
	usual := paletteOf(string(css), dark)
	for _, on := range []string{"paper", "card"} {
		ratio, err := contrast(accent, usual[on])
		if err != nil {
			return "", err
		}
		if ratio < leastContrast {
			if dark {
				return "", stele.Messagef("face.accent-too-dark", "the colour {colour} on the dark pages has a contrast of {ratio} to 1, less than 4.5; choose a lighter one", accent, fmt.Sprintf("%.1f", ratio))
			}
			return "", stele.Messagef("face.accent-too-light", "the colour {colour} on the light pages has a contrast of {ratio} to 1, less than 4.5; choose a darker one", accent, fmt.Sprintf("%.1f", ratio))
		}
	}
	// What stands out from the paper stands out from its colour, too.
	return usual["card"], nil
}

var (
	rootRule   = regexp.MustCompile(`(?s):root \{(.*?)\}`)
	colourRule = regexp.MustCompile(`--(\w+): (#[0-9a-f]{6});`)
	hexColour  = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
)

// paletteOf returns the colours of a style sheet by their names: the light ones, or the dark ones.
func paletteOf(css string, dark bool) map[string]string {
	at := 0
	if dark {
		at = 1
	}
	colours := make(map[string]string)
	if roots := rootRule.FindAllStringSubmatch(css, -1); at < len(roots) {
		for _, m := range colourRule.FindAllStringSubmatch(roots[at][1], -1) {
			colours[m[1]] = m[2]
		}
	}
	return colours
}
