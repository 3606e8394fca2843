package harvest

import (
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
	texts := make(map[string][]string)
	for _, e := range root.Children {
		name := e.Name.Local
		if name == "identifier" {
			i.name(e.Text)
			if isWeb(strings.TrimSpace(e.Text)) {
				i.link(Link{URL: e.Text})
			}
		}
		texts[name] = append(texts[name], flat(e))
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		list := texts[name]
		field, ok := dublinFields[name]
		switch {
		case !ok:
			i.rest("dc", name, list...)
			continue
		case field == stele.What || field == stele.When || field == "language" || field == "type":
			i.rest("dc", name, list[1:]...)
			list = list[:1]
		}
		i.field(field, list...)
	}
}

// flat returns what an element says on one line: its attributes, its text, and what is in it.
func flat(e *plainxml.Element) string {
	var b strings.Builder
	flatten(&b, e)
	return strings.TrimSpace(b.String())
}

func flatten(b *strings.Builder, e *plainxml.Element) {
	for _, a := range e.Attr {
		if a.Name.Space == "" && a.Name.Local != "xmlns" || a.Name.Local == "lang" {
			b.WriteString(" " + a.Name.Local + "=" + a.Value)
		}
	}
	if text := strings.TrimSpace(e.Text); text != "" {
		b.WriteString(" " + text)
	}
	for _, c := range e.Children {
		flatten(b, c)
	}
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
	if list := texts("descriptions", ""); len(list) > 0 {
		i.field("description", list[0])
	}
	for name, text := range i.Metadata { // what its schema writes where nothing is known
		if strings.HasPrefix(text, "(:un") {
			delete(i.Metadata, name)
		}
	}
}

// saidOfDataCite are the elements of a resource that have fields of their own, and how many of what is in them do: 0 for all.
var saidOfDataCite = map[string]int{"identifier": 0, "titles": 1, "creators": 0, "publicationYear": 0, "publisher": 0, "subjects": 0, "language": 0, "version": 0, "resourceType": 0, "descriptions": 1}

// restOfDataCite keeps what of a resource has no field of its own.
func (i *Item) restOfDataCite(r *plainxml.Element) {
	for _, e := range r.Children {
		said, known := saidOfDataCite[e.Name.Local]
		var list []string
		for k, c := range e.Children {
			if k >= said {
				list = append(list, flat(c))
			}
		}
		if len(e.Children) == 0 {
			list = append(list, flat(e))
		}
		if !known || said > 0 {
			i.rest("datacite", e.Name.Local, list...)
		}
	}
	// Affiliations and identifiers of people.
	if people := children(r, "creators"); slices.ContainsFunc(people, func(e *plainxml.Element) bool { return len(e.Children) > 1 }) {
		var list []string
		for _, e := range people {
			list = append(list, flat(e))
		}
		i.rest("datacite", "creators", list...)
	}
	if e := r.Child("resourceType"); e != nil {
		i.rest("datacite", "resourceType", e.Text)
	}
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
