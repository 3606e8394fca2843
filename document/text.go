package document

import "github.com/stele-id/stele"

// Text reads one JSON text of a known shape, as strictly as [DecodeRecord] does, for packages
// that have other forms than those of records and namespaces. The methods pass over the values
// of the text in their order. What is wrong is collected, and Err returns it. After a text that
// is not JSON all methods return zero values.
type Text struct{ d document }

// NewText returns a Text at the beginning of data, of which it keeps a copy. More than
// [stele.MaxDocument] bytes are a problem.
func NewText(data []byte) *Text {
	t := new(Text)
	t.d.begin(data)
	return t
}

// Err makes sure that nothing follows, and returns all problems as one error of Kind Invalid.
func (t *Text) Err(op string) error {
	t.d.end()
	return t.d.faults.Err(op, stele.ID{})
}

// Next returns the character with which the next value begins: a quotation mark, a brace, a
// bracket, a digit; 0 at the end.
func (t *Text) Next() byte { return t.d.peek() }

// Fault reports what is wrong with the value that is being read, or was read last.
func (t *Text) Fault(err error) {
	if !t.d.broken {
		t.d.faults.Add(t.d.where(), err)
	}
}

// Object reads an object of known fields, which are listed for people in fields. For each,
// field reads the value, or returns false if it does not know the name.
func (t *Text) Object(fields string, field func(name string) bool) { t.d.object(fields, field) }

// Array reads a list and calls read for each item, up to a limit.
func (t *Text) Array(limit int, read func(i int)) { t.d.array(limit, read) }

// Later passes over a value, and returns what reads it: for an object in which a later member
// says what an earlier one is.
func (t *Text) Later() func(read func()) {
	t.d.peek()
	begin, path, depth := t.d.pos, t.d.path, t.d.depth
	t.d.skip(0)
	return func(read func()) {
		if t.d.broken {
			return
		}
		end, was, at := t.d.pos, t.d.path, t.d.depth
		t.d.pos, t.d.path, t.d.depth = begin, path, depth
		read()
		t.d.path, t.d.depth = was, at
		if !t.d.broken {
			t.d.pos = end
		}
	}
}

// String reads a string; it is empty if there is none.
func (t *Text) String() string { return t.d.text() }

// Bool reads true or false.
func (t *Text) Bool() bool { return t.d.bool() }

// Uint reads a whole number from 0 to limit; it is 0 if there is none.
func (t *Text) Uint(limit uint64) uint64 { return t.d.number(limit) }

// Bytes reads bytes in base64; nil if there are none.
func (t *Text) Bytes() []byte { return t.d.bytes() }

// Seconds reads a time that Unix seconds of 32 bits can say, as handle values have it.
func (t *Text) Seconds() uint32 { return t.d.timestamp() }
