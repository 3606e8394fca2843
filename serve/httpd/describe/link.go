package describe

import "github.com/stele-id/stele"

// Bounds of a Link header, which proxies and clients allow little room. What does
// not fit is in the linkset.
const (
	maxLinks     = 20
	maxLinkBytes = 4096
)

// Link is a typed link (RFC 8288) from the identifier, or from Anchor.
type Link struct {
	URL      string
	Rel      string // a registered relation, or the URL of another
	Type     string // media type at the URL; may be empty
	Language string // BCP 47; may be empty
	Anchor   string // where the link begins, if not at the identifier
}

// Append appends the link as a value of a Link header. Whatever is in the link,
// that is one value on one line: URLs are percent-encoded, and an attribute that
// can't be written is left out.
func (l Link) Append(dst []byte) []byte {
	dst = append(dst, '<')
	dst = appendEncoded(dst, l.URL)
	dst = append(dst, '>')
	if l.Anchor != "" {
		dst = append(dst, `; anchor="`...)
		dst = appendEncoded(dst, l.Anchor)
		dst = append(dst, '"')
	}
	dst = appendAttribute(dst, "rel", l.Rel)
	dst = appendAttribute(dst, "type", l.Type)
	if isToken(l.Language) {
		dst = append(dst, "; hreflang="...)
		dst = append(dst, l.Language...)
	}
	return dst
}

// appendAttribute appends a quoted string (RFC 9110, 5.6.4), if value is printable
// ASCII.
func appendAttribute(b []byte, name, value string) []byte {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return b
		}
	}
	if value == "" {
		return b
	}
	b = append(b, "; "...)
	b = append(b, name...)
	b = append(b, '=', '"')
	for i := range len(value) {
		if c := value[i]; c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, value[i])
	}
	return append(b, '"')
}

// isToken reports whether s is letters, digits and hyphens, as a language tag is.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != ""
}

// AppendLinks appends the value of one Link header.
func AppendLinks(dst []byte, links []Link) []byte {
	for i, l := range links {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = l.Append(dst)
	}
	return dst
}

// Links returns what a Link header says of the record, after the FAIR Signposting profile:
// cite-as, type, author, license, describedby, item. It returns at most 20 links of at most 4
// KB, and one more that leads to the linkset, which has all.
func Links(s Subject) []Link {
	if s.Record == nil || !s.Record.ID.IsValid() {
		return nil
	}
	f := newFacts(&s)
	links := f.links()
	var header []byte
	for i, l := range links {
		header = append(l.Append(header), ", "...)
		if i == maxLinks || len(header) > maxLinkBytes {
			links = links[:i]
			break
		}
	}
	return append(links, Link{URL: s.At(linkset), Rel: "linkset", Type: linkset.Type})
}

// links returns all links from the identifier, the most telling first.
func (f *facts) links() []Link {
	links := []Link{{URL: f.cited(), Rel: "cite-as"}}
	if f.kind.url != "" {
		links = append(links, Link{URL: f.kind.url, Rel: "type"})
	} else if !f.record.Redacted {
		links = append(links, Link{URL: "https://schema.org/" + f.kind.schema, Rel: "type"})
	}
	for i := range f.creators {
		if url := f.creators[i].url; url != "" {
			links = append(links, Link{URL: url, Rel: "author"})
		}
	}
	if url, ok := webURL(f.license); ok {
		links = append(links, Link{URL: url, Rel: "license"})
	}
	if f.tombstone != nil && f.tombstone.replacement.url != "" {
		links = append(links, Link{URL: f.tombstone.replacement.url, Rel: "successor-version"})
	}
	links = append(links, f.descriptions()...)
	for _, t := range f.of(stele.N2L) {
		if !isPage(t) {
			links = append(links, Link{URL: t.URL, Rel: "item", Type: t.Type, Language: t.Language})
		}
	}
	return links
}

// descriptions returns links to the owner's metadata, then to our own.
func (f *facts) descriptions() (links []Link) {
	for _, t := range f.of(stele.N2C) {
		links = append(links, Link{URL: t.URL, Rel: "describedby", Type: t.Type, Language: t.Language})
	}
	info := f.subject.Info()
	for _, format := range formats {
		if format.Name != linkset.Name && format.Name != "citation" {
			links = append(links, Link{URL: info + formatQuery + format.Name, Rel: "describedby", Type: format.Type})
		}
	}
	return links
}

// backlinks returns links from elsewhere to the identifier: what the places where
// the thing is would say if they knew its name.
func (f *facts) backlinks() (links []Link) {
	for _, t := range f.of(stele.N2L) {
		links = append(links, Link{Anchor: t.URL, URL: f.cited(), Rel: "cite-as"})
		if !isPage(t) {
			links = append(links, Link{Anchor: t.URL, URL: f.self, Rel: "collection"})
		}
	}
	for _, l := range f.descriptions() {
		links = append(links, Link{Anchor: l.URL, URL: f.self, Rel: "describes"})
	}
	return links
}

// others returns links that the FAIR profile does not ask for: other names of the thing, its
// signature, and what the owner promises of it.
func (f *facts) others() (links []Link) {
	for _, alias := range f.names[1:] {
		links = append(links, Link{URL: alias.url, Rel: "related"})
	}
	for _, service := range [...]stele.Service{stele.N2S, stele.N2P} {
		for _, t := range f.of(service) {
			links = append(links, Link{URL: t.URL, Rel: "related", Type: t.Type, Language: t.Language})
		}
	}
	return links
}
