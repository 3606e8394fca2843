package web

import (
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// maxRows is how many rows of a table a page shows.
const maxRows = 200

var functions = template.FuncMap{
	"name":    func(s string) string { return visible(s, hiddenInName) },
	"prose":   func(s string) string { return visible(s, hiddenInProse) },
	"href":    href,
	"address": func(url string) Name { return Name{Text: url, URL: url} },
	"rows":    rows,
	"beyond":  beyond,
	"day":     func(t time.Time) string { return t.UTC().Format("2 January 2006") },
	"moment":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"service": service,
	"promise": Promise,
	"either":  either,
	"heading": heading,

	// What a column says of at least one row. A column that says nothing is left out.
	"hasTypes": func(list []Target) bool {
		return slices.ContainsFunc(list, func(t Target) bool { return t.Type != "" })
	},
	"hasLanguages": func(list []Target) bool {
		return slices.ContainsFunc(list, func(t Target) bool { return t.Language != "" })
	},
	"hasAuthors": func(list []Change) bool { return slices.ContainsFunc(list, func(c Change) bool { return c.By != "" }) },
}

// visible replaces what is hidden by its number, and bytes that are not UTF-8 by
// U+FFFD.
func visible(s string, hidden func(rune) bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "⟨%U⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hiddenInName reports whether r can't be seen, or turns the direction of reading. A name
// needs no such character.
func hiddenInName(r rune) bool {
	return hiddenInProse(r) || r == '\n' || r == '\t' ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.IsSpace(r) && r != ' '
}

// hiddenInProse reports whether r has no place in a text that people read. Joiners
// and marks of direction stay: several scripts need them, and each text stands in
// a bdi element, out of which they do not reach.
func hiddenInProse(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f: // embeddings, overrides, isolates
		return true
	case r == 0x2028 || r == 0x2029 || r == 0xfeff || r >= 0xfff9 && r <= 0xfffb:
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags, by which text is smuggled
		return true
	}
	return r&0xfffe == 0xfffe // noncharacters, which XML forbids or discourages
}

// href returns an address if it is safe to follow: a path of this site, or of
// http, https or ftp. All others are "", and are shown as text.
func href(url string) template.URL {
	for i := range len(url) {
		if url[i] <= ' ' || url[i] >= 0x7f || strings.IndexByte("<>\"\\^`{|}", url[i]) >= 0 {
			return ""
		}
	}
	if strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//") {
		return template.URL(url)
	}
	protocol, rest, ok := strings.Cut(url, "://")
	if !ok || rest == "" || rest[0] == '/' {
		return ""
	}
	switch strings.ToLower(protocol) {
	case "http", "https", "ftp":
		return template.URL(url)
	}
	return ""
}

// rows returns the rows of a table that a page shows.
func rows(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), maxRows)).Interface()
}

// beyond returns how many rows it does not show.
func beyond(list any) int { return max(0, reflect.ValueOf(list).Len()-maxRows) }

// either returns text, or other if text is empty.
func either(text, other string) string {
	if strings.TrimSpace(text) != "" {
		return text
	}
	return other
}

// heading returns what a page is about: the thing's title, or else its name.
func heading(title, id string) string {
	if strings.TrimSpace(title) != "" {
		return visible(title, hiddenInProse)
	}
	return visible(id, hiddenInName)
}

// service says what a target gives.
func service(s stele.Service) string {
	switch s {
	case stele.N2L:
		return "the thing itself"
	case stele.N2C:
		return "its description"
	case stele.N2S:
		return "its signature"
	case stele.N2P:
		return "what is promised of it"
	}
	return string(s)
}

// Promise says in a sentence what the owner promises, without the owner's own
// statement.
func Promise(p stele.Persistence) string {
	var words string
	switch p.Level {
	case stele.Permanent:
		words = "Permanent: it stays. Nothing is said of its content."
	case stele.Unchanging:
		words = "Permanent and unchanging: it stays, byte for byte the same."
	case stele.Stable:
		words = "Permanent and stable: it stays, with small corrections at most."
	case stele.Dynamic:
		words = "Permanent and dynamic: it stays, and its content changes."
	case stele.NotGuaranteed:
		words = "Not guaranteed: it may go."
	default:
		words = "No level of permanence is stated."
	}
	if p.Until != "" {
		words += " This holds until " + p.Until + "."
	}
	return words
}
