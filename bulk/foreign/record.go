package foreign

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

const (
	handleScheme = destination.HandleScheme
	handleMark   = destination.HandleMark
	authorities  = "0.NA/" // begins the names of records that describe prefixes
	typeSecret   = "HS_SECKEY"
)

// adminTypes are the types of values that grant rights.
var adminTypes = []string{"HS_ADMIN", "HS_VLIST", "HS_PUBKEY"}

func isAdmin(kind string) bool {
	return slices.ContainsFunc(adminTypes, func(t string) bool { return destination.HasType(kind, t) })
}

func isSecret(kind string) bool { return destination.HasType(kind, typeSecret) }

// LeftOut returns the types of values that are not read.
func (o *Options) LeftOut() (types []string) {
	if !o.Admins {
		types = append(types, adminTypes...)
	}
	if !o.Secrets {
		types = append(types, typeSecret)
	}
	return types
}

// wanted returns the values that the options ask for, and counts the others.
func (s *Source) wanted(values []stele.HandleValue) []stele.HandleValue {
	return slices.DeleteFunc(values, func(v stele.HandleValue) bool {
		switch {
		case isSecret(v.Type) && !s.o.Secrets:
			s.secrets.Add(1)
			return true
		case isAdmin(v.Type) && !s.o.Admins:
			s.admins.Add(1)
			return true
		}
		return false
	})
}

// build makes the record of a row.
func (s *Source) build(row *bulk.Row, name string, values []stele.HandleValue) {
	rec := row.Record // its memory, if the row has one
	if row.Record = nil; rec == nil {
		rec = new(stele.Record)
	}
	if !utf8.ValidString(name) {
		row.Err = failf(stele.Invalid, "import.foreign-name-not-utf-8", "the name is not UTF-8: {name}", stele.Quote(name))
		return
	}
	first, last := ages(values)
	values = s.wanted(values)
	row.Text, row.Later = nil, func() []byte { return rowText(name, values) }
	id, err := destination.ParseHandle(s.o.Schemes, name)
	if err != nil {
		row.Err = err
		return
	}
	*rec = stele.Record{ID: id, State: stele.Active, Values: values}
	if spelling := handleMark + name; spelling != id.String() && name != id.String() {
		rec.Spelling = spelling
	}
	if first != 0 { // when its oldest value was made is the best that is known
		rec.Created, rec.Modified = time.Unix(int64(first), 0).UTC(), time.Unix(int64(last), 0).UTC()
	}
	destination.Align(nil, rec)
	var report stele.Report
	rec.Check(&report)
	if row.Err = report.Err("import", rec.ID); row.Err != nil {
		return
	}
	row.Record = rec
	s.noteAlias(rec, row.Line)
	if s.o.Merges {
		row.Patch = document.AppendRecord(nil, rec)
	}
}

// ages returns the timestamps of the oldest and of the newest value; 0 if there is none.
func ages(values []stele.HandleValue) (first, last uint32) {
	for i := range values {
		if t := values[i].Timestamp; t != 0 {
			if first == 0 || t < first {
				first = t
			}
			last = max(last, t)
		}
	}
	return first, last
}

// rowText returns a record as a line that the reader of JSON reads, for the file of rejected rows. It
// has no secrets.
func rowText(name string, values []stele.HandleValue) []byte {
	text := append([]byte(`{"handle":`), handlejson.Quote(name)...)
	text = append(text, `,"values":[`...)
	first := true
	for i := range values {
		if isSecret(values[i].Type) {
			continue
		}
		if !first {
			text = append(text, ',')
		}
		first = false
		text = handlejson.AppendValue(text, &values[i])
	}
	return append(text, "]}"...)
}

// fromWire makes values of those that a Handle server stores.
func fromWire(stored []hdl.Value) ([]stele.HandleValue, error) {
	values := make([]stele.HandleValue, len(stored))
	for i := range stored {
		v, err := fromValue(&stored[i])
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func fromValue(v *hdl.Value) (value stele.HandleValue, err error) {
	switch {
	case !utf8.Valid(v.Type):
		return value, failf(stele.Invalid, "import.foreign-type-not-utf-8", "the type of the value {index} is not UTF-8: {type}", v.Index, stele.Quote(string(v.Type)))
	case v.TTLType > hdl.TTLAbsolute:
		return value, failf(stele.Invalid, "import.foreign-ttl-unknown", "the TTL of the value {index} is of the unknown kind {kind}", v.Index, v.TTLType)
	}
	value = stele.HandleValue{
		Index: v.Index, Type: string(v.Type), TTL: v.TTL, TTLAbsolute: v.TTLType == hdl.TTLAbsolute,
		Timestamp: v.Timestamp, Permissions: stele.Permission(v.Permissions),
	}
	if len(v.Data) > 0 {
		value.Data = v.Data
	}
	for _, ref := range v.References {
		if !utf8.ValidString(ref.Handle) {
			return value, failf(stele.Invalid, "import.foreign-reference-not-utf-8", "a reference of the value {index} is not UTF-8: {handle}", v.Index, stele.Quote(ref.Handle))
		}
		value.References = append(value.References, stele.HandleReference(ref))
	}
	return value, nil
}

// upper returns a name with ASCII letters in upper case, as a Handle server compares it. All other bytes
// stay, so that names that are not UTF-8 differ as their bytes do.
func upper(name string) string {
	folded := []byte(name)
	for i, c := range folded {
		if 'a' <= c && c <= 'z' {
			folded[i] = c - 'a' + 'A'
		}
	}
	return string(folded)
}
