package describe

import (
	"fmt"
	"strings"
)

// appendRIS writes one reference in the RIS format, which citation managers read: lines of a
// tag of two letters, two spaces, a hyphen, a space and a value, which end with CR and LF.
func appendRIS(b []byte, f *facts) ([]byte, error) {
	tag := func(name, value string) {
		if value = line(value); value != "" {
			b = fmt.Appendf(b, "%s  - %s\r\n", name, value)
		}
	}
	tag("TY", f.kind.ris)
	tag("ID", f.shown())
	tag("TI", f.title)
	for i := range f.creators {
		tag("AU", f.creators[i].name)
	}
	for i := range f.helpers {
		tag("A2", f.helpers[i].name)
	}
	if f.date.year > 0 {
		tag("PY", fmt.Sprintf("%04d", f.date.year))
		tag("DA", strings.ReplaceAll(f.date.iso, "-", "/"))
	} else {
		tag("DA", f.when)
	}
	if f.kind.ris == "JOUR" {
		tag("JO", f.journal)
	} else {
		tag("T2", f.journal)
	}
	tag("VL", f.volume)
	tag("IS", f.issue)
	first, last := f.firstLast()
	tag("SP", first)
	tag("EP", last)
	tag("PB", f.publisher)
	tag("ET", f.version)
	tag("LA", f.language)
	for _, subject := range f.subjects {
		tag("KW", subject)
	}
	tag("AB", f.description)
	tag("DO", f.doi())
	tag("UR", f.cited())
	if f.tombstone != nil {
		tag("N1", f.tombstone.note())
	}
	return append(b, "ER  - \r\n"...), nil
}

// firstLast returns the first and the last of the pages; the last is empty if there is one.
func (f *facts) firstLast() (first, last string) {
	first, last, _ = strings.Cut(strings.ReplaceAll(f.pages, "–", "-"), "-")
	return strings.TrimSpace(first), strings.TrimSpace(last)
}
