package document

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// jsonWriter writes a document: compact, in a fixed order, in UTF-8. What reading
// gives back by itself is left out.
type jsonWriter struct {
	b       []byte
	damaged bool // a text was not UTF-8
}

// open begins an object or a list.
func (w *jsonWriter) open(c byte) { w.b = append(w.b, c) }

// close ends an object or a list, and begins no other.
func (w *jsonWriter) close(c byte) { w.b = append(w.b, c) }

// comma separates from what stands before, unless that is an opening.
func (w *jsonWriter) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

// name begins a member. Names of fields have nothing to escape.
func (w *jsonWriter) name(name string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// text writes a member that is a string, unless it is empty.
func (w *jsonWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.string(value)
	}
}

// number writes a member that is a number, unless it is what reading gives back.
func (w *jsonWriter) number(name string, value, missing uint64) {
	if value != missing {
		w.name(name)
		w.b = strconv.AppendUint(w.b, value, 10)
	}
}

// flag writes a member that is true, or nothing.
func (w *jsonWriter) flag(name string, value bool) {
	if value {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

// time writes a member that is a time, unless it is zero.
func (w *jsonWriter) time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.moment(t)
	}
}

func (w *jsonWriter) moment(t time.Time) {
	w.b = append(w.b, '"')
	w.b = t.UTC().AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}

// texts writes a member that is a list of strings, unless there are none.
func (w *jsonWriter) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.open('[')
	for _, s := range list {
		w.comma()
		w.string(s)
	}
	w.close(']')
}

// string writes a string. Unlike encoding/json it does not escape what only
// matters in HTML. Bytes that are not UTF-8 become U+FFFD.
func (w *jsonWriter) string(s string) {
	const hex = "0123456789abcdef"
	w.b = append(w.b, '"')
	for s != "" {
		n := ordinary(s)
		if utf8.ValidString(s[:n]) {
			w.b = append(w.b, s[:n]...)
		} else {
			w.damaged = true
			for _, r := range s[:n] {
				w.b = utf8.AppendRune(w.b, r)
			}
		}
		if n == len(s) {
			break
		}
		switch c := s[n]; c {
		case '"', '\\':
			w.b = append(w.b, '\\', c)
		case '\n':
			w.b = append(w.b, '\\', 'n')
		case '\t':
			w.b = append(w.b, '\\', 't')
		case '\r':
			w.b = append(w.b, '\\', 'r')
		case '\b':
			w.b = append(w.b, '\\', 'b')
		case '\f':
			w.b = append(w.b, '\\', 'f')
		default:
			w.b = append(w.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		s = s[n+1:]
	}
	w.b = append(w.b, '"')
}

// AppendString appends a string in JSON, as RFC 8785 has it, to b. Bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	w := jsonWriter{b: b}
	w.string(s)
	return w.b
}
