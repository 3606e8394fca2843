package harvest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/plainxml"
)

// Format is a metadata format that is read.
type Format string

const (
	Epicur   Format = "epicur"       // of the Deutsche Nationalbibliothek, for URN:NBN and their URLs
	Dublin   Format = "oai_dc"       // Dublin Core, which every repository has
	DataCite Format = "oai_datacite" // DataCite's schema, wrapped by its provider
)

// IsValid reports whether f is a format that is read.
func (f Format) IsValid() bool { return f == Epicur || f == Dublin || f == DataCite }

// Formats returns the formats that are read.
func Formats() []Format { return []Format{Epicur, Dublin, DataCite} }

// Update is what a record wants to be done with the URLs of a name.
type Update int

const (
	Replace Update = iota // they are all that there are
	Insert                // they are added
	Remove                // they are removed
)

// Link is a URL of a name.
type Link struct {
	URL     string
	Type    string // media type; "" if it is not said
	Primary bool   // it comes before others
}

// Item is a record of a repository.
type Item struct {
	Identifier string // in the repository
	Date       string // its datestamp
	Deleted    bool

	Names    []string // texts that may be names, in their order
	Links    []Link
	Update   Update
	Metadata stele.Metadata
	Err      error // why it can't be read
}

// Limits on what is taken of a record.
const (
	maxNames = 100
	maxLinks = 100
)

// readItem reads a record (OAI-PMH 2.0, 2.5).
func readItem(f Format, e *plainxml.Element) (item Item) {
	head := e.Child("header")
	if head == nil {
		item.Err = refuse(stele.Invalid, "harvest.no-header", "the record has no header")
		return item
	}
	item.Identifier, item.Date = childText(head, "identifier"), childText(head, "datestamp")
	item.Deleted = head.Get("status") == "deleted"
	if item.Deleted {
		return item
	}
	data := e.Child("metadata")
	if data == nil || len(data.Children) == 0 {
		item.Err = refuse(stele.Invalid, "harvest.no-metadata", "the record has no metadata")
		return item
	}
	item.Metadata = make(stele.Metadata)
	switch f {
	case Epicur:
		item.readEpicur(data.Children[0])
	case Dublin:
		item.readDublin(data.Children[0])
	case DataCite:
		item.readDataCite(data.Children[0])
	}
	return item
}

// name notes a text that may be a name.
func (i *Item) name(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if len(i.Names) == maxNames {
		i.Err = refuse(stele.Invalid, "harvest.too-many-identifiers", "the record has more than {most} identifiers", maxNames)
		return
	}
	i.Names = append(i.Names, text)
}

// link notes a URL.
func (i *Item) link(l Link) {
	if l.URL = strings.TrimSpace(l.URL); l.URL == "" {
		return
	}
	if len(i.Links) == maxLinks {
		i.Err = refuse(stele.Invalid, "harvest.too-many-urls", "the record has more than {most} URLs", maxLinks)
		return
	}
	i.Links = append(i.Links, l)
}

// field notes texts as a field of metadata, with semicolons between them. What is too long for a field continues in others with the
// numbers 2, 3 and so on behind the name.
func (i *Item) field(name string, texts ...string) {
	var b strings.Builder
	for _, one := range texts {
		if one = cleaned(one); one == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(one)
	}
	text := b.String()
	for n := 1; text != ""; n++ {
		end := len(text)
		if end > stele.MaxProse {
			for end = stele.MaxProse; !utf8.RuneStart(text[end]); end-- {
			}
		}
		i.Metadata[piece(name, n)] = strings.TrimSpace(text[:end])
		text = text[end:]
	}
}

// piece returns the name of a piece of a field, from 1.
func piece(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + "." + strconv.Itoa(n)
}

// rest keeps what has no field of its own under the name of its format, so that nothing is left out silently.
func (i *Item) rest(format, element string, texts ...string) {
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(element))
	name := format + "." + clean
	if before := i.Metadata[name]; before != "" { // of an element in another spelling
		texts = append([]string{before}, texts...)
	}
	i.field(name, texts...)
}

// cleaned returns a text on one line, without characters that a record can't have.
func cleaned(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// isWeb reports whether a text is a URL that readers can be sent to.
func isWeb(text string) bool {
	scheme, rest, ok := strings.Cut(text, "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "ftp"))
}
