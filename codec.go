package stele

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The binary form of records and namespaces is what stores keep. A record's first
// byte is the version of the form. Then come its fields in a fixed order, numbers
// as varints, texts with their length before them. The form can only grow at its
// end; whatever else changes takes another first byte, and a store that has
// records of both reads both.
const (
	recordForm    = 1
	namespaceForm = 1
)

// AppendBinary appends the record in binary form to b.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	if !r.ID.IsValid() {
		return b, &Error{Op: "encode", Kind: Invalid, Err: errZeroID}
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
	// What came later stands behind, so that those without it have the bytes that
	// they had before.
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

// MarshalBinary returns the record in binary form.
func (r *Record) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary reads what MarshalBinary wrote. Any other bytes give an error of
// Kind Internal, since what is stored is damaged then. Nothing of data is kept.
func (r *Record) UnmarshalBinary(data []byte) error {
	d := decoder{rest: string(data)}
	if form := d.byte(); form != recordForm && d.err == nil {
		return &Error{Op: "decode", Kind: Internal, Err: fmt.Errorf("a record of form %d, which this program does not know", form)}
	}
	*r = Record{
		ID:          d.id(),
		Spelling:    d.text(),
		Aliases:     list(&d, d.id),
		State:       State(d.text()),
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

// AppendBinary appends the namespace in binary form to b.
func (n *Namespace) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, namespaceForm)
	for _, text := range []string{n.Scheme, n.Prefix, n.Owner, n.Title} {
		b = appendText(b, text)
	}
	m := &n.Minter
	b = appendText(b, string(m.Kind))
	b = appendText(b, m.Host)
	b = binary.AppendUvarint(b, uint64(m.Port))
	b = appendText(b, m.IP)
	b = binary.AppendUvarint(b, uint64(m.IPPort))
	b = appendBool(b, m.AllowPrivate)
	b = appendText(b, m.Granularity)
	b = appendText(b, m.Template)
	b = binary.AppendUvarint(b, m.Seed)
	b = binary.AppendUvarint(b, uint64(n.TTL))
	b = binary.AppendVarint(b, int64(n.Status))
	b = appendPersistence(b, n.Persistence)
	b = appendList(b, n.Hosts, appendText)
	b = appendList(b, n.Protocols, appendText)
	b = appendText(b, n.Delegate)
	b = appendBool(b, n.Checked)
	b = binary.AppendUvarint(b, n.Quota)
	b = binary.AppendUvarint(b, n.Version)
	b = appendTime(b, n.Created)
	b = appendTime(b, n.Modified)
	b = appendText(b, n.By)
	return n.appendLater(b), nil
}

// appendLater appends what came later. It stands behind, one after the other and no
// further than there is something, so that those without it have the bytes that they
// had before.
func (n *Namespace) appendLater(b []byte) []byte {
	p := &n.Publication
	extended := p.isExtended()
	passing := extended || n.Passthrough
	keys := passing || len(n.Keys) > 0
	secured := keys || p.isSecured()
	granted := secured || len(n.Grants) > 0
	if granted || !p.IsZero() {
		b = appendPublication(b, p)
	}
	if granted {
		b = appendList(b, n.Grants, func(b []byte, g Grant) []byte {
			return appendText(appendText(b, g.To), string(g.Role))
		})
	}
	if secured {
		b = appendSecurity(b, p)
	}
	if keys {
		b = appendList(b, n.Keys, appendSigningKey)
	}
	if passing {
		b = appendBool(b, n.Passthrough)
	}
	if extended {
		b = appendExtension(b, p)
	}
	if p.Catalog != "" || p.Exact {
		b = appendText(b, p.Catalog)
	}
	if p.Exact {
		b = appendBool(b, true)
	}
	return b
}

// MarshalBinary returns the namespace in binary form.
func (n *Namespace) MarshalBinary() ([]byte, error) { return n.AppendBinary(nil) }

// UnmarshalBinary reads what MarshalBinary wrote; see [Record.UnmarshalBinary].
func (n *Namespace) UnmarshalBinary(data []byte) error {
	d := decoder{rest: string(data)}
	if form := d.byte(); form != namespaceForm && d.err == nil {
		return &Error{Op: "decode", Kind: Internal, Err: fmt.Errorf("a namespace of form %d, which this program does not know", form)}
	}
	*n = Namespace{
		Scheme: d.text(),
		Prefix: d.text(),
		Owner:  d.text(),
		Title:  d.text(),
		Minter: Minter{
			Kind:         MinterKind(d.text()),
			Host:         d.text(),
			Port:         uint16(d.upTo(math.MaxUint16)),
			IP:           d.text(),
			IPPort:       uint16(d.upTo(math.MaxUint16)),
			AllowPrivate: d.bool(),
			Granularity:  d.text(),
			Template:     d.text(),
			Seed:         d.uvarint(),
		},
		TTL:         uint32(d.upTo(math.MaxUint32)),
		Status:      int(d.varint()),
		Persistence: d.persistence(),
		Hosts:       list(&d, d.text),
		Protocols:   list(&d, d.text),
		Delegate:    d.text(),
		Checked:     d.bool(),
		Quota:       d.uvarint(),
		Version:     d.uvarint(),
		Created:     d.time(),
		Modified:    d.time(),
		By:          d.text(),
	}
	if d.err == nil && len(d.rest) > 0 {
		d.later(n)
	}
	return d.end("namespace")
}

// later reads what came later, of which something is there.
func (d *decoder) later(n *Namespace) {
	n.Publication = d.publication()
	if len(d.rest) > 0 {
		n.Grants = list(d, func() Grant { return Grant{To: d.text(), Role: Role(d.text())} })
	}
	odd := n.Publication.IsZero() && len(n.Grants) == 0
	if len(d.rest) > 0 {
		d.security(&n.Publication)
		odd = !n.Publication.isSecured()
	}
	if len(d.rest) > 0 {
		n.Keys = list(d, d.signingKey)
		odd = len(n.Keys) == 0
	}
	if len(d.rest) > 0 {
		n.Passthrough = d.bool()
		odd = !n.Passthrough
	}
	if len(d.rest) > 0 {
		d.extension(&n.Publication)
		odd = !n.Publication.isExtended()
	}
	if len(d.rest) > 0 {
		n.Publication.Catalog = d.text()
		odd = n.Publication.Catalog == ""
	}
	if len(d.rest) > 0 {
		n.Publication.Exact = d.bool()
		odd = !n.Publication.Exact
	}
	if d.err == nil && odd {
		d.fail(errOdd) // nothing is written of it then
	}
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendList[T any](b []byte, list []T, item func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = item(b, v)
	}
	return b
}

func appendID(b []byte, id ID) []byte { return appendText(appendText(b, id.scheme), id.text) }

// appendTime appends seconds and nanoseconds since 1970; the zero time is 0, 0 and
// a mark, since 1970 is a time too.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func appendTombstone(b []byte, t *Tombstone) []byte {
	if t == nil {
		return append(b, 0)
	}
	b = appendText(append(b, 1), t.Reason)
	return appendID(appendTime(b, t.At), t.Replacement)
}

func appendTarget(b []byte, t Target) []byte {
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

func appendMetadata(b []byte, m Metadata) []byte {
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

func appendPersistence(b []byte, p Persistence) []byte {
	return appendText(appendText(appendText(b, string(p.Level)), p.Until), p.Statement)
}

func appendValue(b []byte, v HandleValue) []byte {
	b = binary.AppendUvarint(b, uint64(v.Index))
	b = appendText(b, v.Type)
	b = appendText(b, string(v.Data))
	b = binary.AppendUvarint(b, uint64(v.TTL))
	b = appendBool(b, v.TTLAbsolute)
	b = binary.AppendUvarint(b, uint64(v.Timestamp))
	b = append(b, byte(v.Permissions))
	return appendList(b, v.References, func(b []byte, r HandleReference) []byte {
		return binary.AppendUvarint(appendText(b, r.Handle), uint64(r.Index))
	})
}

var (
	errShort = errors.New("it ends too early")
	errOdd   = errors.New("a number or mark is not what it can be")
)

// decoder reads a binary form. After the first error it reads zeros. The form is
// copied once, as a string, of which all texts are pieces.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = ""
}

// end returns what was wrong, or that something is left.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = errors.New("something follows its end")
	}
	if d.err != nil {
		return &Error{Op: "decode", Kind: Internal, Err: fmt.Errorf("a stored %s is damaged: %w", what, d.err)}
	}
	return nil
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail(errShort)
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail(errOdd)
	}
	return v == 1
}

// uvarint is binary.Uvarint on a string.
func (d *decoder) uvarint() (v uint64) {
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		c := d.rest[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break // more than 64 bits
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail(errShort)
	return 0
}

func (d *decoder) upTo(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail(errOdd)
		return 0
	}
	return v
}

// varint undoes the zigzag of binary.AppendVarint.
func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail(errShort)
		return ""
	}
	v := d.rest[:n]
	d.rest = d.rest[n:]
	return v
}

// list reads a list; nil if it is empty. An item has at least a byte, so a length
// that can't be true is found before memory is taken for it.
func list[T any](d *decoder, item func() T) []T {
	n := d.upTo(uint64(len(d.rest)))
	if n == 0 {
		return nil
	}
	v := make([]T, 0, min(n, 1000)) // a damaged length takes no memory; see MaxTargets
	for range n {
		if v = append(v, item()); d.err != nil {
			return nil
		}
	}
	return v
}

func (d *decoder) id() ID { return ID{d.text(), d.text()} }

func (d *decoder) time() time.Time {
	if !d.bool() {
		return time.Time{}
	}
	sec := d.varint()
	return time.Unix(sec, int64(d.upTo(999_999_999))).UTC()
}

func (d *decoder) tombstone() *Tombstone {
	if !d.bool() {
		return nil
	}
	return &Tombstone{Reason: d.text(), At: d.time(), Replacement: d.id()}
}

func (d *decoder) target() Target {
	return Target{
		Service:    Service(d.text()),
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

func (d *decoder) metadata() Metadata {
	n := d.upTo(uint64(len(d.rest)))
	if n == 0 {
		return nil
	}
	m := make(Metadata)
	for range n {
		key := d.text()
		m[key] = d.text()
	}
	return m
}

func (d *decoder) persistence() Persistence {
	return Persistence{Level(d.text()), d.text(), d.text()}
}

func (d *decoder) value() HandleValue {
	v := HandleValue{
		Index:       uint32(d.upTo(math.MaxUint32)),
		Type:        d.text(),
		Data:        []byte(d.text()),
		TTL:         uint32(d.upTo(math.MaxUint32)),
		TTLAbsolute: d.bool(),
		Timestamp:   uint32(d.upTo(math.MaxUint32)),
		Permissions: Permission(d.byte()),
	}
	v.References = list(d, func() HandleReference {
		return HandleReference{d.text(), uint32(d.upTo(math.MaxUint32))}
	})
	return v
}
