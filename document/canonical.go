package document

import (
	"slices"
	"strconv"
	"unicode/utf16"

	"github.com/stele-id/stele"
)

// CanonicalForm is the number of the canonical form that this package writes. What holds the
// digest of a canonical document tells the number with it.
const CanonicalForm = 1

// maxExact is the largest whole number that every reader of JSON keeps (RFC 8785, appendix D).
const maxExact = 1<<53 - 1

var errNotUTF8 = stele.Messagef("document.no-canonical-form", "a text in it is not UTF-8, so it has no canonical form")

// CanonicalRecord returns the canonical form of a record: the same record gives the same bytes
// wherever they are made, so that signatures and logs can be over them. It is the record's
// document under RFC 8785, with numbers above 2^53-1 as strings. The error is of Kind Invalid if
// a text of the record is not UTF-8, which no valid record has.
func CanonicalRecord(r *stele.Record) ([]byte, error) {
	var c Canonical
	return c.AppendRecord(nil, r)
}

// CanonicalNamespace returns the canonical form of a namespace, as [CanonicalRecord] does.
func CanonicalNamespace(n *stele.Namespace) ([]byte, error) {
	var c Canonical
	return c.AppendNamespace(nil, n)
}

// Canonical writes canonical forms, and uses its memory again. The zero value is ready. One goroutine at a time may use it.
type Canonical struct{ w sortedWriter }

// AppendRecord appends the canonical form of a record to b.
func (c *Canonical) AppendRecord(b []byte, r *stele.Record) ([]byte, error) {
	c.w.begin(b)
	c.w.record(r)
	return c.w.end(r.ID)
}

// AppendNamespace appends the canonical form of a namespace to b.
func (c *Canonical) AppendNamespace(b []byte, n *stele.Namespace) ([]byte, error) {
	c.w.begin(b)
	c.w.namespace(n)
	return c.w.end(stele.ID{})
}

// AppendBoth appends two canonical forms: to full that of a record, and to open that of the same record without By, Import and
// Readers. The record is written once.
func (c *Canonical) AppendBoth(full, open []byte, r *stele.Record) (fullAfter, openAfter []byte, err error) {
	begin := len(full)
	full, err = c.AppendRecord(full, r)
	if err != nil {
		return full, open, err
	}
	for _, cut := range c.w.cuts {
		open = append(open, full[begin:cut.from]...)
		begin = cut.to
	}
	return full, append(open, full[begin:]...), nil
}

// sortedWriter writes documents with the members of each object in the order of RFC 8785, section 3.2.3. The names of members are
// ASCII, except for keys of metadata, so their order is that of their octets; each function below has them in it.
type sortedWriter struct {
	jsonWriter
	keys []string // of metadata
	cuts []cut    // members that [Canonical.AppendBoth] leaves out
}

// cut is a part of what was written.
type cut struct{ from, to int }

func (w *sortedWriter) begin(b []byte) {
	w.b, w.damaged, w.cuts = b, false, w.cuts[:0]
}

// end returns what was written.
func (w *sortedWriter) end(id stele.ID) ([]byte, error) {
	b := w.b
	w.b = nil // it is the caller's
	if w.damaged {
		return b, &stele.Error{Op: "canonicalise", ID: id, Kind: stele.Invalid, Err: errNotUTF8}
	}
	return b, nil
}

// number writes a number that is not 0, as a string if it is too large for some readers.
func (w *sortedWriter) number(name string, value uint64) { w.numberUnless(name, value, 0) }

// numberUnless is number for one that reading gives back if it is missing.
func (w *sortedWriter) numberUnless(name string, value, missing uint64) {
	if value == missing {
		return
	}
	w.name(name)
	w.digits(value)
}

func (w *sortedWriter) digits(value uint64) {
	if value > maxExact {
		w.b = append(w.b, '"')
		w.b = strconv.AppendUint(w.b, value, 10)
		w.b = append(w.b, '"')
		return
	}
	w.b = strconv.AppendUint(w.b, value, 10)
}

func (w *sortedWriter) status(status int) {
	if status > 0 {
		w.number("status", uint64(status))
	} else {
		w.jsonWriter.status(status)
	}
}

// metadata writes an object whose members people name.
func (w *sortedWriter) metadata(m stele.Metadata) {
	if len(m) == 0 {
		return
	}
	w.keys = w.keys[:0]
	plain := true
	for key := range m {
		w.keys = append(w.keys, key)
		plain = plain && ordersAsBytes(key)
	}
	if plain {
		slices.Sort(w.keys)
	} else {
		slices.SortFunc(w.keys, compareUTF16)
	}
	w.name("metadata")
	w.open('{')
	for _, key := range w.keys {
		w.comma()
		w.string(key)
		w.b = append(w.b, ':')
		w.string(m[key])
	}
	w.close('}')
	clear(w.keys)
}

// ordersAsBytes reports whether a text has no character from U+E000 on: among those the order of UTF-16 is not that of UTF-8.
func ordersAsBytes(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xee {
			return false
		}
	}
	return true
}

// compareUTF16 compares texts by their UTF-16 (RFC 8785, section 3.2.3).
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
