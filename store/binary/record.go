// Package binary is the form in which stores keep records, namespaces and audit entries. A
// store treats it as bytes: no other program reads it, and documents for people and other
// programs have the form of package document.
//
// The first byte is the version of the form. The fields follow in a fixed order: numbers as
// varints, texts with their length before them. A form grows at its end only, so that a value
// without the new fields keeps its bytes; any other change takes another first byte, and the
// package reads both.
//
// Bytes that the package did not write give an error of Kind Internal, because what is stored
// is damaged. A reader takes no more memory than a small multiple of what it is given, and
// what it returns shares nothing with the bytes.
package binary

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/stele-id/stele"
)

// recordForm is the version of the form of records.
const recordForm = 1

var errZeroID = stele.Messagef("record.stored-without-identifier", "the record has no identifier; parse one first")

// AppendRecord appends a record to b.
func AppendRecord(b []byte, r *stele.Record) ([]byte, error) {
	if !r.ID.IsValid() {
		return b, &stele.Error{Op: "encode", Kind: stele.Invalid, Err: errZeroID}
	}
	b = append(b, recordForm)
	b = appendID(b, r.ID)
	b = appendText(b, r.Spelling)
	b = appendList(b, r.Aliases, appendID)
	b = appendText(b, string(r.State))
	b = appendTombstone(b, r.Tombstone)
	b = appendList(b, r.Targets, appendTarget)
	b = appendMetadata(b, r.Metadata)
	b = appendPersistence(b, r.Persistence)
	b = appendList(b, r.Values, appendValue)
	b = appendList(b, r.Readers, appendText)
	b = binary.AppendUvarint(b, r.Version)
	b = appendTime(b, r.Created)
	b = appendTime(b, r.Modified)
	b = appendText(b, r.By)
	b = appendBool(b, r.Redacted)
	// Fields that were added later are written where there is something in them, so that
	// other records keep the bytes that they had.
	uncached := slices.ContainsFunc(r.Values, isUncached)
	withholds := uncached || !r.Withheld.IsZero()
	if withholds || r.Import > 0 || len(r.Signatures) > 0 {
		b = appendList(b, r.Signatures, appendSignature)
	}
	if withholds || r.Import > 0 {
		b = binary.AppendUvarint(b, r.Import)
	}
	if withholds {
		b = appendWithheld(b, &r.Withheld)
	}
	if uncached {
		b = appendUncached(b, r.Values)
	}
	return b, nil
}

// MarshalRecord returns a record's bytes.
func MarshalRecord(r *stele.Record) ([]byte, error) { return AppendRecord(nil, r) }

// UnmarshalRecord reads a record.
func UnmarshalRecord(data []byte, r *stele.Record) error {
	d := decoder{rest: string(data)}
	if form := d.byte(); form != recordForm && d.err == nil {
		return &stele.Error{Op: "decode", Kind: stele.Internal, Err: stele.Messagef("record.stored-form-unknown", "a record of form {form}, which this program does not know", form)}
	}
	*r = stele.Record{
		ID:          d.id(),
		Spelling:    d.text(),
		Aliases:     list(&d, d.id),
		State:       stele.State(d.text()),
		Tombstone:   d.tombstone(),
		Targets:     list(&d, d.target),
		Metadata:    d.metadata(),
		Persistence: d.persistence(),
		Values:      list(&d, d.value),
		Readers:     list(&d, d.text),
		Version:     d.uvarint(),
		Created:     d.time(),
		Modified:    d.time(),
		By:          d.text(),
		Redacted:    d.bool(),
	}
	var uncached []uint64
	if d.err == nil && len(d.rest) > 0 {
		uncached = d.laterRecord(r)
	}
	giveTTL(r.Values, uncached)
	if d.err == nil && !r.ID.IsValid() {
		d.fail(errOdd)
	}
	return d.end("record")
}

func appendTombstone(b []byte, t *stele.Tombstone) []byte {
	if t == nil {
		return append(b, 0)
	}
	b = appendText(append(b, 1), t.Reason)
	return appendID(appendTime(b, t.At), t.Replacement)
}

func appendTarget(b []byte, t stele.Target) []byte {
	b = appendText(b, string(t.Service))
	b = appendText(b, t.URL)
	b = appendText(b, t.Type)
	b = appendText(b, t.Language)
	b = binary.AppendUvarint(b, uint64(t.Order))
	b = binary.AppendUvarint(b, uint64(t.Preference))
	b = binary.AppendUvarint(b, uint64(t.TTL))
	b = binary.AppendVarint(b, int64(t.Status))
	return appendBool(b, t.Partial)
}

func appendMetadata(b []byte, m stele.Metadata) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	var few [16]string // most descriptions have no more
	keys := few[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		b = appendText(appendText(b, key), m[key])
	}
	return b
}

func appendPersistence(b []byte, p stele.Persistence) []byte {
	return appendText(appendText(appendText(b, string(p.Level)), p.Until), p.Statement)
}

func appendValue(b []byte, v stele.HandleValue) []byte {
	b = binary.AppendUvarint(b, uint64(v.Index))
	b = appendText(b, v.Type)
	b = appendText(b, string(v.Data))
	b = binary.AppendUvarint(b, uint64(v.TTL))
	b = appendBool(b, v.TTLAbsolute)
	b = binary.AppendUvarint(b, uint64(v.Timestamp))
	b = append(b, byte(v.Permissions))
	return appendList(b, v.References, func(b []byte, r stele.HandleReference) []byte {
		return binary.AppendUvarint(appendText(b, r.Handle), uint64(r.Index))
	})
}

func (d *decoder) tombstone() *stele.Tombstone {
	if !d.bool() {
		return nil
	}
	return &stele.Tombstone{Reason: d.text(), At: d.time(), Replacement: d.id()}
}

func (d *decoder) target() stele.Target {
	return stele.Target{
		Service:    stele.Service(d.text()),
		URL:        d.text(),
		Type:       d.text(),
		Language:   d.text(),
		Order:      uint16(d.upTo(math.MaxUint16)),
		Preference: uint16(d.upTo(math.MaxUint16)),
		TTL:        uint32(d.upTo(math.MaxUint32)),
		Status:     int(d.varint()),
		Partial:    d.bool(),
	}
}

func (d *decoder) metadata() stele.Metadata {
	n := d.upTo(uint64(len(d.rest)))
	if n == 0 {
		return nil
	}
	m := make(stele.Metadata)
	for range n {
		key := d.text()
		m[key] = d.text()
	}
	return m
}

func (d *decoder) persistence() stele.Persistence {
	return stele.Persistence{Level: stele.Level(d.text()), Until: d.text(), Statement: d.text()}
}

func (d *decoder) value() stele.HandleValue {
	v := stele.HandleValue{
		Index:       uint32(d.upTo(math.MaxUint32)),
		Type:        d.text(),
		Data:        []byte(d.text()),
		TTL:         uint32(d.upTo(math.MaxUint32)),
		TTLAbsolute: d.bool(),
		Timestamp:   uint32(d.upTo(math.MaxUint32)),
		Permissions: stele.Permission(d.byte()),
	}
	v.References = list(d, func() stele.HandleReference {
		return stele.HandleReference{Handle: d.text(), Index: uint32(d.upTo(math.MaxUint32))}
	})
	return v
}

func appendWithheld(b []byte, w *stele.Withheld) []byte {
	b = binary.AppendUvarint(b, w.Redacted)
	b = binary.AppendUvarint(b, w.Erased)
	return appendList(b, w.Disavowed, func(b []byte, d stele.Disavowal) []byte {
		b = binary.AppendUvarint(b, d.First)
		b = binary.AppendUvarint(b, d.Last)
		return appendText(appendTime(appendText(b, d.Reason), d.At), d.By)
	})
}

// withheld reads what appendWithheld wrote.
func (d *decoder) withheld(r *stele.Record) {
	r.Withheld = stele.Withheld{Redacted: d.uvarint(), Erased: d.uvarint()}
	r.Withheld.Disavowed = list(d, func() stele.Disavowal {
		return stele.Disavowal{First: d.uvarint(), Last: d.uvarint(), Reason: d.text(), At: d.time(), By: d.text()}
	})
}

// Handle values were stored with a TTL of 0 where their owner gave none, until a missing
// TTL became [DefaultHandleTTL]. Since then a TTL of 0 that the owner gave is marked: a
// record has, after all else, the places of the values with such a TTL. A TTL of 0 that is
// not marked is one that the owner did not give.

// isUncached reports whether a value is not to be cached.
func isUncached(v stele.HandleValue) bool { return v.TTL == 0 && !v.TTLAbsolute }

// appendUncached appends the places of the values that are not to be cached.
func appendUncached(b []byte, values []stele.HandleValue) []byte {
	var places []uint64
	for i, v := range values {
		if isUncached(v) {
			places = append(places, uint64(i))
		}
	}
	return appendList(b, places, binary.AppendUvarint)
}

// uncached reads what appendUncached wrote.
func (d *decoder) uncached(values []stele.HandleValue) []uint64 {
	places := list(d, d.uvarint)
	for i, at := range places {
		if at >= uint64(len(values)) || !isUncached(values[at]) || i > 0 && at <= places[i-1] {
			d.fail(errOdd)
			return nil
		}
	}
	return places
}

// giveTTL gives the usual TTL to the values whose owner gave none. Those at the places given, in
// their order, are not to be cached.
func giveTTL(values []stele.HandleValue, uncached []uint64) {
	for i := range values {
		switch {
		case len(uncached) > 0 && uncached[0] == uint64(i):
			uncached = uncached[1:]
		case isUncached(values[i]):
			values[i].TTL = stele.DefaultHandleTTL
		}
	}
}

func appendSignature(b []byte, s stele.Signature) []byte {
	b = append(b, s.SHA256[:]...)
	b = binary.AppendUvarint(b, s.Size)
	b = appendText(b, s.Type)
	b = appendTime(b, s.Date)
	return appendText(appendText(b, s.Key), s.JWS)
}

func (d *decoder) signature() (s stele.Signature) {
	if len(d.rest) < len(s.SHA256) {
		d.fail(errShort)
		return s
	}
	d.rest = d.rest[copy(s.SHA256[:], d.rest):]
	s.Size, s.Type, s.Date, s.Key, s.JWS = d.uvarint(), d.text(), d.time(), d.text(), d.text()
	return s
}

// laterRecord reads the fields that were added to records later. At least one is there.
func (d *decoder) laterRecord(r *stele.Record) (uncached []uint64) {
	r.Signatures = list(d, d.signature)
	odd := len(r.Signatures) == 0
	if len(d.rest) > 0 {
		r.Import = d.uvarint()
		odd = r.Import == 0
	}
	if len(d.rest) > 0 {
		d.withheld(r)
		odd = r.Withheld.IsZero()
	}
	if len(d.rest) > 0 {
		uncached = d.uncached(r.Values)
		odd = len(uncached) == 0
	}
	if d.err == nil && odd {
		d.fail(errOdd) // an empty last field is not written
	}
	return uncached
}
