package hdl

import "encoding/binary"

// reader reads octets from front to back. The first failure stays; after it every method returns
// zeros, so that callers check once, at the end.
type reader struct {
	b    []byte
	at   int
	what string       // what is read, for errors: "resolve request"
	code ResponseCode // the response code of failures
	err  *Error
}

func newReader(what string, code ResponseCode, b []byte) reader {
	return reader{b: b, what: what, code: code}
}

func (r *reader) fail(response ResponseCode, code, text string, args ...any) {
	if r.err == nil {
		r.err = errorf(response, code, text, args...)
		r.at = len(r.b)
	}
}

// left returns how many octets remain.
func (r *reader) left() int { return len(r.b) - r.at }

// take returns the next n octets.
func (r *reader) take(n int, field string) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.left() {
		r.fail(r.code, "hdl.short", "{what}: {field} at octet {at} needs {need} octets, and {left} remain", r.what, field, r.at, n, r.left())
		return nil
	}
	b := r.b[r.at : r.at+n : r.at+n]
	r.at += n
	return b
}

func (r *reader) u8(field string) uint8 {
	if b := r.take(1, field); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16(field string) uint16 {
	if b := r.take(2, field); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32(field string) uint32 {
	if b := r.take(4, field); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// str reads a length and that many octets. An empty string is not nil.
func (r *reader) str(field string) []byte { return r.limited(field, MaxString, r.code) }

// handle reads a string of at most MaxHandle octets.
func (r *reader) handle(field string) []byte { return r.limited(field, MaxHandle, InvalidHandle) }

// limited reads a string of at most most octets; a longer one fails with the given response code.
func (r *reader) limited(field string, most uint32, response ResponseCode) []byte {
	at := r.at
	n := r.u32(field)
	if r.err != nil {
		return nil
	}
	if n > most {
		r.fail(response, "hdl.string-too-long", "{what}: {field} at octet {at} has a length of {length} octets, and at most {most} are allowed", r.what, field, at, n, most)
		return nil
	}
	return r.take(int(n), field)
}

// count reads the number of items that follow, each of which has at least size octets.
func (r *reader) count(field string, size int, most uint32, response ResponseCode) int {
	at := r.at
	n := r.u32(field)
	if r.err != nil {
		return 0
	}
	if n > most {
		r.fail(response, "hdl.too-many", "{what}: {field} at octet {at} are {count}, and at most {most} are allowed", r.what, field, at, n, most)
		return 0
	}
	if int64(n)*int64(size) > int64(r.left()) {
		r.fail(r.code, "hdl.count-beyond-end", "{what}: {field} at octet {at} are {count}, which {left} octets cannot hold", r.what, field, at, n, r.left())
		return 0
	}
	return int(n)
}

// rest returns all octets that remain.
func (r *reader) rest() []byte { return r.take(r.left(), "") }

// end returns the error, which octets that remain are too.
func (r *reader) end() error {
	if r.err == nil && r.left() > 0 {
		r.fail(r.code, "hdl.trailing", "{what}: {left} octets follow its end at octet {at}", r.what, r.left(), r.at)
	}
	return r.done()
}

// done returns the error, if there is one. Octets may remain.
func (r *reader) done() error {
	if r.err != nil {
		return r.err
	}
	return nil
}

// maxCount bounds lists that have no limit of their own: the octets of the message do.
const maxCount = MaxString

func appendU16(dst []byte, n uint16) []byte { return binary.BigEndian.AppendUint16(dst, n) }
func appendU32(dst []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(dst, n) }

// appendStr appends a length and octets.
func appendStr[T ~string | ~[]byte](dst []byte, s T) []byte {
	return append(appendU32(dst, uint32(len(s))), s...)
}

// zeros reports whether all octets are zero.
func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// resized returns a slice of n items, in the memory of s if it is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n)
}
