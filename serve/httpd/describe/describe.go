// Package describe writes a record in the formats that programs ask a resolver
// for: its own JSON, schema.org as JSON-LD, Turtle and RDF/XML, a linkset, ANVL as ARKs
// have it, CSL-JSON, DataCite's JSON and XML, BibTeX, RIS and a citation in plain text. It also makes the links
// of FAIR Signposting, for a linkset or a Link header.
//
// It computes: no request, no store, no clock. It never decides whether a client may see a
// record; the caller has. What it writes is for the public all the same:
//
//   - Readers, the principal of the last change and handle values that are not
//     public are left out, also for users who could read them elsewhere.
//   - A withdrawn record keeps its metadata, so that it can still be cited, and
//     tells its tombstone. It no longer says where the thing was.
//   - A redacted record tells its name and its tombstone, and nothing else.
//   - Text that no valid record has (control characters, overrides of the
//     direction of reading, bytes that are not UTF-8) becomes U+FFFD.
//   - A target whose URL is none of the protocols that a record may have is left
//     out, except in the record's own JSON.
//
// # Metadata
//
// Nothing in a record's metadata means something to the program that keeps it.
// These formats do read some of its fields, because other people's words for the
// same things are what the formats consist of. A field that is missing is left
// out, or written as the format says that nothing is known.
//
//	who          creators, with semicolons between them. "Family, Given" is a
//	             person; anything else is a name as it stands. A URL or an ORCID may
//	             follow in parentheses: Lima, A. (https://orcid.org/0000-...)
//	what         the title
//	when         the date: 2024, 2024-05, 2024-05-17, 20240517 or RFC 3339. Anything
//	             else is a date in words, which not all formats can tell
//	where        where it is or comes from, in words (ANVL)
//	type         dataset, article, book, image, sound, ... or a URL of a type; or one of
//	             DataCite's general types, of which a slash and a word may say more:
//	             Dataset/Weather data
//	description  what it is about
//	publisher    who made it public
//	contributor  others who took part, written as in who
//	language     BCP 47, such as pt-BR
//	license      a URL, or its name
//	rights       who holds which rights, in words
//	subject      keywords, with semicolons between them
//	version      of the thing
//	journal, volume, issue, pages
//	             where an article appeared. What has a journal and no type is an
//	             article
//
// The kernel codes of ERC, such as (:unkn), are passed on in ANVL and mean nothing
// in the others. Further fields are in the JSON and in ANVL.
package describe

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Subject is the record to describe, and where its names are resolved.
type Subject struct {
	Record    *stele.Record
	Namespace *stele.Namespace // the record's, which promises where the record does not; may be nil

	Base string // this resolver's public URL, without a slash at the end
	Self string // the URL of the identifier there

	// Locate returns the URL of another identifier at this resolver: of an alias, or
	// of what replaces the record. Without it that is Base, a slash and the
	// identifier, percent-encoded where a path needs it.
	Locate func(stele.ID) string

	DOI string // the DOI among the record's names, such as 10.1000/182; may be empty

	// Shown is the identifier in the letters of its owner's spelling, where case does not
	// count, and Cited its URL in the same; empty: the identifier as it is, and Self.
	Shown, Cited string

	// About is the URI that the statements of RDF are about, where that is not Self: clients of
	// some systems know a thing by its URN alone. The statements say then that both are the same.
	About string

	// Also are further statements for RDF.
	Also []Statement
}

// Statement is a statement about the thing for RDF, with a term of a vocabulary. The value is a
// text.
type Statement struct {
	Prefix     string // of names in XML and Turtle, other than rdf, schema, dcterms and owl
	Vocabulary string // the URI of the term is this and Term
	Term, Text string
}

// locate returns the URL of an identifier at this resolver.
func (s *Subject) locate(id stele.ID) string {
	if s.Locate != nil {
		return encode(s.Locate(id))
	}
	return encode(s.Base + "/" + pathOf(id.String()))
}

// Info returns the URL of the page about the record.
func (s Subject) Info() string {
	return encode(s.Base + "/.info" + strings.TrimPrefix(s.Self, s.Base))
}

// At returns the URL where the record is found in a format.
func (s Subject) At(f Format) string { return s.Info() + formatQuery + f.Name }

// formatQuery follows the URL of the page about a record to ask for a format.
const formatQuery = "?format="

// Format is a way to describe a record. The zero Format is not a format.
type Format struct {
	Name   string // short, for a URL: "jsonld"
	Type   string // the media type, which clients ask for: "application/ld+json"
	Served string // the media type with its parameters, for Content-Type
	Title  string // for people: "JSON-LD (schema.org)"

	aliases []string // other media types that ask for it
	style   Style    // of a citation
}

// Formats lists what a record can be described in, the best first.
func Formats() []Format { return slices.Clone(formats) }

var formats = []Format{
	{Name: "jsonld", Type: "application/ld+json", Served: "application/ld+json", Title: "JSON-LD (schema.org)", aliases: []string{"application/vnd.schemaorg.ld+json"}},
	{Name: "json", Type: "application/json", Served: "application/json", Title: "JSON (the record)"},
	{Name: "turtle", Type: "text/turtle", Served: "text/turtle; charset=utf-8", Title: "Turtle (RDF)", aliases: []string{"application/turtle", "application/x-turtle"}},
	{Name: "rdfxml", Type: "application/rdf+xml", Served: "application/rdf+xml; charset=utf-8", Title: "RDF/XML"},
	linkset,
	{Name: "csl", Type: "application/vnd.citationstyles.csl+json", Served: "application/vnd.citationstyles.csl+json", Title: "CSL-JSON (citation data)", aliases: []string{"application/citeproc+json"}},
	{Name: "datacite", Type: "application/vnd.datacite.datacite+json", Served: "application/vnd.datacite.datacite+json", Title: "DataCite JSON", aliases: []string{"application/x-datacite+json"}},
	{Name: "datacitexml", Type: "application/vnd.datacite.datacite+xml", Served: "application/vnd.datacite.datacite+xml; charset=utf-8", Title: "DataCite XML", aliases: []string{"application/x-datacite+xml"}},
	{Name: "bibtex", Type: "application/x-bibtex", Served: "application/x-bibtex; charset=utf-8", Title: "BibTeX", aliases: []string{"text/x-bibtex"}},
	{Name: "ris", Type: "application/x-research-info-systems", Served: "application/x-research-info-systems; charset=utf-8", Title: "RIS"},
	{Name: "anvl", Type: "text/plain", Served: "text/plain; charset=utf-8", Title: "ANVL (ERC, as ARK's ?info)"},
	{Name: "citation", Type: "text/x-bibliography", Served: "text/x-bibliography; charset=utf-8", Title: "Citation (plain text)", aliases: []string{"text/bibliography"}},
}

var linkset = Format{Name: "linkset", Type: "application/linkset+json", Served: "application/linkset+json", Title: "Linkset (FAIR Signposting)"}

// append appends the description of f in the format, which is one of formats.
func (f Format) append(dst []byte, facts *facts) ([]byte, error) {
	switch f.Name {
	case "jsonld":
		return appendJSONLD(dst, facts)
	case "turtle":
		return appendTurtle(dst, facts)
	case "linkset":
		return appendLinkset(dst, facts)
	case "csl":
		return appendCSL(dst, facts)
	case "bibtex":
		return appendBibTeX(dst, facts)
	case "anvl":
		return appendANVL(dst, facts)
	case "citation":
		return appendCitation(dst, facts, f.style)
	case "rdfxml":
		return appendRDFXML(dst, facts)
	case "datacite":
		return appendDataCiteJSON(dst, facts)
	case "datacitexml":
		return appendDataCiteXML(dst, facts)
	case "ris":
		return appendRIS(dst, facts)
	}
	return appendJSON(dst, facts)
}

// Find returns the format that a media type asks for. Case and parameters do not
// count.
func Find(mediaType string) (Format, bool) {
	kind, _, _ := strings.Cut(mediaType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	for _, f := range formats {
		if f.Type == kind {
			return f, true
		}
		for _, alias := range f.aliases {
			if alias == kind {
				return f, true
			}
		}
	}
	return Format{}, false
}

// Named returns the format of that name.
func Named(name string) (Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Types returns the media types that ask for f, the one that is served first.
func (f Format) Types() []string { return append([]string{f.Type}, f.aliases...) }

var (
	errNoRecord = stele.Messagef("description.record-missing", "there is no record with an identifier to describe")
	errNoFormat = stele.Messagef("description.format-missing", "the zero Format describes nothing; take one from Formats")
)

// Append appends the description of s to dst. It fails only if there is nothing to
// describe: with Kind Internal, since that is the caller's mistake.
func (f Format) Append(dst []byte, s Subject) ([]byte, error) {
	if s.Record == nil || !s.Record.ID.IsValid() {
		return dst, &stele.Error{Op: "describe", Kind: stele.Internal, Err: errNoRecord}
	}
	if f.Name == "" {
		return dst, &stele.Error{Op: "describe", ID: s.Record.ID, Kind: stele.Internal, Err: errNoFormat}
	}
	return f.append(dst, newFacts(&s))
}
