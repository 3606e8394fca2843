package describe

import (
	"slices"
	"strings"
)

// Style is a way to write a citation.
type Style string

// The styles of citations. APA and IEEE are as the Citation Style Language's files of these
// names have them, for what a record can say.
const (
	APA      Style = "apa"
	IEEE     Style = "ieee"
	DataCite Style = "datacite"
	BibTeX   Style = "bibtex"
	RIS      Style = "ris"
)

// Styles lists the styles of citations, the usual one first.
func Styles() []Style { return []Style{APA, IEEE, DataCite, BibTeX, RIS} }

// Citation returns the record as people cite it, on one line, as APA has it: who (when).
// what. where. URL.
func Citation(s Subject) string {
	if s.Record == nil || !s.Record.ID.IsValid() {
		return ""
	}
	return newFacts(&s).apa()
}

// Styled returns the format of a citation that a media range asks for, such as
// text/x-bibliography;style=apa;locale=en-US. It returns false if it asks for something else,
// or for a style that there is not. All citations are in the words of en-US, whatever the
// locale.
func Styled(mediaRange string) (Format, bool) {
	name, rest, _ := strings.Cut(mediaRange, ";")
	f, ok := Find(name)
	if !ok || f.Name != "citation" {
		return Format{}, false
	}
	f.Served = strings.ToLower(strings.TrimSpace(name)) + "; charset=utf-8"
	for parameter := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(key), "style") {
			if f, ok = f.In(strings.Trim(value, ` "`)); !ok {
				return Format{}, false
			}
		}
	}
	return f, true
}

// In returns the format of citations in a style; false if f is not the format of citations,
// or the style is unknown.
func (f Format) In(style string) (Format, bool) {
	f.style = Style(strings.ToLower(style))
	return f, f.Name == "citation" && slices.Contains(Styles(), f.style)
}

func appendCitation(b []byte, f *facts, style Style) ([]byte, error) {
	switch style {
	case BibTeX:
		return appendBibTeX(b, f)
	case RIS:
		return appendRIS(b, f)
	case IEEE:
		b = append(b, f.ieee()...)
	case DataCite:
		b = append(b, f.dataciteCitation()...)
	default:
		b = append(b, f.apa()...)
	}
	return append(b, '\n'), nil
}

// flat returns s on one line, whatever its parts were.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// sentence ends a text with a full stop and a space.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s + " "
	}
	return s + ". "
}

// summary says that the record was withdrawn, and when.
func (t *tombstone) summary() string {
	if t.at.IsZero() {
		return "Withdrawn."
	}
	return "Withdrawn " + day(t.at) + "."
}

// note says why, when and what replaces it, in one line.
func (t *tombstone) note() string {
	note := t.summary()
	if t.reason != "" {
		note = strings.TrimSuffix(note, ".") + ": " + strings.TrimSpace(sentence(line(t.reason)))
	}
	if t.replacement.text != "" {
		note += " Replaced by " + t.replacement.text + "."
	}
	return note
}
