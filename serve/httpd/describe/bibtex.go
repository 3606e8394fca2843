package describe

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
)

// maxKey is the size of the longest key of an entry.
const maxKey = 80

// appendBibTeX writes one entry. BibTeX counts braces and knows no way to escape
// one, so no value has a brace that is not ours.
func appendBibTeX(b []byte, f *facts) ([]byte, error) {
	kind := f.entryType()
	e := bibtex{b}
	e.b = append(e.b, '@')
	e.b = append(e.b, kind...)
	e.b = append(e.b, '{')
	e.b = append(e.b, entryKey(f.shown())...)
	e.field("author", bibNames(f.creators))
	if f.title != "" {
		e.field("title", "{"+tex(f.title)+"}") // the braces keep its capitals
	}
	e.date(f)
	e.field("journal", tex(f.journal))
	e.field("volume", tex(f.volume))
	e.field("number", tex(f.issue))
	e.field("pages", tex(f.pages))
	e.field(publisherField(kind), tex(f.publisher))
	e.field("version", tex(f.version))
	e.field("language", tex(f.language))
	e.field("keywords", tex(strings.Join(f.subjects, ", ")))
	e.field("abstract", tex(f.description))
	e.field("doi", tex(f.doi()))
	e.field("url", f.cited()) // raw: \url reads it so
	if f.tombstone != nil {
		e.field("note", tex(f.tombstone.note()))
	}
	return append(e.b, "\n}\n"...), nil
}

// entryType returns the entry's type, which is misc if what the better one
// requires is missing.
func (f *facts) entryType() string {
	switch f.kind.bibtex {
	case "article":
		if f.journal == "" {
			return "misc"
		}
	case "phdthesis", "techreport", "book":
		if f.publisher == "" {
			return "misc"
		}
	}
	return f.kind.bibtex
}

func publisherField(kind string) string {
	switch kind {
	case "phdthesis":
		return "school"
	case "techreport":
		return "institution"
	}
	return "publisher"
}

type bibtex struct {
	b []byte
}

// field writes a field, unless it is empty. The value is TeX already.
func (e *bibtex) field(name, value string) {
	if value == "" {
		return
	}
	e.b = fmt.Appendf(e.b, ",\n  %s = {%s}", name, value)
}

// date writes the year and, as BibTeX abbreviates it, the month.
func (e *bibtex) date(f *facts) {
	if f.date.year == 0 {
		e.field("year", tex(f.when))
		return
	}
	e.field("year", strconv.Itoa(f.date.year))
	if m := f.date.month; m > 0 {
		e.b = append(e.b, ",\n  month = "...)
		e.b = append(e.b, "janfebmaraprmayjunjulaugsepoctnovdec"[3*m-3:3*m]...)
	}
}

// bibNames joins names with "and". A name that BibTeX would take apart otherwise
// than we do is put in braces.
func bibNames(agents []agent) string {
	names := make([]string, len(agents))
	for i := range agents {
		a := &agents[i]
		if a.family != "" && !hasAnd(a.name) {
			names[i] = tex(a.family) + ", " + tex(a.given)
		} else {
			names[i] = "{" + tex(a.name) + "}"
		}
	}
	return strings.Join(names, " and ")
}

func hasAnd(name string) bool {
	for word := range strings.FieldsSeq(name) {
		if strings.EqualFold(word, "and") {
			return true
		}
	}
	return false
}

// texSigns are the characters that mean something to TeX, and what shows them.
// Braces are written by name, because BibTeX counts those of \{ too.
var texSigns = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\textbraceleft{}`, `}`, `\textbraceright{}`,
	`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`)

// tex returns a text on one line, as TeX shows it.
func tex(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
	return texSigns.Replace(strings.Join(strings.Fields(s), " "))
}

// entryKey makes a key of an identifier: letters, digits and signs that neither
// BibTeX nor TeX reads as something else. If it is not the identifier itself, a
// checksum keeps it apart from others.
func entryKey(id string) string {
	key := strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || strings.ContainsRune(":/.-+", r)) {
			return r
		}
		return '-'
	}, id)
	if key == id && len(key) <= maxKey {
		return key
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s-%08x", key[:min(len(key), maxKey)], h.Sum32())
}
