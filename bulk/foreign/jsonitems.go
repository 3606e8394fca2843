package foreign

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/stele-id/stele"
)

// jsonItems finds the objects of a JSON text that are records: those that follow each other, one a line or not, those of lists, and
// those of lists in pages of an API, which are objects around them. Lines that begin with # are remarks, as a file of rejected rows
// has them.
type jsonItems struct {
	s *Source
	w *window

	pages []string // what a page begins with: the names of members
	lists []string // members of a page whose values are records, or lists or pages of them
	told  []string // members of a page that say more than how it was asked for: they are told

	stack []byte // the lists and pages that are open
	begun bool   // the innermost has a value already
}

// maxPages is how many lists and pages can be in each other.
const maxPages = 8

// next returns the next record; io.EOF at the end.
func (r *jsonItems) next() (item, error) {
	for {
		r.w.space()
		var it item
		var found bool
		var err error
		switch {
		case len(r.stack) == 0:
			for r.w.peek() == '#' {
				r.w.nextLine()
				r.w.space()
			}
			if r.w.ended() {
				if err := r.w.failure(); err != nil {
					return item{}, err
				}
				return item{}, io.EOF
			}
			it, found, err = r.value()
		case r.stack[len(r.stack)-1] == '[':
			it, found, err = r.element()
		default:
			it, found, err = r.member()
		}
		if err != nil || found {
			return it, err
		}
	}
}

// value reads a value that is a record, or opens the list or the page that it is.
func (r *jsonItems) value() (it item, found bool, err error) {
	it.line = r.w.line
	switch c := r.w.peek(); {
	case c == '[' || c == '{' && r.isPage():
		if len(r.stack) == maxPages {
			return it, false, r.broken("a record")
		}
		r.w.byte()
		r.stack, r.begun = append(r.stack, c), false
		return it, false, nil
	case c == '{':
		text, long, err := (&jsonPart{w: r.w}).value(maxRow)
		if it.text = text; long > 0 {
			it.text, it.err = nil, tooLong(long, maxRow)
		}
		r.begun = true
		return it, true, err
	case len(r.stack) == 0:
		return it, false, r.broken("an object or a list")
	}
	text, _, err := (&jsonPart{w: r.w}).value(maxRow)
	if err == nil && len(text) == 0 {
		return it, false, r.broken("a value")
	}
	it.err = failf(stele.Invalid, "import.json-item-not-an-object", "the item of the list is not an object")
	r.begun = true
	return it, true, err
}

// isPage reports whether the object that follows is a page.
func (r *jsonItems) isPage() bool {
	head := bytes.TrimLeft(r.w.peekText(256)[1:], " \t\r\n")
	for _, name := range r.pages {
		if rest, ok := bytes.CutPrefix(head, []byte(`"`+name+`"`)); ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) {
			return true
		}
	}
	return false
}

// pass passes over what stands before the next value of the innermost list or page. more is false if that has ended.
func (r *jsonItems) pass(end byte) (more bool, err error) {
	c := r.w.peek()
	switch {
	case r.w.ended():
		if err := r.w.failure(); err != nil {
			return false, err
		}
		return false, failf(stele.Invalid, "import.foreign-json-cut-off", "{file} ends within line {line}; get the rest of it", r.w.name, r.w.line)
	case c == end:
		r.w.byte()
		r.stack, r.begun = r.stack[:len(r.stack)-1], true
		return false, nil
	case r.begun && c != ',':
		return false, r.broken("a comma or " + string(end))
	case r.begun:
		r.w.byte()
		r.w.space()
	}
	return true, nil
}

// element reads the next element of a list.
func (r *jsonItems) element() (it item, found bool, err error) {
	if more, err := r.pass(']'); !more || err != nil {
		return it, false, err
	}
	return r.value()
}

// member reads the next member of a page.
func (r *jsonItems) member() (it item, found bool, err error) {
	if more, err := r.pass('}'); !more || err != nil {
		return it, false, err
	}
	scan := &jsonPart{w: r.w}
	if r.w.peek() != '"' {
		return it, false, r.broken("a name in quotation marks")
	}
	line := r.w.line
	text, _, err := scan.value(64 << 10)
	if err != nil {
		return it, false, err
	}
	var name string
	if json.Unmarshal(text, &name) != nil {
		return it, false, r.broken("a name in quotation marks")
	}
	if r.w.space(); r.w.peek() != ':' {
		return it, false, r.broken("a colon")
	}
	r.w.byte()
	r.w.space()
	r.begun = true
	for _, list := range r.lists {
		if c := r.w.peek(); list == name && (c == '{' || c == '[') {
			return r.value()
		}
	}
	empty := r.w.peekText(2)
	isEmpty := bytes.Equal(empty, []byte("[]")) || bytes.Equal(empty, []byte("{}"))
	if text, long, err := scan.value(maxRow); err != nil || long == 0 && len(text) == 0 {
		if err == nil {
			err = r.broken("a value")
		}
		return it, false, err
	}
	for _, other := range r.told {
		if other == name && !isEmpty {
			r.s.note("import.foreign-member-unknown", "{file}: the member {name} at line {line} is not known, and is left out", r.w.name, name, line)
		}
	}
	return it, false, nil
}

// broken says what should stand here.
func (r *jsonItems) broken(want string) error {
	if err := r.w.failure(); err != nil {
		return err
	}
	found := "the end"
	if !r.w.ended() {
		found = stele.Describe(rune(r.w.peek()))
	}
	return failf(stele.Invalid, "import.json-broken", "{file} is not JSON of {system} at line {line}: {expected} should stand here, not {found}", r.w.name, r.s.system.Title, r.w.line, want, found)
}

// compacted returns JSON on one line, for the file of rejected rows.
func compacted(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	return b.Bytes()
}
