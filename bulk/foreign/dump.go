package foreign

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// dumpPart reads a text dump of Berkeley DB (specification, section 3): a header, and then pairs of
// lines, the name and the values in hexadecimal. A pair without values is a homed prefix.
type dumpPart struct {
	s     *Source
	w     *window
	begun bool
	ended bool
}

func (p *dumpPart) close() error { return nil }

// header reads up to the first pair.
func (p *dumpPart) header() error {
	p.begun = true
	for {
		text, _, ok := p.w.nextLine()
		if !ok {
			if err := p.w.failure(); err != nil {
				return err
			}
			return failf(stele.Invalid, "import.foreign-dump-header", "{file} ends before HEADER=END: it is not a whole dump of Berkeley DB", p.w.name)
		}
		name, value, _ := strings.Cut(string(text[:min(len(text), 100)]), "=")
		switch {
		case name == "HEADER":
			return nil
		case name == "VERSION" && value != "3":
			return failf(stele.Invalid, "import.foreign-dump-version", "{file} is a dump of version {version}; only version 3 is known", p.w.name, value)
		case name == "format" && value != "bytevalue":
			return failf(stele.Invalid, "import.foreign-dump-format", "{file} is a dump with the format {format}; only bytevalue is known. Dump the database without -p", p.w.name, value)
		}
	}
}

// pair reads the lines of a record. ok is false at the end.
func (p *dumpPart) pair() (key, data []byte, line int, ok bool, err error) {
	w := p.w
	line = w.line
	text, long, ok := w.nextLine()
	if !ok || bytes.Equal(text, []byte("DATA=END")) {
		if err := w.failure(); err != nil {
			return nil, nil, line, false, err
		}
		if !ok && !p.ended {
			return nil, nil, line, false, failf(stele.Invalid, "import.foreign-dump-cut-off", "{file} ends at line {line}, before DATA=END; get the rest of it", w.name, w.line)
		}
		p.ended = true
		return nil, nil, line, false, nil
	}
	second, longer, ok := w.nextLine()
	if !ok {
		return nil, nil, line, false, failf(stele.Invalid, "import.foreign-dump-cut-off", "{file} ends at line {line}, before DATA=END; get the rest of it", w.name, w.line)
	}
	if size := max(long, longer); size > 0 {
		return nil, nil, line, true, &rowError{tooLong(size, maxLine)}
	}
	if key, err = unhex(text); err == nil {
		data, err = unhex(second)
	}
	if err != nil {
		return nil, nil, line, true, &rowError{failf(stele.Invalid, "import.foreign-dump-line", "the line is not a blank and hexadecimal digits")}
	}
	return key, data, line, true, nil
}

// rowError is an error of one row, after which reading goes on.
type rowError struct{ err error }

func (e *rowError) Error() string { return e.err.Error() }

func unhex(text []byte) ([]byte, error) {
	text = bytes.TrimSpace(text)
	b := make([]byte, hex.DecodedLen(len(text)))
	_, err := hex.Decode(b, text)
	return b, err
}

// next implements part.
func (p *dumpPart) next() (*bulk.Block, error) {
	if !p.begun {
		if err := p.header(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Line: p.w.line}
	size := 0
	// Prefixes that have a namespace give no rows: a block without rows would end the import.
	for !p.ended && (len(b.Rows) == 0 || size < windowBytes) {
		key, data, line, ok, err := p.pair()
		if bad, is := err.(*rowError); is {
			b.Rows = append(b.Rows, bulk.Row{Line: line, Err: bad.err})
			b.Next, b.End = p.w.line, p.w.offset()
			continue
		}
		if err != nil {
			if len(b.Rows) == 0 {
				return nil, err
			}
			p.s.err, p.ended = err, true
			break
		}
		if ok {
			b.Next, b.End = p.w.line, p.w.offset()
		}
		switch {
		case !ok:
		case len(data) == 0:
			b.Rows = append(b.Rows, p.s.prefix(string(key), line)...)
		default:
			b.Rows = append(b.Rows, bulk.Row{Line: line, Text: data, Record: &stele.Record{Spelling: string(key)}})
		}
		if len(b.Rows) > 0 {
			size += 2 * (len(key) + len(data))
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

// skip implements part.
func (p *dumpPart) skip(end int64, line int) error {
	p.begun = true
	return p.w.skipTo(end, line)
}

// parse implements part.
func (p *dumpPart) parse(row *bulk.Row) { p.s.parseStored(row) }

// parseStored makes the record of a row that has a name and values as a server stores them.
func (s *Source) parseStored(row *bulk.Row) {
	name, data := row.Record.Spelling, row.Text
	row.Record, row.Text = nil, nil
	stored, err := parseStored(data)
	if err != nil {
		row.Err = damaged(name, err)
		return
	}
	values, err := fromWire(stored)
	if err != nil {
		row.Err = err
		return
	}
	s.build(row, name, values)
}

// damaged refuses data that can't be read.
func damaged(name string, err error) error {
	return failf(stele.Invalid, "import.foreign-record-damaged", "the values of {name} can't be read: {cause}", stele.Quote(name), err)
}

// parseStored reads the values of a handle as a server stores them: count(4) { length(4) value }*.
func parseStored(data []byte) ([]hdl.Value, error) {
	if len(data) < 4 {
		return nil, stele.Messagef("import.foreign-values-short", "the list of values ends too early")
	}
	n := binary.BigEndian.Uint32(data)
	if data = data[4:]; n > hdl.MaxValues {
		return nil, stele.Messagef("import.foreign-values-too-many", "there are {count} values; {most} are the most", n, hdl.MaxValues)
	}
	var values []hdl.Value
	for range n {
		if len(data) < 4 || uint64(binary.BigEndian.Uint32(data)) > uint64(len(data)-4) {
			return nil, stele.Messagef("import.foreign-values-short", "the list of values ends too early")
		}
		size := binary.BigEndian.Uint32(data)
		v, err := hdl.ParseValue(data[4 : 4+size])
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		data = data[4+size:]
	}
	if len(data) > 0 {
		return nil, stele.Messagef("import.foreign-values-trailing", "{count} bytes follow the last value", len(data))
	}
	return values, nil
}
