package foreign

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/handlejson"
)

// jsonPart reads a JSON export of a Handle server (specification, section 2):
//
//	{"homedPrefixes":["0.NA/P",...],"handleRecords":{"P/1":{"handle":"P/1","values":[VALUE,...]},...}}
//
// or a record a line, as the REST interface answers and as a file of rejected rows has it. It looks
// only for where records begin and end, so that a file may have any size; what they say is read in
// parallel.
type jsonPart struct {
	s     *Source
	w     *window
	state jsonState
	begun bool // some member or record was read, so that a comma follows
}

type jsonState int

const (
	atBeginning jsonState = iota
	inFile                // between members of the outer object
	inRecords             // between members of handleRecords
	inLines               // before a record on a line
	atEnd
)

// outerBit of a block's End says that it ended between members of the outer object.
const outerBit = 1 << (partBits - 1)

func (p *jsonPart) close() error { return nil }

// next implements part.
func (p *jsonPart) next() (*bulk.Block, error) {
	if p.state == atBeginning {
		if err := p.begin(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Line: p.w.line}
	size := 0
	for p.state != atEnd && size < windowBytes {
		rows, err := p.step()
		if err != nil && len(b.Rows) == 0 {
			return nil, err
		} else if err != nil {
			p.fail(err)
			break
		}
		for _, row := range rows {
			size += len(row.Text)
		}
		if b.Rows = append(b.Rows, rows...); len(rows) > 0 {
			b.Next, b.End = p.w.line, p.w.offset()
			if p.state == inFile {
				b.End |= outerBit
			}
		}
	}
	if len(b.Rows) == 0 {
		if p.s.err != nil {
			return nil, p.s.err
		}
		return nil, io.EOF
	}
	b.Size = size
	return b, nil
}

// fail ends the reading; what was read before comes first.
func (p *jsonPart) fail(err error) { p.s.err, p.state = err, atEnd }

// begin finds out which of both forms it is.
func (p *jsonPart) begin() error {
	w := p.w
	if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
		w.take(3)
	}
	p.remarks()
	if w.ended() {
		p.state = atEnd
		return w.failure()
	}
	if w.peek() != '{' {
		return p.broken("an object")
	}
	// The first member says which form it is.
	head := bytes.TrimLeft(w.peekText(256)[1:], " \t\r\n")
	for _, name := range []string{`"homedPrefixes"`, `"handleRecords"`} {
		if bytes.HasPrefix(head, []byte(name)) || bytes.HasPrefix(head, []byte("}")) {
			w.byte()
			p.state = inFile
			return nil
		}
	}
	p.state = inLines
	return nil
}

// remarks passes over space and lines that begin with #.
func (p *jsonPart) remarks() {
	for p.w.space(); p.w.peek() == '#'; p.w.space() {
		p.w.nextLine()
	}
}

// skip implements part.
func (p *jsonPart) skip(end int64, line int) error {
	if err := p.begin(); err != nil {
		return err
	}
	outer := end&outerBit != 0
	end &^= outerBit
	for p.state == inFile && p.w.offset() < end { // the homed prefixes are told again
		if _, err := p.step(); err != nil {
			return err
		}
	}
	if p.begun = true; outer {
		p.state = inFile
	}
	return p.w.skipTo(end, line)
}

// step reads the next member, or the next record.
func (p *jsonPart) step() ([]bulk.Row, error) {
	w := p.w
	if p.state == inLines {
		if p.remarks(); w.ended() {
			p.state = atEnd
			return nil, w.failure()
		}
		return p.record(w.line)
	}
	w.space()
	switch c := w.peek(); {
	case c == '}':
		w.byte()
		p.begun = true
		if p.state == inRecords {
			p.state = inFile
			return nil, nil
		}
		p.state = atEnd
		if w.space(); !w.ended() {
			return nil, p.broken("the end of the file")
		}
		return nil, w.failure()
	case p.begun && c != ',':
		return nil, p.broken("a comma or }")
	case p.begun:
		w.byte()
		w.space()
	}
	line := w.line
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	p.begun = true
	if p.state == inRecords {
		rows, err := p.record(line)
		if err == nil && rows[0].Err == nil {
			rows[0].Record = &stele.Record{Spelling: name} // until it is parsed
		}
		return rows, err
	}
	return p.member(name, line)
}

// name reads the name of a member and its colon.
func (p *jsonPart) name() (string, error) {
	w := p.w
	if w.peek() != '"' {
		return "", p.broken("a name in quotation marks")
	}
	text, long, err := p.value(64 << 10)
	if err != nil {
		return "", err
	}
	var name string
	if long == 0 && isPlain(text[1:len(text)-1]) {
		name = string(text[1 : len(text)-1])
	} else if long > 0 || json.Unmarshal(text, &name) != nil {
		return "", p.broken("a name in quotation marks")
	}
	if w.space(); w.peek() != ':' {
		return "", p.broken("a colon")
	}
	w.byte()
	w.space()
	return name, nil
}

// isPlain reports whether a string in JSON stands for its own bytes: printable ASCII without escapes.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

// member reads a member of the outer object.
func (p *jsonPart) member(name string, line int) ([]bulk.Row, error) {
	switch name {
	case "handleRecords":
		if p.w.peek() != '{' {
			return nil, p.broken("an object")
		}
		p.w.byte()
		p.state, p.begun = inRecords, false
		return nil, nil
	case "homedPrefixes":
		text, long, err := p.value(maxRow)
		if err != nil {
			return nil, err
		}
		if long > 0 {
			return nil, failf(stele.Invalid, "import.foreign-prefixes-too-long", "{file}: the list homedPrefixes at line {line} has {size} bytes; {most} are the most", p.w.name, line, long, maxRow)
		}
		var list []string
		if json.Unmarshal(text, &list) != nil {
			return nil, failf(stele.Invalid, "import.foreign-prefixes-not-a-list", "{file}: homedPrefixes at line {line} is not a list of strings", p.w.name, line)
		}
		var rows []bulk.Row
		for _, prefix := range list {
			rows = append(rows, p.s.prefix(prefix, line)...)
		}
		return rows, nil
	}
	if _, _, err := p.value(0); err != nil {
		return nil, err
	}
	p.s.note("import.foreign-member-unknown", "{file}: the member {name} at line {line} is not known, and is left out", p.w.name, name, line)
	return nil, nil
}

// record cuts out a record.
func (p *jsonPart) record(line int) ([]bulk.Row, error) {
	if p.w.peek() != '{' {
		return nil, p.broken("a record in braces")
	}
	text, long, err := p.value(maxRow)
	if err != nil {
		return nil, err
	}
	row := bulk.Row{Line: line, Text: text}
	if long > 0 {
		row.Err, row.Text = tooLong(long, maxRow), nil
	}
	return []bulk.Row{row}, nil
}

// value passes over a value and returns its text; if it is longer than most, its size.
func (p *jsonPart) value(most int) (text []byte, long int, err error) {
	w := p.w
	depth, size, i := 0, 0, 0
	quoted, escaped := false, false
	for {
		rest := w.buf[w.pos:]
		for ; i < len(rest); i++ {
			c := rest[i]
			if quoted {
				switch {
				case escaped:
					escaped = false
				case c == '\\':
					escaped = true
				case c == '"':
					quoted = false
				default:
					i += ordinary(rest[i:]) - 1
					continue
				}
				if quoted || depth > 0 {
					continue
				}
				return p.end(i+1, size, most)
			}
			switch c {
			case '"':
				quoted = true
			case '{', '[':
				depth++
			case '}', ']':
				if depth == 0 {
					return p.end(i, size, most)
				}
				if depth--; depth == 0 {
					return p.end(i+1, size, most)
				}
			case ',', ' ', '\t', '\r', '\n':
				if depth == 0 {
					return p.end(i, size, most)
				}
			}
		}
		if len(rest) > most+windowBytes { // its end is looked for, and it is not kept
			size += len(rest)
			w.take(len(rest))
			i = 0
		}
		if !w.fill() {
			if err := w.failure(); err != nil {
				return nil, 0, err
			}
			return nil, 0, failf(stele.Invalid, "import.foreign-json-cut-off", "{file} ends within line {line}; get the rest of it", w.name, w.line)
		}
	}
}

// ordinary returns how many bytes stand before a quotation mark or a backslash. It reads no further: a
// string with many escapes is read in linear time.
func ordinary(text []byte) int {
	for i, c := range text {
		if c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

func (p *jsonPart) end(n, size, most int) ([]byte, int, error) {
	text := p.w.take(n)
	if size += n; size > most {
		return nil, size, nil
	}
	return text, 0, nil
}

// broken says what should stand here.
func (p *jsonPart) broken(want string) error {
	if err := p.w.failure(); err != nil {
		return err
	}
	found := "the end"
	if !p.w.ended() {
		found = stele.Describe(rune(p.w.peek()))
	}
	return failf(stele.Invalid, "import.foreign-json-broken", "{file} is not an export of a Handle server at line {line}: {expected} should stand here, not {found}", p.w.name, p.w.line, want, found)
}

// parse implements part.
func (p *jsonPart) parse(row *bulk.Row) {
	text, name := row.Text, ""
	if row.Record != nil { // the name stands before the record
		name = row.Record.Spelling
	}
	handle, values, err := handlejson.DecodeRecord(text)
	if err != nil {
		row.Record, row.Err = nil, err
		row.Text = withoutSecrets(text)
		return
	}
	row.Text, row.Later = nil, func() []byte { return rowText(handle, values) } // which has no secrets
	switch {
	case handle == "" && name == "":
		row.Record = nil
		row.Err = failf(stele.Invalid, "import.foreign-record-nameless", `the record has no name; give it a member "handle"`)
		return
	case handle != "" && name != "" && upper(handle) != upper(name):
		row.Record = nil
		row.Err = failf(stele.Invalid, "import.foreign-record-two-names", "the record stands under the name {name}, and says that it is {handle}", name, handle)
		return
	case handle == "":
		handle = name
	}
	p.s.build(row, handle, values)
}

// withoutSecrets returns the text of a record that is not understood, for the file of rejected rows: one
// line, or none if it may have a secret. The type of a value may be written with escapes, so what
// would be written is searched, and not what stands in the file; what is not JSON is not written.
func withoutSecrets(text []byte) []byte {
	tree, err := document.ReadTree(text)
	if err != nil {
		return nil
	}
	line, err := json.Marshal(tree)
	if err != nil || mentionsSecret(line) {
		return nil
	}
	return line
}

// mentionsSecret reports whether a text has the type of a secret in any letter case, as isSecret compares it:
// there are letters outside ASCII that are S or K in another case.
func mentionsSecret(text []byte) bool {
	return bytes.Contains(bytes.ToUpper(bytes.ToLower(text)), []byte("SECKEY"))
}
