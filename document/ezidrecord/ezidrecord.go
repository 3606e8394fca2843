// Package ezidrecord says what a record is to EZID's users: a set of elements, names with values, as EZID's API here shows and
// takes them (EZID API, version 2).
//
// Names that begin with an underscore are EZID's own: _target is the first location of the thing, _status its state. All
// others describe the thing, in one of EZID's profiles. The elements of the record's profile are fields of its metadata that
// every part of the registry knows:
//
//	erc        dc              datacite                  field
//	erc.who    dc.creator      datacite.creator          who
//	erc.what   dc.title        datacite.title            what
//	erc.when   dc.date         datacite.publicationyear  when
//	           dc.publisher    datacite.publisher        publisher
//	           dc.type         datacite.resourcetype     type
//
// and so on; see fields.go. Another element is a field with its own name, if that can name one and means nothing else here; or
// with ezid. before it: Title 1 is ezid.-54itle-201. The profile and the choice not to be exported are in ezid._profile and
// ezid._export. So all that EZID's users give is kept, and is shown to them as they gave it.
//
// It computes: no request, no store, no clock. It does not judge who may do what.
package ezidrecord

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// The elements that EZID itself has, which this package reads or writes.
const (
	Target  = "_target"
	Status  = "_status"
	Profile = "_profile"
	Export  = "_export"
	Created = "_created"
	Updated = "_updated"
)

// Name returns an identifier as EZID's users write it: an ARK with a slash after its label, a DOI with its mark.
func Name(schemes *stele.Schemes, id stele.ID) string {
	for _, s := range schemes.Spellings(id) {
		if s.Name == doiSpelling || s.Name == classicSpelling {
			return s.Text
		}
	}
	return id.String()
}

// Names of spellings: that of a handle that is a DOI, and that of an ARK with a slash after its label.
const (
	doiSpelling     = "DOI"
	classicSpelling = "classic form"
)

// DefaultProfile returns the profile of an identifier whose record does not say: datacite for a DOI, and erc for all others.
func DefaultProfile(schemes *stele.Schemes, id stele.ID) string {
	if slices.ContainsFunc(schemes.Spellings(id), func(s stele.Spelling) bool { return s.Name == doiSpelling }) {
		return "datacite"
	}
	return "erc"
}

// ProfileOf returns the profile of a record.
func ProfileOf(schemes *stele.Schemes, rec *stele.Record) string {
	return cmp.Or(rec.Metadata[keptProfile], DefaultProfile(schemes, rec.ID))
}

// Elements returns what EZID's users see of a record, as far as the record itself says it. There is no [Target] if there is no
// location.
func Elements(schemes *stele.Schemes, rec *stele.Record) map[string]string {
	profile := ProfileOf(schemes, rec)
	all := map[string]string{Profile: profile, Export: cmp.Or(rec.Metadata[keptExport], "yes"), Status: statusOf(rec)}
	if !rec.Created.IsZero() {
		all[Created] = strconv.FormatInt(rec.Created.Unix(), 10)
		all[Updated] = strconv.FormatInt(rec.Modified.Unix(), 10)
	}
	if i := primary(rec); i >= 0 {
		all[Target] = rec.Targets[i].URL
	}
	within := derived(profile, rec.Metadata)
	for _, key := range rec.Metadata.Keys() {
		value := rec.Metadata[key]
		if value == "" || key == keptProfile || key == keptExport || value == within[key] {
			continue
		}
		name := elementOf(profile, key)
		if _, taken := all[name]; taken {
			name = key
		}
		for _, taken := all[name]; taken || isStatusWord(name); _, taken = all[name] {
			name = kept + name
		}
		all[name] = value
	}
	return all
}

// statusOf returns the status of a record.
func statusOf(rec *stele.Record) string {
	switch rec.State {
	case stele.Reserved:
		return "reserved"
	case stele.Withdrawn:
		if t := rec.Tombstone; t != nil && t.Reason != "" && t.Reason != NoReason {
			return "unavailable | " + t.Reason
		}
		return "unavailable"
	}
	return "public"
}

// NoReason is the reason of a record that was made unavailable without one: a tombstone always gives one.
const NoReason = "unavailable; no reason was given"

// ParseStatus reads a status. The reason is that of one that is unavailable.
func ParseStatus(text string) (state stele.State, reason string, ok bool) {
	word, reason, given := strings.Cut(text, "|")
	reason = strings.TrimSpace(reason)
	switch strings.TrimSpace(word) {
	case "public":
		return stele.Active, "", !given
	case "reserved":
		return stele.Reserved, "", !given
	case "unavailable":
		return stele.Withdrawn, cmp.Or(reason, NoReason), true
	}
	return "", "", false
}

// primary returns the index of the target that is [Target]: the location that comes first, -1 if there is none.
func primary(rec *stele.Record) int {
	best := -1
	for i := range rec.Targets {
		t := &rec.Targets[i]
		if t.Service != stele.N2L {
			continue
		}
		if best < 0 || t.Order < rec.Targets[best].Order || t.Order == rec.Targets[best].Order && t.Preference < rec.Targets[best].Preference {
			best = i
		}
	}
	return best
}

// SetTarget gives a record another first location, or takes it away if url is "".
func SetTarget(rec *stele.Record, url string) {
	switch i := primary(rec); {
	case i >= 0 && url == "":
		rec.Targets = slices.Delete(slices.Clone(rec.Targets), i, i+1)
	case i >= 0:
		rec.Targets = slices.Clone(rec.Targets)
		rec.Targets[i].URL = url
	case url != "":
		rec.Targets = append(slices.Clip(rec.Targets), stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference})
	}
}

// IsBlank reports whether a record says nothing: its name is all that is left of it.
func IsBlank(rec *stele.Record) bool {
	return len(rec.Targets) == 0 && len(rec.Metadata) == 0 && len(rec.Values) == 0 && len(rec.Signatures) == 0 && len(rec.Readers) == 0 && rec.Persistence == (stele.Persistence{})
}

// DropProfile takes away the profile and the choice not to be exported of a record that says nothing else. What the record says of the
// thing counts, as in the registrar, which takes the mark of a redaction away as soon as there is something: a level of persistence,
// and who may see the record, are not.
func DropProfile(rec *stele.Record) {
	for key := range rec.Metadata {
		if key != keptProfile && key != keptExport {
			return
		}
	}
	if rec.Spelling == "" && len(rec.Targets) == 0 && len(rec.Values) == 0 && len(rec.Signatures) == 0 && rec.Persistence.Statement == "" {
		rec.Metadata = nil
	}
}

// Blank takes away all that a record says, and who may see it: a client that creates it again makes it public.
func Blank(rec *stele.Record) {
	rec.Spelling, rec.Targets, rec.Metadata, rec.Values, rec.Signatures, rec.Readers, rec.Persistence = "", nil, nil, nil, nil, nil, stele.Persistence{}
}
