package ezidrecord

import (
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// ID is the column of identifiers in a batch download in CSV.
const ID = "_id"

// Columns returns the columns that a batch download in CSV has here even if all their cells are empty. Other elements follow them.
func Columns() []string {
	return []string{
		ID, Target, Status, Created, Updated, "_owner", "_ownergroup", Profile, Export, Shadow,
		"erc.who", "erc.what", "erc.when",
		"dc.creator", "dc.title", "dc.publisher", "dc.date", "dc.type", "dc.contributor", "dc.description", "dc.language", "dc.rights", "dc.subject",
		"datacite.creator", "datacite.title", "datacite.publisher", "datacite.publicationyear", "datacite.resourcetype",
		dataciteDocument, crossrefDocument,
	}
}

// ToBatch returns what a batch download of EZID says of a record: its [Elements], its name, and the ARK under which EZID keeps a DOI if the
// record has an ARK as an alias. Owners are those that came from EZID. A field that would stand in a column with another meaning is not there.
func ToBatch(schemes *stele.Schemes, rec *stele.Record) map[string]string {
	all := Elements(schemes, rec)
	if primary(rec) < 0 {
		delete(all, Target)
	}
	if rec.Created.IsZero() {
		delete(all, Created)
		delete(all, Updated)
	}
	delete(all, Shadow)
	if !isARK(schemes, rec.ID) {
		if i := slices.IndexFunc(rec.Aliases, func(id stele.ID) bool { return isARK(schemes, id) }); i >= 0 {
			all[Shadow] = Name(schemes, rec.Aliases[i])
		}
	}
	all[ID] = Name(schemes, rec.ID)
	return all
}

// isARK reports whether an identifier is an ARK: only these have a classic form.
func isARK(schemes *stele.Schemes, id stele.ID) bool {
	return slices.ContainsFunc(schemes.Spellings(id), func(s stele.Spelling) bool { return s.Name == classicSpelling })
}

// Lost returns what of a record is not in one that [FromBatch] has made of its batch download. A profile that the record does not say is
// not a difference, nor is a part of a second: EZID's dates have none.
func Lost(rec, made *stele.Record) (list []string) {
	lost := func(name string, is bool) {
		if is {
			list = append(list, name)
		}
	}
	same := func(a, b time.Time) bool { return a.IsZero() || a.Unix() == b.Unix() }
	lost("spelling", rec.Spelling != made.Spelling)
	lost("aliases", !slices.Equal(rec.Aliases, made.Aliases))
	lost("state", rec.State != made.State)
	if a, b := rec.Tombstone, made.Tombstone; a != nil {
		lost("tombstone.reason", b == nil || a.Reason != b.Reason)
		lost("tombstone.at", b == nil || !same(a.At, b.At))
		lost("tombstone.replacement", a.Replacement.IsValid())
	}
	lost("targets", !slices.Equal(rec.Targets, made.Targets))
	keys := append(rec.Metadata.Keys(), made.Metadata.Keys()...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		was, ok := rec.Metadata[key]
		lost("metadata."+key, was != made.Metadata[key] && (ok || key != keptProfile))
	}
	lost("persistence", rec.Persistence != made.Persistence)
	lost("values", len(rec.Values) > 0)
	lost("signatures", len(rec.Signatures) > 0)
	lost("created", !same(rec.Created, made.Created))
	lost("modified", !same(rec.Modified, made.Modified))
	return list
}
