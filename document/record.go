// Package document is the JSON form of records and namespaces: what the API and the command
// line speak, and what imports and exports have on each line. One strict reader reads all of
// it, and reports every problem of a document at once with its path.
package document

import (
	"encoding/base64"
	"math"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// The fields of each object of a document, as a message about an unknown field lists
// them.
const (
	recordFields      = "id spelling aliases state tombstone url targets metadata persistence values readers signatures version created modified by redacted import withheld"
	tombstoneFields   = "reason at replacement"
	targetFields      = "service url type language order preference ttl status partial"
	persistenceFields = "level until statement"
	valueFields       = "index type data ttl ttlAbsolute timestamp permissions references"
	referenceFields   = "handle index"
)

// permissions are the names of a handle value's permissions, by their bits.
var permissions = [...]string{"public-write", "public-read", "admin-write", "admin-read"}

// strictBase64 refuses bits after the data's end.
var strictBase64 = base64.StdEncoding.Strict()

// document reads the JSON form of a record or a namespace.
type document struct {
	jsonReader
	schemes *stele.Schemes
}

// DecodeRecord reads a record in JSON: one object, as [AppendRecord] writes
// it, or with other spellings of its names, and {"id":...,"url":...} for a record
// with one target. Fields that are left out have their defaults: the state active,
// the service N2L, [stele.DefaultOrder], [stele.DefaultPreference] and [stele.DefaultPermissions].
//
// It is strict. Whatever is unknown, given twice, of another type, too large or refused
// by [stele.Record.Validate] is a problem, and all problems are reported together: the
// error, of Kind Invalid, holds [stele.Problems], each with its path. Only a text that
// is not JSON ends the search.
//
// Fields that the system keeps are read too. The caller decides whether to trust them.
// Nothing of data is kept: the record's texts share one copy.
func DecodeRecord(s *stele.Schemes, data []byte) (*stele.Record, error) {
	return decodeRecord(s, data, true)
}

// DecodeStored reads a record as DecodeRecord does, and does not validate it: a registry has
// stored it and shows it, such as a version whose content is withheld.
func DecodeStored(s *stele.Schemes, data []byte) (*stele.Record, error) {
	return decodeRecord(s, data, false)
}

func decodeRecord(s *stele.Schemes, data []byte, judged bool) (*stele.Record, error) {
	d := document{schemes: s}
	room := new(struct { // most records have one target: memory for both at once
		record stele.Record
		target [1]stele.Target
	})
	r := &room.record
	if d.begin(data) {
		d.record(r, room.target[:0])
		d.end()
	}
	if judged && !d.broken {
		r.Check(&d.faults)
	}
	if err := d.faults.Err("read record", r.ID); err != nil {
		return nil, err
	}
	return r, nil
}

// begin makes data the text that is read, unless it is too large.
func (d *document) begin(data []byte) bool {
	if len(data) > stele.MaxDocument {
		d.faults.Addf("", "document.too-large", "the document has {size} bytes; {most} are the most", len(data), stele.MaxDocument)
		d.broken = true
		return false
	}
	d.start(string(data))
	return !d.broken
}

// record reads a record, whose first target finds room in targets.
func (d *document) record(r *stele.Record, targets []stele.Target) {
	var given, spelling, url string
	short := false
	r.State = stele.Active
	d.object(recordFields, func(name string) bool {
		switch name {
		case "id":
			r.ID, given = d.id()
		case "spelling":
			spelling = d.text()
		case "aliases":
			d.array(stele.MaxAliases, func(int) {
				alias, _ := d.id()
				r.Aliases = append(r.Aliases, alias)
			})
		case "state":
			r.State = stele.State(d.text())
		case "tombstone":
			r.Tombstone = d.tombstone()
		case "url":
			url, short = d.text(), true
		case "targets":
			d.array(stele.MaxTargets, func(int) {
				targets = append(targets, stele.Target{Service: stele.N2L, Order: stele.DefaultOrder, Preference: stele.DefaultPreference})
				d.target(&targets[len(targets)-1])
				r.Targets = targets
			})
		case "metadata":
			r.Metadata = d.metadata()
		case "persistence":
			r.Persistence = d.persistence()
		case "values":
			d.array(stele.MaxValues, func(int) { r.Values = append(r.Values, d.value()) })
		case "readers":
			r.Readers = d.texts(stele.MaxReaders)
		case "signatures":
			d.array(stele.MaxSignatures, func(int) { r.Signatures = append(r.Signatures, d.signature()) })
		case "redacted":
			r.Redacted = d.bool()
		case "import":
			r.Import = d.number(math.MaxUint64)
		case "withheld":
			r.Withheld = d.withheld()
		default:
			return d.kept(name, &r.Version, &r.Created, &r.Modified, &r.By)
		}
		return true
	})
	if short {
		d.shortForm(r, url)
	}
	d.ownSpelling(r, given, spelling)
}

// shortForm reads url as the one target of the record.
func (d *document) shortForm(r *stele.Record, url string) {
	if r.Targets != nil {
		d.faults.Addf("url", "document.url-and-targets", "is short for one target; there are targets too, so move it there")
	} else if err := stele.CheckURL(url); err != nil {
		d.faults.Add("url", err)
	} else {
		r.Targets = []stele.Target{{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}
	}
}

// ownSpelling keeps the owner's spelling of the identifier: the one that is named
// so, or else the text that was given as the identifier.
func (d *document) ownSpelling(r *stele.Record, given, spelling string) {
	if spelling != "" && r.ID.IsValid() {
		if id, err := d.schemes.Parse(spelling); err != nil {
			d.faults.Add("spelling", err)
		} else if id != r.ID {
			d.faults.Addf("spelling", "document.spelling-of-other", `is a spelling of "{identifier}"; give one of the record's identifier`, id.String())
		}
		given = spelling
	}
	if given != r.ID.String() {
		r.Spelling = given
	}
}

// kept reads a field that the system keeps, of records and namespaces alike. It
// returns false for another.
func (d *document) kept(name string, version *uint64, created, modified *time.Time, by *string) bool {
	switch name {
	case "version":
		*version = d.number(math.MaxUint64)
	case "created":
		*created = d.time()
	case "modified":
		*modified = d.time()
	case "by":
		*by = d.text()
	default:
		return false
	}
	return true
}

func (d *document) tombstone() *stele.Tombstone {
	t := new(stele.Tombstone)
	d.object(tombstoneFields, func(name string) bool {
		switch name {
		case "reason":
			t.Reason = d.text()
		case "at":
			t.At = d.time()
		case "replacement":
			t.Replacement, _ = d.id()
		default:
			return false
		}
		return true
	})
	return t
}

func (d *document) target(t *stele.Target) {
	d.object(targetFields, func(name string) bool {
		switch name {
		case "service":
			t.Service = stele.Service(d.text())
		case "url":
			t.URL = d.text()
		case "type":
			t.Type = d.text()
		case "language":
			t.Language = d.text()
		case "order":
			t.Order = uint16(d.number(math.MaxUint16))
		case "preference":
			t.Preference = uint16(d.number(math.MaxUint16))
		case "ttl":
			t.TTL = uint32(d.number(math.MaxUint32))
		case "status":
			t.Status = int(d.number(999))
		case "partial":
			t.Partial = d.bool()
		default:
			return false
		}
		return true
	})
}

// metadata reads an object whose names its owner chose.
func (d *document) metadata() (m stele.Metadata) {
	n := 0
	d.members(func(name string) {
		if n++; n > stele.MaxFields {
			d.skip(0)
			return
		}
		if m == nil {
			m = make(stele.Metadata)
		}
		value, size := d.text(), len(m)
		if m[name] = value; len(m) == size {
			d.faultf("document.field-twice", "is given twice; keep one")
		}
	})
	if n > stele.MaxFields {
		d.faultf("document.too-many-fields", "has {count} fields; {most} are the most", n, stele.MaxFields)
	}
	return m
}

func (d *document) persistence() (p stele.Persistence) {
	d.object(persistenceFields, func(name string) bool {
		switch name {
		case "level":
			p.Level = stele.Level(d.text())
		case "until":
			p.Until = d.text()
		case "statement":
			p.Statement = d.text()
		default:
			return false
		}
		return true
	})
	return p
}

func (d *document) value() stele.HandleValue {
	v, timed := stele.HandleValue{Permissions: stele.DefaultPermissions}, false
	d.object(valueFields, func(name string) bool {
		switch name {
		case "index":
			v.Index = uint32(d.number(math.MaxUint32))
		case "type":
			v.Type = d.text()
		case "data":
			v.Data = d.bytes()
		case "ttl":
			v.TTL, timed = uint32(d.number(math.MaxUint32)), true
		case "ttlAbsolute":
			v.TTLAbsolute = d.bool()
		case "timestamp":
			v.Timestamp = d.timestamp()
		case "permissions":
			v.Permissions = d.permissions()
		case "references":
			d.array(stele.MaxReferences, func(int) { v.References = append(v.References, d.reference()) })
		default:
			return false
		}
		return true
	})
	if !timed && !v.TTLAbsolute {
		v.TTL = stele.DefaultHandleTTL
	}
	return v
}

func (d *document) reference() (r stele.HandleReference) {
	d.object(referenceFields, func(name string) bool {
		switch name {
		case "handle":
			r.Handle = d.text()
		case "index":
			r.Index = uint32(d.number(math.MaxUint32))
		default:
			return false
		}
		return true
	})
	return r
}

func (d *document) permissions() (set stele.Permission) {
	d.array(len(permissions), func(int) {
		name, ok := d.string()
		if !ok {
			return
		}
		for i, known := range permissions {
			if name == known {
				set |= 1 << i
				return
			}
		}
		d.faultf("document.permission-unknown", `"{permission}" is not a permission; use {permissions}`, name, strings.Join(permissions[:], ", "))
	})
	return set
}

// id reads an identifier in any spelling, and returns the spelling too.
func (d *document) id() (stele.ID, string) {
	text, ok := d.string()
	if !ok {
		return stele.ID{}, ""
	}
	id, err := d.schemes.Parse(text)
	if err != nil {
		d.faults.Add(d.where(), err)
		return stele.ID{}, ""
	}
	return id, text
}

// text reads a string; it is empty if there is none.
func (d *document) text() string {
	s, _ := d.string()
	return s
}

func (d *document) texts(limit int) (list []string) {
	d.array(limit, func(int) { list = append(list, d.text()) })
	return list
}

// number reads a whole number; it is 0 if there is none.
func (d *document) number(limit uint64) uint64 {
	v, _ := d.uint(limit)
	return v
}

// time reads a time (RFC 3339); it is zero if there is none.
func (d *document) time() time.Time {
	t, _ := d.moment()
	return t
}

func (d *document) moment() (t time.Time, ok bool) {
	text, ok := d.string()
	if !ok {
		return t, false
	}
	if err := t.UnmarshalText([]byte(text)); err != nil {
		d.faultf("document.not-a-time", `"{value}" is not a time; write it as in 2024-05-17T10:00:00Z`, text)
		return time.Time{}, false
	}
	return t.UTC(), true
}

// timestamp reads the time of a handle value, which has whole seconds and ends in
// the year 2106 (RFC 3651, 3.1).
func (d *document) timestamp() uint32 {
	t, ok := d.moment()
	if !ok {
		return 0
	}
	if sec := t.Unix(); sec >= 0 && sec <= math.MaxUint32 && t.Nanosecond() == 0 {
		return uint32(sec)
	}
	d.faultf("document.handle-time-out-of-range", "{time} is not a time of a handle value; give a whole second from 1970-01-01T00:00:00Z to 2106-02-07T06:28:15Z", t.Format(time.RFC3339Nano))
	return 0
}

// bytes reads bytes in base64; nil if there are none.
func (d *document) bytes() []byte {
	text, ok := d.string()
	if !ok || text == "" {
		return nil
	}
	b, err := strictBase64.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		d.faultf("document.not-base64", "is not base64; use A-Z, a-z, 0-9, + and /, and = to fill up its end")
		return nil
	}
	return b
}
