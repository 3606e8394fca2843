package harvest

import (
	"encoding/xml"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/plainxml"
)

// updates are the values of update_status in epicur.
var updates = map[string]Update{
	"urn_new": Replace, "urn_first": Replace, "urn_new_version": Replace, "url_update_general": Replace, "url_update": Replace, "url_update_limited": Replace,
	"url_insert": Insert, "url_delete": Remove,
}

// readEpicur reads a record of the Deutsche Nationalbibliothek's format epicur: a URN, and URLs with their roles.
func (i *Item) readEpicur(root *plainxml.Element) {
	if root.Name.Local != "epicur" {
		i.wrong(Epicur, root)
		return
	}
	if status := find(root, "update_status"); status != nil {
		kind := status.Get("type")
		var ok bool
		if i.Update, ok = updates[kind]; !ok {
			i.Err = refuse(stele.Invalid, "harvest.update-unknown", `the kind of update "{kind}" is not known`, brief(kind))
			return
		}
	}
	record := find(root, "record")
	if record == nil {
		i.Err = refuse(stele.Invalid, "harvest.epicur-without-record", "the epicur document has no record")
		return
	}
	for _, e := range record.Children {
		switch e.Name.Local {
		case "identifier":
			i.name(e.Text)
		case "resource":
			l := Link{Type: mediaType(childText(e, "format"))}
			for _, id := range e.Children {
				if id.Name.Local != "identifier" || !strings.EqualFold(id.Get("scheme"), "url") {
					continue
				}
				l.URL = id.Text
				l.Primary = strings.EqualFold(id.Get("role"), "primary") && !strings.EqualFold(id.Get("origin"), "mirror")
				i.link(l)
			}
		}
	}
}

// mediaType returns a text if it is a media type.
func mediaType(text string) string {
	text = strings.ToLower(text)
	kind, sub, ok := strings.Cut(text, "/")
	if !ok || kind == "" || sub == "" || strings.ContainsAny(text, " ;,\t\n") {
		return ""
	}
	return text
}

// dublinFields has the fields of metadata for the elements of Dublin Core.
var dublinFields = map[string]string{
	"title": stele.What, "creator": stele.Who, "date": stele.When, "publisher": "publisher", "description": "description", "subject": "subject", "type": "type",
	"language": "language", "rights": "rights", "contributor": "contributor",
}

// readDublin reads Dublin Core. An identifier is a name or a URL; which one, the harvest decides.
func (i *Item) readDublin(root *plainxml.Element) {
	if root.Name.Local != "dc" {
		i.wrong(Dublin, root)
		return
	}
	elements := make(map[string][]*plainxml.Element)
	for _, e := range root.Children {
		name := e.Name.Local
		if name == "identifier" {
			i.name(e.Text)
			if isWeb(strings.TrimSpace(e.Text)) {
				i.link(Link{URL: e.Text})
			}
		}
		elements[name] = append(elements[name], e)
	}
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		list := elements[name]
		field, ok := dublinFields[name]
		said := len(list) // of the elements, from the first
		switch {
		case !ok:
			said = 0
		case field == stele.What || field == stele.When || field == "language" || field == "type":
			said = 1
		}
		var texts, rest []string
		for k, e := range list {
			if k < said {
				texts = append(texts, bare(e))
			}
			if k >= said || hasAttributes(e) {
				rest = append(rest, flat(e))
			}
		}
		i.field(field, texts...)
		i.rest("dc", name, rest...)
	}
}

// bare returns the text of an element, and of what is in it, without attributes.
func bare(e *plainxml.Element) string {
	var b strings.Builder
	flatten(&b, e, false)
	return strings.TrimSpace(b.String())
}

// flat returns what an element says on one line: its attributes, its text, and what is in it.
func flat(e *plainxml.Element) string {
	var b strings.Builder
	flatten(&b, e, true)
	return strings.TrimSpace(b.String())
}

func flatten(b *strings.Builder, e *plainxml.Element, attributes bool) {
	for _, a := range e.Attr {
		if attributes && isSaying(a) {
			b.WriteString(" " + a.Name.Local + "=" + a.Value)
		}
	}
	if text := strings.TrimSpace(e.Text); text != "" {
		b.WriteString(" " + text)
	}
	for _, c := range e.Children {
		flatten(b, c, attributes)
	}
}

// isSaying reports whether an attribute says something about the thing, and is not a declaration for readers of XML.
func isSaying(a xml.Attr) bool {
	return a.Name.Space == "" && a.Name.Local != "xmlns" || a.Name.Space != "xmlns" && a.Name.Local == "lang"
}

// hasAttributes reports whether an element, or one in it, has attributes that say something, other than some of its own with the usual
// values.
func hasAttributes(e *plainxml.Element, usual ...xml.Attr) bool {
	for _, a := range e.Attr {
		if isSaying(a) && !slices.ContainsFunc(usual, func(u xml.Attr) bool { return a.Name == u.Name && strings.EqualFold(a.Value, u.Value) }) {
			return true
		}
	}
	return slices.ContainsFunc(e.Children, func(c *plainxml.Element) bool { return hasAttributes(c) })
}

// readDataCite reads a resource of DataCite, within the wrapper of its provider or without. The URL that a DOI leads to is not in
// the schema; repositories write it as an alternate identifier, or as an identical one.
func (i *Item) readDataCite(root *plainxml.Element) {
	r := find(root, "resource")
	if r == nil {
		i.wrong(DataCite, root)
		return
	}
	i.name(childText(r, "identifier"))
	for _, e := range children(r, "alternateIdentifiers") {
		i.name(e.Text)
		if isWeb(strings.TrimSpace(e.Text)) {
			i.link(Link{URL: e.Text})
		}
	}
	for _, e := range children(r, "relatedIdentifiers") {
		if strings.EqualFold(e.Get("relatedIdentifierType"), "URL") && strings.EqualFold(e.Get("relationType"), "IsIdenticalTo") {
			i.link(Link{URL: e.Text})
		}
	}
	texts := func(group, name string) (list []string) {
		for _, e := range children(r, group) {
			if name == "" {
				list = append(list, e.Text)
			} else {
				list = append(list, childText(e, name))
			}
		}
		return list
	}
	if titles := texts("titles", ""); len(titles) > 0 {
		i.field(stele.What, titles[0])
	}
	i.restOfDataCite(r)
	i.field(stele.Who, texts("creators", "creatorName")...)
	i.field(stele.When, childText(r, "publicationYear"))
	i.field("publisher", childText(r, "publisher"))
	i.field("subject", texts("subjects", "")...)
	i.field("language", childText(r, "language"))
	i.field("version", childText(r, "version"))
	if e := r.Child("resourceType"); e != nil {
		i.field("type", e.Get("resourceTypeGeneral"))
	}
	if e := abstractOf(r); e != nil {
		i.field("description", bare(e))
	}
	for name, text := range i.Metadata { // what its schema writes where nothing is known
		if strings.HasPrefix(text, "(:un") {
			delete(i.Metadata, name)
		}
	}
}

// abstractOf returns the description of a resource that says what the thing is; nil if there is none. Others are of its methods and so on.
func abstractOf(r *plainxml.Element) *plainxml.Element {
	list := children(r, "descriptions")
	for _, kind := range [...]string{"Abstract", ""} {
		if n := slices.IndexFunc(list, func(e *plainxml.Element) bool { return strings.EqualFold(e.Get("descriptionType"), kind) }); n >= 0 {
			return list[n]
		}
	}
	return nil
}

// usualOfDataCite are the attributes of elements with fields of their own that say no more than the field does.
var usualOfDataCite = map[string][]xml.Attr{
	"identifier":   {{Name: xml.Name{Local: "identifierType"}, Value: "DOI"}},
	"descriptions": {{Name: xml.Name{Local: "descriptionType"}, Value: "Abstract"}},
}

// restOfDataCite keeps what of a resource has no field of its own. Of an element that has one, that is its attributes, and what is in it
// beside the text of the field.
func (i *Item) restOfDataCite(r *plainxml.Element) {
	abstract, seen := abstractOf(r), make(map[string]bool)
	for _, e := range r.Children {
		name := e.Name.Local
		isFirst := !seen[name]
		seen[name] = true
		said := func(*plainxml.Element) bool { return false }
		if isFirst {
			said = saidOfDataCite(e, abstract)
		}
		var list []string
		switch {
		case name == "resourceType" && isFirst && !hasAttributes(e, general(e)...):
			list = append(list, bare(e))
		case len(e.Children) == 0 || strings.TrimSpace(e.Text) != "" || slices.ContainsFunc(e.Attr, isSaying):
			if !said(e) {
				list = append(list, flat(e))
			}
		default:
			for _, c := range e.Children {
				if !said(c) {
					list = append(list, flat(c))
				}
			}
		}
		i.rest("datacite", name, list...)
	}
}

// saidOfDataCite returns what reports whether an element of a resource, or one in it, is said by a field of its own and has nothing else.
func saidOfDataCite(e, abstract *plainxml.Element) func(*plainxml.Element) bool {
	isText := func(c *plainxml.Element) bool {
		return len(c.Children) == 0 && !hasAttributes(c, usualOfDataCite[e.Name.Local]...)
	}
	switch e.Name.Local {
	case "identifier", "publicationYear", "publisher", "language", "version", "subjects":
		return isText
	case "titles":
		return func(c *plainxml.Element) bool { return len(e.Children) > 0 && c == e.Children[0] && isText(c) }
	case "descriptions":
		return func(c *plainxml.Element) bool { return c == abstract && isText(c) }
	case "creators": // affiliations and identifiers of people need all of them, in their order
		plain := !slices.ContainsFunc(e.Children, func(c *plainxml.Element) bool {
			return len(c.Children) != 1 || c.Child("creatorName") == nil || hasAttributes(c)
		})
		return func(*plainxml.Element) bool { return plain }
	}
	return func(*plainxml.Element) bool { return false }
}

// general returns the attribute of a type of resource that has a field of its own.
func general(e *plainxml.Element) (list []xml.Attr) {
	for _, a := range e.Attr {
		if a.Name.Local == "resourceTypeGeneral" {
			list = append(list, a)
		}
	}
	return list
}

// wrong says that the metadata are of another format.
func (i *Item) wrong(f Format, root *plainxml.Element) {
	i.Err = refuse(stele.Invalid, "harvest.metadata-of-another-format", `the metadata are not {format}, but begin with "{element}"`, string(f), brief(root.Name.Local))
}

// find returns the first element with a local name, at any depth; plainxml bounds that.
func find(e *plainxml.Element, local string) *plainxml.Element {
	if e.Name.Local == local {
		return e
	}
	for _, c := range e.Children {
		if found := find(c, local); found != nil {
			return found
		}
	}
	return nil
}

// children returns the children of the first child with a local name.
func children(e *plainxml.Element, local string) []*plainxml.Element {
	if c := e.Child(local); c != nil {
		return c.Children
	}
	return nil
}
