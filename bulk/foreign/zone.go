package foreign

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// ZoneFile is a master file of the DNS (RFC 1035, section 5).
const ZoneFile Format = "zone"

// detectZone finds out whether a file begins as a master file does.
func detectZone(head []byte) Format {
	if isZone(head) {
		return ZoneFile
	}
	return unknown
}

// isZone reports whether a beginning has a directive of master files, or a record that begins a zone.
func isZone(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == ';' || line[0] == '#':
			continue
		case bytes.HasPrefix(line, []byte("$ORIGIN")), bytes.HasPrefix(line, []byte("$TTL")):
			return true
		}
		fields := bytes.Fields(line)
		return slices.ContainsFunc(fields[:min(len(fields), 4)], func(f []byte) bool { return bytes.EqualFold(f, []byte("SOA")) || bytes.EqualFold(f, []byte("NAPTR")) })
	}
	return false
}

// openZone opens master files.
func openZone(s *Source, texts []*window) []part {
	p := &zonePart{s: s, texts: texts, sorter: s.newSorter(), left: make(map[string]int)}
	s.closing = append(s.closing, p.leftOut)
	return []part{p}
}

// zonePart reads master files. The records of a name may be anywhere in them, so all is sorted by owner names.
type zonePart struct {
	s      *Source
	texts  []*window
	sorter *sorter
	seq    uint64
	sorted bool
	done   int64
	heads  []bulk.Row
	left   map[string]int // records that are not of identifiers, by type

	// Of the file that is read:
	zone   string // its name, absolute and in lower case
	origin string
	ttl    uint32
	last   string // the owner name before
	names  zoneNames
	spaces []zoneNames // of all files
}

// maxZoneName is how long a domain name can be: 255 bytes (RFC 1035, section 2.3.4), each of which may be written as a backslash and three
// digits. Each record is kept with its origin, and an origin may be relative to the one before: without a bound, what is kept would
// grow with the square of the file.
const maxZoneName = 4 * 255

func errZoneName() error {
	return failf(stele.Invalid, "import.zone-name-too-long", "the name is longer than a domain name can be, which is 255 bytes")
}

// maxLeftTypes bounds the types of records that are counted apart. The types are words of the file, so that it could have any
// number of them.
const maxLeftTypes = 50

func (p *zonePart) close() error { return p.sorter.close() }

// leave counts a record that is not of an identifier.
func (p *zonePart) leave(kind string) {
	if _, known := p.left[kind]; !known && len(p.left) >= maxLeftTypes {
		kind = "other"
	}
	p.left[kind]++
}

// leftOut tells what was left out.
func (p *zonePart) leftOut() []error {
	if len(p.left) == 0 {
		return nil
	}
	var list []string
	for kind, n := range p.left {
		list = append(list, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(list)
	return []error{stele.Messagef("import.zone-left-out", "records of the zone itself, and not of identifiers, were left out: {types}", strings.Join(list, ", "))}
}

// read reads all files.
func (p *zonePart) read() error {
	p.sorted = true
	for _, w := range p.texts {
		p.s.watch(w)
		p.zone, p.origin, p.ttl, p.last, p.names = "", "", 3600, "", zoneNames{}
		if err := p.file(w); err != nil {
			return err
		}
	}
	return p.sorter.sort()
}

// file reads one file: records and directives, which may be several lines long in parentheses.
func (p *zonePart) file(w *window) error {
	var text []byte
	line, depth := 0, 0
	for {
		at := w.line
		raw, long, ok := w.nextLine()
		if !ok {
			if err := w.failure(); err != nil {
				return err
			}
			if depth > 0 {
				return failf(stele.Invalid, "import.zone-cut-off", "{file} ends within the record that begins at line {line}; get the rest of it", w.name, line)
			}
			return nil
		}
		if depth == 0 {
			if bytes.HasPrefix(raw, []byte("#")) { // a remark of a file of rejected rows
				continue
			}
			text, line = nil, at
			p.names.comment(raw)
		}
		clean, deeper, closed := zoneLine(raw, depth)
		if long > 0 || len(text)+len(clean) > maxRow {
			return failf(stele.Invalid, "import.zone-too-long", "{file}: the record at line {line} has more than {most} bytes", w.name, line, maxRow)
		}
		text = append(append(text, clean...), ' ')
		if depth = deeper; depth > 0 && closed {
			continue
		}
		err := error(nil)
		if !closed || depth < 0 {
			err, depth = failf(stele.Invalid, "import.zone-quotes", "a quotation mark or a parenthesis has no counterpart"), 0
		} else {
			err = p.entry(string(bytes.TrimRight(text, " \t")), line)
		}
		if err != nil {
			if len(p.heads) >= maxHeads {
				return failf(stele.Invalid, "import.foreign-rows-refused", "more than {most} rows can't be read; the last one is at line {line}", maxHeads, line)
			}
			p.heads = append(p.heads, bulk.Row{Line: line, Text: bytes.Clone(bytes.TrimSpace(text)), Err: err})
		}
	}
}

// zoneLine returns a line without its remark and its parentheses, and how many parentheses are open after it. closed is false if
// a quotation mark is open at its end.
func zoneLine(raw []byte, depth int) (clean []byte, deeper int, closed bool) {
	quoted := false
	clean = make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw):
			clean = append(clean, c, raw[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			return clean, depth, true
		case c == '(' || c == ')':
			if depth++; c == ')' {
				depth -= 2
			}
			clean = append(clean, ' ')
			continue
		}
		clean = append(clean, raw[i])
	}
	return clean, depth, !quoted
}

// entry reads a directive, or puts a record where it is sorted.
func (p *zonePart) entry(text string, line int) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	owner, rest := "", text
	if text[0] != ' ' && text[0] != '\t' {
		owner, rest, _ = strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	}
	if strings.HasPrefix(owner, "$") {
		return p.directive(strings.ToUpper(owner), strings.Fields(rest))
	}
	if owner == "" {
		owner = p.last
	} else {
		owner = p.absolute(owner)
	}
	if len(owner) > maxZoneName {
		return errZoneName()
	}
	if owner == "" {
		return failf(stele.Invalid, "import.zone-origin-missing", "the record has no complete owner name; write $ORIGIN and the name of the zone before it")
	}
	p.last = owner
	kind := zoneType(rest)
	if kind == "SOA" {
		p.zone = owner
	} else if p.zone == "" {
		p.zone = p.origin
	}
	owned := owner == p.zone || strings.HasPrefix(owner, "_") || strings.Contains(owner, "._")
	if owned && kind == "NAPTR" {
		p.names.rule(owner+" "+rest, p.origin)
	}
	if owned || !slices.Contains([]string{"NAPTR", "URI", "TXT", "CNAME", ""}, kind) {
		p.leave(kind)
		return nil
	}
	if len(p.spaces) == 0 || p.spaces[len(p.spaces)-1] != p.names {
		p.spaces = append(p.spaces, p.names)
	}
	b := binary.AppendUvarint(make([]byte, 0, len(p.zone)+len(p.origin)+len(owner)+len(rest)+32), uint64(line))
	b = binary.AppendUvarint(b, uint64(p.ttl))
	b = binary.AppendUvarint(b, uint64(len(p.spaces)-1))
	for _, part := range []string{p.zone, cmpOr(p.origin, "."), owner} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	p.seq++
	return p.sorter.add(owner, p.seq, append(b, rest...))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// directive follows a directive.
func (p *zonePart) directive(name string, fields []string) error {
	switch {
	case name == "$ORIGIN" && len(fields) == 1:
		origin := p.absolute(fields[0])
		if len(origin) > maxZoneName {
			return errZoneName()
		}
		if origin != "" {
			p.origin = origin
			return nil
		}
	case name == "$TTL" && len(fields) == 1:
		if ttl, ok := zoneTTL(fields[0]); ok {
			p.ttl = ttl
			return nil
		}
	case name == "$INCLUDE":
		return failf(stele.Invalid, "import.zone-include", "the file that $INCLUDE names is not read; import it too, with its $ORIGIN at its beginning")
	}
	return failf(stele.Invalid, "import.zone-directive", "{directive} can't be followed; write out what it stands for", name)
}

// absolute returns a name as it is below the root, in lower case; "" if the origin is not known.
func (p *zonePart) absolute(name string) string {
	switch {
	case name == "@":
		return p.origin
	case strings.HasSuffix(name, "."):
		return strings.ToLower(name)
	case p.origin == "":
		return ""
	}
	return strings.ToLower(name) + "." + strings.TrimPrefix(p.origin, ".")
}

// zoneTTL reads a TTL: seconds, or numbers with units, such as 1h30m.
func zoneTTL(text string) (uint32, bool) {
	all, n, digits := uint64(0), uint64(0), false
	for _, c := range []byte(text) {
		unit := uint64(0)
		switch c {
		case 's', 'S':
			unit = 1
		case 'm', 'M':
			unit = 60
		case 'h', 'H':
			unit = 3600
		case 'd', 'D':
			unit = 86400
		case 'w', 'W':
			unit = 604800
		}
		switch {
		case '0' <= c && c <= '9':
			n, digits = n*10+uint64(c-'0'), true
		case unit > 0 && digits:
			all, n, digits = all+n*unit, 0, false
		default:
			return 0, false
		}
		if n > 1<<31 || all > 1<<31 {
			return 0, false
		}
	}
	return uint32(all + n), text != "" && all+n < 1<<31
}

// zoneType returns the type of a record: after TTL and class, in any order.
func zoneType(rest string) string {
	for f := range strings.FieldsSeq(rest[:min(len(rest), 200)]) {
		if _, isTTL := zoneTTL(f); isTTL || strings.EqualFold(f, "IN") {
			continue
		}
		return strings.ToUpper(f)
	}
	return ""
}

// skip implements part. What was sorted is the same each time, so names are counted.
func (p *zonePart) skip(end int64, _ int) error {
	if err := p.read(); err != nil {
		return err
	}
	p.heads = nil
	for p.done < end {
		if _, _, err := p.sorter.next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		p.done++
	}
	return nil
}

// next implements part.
func (p *zonePart) next() (*bulk.Block, error) {
	if !p.sorted {
		if err := p.read(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Rows: p.heads}
	p.heads = nil
	for len(b.Rows) == 0 || b.Size < windowBytes {
		_, list, err := p.sorter.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		p.done++
		line, _, _ := cutNumber(list[0].data)
		row := bulk.Row{Line: int(line)}
		if row.Err = list[0].err; row.Err != nil {
			b.Rows = append(b.Rows, row)
			continue
		}
		for _, e := range list {
			row.Text = append(binary.AppendUvarint(row.Text, uint64(len(e.data))), e.data...)
		}
		b.Size += len(row.Text) + 64
		b.Rows = append(b.Rows, row)
	}
	if len(b.Rows) == 0 {
		return nil, io.EOF
	}
	b.Line, b.Next, b.End = b.Rows[0].Line, b.Rows[len(b.Rows)-1].Line+1, max(p.done, 1)
	return b, nil
}

// zoneEntry is a record as it stands in the file.
type zoneEntry struct {
	zone, origin, owner, rest string
	ttl                       uint32
	names                     int
}

// parseZoneEntry reads what entry wrote.
func parseZoneEntry(b []byte) (e zoneEntry, err error) {
	var numbers [3]uint64
	ok := false
	for i := range numbers {
		if numbers[i], b, ok = cutNumber(b); !ok {
			return e, errSorted
		}
	}
	for _, text := range []*string{&e.zone, &e.origin, &e.owner} {
		var n uint64
		if n, b, ok = cutNumber(b); !ok || n > uint64(len(b)) {
			return e, errSorted
		}
		*text, b = string(b[:n]), b[n:]
	}
	e.rest, e.ttl, e.names = string(b), uint32(numbers[1]), int(numbers[2])
	return e, nil
}

// text returns the record as it can stand in any file.
func (e *zoneEntry) text() string {
	rest := strings.TrimSpace(e.rest)
	if first, _, _ := strings.Cut(rest, " "); first != "" {
		if _, isTTL := zoneTTL(first); !isTTL {
			rest = strconv.FormatUint(uint64(e.ttl), 10) + " " + rest
		}
	}
	return e.owner + " " + rest
}
