package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// maxNesting is how deep the value of an unknown field, which is skipped, may nest.
// Known fields nest five deep.
const maxNesting = 32

// jsonReader reads one JSON text (RFC 8259) of a known shape, once and forwards,
// without reflection. An import of millions of records spends its time elsewhere
// then.
//
// It is stricter than encoding/json: names count in their case and occur once,
// null and numbers with fraction or exponent are of no type that a field has, and
// the text is UTF-8 without half surrogates. What has the wrong type is a fault, and
// reading continues after it. What is not JSON is a fault too, and ends it.
type jsonReader struct {
	text   string
	pos    int
	faults stele.Report
	broken bool // reading has ended early: the text is not JSON, or nests too deep

	path  [12]step // where reading is, for faults; no deeper than the shape is
	depth int
}

// step is a member's name or an item's index.
type step struct {
	name  string
	index int // of an item, from 1; 0 for a member
}

// start begins to read text, which the strings that are read will share.
func (j *jsonReader) start(text string) {
	j.text = text
	if strings.HasPrefix(text, "\ufeff") {
		j.syntaxf("json.byte-order-mark", "a byte order mark, which JSON must not have; remove it")
		return
	}
	if at := invalidAt(text); at < len(text) {
		j.pos = at
		j.syntaxf("json.not-utf-8", "byte 0x{byte} is not UTF-8; save the text as UTF-8", fmt.Sprintf("%02X", text[at]))
	}
}

// end makes sure that nothing follows.
func (j *jsonReader) end() {
	if c := j.peek(); c != 0 || !j.broken && j.pos < len(j.text) {
		j.syntaxf("json.trailing-text", "something follows the object's end; write one object alone")
	}
}

// where returns the path of what is being read.
func (j *jsonReader) where() string {
	path := ""
	for _, s := range j.path[:min(j.depth, len(j.path))] {
		if s.index > 0 {
			path = stele.ItemPath(path, s.index-1)
		} else {
			path = stele.FieldPath(path, s.name)
		}
	}
	return path
}

func (j *jsonReader) push(s step) {
	if j.depth < len(j.path) {
		j.path[j.depth] = s
	}
	j.depth++
}

func (j *jsonReader) pop() { j.depth-- }

// faultf reports what is wrong with the value that is being read.
func (j *jsonReader) faultf(code, text string, args ...any) {
	switch {
	case j.broken:
	case j.faults.IsFull():
		j.faults.Count()
	default:
		j.faults.Addf(j.where(), code, text, args...)
	}
}

// syntaxf reports that the text is not JSON, and ends the reading.
func (j *jsonReader) syntaxf(code, text string, args ...any) {
	j.stop(stele.Messagef("json.malformed", "this is not JSON at byte {position}: {cause}", j.pos, stele.Messagef(code, text, args...)))
}

// stop ends the reading.
func (j *jsonReader) stop(why error) {
	if j.broken {
		return
	}
	j.faults.Append(j.where(), why)
	j.broken = true
	j.pos = len(j.text)
}

// unexpected reports that want should stand here.
func (j *jsonReader) unexpected(want string) {
	if j.pos >= len(j.text) {
		j.syntaxf("json.ends-early", "the text ends too early; {expected} should follow", want)
		return
	}
	r, _ := utf8.DecodeRuneInString(j.text[j.pos:])
	j.syntaxf("json.unexpected-character", "{expected} should stand here, not {found}", want, stele.Describe(r))
}

// peek passes over space and returns the next byte, 0 at the end.
func (j *jsonReader) peek() byte {
	for j.pos < len(j.text) {
		c := j.text[j.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		j.pos++
	}
	return 0
}

// wrong reports that the next value is not of the type wanted, and skips it.
func (j *jsonReader) wrong(want string) {
	was := ""
	switch c := j.peek(); {
	case c == '{':
		was = "an object"
	case c == '[':
		was = "a list"
	case c == '"':
		was = "a string"
	case c == '-' || isDigit(c):
		was = "a number"
	case c == 't', c == 'f':
		was = "true or false"
	case c == 'n':
		was = "null; leave the field out if there is nothing to say"
	}
	j.skip(0) // first: a text that is not JSON has no type
	j.faultf("document.wrong-type", "should be {expected}, and is {found}", want, was)
}

// open passes over the beginning of an object, and reports whether there is one.
func (j *jsonReader) open() bool {
	if j.peek() != '{' {
		j.wrong("an object")
		return false
	}
	j.pos++
	return true
}

// member passes over the name of an object's next member and returns it; ok is
// false at the object's end.
func (j *jsonReader) member(first bool) (name string, ok bool) {
	if !j.next('}', first) {
		return "", false
	}
	if !j.at('"') {
		j.unexpected("a name in quotation marks")
		return "", false
	}
	name = j.quoted()
	if j.peek() != ':' {
		j.unexpected("a colon")
		return "", false
	}
	j.pos++
	return name, true
}

// members reads an object and calls field for each member, to read its value.
func (j *jsonReader) members(field func(name string)) {
	if !j.open() {
		return
	}
	for name, ok := j.member(true); ok; name, ok = j.member(false) {
		j.push(step{name: name})
		field(name)
		j.pop()
	}
}

// object reads an object of known fields, which are listed for people in fields.
// For each, field reads the value, or returns false if it does not know the name.
func (j *jsonReader) object(fields string, field func(name string) bool) {
	if !j.open() {
		return
	}
	var seen [20]string // no object has more fields; unknown ones are faults anyway
	n := 0
	for name, ok := j.member(true); ok; name, ok = j.member(false) {
		j.push(step{name: name})
		switch {
		case slices.Contains(seen[:n], name):
			j.faultf("document.field-twice", "is given twice; keep one")
			j.skip(0)
		case !field(name):
			j.faultf("document.field-unknown", "there is no such field; there are {fields}", strings.ReplaceAll(fields, " ", ", "))
			j.skip(0)
		case n < len(seen):
			seen[n] = name
			n++
		}
		j.pop()
	}
}

// array reads a list and calls read for each item, up to a limit.
func (j *jsonReader) array(limit int, read func(i int)) {
	if j.peek() != '[' {
		j.wrong("a list")
		return
	}
	j.pos++
	n := 0
	for ; j.next(']', n == 0); n++ {
		j.push(step{index: n + 1})
		if n < limit {
			read(n)
		} else {
			j.skip(0)
		}
		j.pop()
	}
	if n > limit {
		j.faultf("field.too-many-items", "has {count} items; {limit} are the most", n, limit)
	}
}

// next reports whether another member or item follows, and otherwise passes over
// the end.
func (j *jsonReader) next(end byte, first bool) bool {
	c := j.peek()
	switch {
	case j.broken:
		return false
	case c == end:
		j.pos++
		return false
	case first:
		return true
	case c == ',':
		j.pos++
		if j.peek() == end {
			j.syntaxf("json.trailing-comma", "a comma before the end; remove it")
			return false
		}
		return true
	}
	j.unexpected(fmt.Sprintf("a comma or %q", end))
	return false
}

// string reads a string. ok is false if the next value is not a string.
func (j *jsonReader) string() (s string, ok bool) {
	if !j.at('"') && j.peek() != '"' {
		j.wrong("a string")
		return "", false
	}
	s = j.quoted()
	return s, !j.broken
}

// bool reads true or false.
func (j *jsonReader) bool() bool {
	switch j.peek() {
	case 't':
		j.literal("true")
		return !j.broken
	case 'f':
		j.literal("false")
	default:
		j.wrong("true or false")
	}
	return false
}

// uint reads a whole number from 0 to limit.
func (j *jsonReader) uint(limit uint64) (v uint64, ok bool) {
	c := j.peek()
	if c != '-' && !isDigit(c) {
		j.wrong("a number")
		return 0, false
	}
	v, err := strconv.ParseUint(j.number(), 10, 64) // in plain digits: no sign, fraction or exponent
	if err != nil || v > limit {
		j.faultf("document.not-a-whole-number", "should be a whole number from 0 to {limit}, in plain digits", limit)
		return 0, false
	}
	return v, true
}

// tooDeep reports that a value nests too deep, and ends the reading.
func (j *jsonReader) tooDeep() {
	j.stop(stele.Messagef("json.too-deep", "nests more than {most} deep at byte {position}; nothing that is known does", maxNesting, j.pos))
}

// skip passes over a value of any type, nesting so deep already, and makes sure
// that it is JSON.
func (j *jsonReader) skip(nesting int) {
	if nesting > maxNesting {
		j.tooDeep()
		return
	}
	switch c := j.peek(); {
	case c == '"':
		j.quoted()
	case c == '-' || isDigit(c):
		j.number()
	case c == 't':
		j.literal("true")
	case c == 'f':
		j.literal("false")
	case c == 'n':
		j.literal("null")
	case c == '[':
		j.pos++
		for first := true; j.next(']', first); first = false {
			j.skip(nesting + 1)
		}
	case c == '{':
		j.members(func(string) { j.skip(nesting + 1) })
	default:
		j.unexpected("a value")
	}
}
