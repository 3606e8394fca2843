package deskpage

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// frame is what all pages of a language have: the template frame.html, which was executed once for
// visitors and once for users who are signed in, cut at its holes. To execute it for each
// page took a tenth of the time of a list.
type frame struct {
	visitor, user []part
	mark          string // of a page with problems, in its title
	navigation    func(section string, admin bool) string
}

// part is a text of a frame, and the hole that follows it; "" after the last text.
type part struct{ text, hole string }

// The characters around the name of a hole. No text of the frame has them: they are for private use.
const (
	holeBegin = "\uE000"
	holeEnd   = "\uE001"
)

// hole is the function of the template for what differs from page to page.
func hole(name string) string { return holeBegin + name + holeEnd }

// newFrame executes a template.
func newFrame(l *language.Language, t *template.Template) (*frame, error) {
	f := &frame{mark: escaped.Replace(l.Text("frame.problem-mark")) + " ", navigation: navigations(l)}
	for user, to := range map[bool]*[]part{false: &f.visitor, true: &f.user} {
		var b strings.Builder
		if err := t.Execute(&b, user); err != nil {
			return nil, err
		}
		for text, more := b.String(), true; more; {
			var p part
			if p.text, text, more = strings.Cut(text, holeBegin); more {
				p.hole, text, _ = strings.Cut(text, holeEnd)
			}
			*to = append(*to, p)
		}
	}
	return f, nil
}

// page is the templates of a page.
type page struct {
	main, notice, same *template.Template
	head               *template.Template // nil if the page adds nothing to the head
}

func newPage(t *template.Template) *page {
	return &page{main: t.Lookup("main"), notice: t.Lookup("notice"), same: t.Lookup("same"), head: t.Lookup("head")}
}

// write writes a page in its frame.
func (f *frame) write(b *bytes.Buffer, p *page, view View) error {
	v := view.frame()
	parts := f.user
	if v.User == "" {
		parts = f.visitor
	}
	for i := range parts {
		b.WriteString(parts[i].text)
		var err error
		switch parts[i].hole {
		case "head":
			if p.head != nil {
				err = p.head.Execute(b, view)
			}
		case "title":
			if len(v.Problems) > 0 {
				b.WriteString(f.mark)
			}
			writeEscaped(b, web.ShowProse(v.Title))
		case "query":
			writeEscaped(b, web.ShowName(v.Query))
		case "navigation":
			b.WriteString(f.navigation(v.Section, v.Admin))
			b.WriteString("\n<a href=\"/.desk/account\"")
			if v.Section == "account" {
				b.WriteString(` aria-current="page"`)
			}
			b.WriteString("><bdi>")
			writeEscaped(b, web.ShowName(v.User))
			b.WriteString("</bdi></a>")
		case "notice":
			if v.Notice != "" {
				err = p.notice.Execute(b, v.Notice)
			}
		case "main":
			err = p.main.Execute(b, view)
		case "same":
			if len(v.Same) > 0 {
				err = p.same.Execute(b, v.Same)
			}
		case "here":
			writeEscaped(b, v.Here)
		case "languages":
			for _, l := range v.Languages {
				b.WriteString(`<button class="plain" name="tag" value="`)
				writeEscaped(b, l.Tag)
				b.WriteString(`" lang="`)
				writeEscaped(b, l.Tag)
				b.WriteString(`">`)
				writeEscaped(b, l.Name)
				b.WriteString("</button>")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
