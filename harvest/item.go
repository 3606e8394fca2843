package harvest

import (
	"strings"

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
	if text = strings.TrimSpace(text); text != "" && len(i.Names) < maxNames {
		i.Names = append(i.Names, text)
	}
}

// link notes a URL.
func (i *Item) link(l Link) {
	if l.URL = strings.TrimSpace(l.URL); l.URL != "" && len(i.Links) < maxLinks {
		i.Links = append(i.Links, l)
	}
}

// field notes texts as a field of metadata, with semicolons between them, as far as a field may be long.
func (i *Item) field(name string, texts ...string) {
	text := ""
	for _, one := range texts {
		if one = cleaned(one); one == "" {
			continue
		}
		if text != "" {
			one = "; " + one
		}
		if len(text)+len(one) > stele.MaxProse {
			break
		}
		text += one
	}
	if text != "" {
		i.Metadata[name] = text
	}
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
