package document

import (
	"math"
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
	w := jsonWriter{}
	w.record(r)
	return w.canonical(r.ID)
}

// CanonicalNamespace returns the canonical form of a namespace, as [CanonicalRecord] does.
func CanonicalNamespace(n *stele.Namespace) ([]byte, error) {
	w := jsonWriter{}
	w.namespace(n)
	return w.canonical(stele.ID{})
}

// canonical returns the canonical form of what was written.
func (w *jsonWriter) canonical(id stele.ID) ([]byte, error) {
	if w.damaged {
		return nil, &stele.Error{Op: "canonicalise", ID: id, Kind: stele.Invalid, Err: errNotUTF8}
	}
	var j jsonReader
	j.start(string(w.b))
	return appendCanonical(make([]byte, 0, len(w.b)), &j), nil
}

// appendCanonical appends the next value in its canonical form. Strings and literals are
// written canonically already.
func appendCanonical(b []byte, j *jsonReader) []byte {
	begin := j.pos
	switch j.peek() {
	case '{':
		return appendSorted(b, j)
	case '[':
		b = append(b, '[')
		j.array(math.MaxInt, func(i int) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, j)
		})
		return append(b, ']')
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		number := j.number()
		if v, err := strconv.ParseUint(number, 10, 64); err == nil && v > maxExact {
			return append(append(append(b, '"'), number...), '"')
		}
		return append(b, number...)
	}
	j.skip(0)
	return append(b, j.text[begin:j.pos]...)
}

// appendSorted appends an object, its members sorted by the UTF-16 of their names (RFC 8785,
// section 3.2.3).
func appendSorted(b []byte, j *jsonReader) []byte {
	type member struct {
		name  string
		key   []uint16
		value []byte
	}
	var list []member
	j.members(func(name string) {
		list = append(list, member{name, utf16.Encode([]rune(name)), appendCanonical(nil, j)})
	})
	slices.SortFunc(list, func(a, b member) int { return slices.Compare(a.key, b.key) })
	w := jsonWriter{b: append(b, '{')}
	for i, m := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.string(m.name)
		w.b = append(append(w.b, ':'), m.value...)
	}
	return append(w.b, '}')
}
