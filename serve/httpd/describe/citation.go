package describe

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// manyNames is how many creators a citation names; of more, only the first.
const manyNames = 7

// Citation returns the record as people cite it, on one line, about as APA has it:
// who (when). what. publisher. URL.
func Citation(s Subject) string {
	if s.Record == nil || !s.Record.ID.IsValid() {
		return ""
	}
	return newFacts(&s).citation()
}

func appendCitation(b []byte, f *facts) ([]byte, error) {
	return append(append(b, f.citation()...), '\n'), nil
}

// citation puts the parts in order. Where nobody is known to have made it the
// title stands first; where there is no title, the identifier is one.
func (f *facts) citation() string {
	when := cmp.Or(f.date.words(), f.when, "n.d.")
	title := cmp.Or(f.title, f.names[0].text)
	var b strings.Builder
	if len(f.creators) > 0 {
		b.WriteString(citedNames(f.creators) + " (" + when + "). ")
		b.WriteString(sentence(title))
	} else if f.record.Redacted {
		b.WriteString(sentence(title))
	} else {
		b.WriteString(title + " (" + when + "). ")
	}
	if f.publisher != "" {
		b.WriteString(sentence(f.publisher))
	}
	if f.tombstone != nil {
		b.WriteString("[" + strings.TrimSuffix(f.tombstone.summary(), ".") + "]. ")
	}
	b.WriteString(f.self)
	return flat(b.String())
}

// words returns the date as APA writes it: 2024, May 17.
func (d date) words() string {
	switch {
	case d.day > 0:
		return fmt.Sprintf("%d, %s %d", d.year, time.Month(d.month), d.day)
	case d.month > 0:
		return fmt.Sprintf("%d, %s", d.year, time.Month(d.month))
	case d.year > 0:
		return fmt.Sprint(d.year)
	}
	return ""
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

func citedNames(agents []agent) string {
	n := len(agents)
	if n > manyNames {
		return agents[0].name + ", et al."
	}
	var b strings.Builder
	for i := range agents {
		switch {
		case i == 0:
		case i == n-1:
			b.WriteString(", & ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(agents[i].name)
	}
	return b.String()
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
