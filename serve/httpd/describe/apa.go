package describe

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Of more than apaMost creators APA names the first apaFirst, and the last.
const (
	apaMost  = 20
	apaFirst = 19
)

// apa returns the citation in the style of the American Psychological Association, seventh
// edition: who (when). what. where. URL.
func (f *facts) apa() string {
	var c sentences
	dated := "(" + cmp.Or(f.apaDate(), "n.d.") + ")"
	kind := f.apaKind()
	title := curly(f.citedTitle())
	if len(f.creators) > 0 {
		c.add(apaNames(f.creators))
		c.add(dated)
		c.add(joinWords(title, f.apaDetails(), kind))
	} else {
		c.add(joinWords(title, f.apaDetails()))
		if !f.record.Redacted {
			c.add(dated)
		}
		c.add(kind)
	}
	switch {
	case f.kind.csl == "article-journal":
		c.add(f.apaJournal())
	case f.journal != "":
		c.add(joinWords("In "+curly(f.journal), bracketed(f.apaPart())))
	}
	if f.kind.csl != "article-journal" && f.kind.csl != "thesis" {
		c.add(curly(f.publisher))
	}
	return f.locate(c)
}

// citedTitle returns the title; of something without title and creators, its name.
func (f *facts) citedTitle() string {
	if f.title == "" && len(f.creators) == 0 && f.journal == "" {
		return f.shown()
	}
	return f.title
}

// locate ends a citation: it says that the thing was withdrawn, and where it is.
func (f *facts) locate(c sentences) string {
	if f.tombstone != nil {
		c.add("[" + strings.TrimSuffix(f.tombstone.summary(), ".") + "]")
	}
	return flat(c.String() + " " + f.citedURL())
}

// citedURL returns the URL that a citation has: a DOI's is that of the DOI System, which its
// rules of display ask for.
func (f *facts) citedURL() string {
	if doi := f.doi(); doi != "" {
		return "https://doi.org/" + encode(pathOf(doi))
	}
	return f.cited()
}

// cited returns the URL of the identifier here, as citations have it.
func (f *facts) cited() string {
	if s := f.subject; s.Cited != "" && !f.record.Redacted {
		return encode(s.Cited)
	}
	return f.self
}

// apaDate returns the date: the year, and of what appears on a day that day.
func (f *facts) apaDate() string {
	d := f.date
	if d.year == 0 {
		return f.when
	}
	switch f.kind.csl {
	case "webpage", "speech", "song", "motion_picture":
		switch {
		case d.day > 0:
			return fmt.Sprintf("%d, %s %d", d.year, time.Month(d.month), d.day)
		case d.month > 0:
			return fmt.Sprintf("%d, %s", d.year, time.Month(d.month))
		}
	}
	return fmt.Sprint(d.year)
}

// apaKind returns what sort of thing it is, in brackets, where readers would not expect it.
func (f *facts) apaKind() string {
	switch f.kind.csl {
	case "dataset":
		return "[Data set]"
	case "map":
		return "[Map]"
	case "thesis":
		if f.publisher != "" {
			return "[" + curly(f.publisher) + "]"
		}
	}
	return ""
}

// apaDetails returns what follows the title in parentheses: a version, and which part of a
// book it is.
func (f *facts) apaDetails() string {
	switch f.kind.csl {
	case "article-journal":
		return ""
	case "dataset", "software":
		return bracketed(f.version)
	}
	var parts []string
	if f.version != "" {
		parts = append(parts, "Version "+f.version)
	}
	if part := f.apaPart(); part != "" && f.journal == "" {
		parts = append(parts, part)
	}
	return bracketed(strings.Join(parts, ", "))
}

// apaPart returns which part of something larger it is: Vol. 1, Issue 2, pp. 3–4.
func (f *facts) apaPart() string {
	var parts []string
	if f.volume != "" {
		parts = append(parts, "Vol. "+f.volume)
	}
	if f.issue != "" {
		parts = append(parts, "Issue "+f.issue)
	}
	if f.pages != "" {
		parts = append(parts, pagesLabel(f.pages)+pageRange(f.pages))
	}
	return strings.Join(parts, ", ")
}

// pagesLabel returns the abbreviation before page numbers.
func pagesLabel(pages string) string {
	if hasPages(pages) {
		return "pp. "
	}
	return "p. "
}

// apaJournal returns where an article is: Journal of Rivers, 12(3), 45–67.
func (f *facts) apaJournal() string {
	number := f.volume
	switch {
	case f.issue != "" && number != "":
		number += "(" + f.issue + ")"
	case f.issue != "":
		number = f.issue
	}
	return joinList(titleCase(curly(f.journal), f.language), number, pageRange(f.pages))
}

// apaNames returns the creators, family names first.
func apaNames(agents []agent) string {
	names := make([]string, len(agents))
	for i := range agents {
		names[i] = agents[i].inverted()
	}
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n > apaMost:
		return strings.Join(names[:apaFirst], ", ") + ", … " + names[n-1]
	case n == 2 && agents[1].family == "":
		return names[0] + " & " + names[1] // a body is not set off
	default:
		return strings.Join(names[:n-1], ", ") + ", & " + names[n-1]
	}
}

// sentences is a text of parts that end with full stops.
type sentences struct{ text string }

// add adds a part, unless it is empty. A part that ends in a stop of its own gets no other.
func (s *sentences) add(part string) {
	if part == "" {
		return
	}
	if s.text != "" {
		s.text += " "
	}
	s.text += strings.TrimSpace(sentence(part))
}

func (s *sentences) String() string { return s.text }

// bracketed returns a text in parentheses, unless it is empty.
func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// joinWords joins the parts that are not empty with spaces, joinList with commas.
func joinWords(parts ...string) string { return joinWith(" ", parts) }
func joinList(parts ...string) string  { return joinWith(", ", parts) }

func joinWith(separator string, parts []string) string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return strings.Join(some, separator)
}
