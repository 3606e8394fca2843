package doirecord

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// identicalField has the identifiers of which DataCite says that they name the same thing, a line each: an owner may make them
// aliases. It is not an attribute of DataCite's.
const identicalField = DataCite + ".isidenticalto"

// FromDataCite makes a record of what DataCite has of a DOI, in JSON: an object of type dois of its REST API or of the public
// data file, or the attributes of one. identical is how many identifiers it names that may be aliases; the record has them in a
// field. The error says what is wrong with it.
func FromDataCite(schemes *stele.Schemes, text []byte) (rec *stele.Record, identical int, err error) {
	tree, err := document.ReadTree(text)
	if err != nil {
		return nil, 0, err
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, 0, refuse("datacite.not-an-object", "it is not an object in JSON; give an object of type dois, or its attributes")
	}
	d := &dataciteReader{outer: object, attributes: object}
	if inner, ok := object["attributes"].(map[string]any); ok {
		if kind := get(object, "type"); kind != "" && kind != "dois" {
			return nil, 0, refuse("datacite.type-other", `it is of the type "{type}"; only dois are read`, kind)
		}
		d.attributes = inner
	}
	return d.read(schemes)
}

// dataciteReader reads the attributes of a DOI.
type dataciteReader struct {
	filler
	outer      map[string]any // has relationships
	attributes map[string]any
	identical  int
}

func (d *dataciteReader) read(schemes *stele.Schemes) (*stele.Record, int, error) {
	d.normalise()
	doi, name := textOf(d.attributes["doi"]), textOf(d.outer["id"])
	if doi == "" {
		doi = name
	}
	rec, err := newRecord(schemes, doi)
	if err != nil {
		return nil, 0, err
	}
	if name != "" && !strings.EqualFold(bareDOI(name), bareDOI(doi)) {
		return nil, 0, refuse("datacite.two-names", "it has the id {id}, and says that it is {doi}", name, doi)
	}
	d.filler = filler{rec: rec, source: DataCite}
	if err := d.state(); err != nil {
		return nil, 0, err
	}
	d.places()
	d.fields()
	d.related()
	d.rest(bareDOI(doi))
	d.keepOther()
	if len(rec.Metadata) == 0 {
		rec.Metadata = nil
	}
	return rec, d.identical, nil
}

// normalise writes names of attributes as the REST API does today: publication-year and publication_year are publicationYear. If
// an object has several of them, the others keep their names: the one in today's spelling counts, and then the first in order.
func (d *dataciteReader) normalise() {
	odd := false
	for name := range d.attributes {
		odd = odd || strings.ContainsAny(name, "-_")
	}
	if !odd {
		return
	}
	plain := make(map[string]any, len(d.attributes))
	for _, name := range slices.Sorted(maps.Keys(d.attributes)) {
		camel := camelCase(name)
		_, today := d.attributes[camel]
		_, taken := plain[camel]
		if today || taken || camel == "" {
			camel = name
		}
		plain[camel] = d.attributes[name]
	}
	d.attributes = plain
}

// camelCase joins the words of a name.
func camelCase(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i, word := range words {
		if i > 0 {
			_, first := utf8.DecodeRuneInString(word)
			words[i] = strings.ToUpper(word[:first]) + word[first:]
		}
	}
	return strings.Join(words, "")
}

// state reads the state and the dates. Draft names are not public; all others lead somewhere, except one that is
// tombstoned.
func (d *dataciteReader) state() error {
	rec := d.rec
	rec.Created, rec.Modified = moment(textOf(d.attributes["created"])), moment(textOf(d.attributes["updated"]))
	if rec.Created.IsZero() {
		rec.Created = moment(textOf(d.attributes["registered"]))
	}
	if rec.Modified.Before(rec.Created) {
		rec.Modified = rec.Created
	}
	switch state := textOf(d.attributes["state"]); state {
	case "", "findable", "registered", "flagged", "broken":
	case "draft":
		rec.State = stele.Reserved
	case "tombstoned":
		rec.State = stele.Withdrawn
		rec.Tombstone = &stele.Tombstone{Reason: fitting(prose(textOf(d.attributes["reason"]))), At: rec.Modified}
		if rec.Tombstone.Reason == "" {
			rec.Tombstone.Reason = noReason
		}
	default:
		return refuse("datacite.state-unknown", `the state "{state}" is not known; there are draft, registered, findable, flagged, broken and tombstoned`, state)
	}
	return nil
}

// noReason is the reason of a record that was tombstoned without one.
const noReason = "tombstoned at DataCite; no reason was given"

// places reads where the name leads. The addresses of the content are spares, with the media type that formats has for them.
func (d *dataciteReader) places() {
	addTarget(d.rec, textOf(d.attributes["url"]), "")
	contents, formats := items(d.attributes["contentUrl"]), items(d.attributes["formats"])
	for i, url := range contents {
		kind := ""
		if len(formats) == len(contents) {
			kind = mediaType(textOf(formats[i]))
		}
		addTarget(d.rec, textOf(url), kind)
	}
}

// mediaType returns a media type; "" if the text is not one.
func mediaType(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	major, minor, ok := strings.Cut(text, "/")
	isToken := func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("+-._", r)
		}) < 0
	}
	if !ok || !isToken(major) || !isToken(minor) {
		return ""
	}
	return text
}

// fields fills the fields that every part of the registry knows.
func (d *dataciteReader) fields() {
	a := d.attributes
	d.setAgents(stele.Who, agentsOf(items(a["creators"])))
	d.setAgents("contributor", agentsOf(items(a["contributors"])))
	d.set(stele.What, firstTitle(a))
	year := textOf(a["publicationYear"])
	d.set(stele.When, issuedIn(items(a["dates"]), year))
	d.set("publisher", publisherName(a["publisher"]))
	d.set("type", typeText(get(a["types"], "resourceTypeGeneral"), get(a["types"], "resourceType")))
	for _, v := range items(a["descriptions"]) {
		if get(v, "descriptionType") == "Abstract" {
			d.set("description", get(v, "description"))
			break
		}
	}
	d.set("language", textOf(a["language"]))
	d.set("version", textOf(a["version"]))
	if rights := items(a["rightsList"]); len(rights) > 0 {
		d.set("license", get(rights[0], "rightsUri"))
		d.set("rights", get(rights[0], "rights"))
	}
	var subjects []string
	for _, v := range items(a["subjects"]) {
		if text := oneLine(strings.ReplaceAll(get(v, "subject"), ";", ",")); text != "" {
			subjects = append(subjects, text)
		}
	}
	d.set("subject", strings.Join(subjects, "; "))
	if c := a["container"]; get(c, "title") != "" {
		d.set("journal", get(c, "title"))
		d.set("volume", get(c, "volume"))
		d.set("issue", get(c, "issue"))
		d.set("pages", pagesText(get(c, "firstPage"), get(c, "lastPage")))
	}
}

// agentsOf reads creators or contributors.
func agentsOf(list []any) []agent {
	agents := make([]agent, 0, len(list))
	for _, v := range list {
		a := agent{name: get(v, "name"), family: get(v, "familyName"), given: get(v, "givenName")}
		if object, ok := v.(map[string]any); ok {
			for _, id := range items(object["nameIdentifiers"]) {
				if strings.EqualFold(get(id, "nameIdentifierScheme"), "ORCID") && a.orcid == "" {
					a.orcid = orcid(get(id, "nameIdentifier"))
				}
			}
		}
		agents = append(agents, a)
	}
	return agents
}

// firstTitle returns the first title that is not a translation or a part of another.
func firstTitle(a map[string]any) string {
	titles := items(a["titles"])
	for _, v := range titles {
		if get(v, "titleType") == "" && get(v, "title") != "" {
			return get(v, "title")
		}
	}
	if len(titles) > 0 {
		return get(titles[0], "title")
	}
	return textOf(a["title"]) // of older versions of the API
}

// issuedIn returns the date of issue, if it says more than the year of publication does, and else the year.
func issuedIn(dates []any, year string) string {
	for _, v := range dates {
		if date := get(v, "date"); get(v, "dateType") == "Issued" && yearOf(date) != "" && (year == "" || yearOf(date) == year) {
			return date
		}
	}
	return year
}

// publisherName reads a publisher, which is a text or an object.
func publisherName(v any) string {
	if text := textOf(v); text != "" {
		return text
	}
	return get(v, "name")
}

// typeText returns a type as EZID writes it: Dataset/Weather data.
func typeText(general, specific string) string {
	switch general, specific = oneLine(general), oneLine(specific); {
	case general == "":
		return specific
	case specific == "" || general == specific:
		return general
	}
	return general + "/" + specific
}

func pagesText(first, last string) string {
	if first == "" || last == "" || first == last {
		return first
	}
	return first + "-" + last
}

// related notes which identifiers name the same thing.
func (d *dataciteReader) related() {
	var names []string
	for _, v := range items(d.attributes["relatedIdentifiers"]) {
		if get(v, "relationType") != "IsIdenticalTo" {
			continue
		}
		if name := oneLine(get(v, "relatedIdentifier")); name != "" {
			if get(v, "relatedIdentifierType") == "DOI" && strings.HasPrefix(name, "10.") {
				name = doiMark + name
			}
			names = append(names, name)
		}
	}
	d.identical = len(names)
	d.set(identicalField, strings.Join(names, "\n"))
}

// rest keeps every attribute that the record does not say otherwise: one that [Attributes] would write as it is here.
func (d *dataciteReader) rest(doi string) {
	d.keepXML()
	for name, v := range d.attributes {
		switch name {
		case "doi", "prefix", "suffix", "id", "xml", "created", "updated":
			continue
		case "alternateIdentifiers": // the same as identifiers, in other words
			if same(alternates(d.attributes["identifiers"]), v) {
				continue
			}
		case "contentUrl":
			v = items(v)
		case "publisher":
			if text := publisherName(v); same(map[string]any{"name": text}, v) {
				v = text
			}
		}
		if isEmpty(v) || isZeroCount(name, v) || same(saidBy(d.rec, doi, name), v) {
			continue
		}
		d.keep(name, v)
	}
	if _, ok := d.outer["attributes"]; !ok {
		return
	}
	for name, v := range d.outer {
		if name != "attributes" && name != "id" && name != "type" && !isEmpty(v) {
			d.keep(name, v)
		}
	}
}

// isZeroCount reports whether a value is a count of nothing.
func isZeroCount(name string, v any) bool {
	n, ok := v.(json.Number)
	return ok && n == "0" && (strings.HasSuffix(name, "Count") || name == "metadataVersion")
}

// alternates returns identifiers in the words of alternateIdentifiers.
func alternates(v any) any {
	var list []any
	for _, id := range items(v) {
		list = append(list, map[string]any{"alternateIdentifier": get(id, "identifier"), "alternateIdentifierType": get(id, "identifierType")})
	}
	return list
}

// keepXML keeps the metadata in XML, as EZID does: in the field datacite, if it may stand there.
func (d *dataciteReader) keepXML() {
	encoded := textOf(d.attributes["xml"])
	if encoded == "" {
		return
	}
	if text, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(text) <= stele.MaxProse && isProse(string(text)) {
		d.rec.Metadata[DataCite] = string(text)
		return
	}
	d.keep("xml", encoded)
}
