package doirecord

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// doiSpelling is the name of the spelling of a handle that is a DOI.
const doiSpelling = "DOI"

// DOI returns the DOI of a record, in its owner's spelling; "" if it is not one.
func DOI(schemes *stele.Schemes, rec *stele.Record) string {
	for _, s := range schemes.Spellings(rec.ID) {
		if s.Name != doiSpelling {
			continue
		}
		doi := bareDOI(s.Text)
		if own := bareDOI(rec.Spelling); strings.EqualFold(own, doi) {
			return own
		}
		return strings.ToLower(doi) // as DataCite writes them
	}
	return ""
}

// Attributes returns what DataCite's REST API has as the attributes of a DOI. Unsaid are the names of what it can't say: fields of
// the metadata, or of the record.
func Attributes(rec *stele.Record, doi string) (a map[string]any, unsaid []string) {
	a = attributesOf(rec, doi)
	for _, key := range rec.Metadata.Keys() {
		name, ok := strings.CutPrefix(key, DataCite+".")
		if !ok || key == identicalField {
			if !ok && !isAttribute(key) {
				unsaid = append(unsaid, "metadata."+key)
			}
			continue
		}
		kept, number, numbered := strings.Cut(name, ".")
		if numbered {
			if _, err := strconv.Atoi(number); err != nil {
				unsaid = append(unsaid, "metadata."+key)
			}
			continue // continues another field
		}
		v := restored(rec.Metadata, key)
		if kept == otherName {
			if object, ok := v.(map[string]any); ok {
				for name, v := range object {
					a[name] = v
				}
			}
			continue
		}
		attribute := attributeNamed(kept)
		switch old, ok := a[attribute]; {
		case ok && attribute == "identifiers": // those of the aliases
			a[attribute] = append(items(old), items(v)...)
		case ok && !agrees(attribute, old, v):
			unsaid = append(unsaid, "metadata."+key) // the field was changed since
		default:
			a[attribute] = v
		}
	}
	return a, append(unsaid, unsaidOf(rec)...)
}

// restored returns the value of a field that was kept.
func restored(m stele.Metadata, key string) any {
	text := joined(m, key)
	if v, ok := keptJSON(text); ok {
		return v
	}
	name := attributeNamed(strings.TrimPrefix(key, DataCite+"."))
	switch _, err := strconv.Atoi(text); {
	case err == nil && (strings.HasSuffix(name, "Count") || name == "metadataVersion" || name == "publicationYear"):
		return json.Number(text)
	case name == "isActive":
		return text == "true"
	}
	return text
}

// unsaidOf returns what of a record, except its metadata, DataCite has no attributes for.
func unsaidOf(rec *stele.Record) (unsaid []string) {
	said := func(name string, is bool) {
		if is {
			unsaid = append(unsaid, name)
		}
	}
	said("values", len(rec.Values) > 0)
	said("signatures", len(rec.Signatures) > 0)
	said("persistence", rec.Persistence != (stele.Persistence{}))
	said("tombstone.replacement", rec.Tombstone != nil && rec.Tombstone.Replacement.IsValid())
	said("targets", slices.ContainsFunc(rec.Targets, func(t stele.Target) bool {
		return t.Service != stele.N2L || t.Language != "" || t.TTL != 0 || t.Status != 0 || t.Partial
	}))
	return unsaid
}

// isAttribute reports whether a field is said by an attribute.
func isAttribute(key string) bool {
	switch key {
	case stele.Who, stele.What, stele.When, "contributor", "publisher", "type", "description", "language", "version", "license", "rights", "subject", "journal", "volume", "issue", "pages", DataCite:
		return true
	}
	return false
}

// attributeNames are the names of attributes that have capital letters, by those that fields have.
var attributeNames = func() map[string]string {
	all := make(map[string]string)
	for _, name := range strings.Fields(`alternateIdentifiers publicationYear relatedIdentifiers relatedItems rightsList geoLocations fundingReferences
		contentUrl metadataVersion schemaVersion isActive landingPage viewCount viewsOverTime downloadCount downloadsOverTime referenceCount citationCount
		citationsOverTime partCount partOfCount versionCount versionOfCount`) {
		all[strings.ToLower(name)] = name
	}
	return all
}()

func attributeNamed(kept string) string { return cmp.Or(attributeNames[kept], kept) }

// agrees reports whether an attribute that was kept says what the fields of the record say: then it says more than they do.
func agrees(name string, made, kept any) bool {
	switch name {
	case "url", "contentUrl":
		return false
	case "state":
		return made == "findable" && (kept == "registered" || kept == "flagged" || kept == "broken")
	}
	probe := &dataciteReader{attributes: map[string]any{name: kept}}
	now := &dataciteReader{attributes: map[string]any{name: made}}
	for _, r := range []*dataciteReader{probe, now} {
		r.filler = filler{rec: &stele.Record{Metadata: make(stele.Metadata)}, source: DataCite}
		if name == "dates" { // they say when only together with the year
			r.attributes["publicationYear"] = yearOf(issuedIn(items(made), ""))
		}
		r.fields()
	}
	for key, value := range now.rec.Metadata {
		if probe.rec.Metadata[key] != value {
			return false
		}
	}
	return true
}

// saidAttributes are the attributes that the fields of a record say.
var saidAttributes = strings.Fields(`doi prefix suffix isActive state reason created updated url contentUrl formats creators contributors titles dates
	publicationYear publisher types descriptions language version rightsList subjects container identifiers xml`)

// attributesOf returns the attributes that the fields of a record say.
func attributesOf(rec *stele.Record, doi string) map[string]any {
	a := make(map[string]any, len(saidAttributes))
	for _, name := range saidAttributes {
		if v := saidBy(rec, doi, name); v != nil && (name == "suffix" || !isEmpty(v)) {
			a[name] = v
		}
	}
	return a
}

// saidBy returns the attribute that the fields of a record say; nil, or an empty value, if they say nothing of it.
func saidBy(rec *stele.Record, doi, name string) any {
	m := rec.Metadata
	switch name {
	case "doi":
		return doi
	case "prefix":
		prefix, _, _ := strings.Cut(doi, "/")
		return prefix
	case "suffix":
		_, suffix, _ := strings.Cut(doi, "/")
		return suffix
	case "url", "contentUrl", "formats":
		return saidPlaces(rec, name)
	case "isActive", "state", "reason", "created", "updated":
		return saidState(rec, name)
	case "creators":
		return agentTrees(m[stele.Who], "")
	case "contributors":
		return agentTrees(m["contributor"], "Other")
	case "publisher", "language", "version":
		return m[name]
	case "titles":
		return objectOf("title", m[stele.What])
	case "publicationYear":
		if year := strings.TrimLeft(yearOf(m[stele.When]), "0"); year != "" {
			return json.Number(year)
		}
	case "dates":
		kind := "Issued"
		if yearOf(m[stele.When]) == "" {
			kind = "Other"
		}
		return objectOf("date", m[stele.When], "dateType", kind)
	case "descriptions":
		return objectOf("description", m["description"], "descriptionType", "Abstract")
	case "types":
		if general, specific, _ := strings.Cut(m["type"], "/"); general != "" {
			return map[string]any{"resourceTypeGeneral": general, "resourceType": specific}
		}
	case "rightsList":
		if m["rights"] != "" || m["license"] != "" {
			return []any{map[string]any{"rights": m["rights"], "rightsUri": m["license"]}}
		}
	case "subjects":
		var list []any
		for text := range strings.SplitSeq(m["subject"], "; ") {
			list = append(list, objectOf("subject", text)...)
		}
		return list
	case "container":
		if m["journal"] != "" {
			first, last, _ := strings.Cut(m["pages"], "-")
			return map[string]any{"type": "Journal", "title": m["journal"], "volume": m["volume"], "issue": m["issue"], "firstPage": first, "lastPage": last}
		}
	case "identifiers":
		var aliases []any
		for _, id := range rec.Aliases {
			aliases = append(aliases, map[string]any{"identifier": id.String(), "identifierType": strings.ToUpper(id.Scheme())})
		}
		return aliases
	case "xml":
		return base64.StdEncoding.EncodeToString([]byte(m[DataCite]))
	}
	return nil
}

// objectOf returns a list of one object, with the names and values of its members; nil if the first value is empty.
func objectOf(name, value string, more ...string) []any {
	if value == "" {
		return nil
	}
	object := map[string]any{name: value}
	for pair := range slices.Chunk(more, 2) {
		object[pair[0]] = pair[1]
	}
	return []any{object}
}

// saidPlaces returns the first location as the address of the page, and the others as those of the content.
func saidPlaces(rec *stele.Record, name string) any {
	targets := slices.DeleteFunc(slices.Clone(rec.Targets), func(t stele.Target) bool { return t.Service != stele.N2L })
	slices.SortStableFunc(targets, func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	if len(targets) == 0 {
		return nil
	}
	if name == "url" {
		return targets[0].URL
	}
	var urls, formats []any
	for _, t := range targets[1:] {
		urls = append(urls, t.URL)
		if t.Type != "" {
			formats = append(formats, t.Type)
		}
	}
	switch {
	case name == "contentUrl":
		return urls
	case len(formats) == len(urls):
		return formats
	}
	return nil
}

// saidState returns what says the state and the dates.
func saidState(rec *stele.Record, name string) any {
	switch name {
	case "isActive":
		return rec.State == stele.Active
	case "state":
		switch rec.State {
		case stele.Reserved:
			return "draft"
		case stele.Withdrawn:
			return "tombstoned"
		}
		return "findable"
	case "reason":
		if t := rec.Tombstone; rec.State == stele.Withdrawn && t != nil && t.Reason != noReason {
			return t.Reason
		}
	case "created":
		if !rec.Created.IsZero() {
			return rec.Created.UTC().Format(timeForm)
		}
	case "updated":
		if !rec.Created.IsZero() {
			return rec.Modified.UTC().Format(timeForm)
		}
	}
	return nil
}

// timeForm is how DataCite writes times.
const timeForm = "2006-01-02T15:04:05.000Z"

// agentTrees returns names as creators or contributors.
func agentTrees(field, role string) (list []any) {
	for _, a := range parseAgents(field) {
		object := map[string]any{"name": a.name}
		if a.family != "" {
			object["nameType"], object["givenName"], object["familyName"] = "Personal", a.given, a.family
		}
		if a.orcid != "" {
			object["nameIdentifiers"] = []any{map[string]any{"nameIdentifier": orcidHost + a.orcid, "nameIdentifierScheme": "ORCID", "schemeUri": strings.TrimSuffix(orcidHost, "/")}}
		}
		if role != "" {
			object["contributorType"] = role
		}
		list = append(list, object)
	}
	return list
}
