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
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/web/language"
)

// maxRows is how many rows of a table a page shows.
const maxRows = 200

var functions = template.FuncMap{
	"name":    ShowName,
	"prose":   ShowProse,
	"href":    href,
	"address": func(url string) Name { return Name{Text: url, URL: url} },
	"rows":    rows,
	"beyond":  beyond,
	"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
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
	if isPrintable(s) {
		return s
	}
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

// isPrintable reports whether a text has only the letters and signs of ASCII, as most have.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
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
// http, https, ftp or mailto. All others are "", and are shown as text.
func href(url string) template.URL {
	for i := range len(url) {
		if url[i] <= ' ' || url[i] >= 0x7f || strings.IndexByte("<>\"\\^`{|}", url[i]) >= 0 {
			return ""
		}
	}
	if strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//") {
		return template.URL(url)
	}
	if to, ok := strings.CutPrefix(url, "mailto:"); ok && strings.Contains(to, "@") {
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

// ShowName returns a name as pages show it: what can't be seen is replaced by its number.
func ShowName(name string) string { return visible(name, hiddenInName) }

// ShowProse returns a text as pages show it.
func ShowProse(text string) string { return visible(text, hiddenInProse) }

// ShowHeading returns the title of a record as pages show it, or its identifier if it has none.
func ShowHeading(title, id string) string { return heading(title, id) }

// SafeURL returns an address to which a page may lead; "" if it may not.
func SafeURL(url string) string { return string(href(url)) }

// words are the functions of templates that say something in a language.
func words(l *language.Language) template.FuncMap {
	return template.FuncMap{
		"t":            l.Text,
		"lang":         func() string { return l.Tag },
		"number":       l.Number,
		"day":          l.Day,
		"moment":       l.Moment,
		"state":        func(s stele.State) string { return l.Text("state." + string(s)) },
		"stateMeaning": func(s stele.State) string { return l.Text("meaning." + string(s)) },
		"level":        func(v stele.Level) string { return l.Text("level." + levelKey(v)) },
		"promised":     func(v stele.Level) string { return l.Text("promise." + levelKey(v)) },
		"promise":      func(p stele.Persistence) string { return Promise(l, p) },
		"service":      func(s stele.Service) string { return known(l, "service.", string(s)) },
		"label":        func(key string) string { return Label(l, key) },
		"part":         func(name string) string { return known(l, "part.", name) },
		"step":         func(name string) string { return known(l, "step.", name) },
		"scheme":       func(name string) string { return known(l, "schemes.", name) },
		"spelling": func(name string) string {
			if key := strings.ReplaceAll(strings.ToLower(name), " ", "-"); l.Has("spelling." + key) {
				return l.Text("spelling." + key)
			}
			return visible(name, hiddenInProse)
		},
		"formatTitle": func(f Format) string {
			if l.Has("format." + f.Name) {
				return l.Text("format." + f.Name)
			}
			return visible(f.Title, hiddenInProse)
		},
	}
}

// known returns the text of a word that a family of keys knows, and otherwise the word itself.
func known(l *language.Language, family, word string) string {
	if l.Has(family + word) {
		return l.Text(family + word)
	}
	return visible(word, hiddenInName)
}

// Label returns what people call a field of the metadata: "Title" for what.
func Label(l *language.Language, key string) string { return known(l, "label.", key) }

// levelKey returns the last part of the keys about a level.
func levelKey(v stele.Level) string {
	if v == stele.Unstated {
		return "unstated"
	}
	return string(v)
}

// Promise says in a sentence what the owner promises, without the owner's own
// statement.
func Promise(l *language.Language, p stele.Persistence) string {
	words := l.Text("promise.unstated")
	if l.Has("promise." + levelKey(p.Level)) {
		words = l.Text("promise." + levelKey(p.Level))
	}
	if p.Until != "" {
		words += " " + l.Text("promise.until", "date", p.Until)
	}
	return words
}

// maxPhrases is how many phrases describe one change.
const maxPhrases = 12

// Changes says in a few phrases what changed from one version of a record to the next; before is
// nil for the first.
func Changes(l *language.Language, before, after *stele.Record) (phrases []string) {
	list := wording.Changes(before, after)
	if more := len(list) - maxPhrases; more > 0 {
		list = append(list[:maxPhrases:maxPhrases], stele.Messagef("change.more", "{count} more changes", more))
	}
	for _, m := range list {
		phrases = append(phrases, l.Problem(m))
	}
	return phrases
}
