package zonemap

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// NewRecord makes a record of what a user writes: the name is in the zone, @ for the zone itself, or
// ends in a dot; the type is in any case; the data is as in a master file, and a text without quotation
// marks is one string, with its blanks. Ok reports whether the data is right; then it is in canonical
// form.
func NewRecord(zone, name string, ttl uint32, kind, data string) (r stele.ZoneRecord, ok bool) {
	r = stele.ZoneRecord{Name: inZone(name, zone), TTL: ttl, Type: stele.RecordType(strings.ToUpper(kind)), Data: data}
	if r.Type == stele.RecordTXT && !strings.Contains(data, `"`) {
		r.Data = `"` + strings.ReplaceAll(data, `\`, `\\`) + `"`
	}
	rr, err := ParseRecord(r)
	if err == nil {
		r.Data = RecordData(rr)
	}
	return r, err == nil
}

// inZone returns the name that a user means in a zone.
func inZone(text, zone string) string {
	switch {
	case text == "@":
		return zone
	case strings.HasSuffix(text, "."):
		return strings.ToLower(text)
	}
	return strings.ToLower(text) + "." + zone
}

// AddRecord adds a record after those of its name and type, which get its TTL, or at the
// end. A record that is there already is not added.
func AddRecord(list []stele.ZoneRecord, r stele.ZoneRecord) []stele.ZoneRecord {
	at := len(list)
	for i := range list {
		if list[i].Name == r.Name && list[i].Type == r.Type {
			list[i].TTL = r.TTL
			at = i + 1
		}
	}
	if slices.Contains(list, r) {
		return list
	}
	return slices.Insert(list, at, r)
}

// RemoveRecords returns a list without the record with the name, type and data of r; with
// all, without every one of its name and type.
func RemoveRecords(list []stele.ZoneRecord, r stele.ZoneRecord, all bool) []stele.ZoneRecord {
	return slices.DeleteFunc(slices.Clone(list), func(o stele.ZoneRecord) bool {
		return o.Name == r.Name && o.Type == r.Type && (all || o.Data == r.Data)
	})
}
