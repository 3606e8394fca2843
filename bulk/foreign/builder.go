package foreign

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
)

// kernelElements are elements that every description should have, by the names of Noid, egg and EZID.
var kernelElements = map[string]string{
	"who": stele.Who, "what": stele.What, "when": stele.When, "where": stele.Where,
	"erc.who": stele.Who, "erc.what": stele.What, "erc.when": stele.When, "erc.where": stele.Where,
}

// builder makes a record of what a file says of a name. What has no place in a record goes to the metadata
// under the name of its source, so that nothing is left out silently.
type builder struct {
	rec     *stele.Record
	changed []string // names of elements that could not stay as they are
}

func newBuilder(id stele.ID) *builder {
	return &builder{rec: &stele.Record{ID: id, State: stele.Active, Metadata: make(stele.Metadata)}}
}

// target takes where a name leads. A target that the record has already is not repeated.
func (b *builder) target(url string) {
	url = strings.TrimSpace(url)
	if url == "" {
		return
	}
	for _, t := range b.rec.Targets {
		if t.URL == url {
			return
		}
	}
	b.rec.Targets = append(b.rec.Targets, stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference})
}

// made takes when a name was made; the first time counts.
func (b *builder) made(at time.Time) {
	if b.rec.Created.IsZero() || at.Before(b.rec.Created) {
		b.rec.Created, b.rec.Modified = at, at
	}
}

// element takes an element that describes the thing. One that every description should have is kept under
// our name for it, others under the name of their source.
func (b *builder) element(source, element, value string) {
	if name, ok := kernelElements[element]; ok && (b.rec.Metadata[name] == "" || b.rec.Metadata[name] == value) {
		b.rec.Metadata[name] = value
		return
	}
	said := source + "." + element
	clean := metadataName(said)
	if clean != said {
		b.changed = append(b.changed, clean+" = "+stele.Quote(element))
	}
	b.keep(clean, value)
}

// metadataName returns a name with all characters replaced that a field of the metadata can't have in its name.
func metadataName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// keep keeps a value in the metadata, after others of the same name.
func (b *builder) keep(name, value string) {
	value = strings.ReplaceAll(value, "\r\n", "\n")
	if before, ok := b.rec.Metadata[name]; ok {
		value = before + "\n" + value
	}
	b.rec.Metadata[name] = value
}

// keepLong keeps a text of a file. One that is longer than a field continues in fields with numbers, such as w3id.readme.2. What is
// longer than these is told.
func (s *Source) keepLong(b *builder, file, name, text string) {
	text = strings.TrimSpace(proseOf(strings.ToValidUTF8(text, "?")))
	for n := 1; text != "" && n <= maxContinued; n++ {
		at, end := name, len(text)
		if n > 1 {
			at += "." + strconv.Itoa(n)
		}
		if end > stele.MaxProse {
			for end = stele.MaxProse; !utf8.RuneStart(text[end]); end-- {
			}
		}
		b.keep(at, text[:end])
		text = text[end:]
	}
	if text != "" {
		s.note("import.text-cut", "{file}: the last {count} bytes of {name} are not kept, since the text has more than {most}", file, len(text), name, maxContinued*stele.MaxProse)
	}
}

// maxContinued is how many fields a text may take.
const maxContinued = 20

// proseOf returns a text without the control characters that a field can't have.
func proseOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f {
			return r
		}
		return -1
	}, text)
}

// finish returns the record.
func (b *builder) finish(source string) *stele.Record {
	if len(b.changed) > 0 {
		b.keep(source+".names", strings.Join(b.changed, "\n"))
	}
	if len(b.rec.Metadata) == 0 {
		b.rec.Metadata = nil
	}
	return b.rec
}

// fill checks a record, and puts it into a row.
func (s *Source) fill(row *bulk.Row, rec *stele.Record) {
	var report stele.Report
	rec.Check(&report)
	if row.Err = report.Err("import", rec.ID); row.Err != nil {
		return
	}
	row.Record = rec
	if s.o.Merges {
		row.Patch = document.AppendRecord(nil, rec)
	}
}
