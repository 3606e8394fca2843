package deskpage

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// Pieces that all pages have, or that have many lines. They are made without a template, whose calls by
// reflection took as long as the search for a page of a list.

// escaped escapes a text as package html/template does.
var escaped = strings.NewReplacer("&", "&amp;", "'", "&#39;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "+", "&#43;", "\x00", "\uFFFD")

// writeEscaped writes a text that is not markup.
func writeEscaped(b *bytes.Buffer, text string) {
	_, _ = escaped.WriteString(b, text) // a buffer takes all
}

// sections are those of the navigation, in their order. The last ones are for administrators.
var sections = [...]struct {
	name, path, key string
	admin           bool
}{
	{"home", "/.desk/", "nav.home", false},
	{"names", "/.desk/names", "nav.names", false},
	{"many", "/.desk/many", "nav.many", false},
	{"namespaces", "/.desk/namespaces", "nav.namespaces", false},
	{"people", "/.desk/people", "nav.people", true},
	{"audit", "/.desk/audit", "nav.audit", true},
}

// navigations returns a function that makes the links of the navigation. Each is made once.
func navigations(l *language.Language) func(section string, admin bool) string {
	type which struct {
		section string
		admin   bool
	}
	made := make(map[which]string)
	add := func(current string, admin bool) {
		var b strings.Builder
		for _, s := range sections {
			if s.admin && !admin {
				continue
			}
			b.WriteString("\n<a href=\"" + s.path + `"`)
			if s.name == current {
				b.WriteString(` aria-current="page"`)
			}
			b.WriteString(">" + escaped.Replace(l.Text(s.key)) + "</a>")
		}
		made[which{current, admin}] = b.String()
	}
	for _, admin := range []bool{false, true} {
		add("", admin)
		for _, s := range sections {
			add(s.name, admin)
		}
	}
	return func(section string, admin bool) string {
		if text, ok := made[which{section, admin}]; ok {
			return text
		}
		return made[which{"", admin}]
	}
}

// options returns the choices of a select.
func options(list []Option) template.HTML {
	var b strings.Builder
	for _, o := range list {
		b.WriteString(`<option value="`)
		b.WriteString(escaped.Replace(o.Value))
		b.WriteByte('"')
		if o.Chosen {
			b.WriteString(` selected="selected"`)
		}
		b.WriteByte('>')
		b.WriteString(escaped.Replace(web.ShowProse(o.Text)))
		b.WriteString("</option>")
	}
	return template.HTML(b.String())
}

// link returns the attribute of a link, which leads nowhere if the address is not safe to follow.
func link(url string) template.HTMLAttr {
	return template.HTMLAttr(`href="` + escaped.Replace(web.SafeURL(url)) + `"`)
}
