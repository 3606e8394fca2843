package foreign

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// readNOIDDump reads what db_dump prints: a header, and then a key and a value, each in a line that begins
// with a blank. With -p printing characters stand for themselves and \hh for others.
func readNOIDDump(w *window, take func(noidPair, error) error) error {
	printed, err := dumpHeader(w)
	if err != nil {
		return err
	}
	for {
		pair := noidPair{line: w.line}
		first, long, ok := w.nextLine()
		if ok && bytes.Equal(first, []byte("DATA=END")) {
			return nil
		}
		second, longer, more := w.nextLine()
		if !ok || !more {
			if err := w.failure(); err != nil {
				return err
			}
			return failf(stele.Invalid, "import.foreign-dump-cut-off", "{file} ends at line {line}, before DATA=END; get the rest of it", w.name, w.line)
		}
		var bad error
		if size := max(long, longer); size > 0 {
			bad = tooLong(size, maxLine)
		} else {
			pair.key, ok = dumped(first, printed)
			pair.value, more = dumped(second, printed)
			if !ok || !more {
				bad = failf(stele.Invalid, "import.noid-dump-line", "the line, or the one after it, is not a blank and what db_dump writes after it")
			}
		}
		if err := take(pair, bad); err != nil {
			return err
		}
	}
}

// dumpHeader reads up to the first pair, and tells whether characters stand for themselves.
func dumpHeader(w *window) (printed bool, err error) {
	for {
		text, _, ok := w.nextLine()
		if !ok {
			if err := w.failure(); err != nil {
				return false, err
			}
			return false, failf(stele.Invalid, "import.foreign-dump-header", "{file} ends before HEADER=END: it is not a whole dump of Berkeley DB", w.name)
		}
		name, value, _ := strings.Cut(string(text[:min(len(text), 100)]), "=")
		switch {
		case name == "HEADER":
			return printed, nil
		case name == "VERSION" && value != "3":
			return false, failf(stele.Invalid, "import.foreign-dump-version", "{file} is a dump of version {version}; only version 3 is known", w.name, value)
		case name == "format":
			printed = value == "print"
		}
	}
}

// dumped returns the bytes of a line of a dump.
func dumped(line []byte, printed bool) ([]byte, bool) {
	line, ok := bytes.CutPrefix(line, []byte(" "))
	if !ok {
		return nil, false
	}
	if !printed {
		b := make([]byte, hex.DecodedLen(len(line)))
		_, err := hex.Decode(b, line)
		return b, err == nil
	}
	if bytes.IndexByte(line, '\\') < 0 {
		return line, true
	}
	b := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			b = append(b, line[i])
			continue
		}
		if i+1 < len(line) && line[i+1] == '\\' {
			b = append(b, '\\')
			i++
			continue
		}
		if i+2 >= len(line) {
			return nil, false
		}
		c, ok := hexByte(line[i+1], line[i+2])
		if !ok {
			return nil, false
		}
		b = append(b, c)
		i += 2
	}
	return b, true
}

// hexByte returns the byte of two hexadecimal digits.
func hexByte(a, b byte) (byte, bool) {
	var c [1]byte
	_, err := hex.Decode(c[:], []byte{a, b})
	return c[0], err == nil
}

// cutInfo cuts a line of `noid dbinfo dump` into key and value. ok is false for a line that continues the
// value before it: a key is one of the program's own, or has a tab after a name. A line of a value that
// looks so becomes a row that is refused, as its name is not one: db_dump has no such doubts.
func cutInfo(line []byte) (key, value []byte, ok bool) {
	key, value, ok = bytes.Cut(line, []byte(": "))
	if !ok {
		if key, ok = bytes.CutSuffix(line, []byte(":")); !ok { // an editor has taken the blank
			return nil, nil, false
		}
	}
	if bytes.HasPrefix(key, []byte(":/")) && !bytes.ContainsAny(key, " ") {
		return key, value, true
	}
	id, _, ok := bytes.Cut(key, []byte("\t"))
	return key, value, ok && len(id) > 0
}

// readNOIDInfo reads what `noid dbinfo dump` prints. Remarks are skipped if the file begins with one, as a
// file of rejected rows does.
func readNOIDInfo(w *window, take func(noidPair, error) error) error {
	remarks := w.peek() == '#'
	var pair noidPair
	var bad error
	begun := false
	end := func() error {
		if !begun {
			return nil
		}
		return take(pair, bad)
	}
	for {
		line := w.line
		text, long, ok := w.nextLine()
		if !ok {
			if err := w.failure(); err != nil {
				return err
			}
			if begun && bad == nil && w.unended() {
				bad = failf(stele.Invalid, "", "{cause}", errUnended(w.name))
			}
			return end()
		}
		if remarks && bytes.HasPrefix(text, []byte("#")) {
			continue
		}
		key, value, isKey := cutInfo(text)
		switch {
		case isKey:
			if err := end(); err != nil {
				return err
			}
			pair, bad, begun = noidPair{key, value, line}, nil, true
			if long > 0 {
				bad = tooLong(long, maxLine)
			}
		case !begun && len(bytes.TrimSpace(text)) == 0:
		case !begun:
			if err := take(noidPair{line: line}, failf(stele.Invalid, "import.noid-line-unknown", "the line is not KEY: VALUE, as 'noid dbinfo dump' prints it")); err != nil {
				return err
			}
		case long > 0 || len(pair.value)+len(text) > maxRow:
			bad = tooLong(max(long, len(pair.value)+len(text)), maxRow)
		default: // a value of several lines
			pair.value = append(append(slices.Clip(pair.value), '\n'), text...)
		}
	}
}

const (
	idMark  = "# id: "
	hexMark = "# hexid: "
	endMark = "# elements bound under "
)

// readEggIDs reads what `egg iddump` prints: for each name a block of lines, with elements and values in
// hexadecimal (EggNog::Egg, idload).
func readEggIDs(w *window, bind func(program, id, element string, value []byte, line int) error, fault func(int, error) error) error {
	id, began, count, begun := "", 0, 0, false
	wrong := func(line int) error {
		return fault(line, failf(stele.Invalid, "import.egg-line-unknown", "the line is not one that 'egg iddump' prints there"))
	}
	for {
		line := w.line
		text, long, ok := w.nextLine()
		if !ok {
			if err := w.failure(); err != nil {
				return err
			}
			if begun {
				return failf(stele.Invalid, "import.egg-cut-off", "{file} ends at line {line}, within the elements of {name}; get the rest of it", w.name, w.line, stele.Quote(id))
			}
			return nil
		}
		if long > 0 {
			if err := fault(line, tooLong(long, maxLine)); err != nil {
				return err
			}
			continue
		}
		var err error
		switch {
		case bytes.HasPrefix(text, []byte(idMark)):
			if begun {
				err = wrong(line)
			}
			id, began, count, begun = string(text[len(idMark):]), line, 0, true
		case begun && bytes.HasPrefix(text, []byte(hexMark)):
			if raw, bad := hex.DecodeString(string(text[len(hexMark):])); bad == nil {
				id = string(raw)
			} else {
				err = wrong(line)
			}
		case begun && bytes.HasPrefix(text, []byte(endMark)):
			if said := text[bytes.LastIndexByte(text, ' ')+1:]; string(said) != strconv.Itoa(count) {
				err = fault(began, failf(stele.Invalid, "import.egg-count-wrong", "{name} has {count} elements in the file, and should have {said}", stele.Quote(id), count, stele.Quote(string(said))))
			}
			begun = false
		case len(text) == 0 || !begun && text[0] == '#':
		default:
			name, value, ok := bytes.Cut(text, []byte(": "))
			element, bad := hex.DecodeString(string(name))
			raw, worse := hex.DecodeString(string(value))
			if !begun || !ok || bad != nil || worse != nil {
				err = wrong(line)
				break
			}
			count++
			err = bind(fromEgg, id, string(element), raw, line)
		}
		if err != nil {
			return err
		}
	}
}

// readNOIDJSON reads the state of a minter as EZID keeps it: an object with the names of a minter's own
// values, without what stands before them.
func readNOIDJSON(w *window, take func(noidPair, error) error) error {
	const most = 1 << 20
	text := w.peekText(most + 1)
	if err := w.failure(); err != nil {
		return err
	}
	if len(text) > most {
		return tooLong(len(text), most)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var said map[string]any
	if err := dec.Decode(&said); err != nil {
		return failf(stele.Invalid, "import.noid-json", "{file} is not the state of a minter in JSON: {cause}", w.name, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return failf(stele.Invalid, "import.noid-json-more", "{file} has more than the state of one minter", w.name)
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		pair := noidPair{key: []byte(":/" + name), line: 1}
		var bad error
		switch value := said[name].(type) {
		case string:
			pair.value = []byte(value)
		case json.Number:
			pair.value = []byte(value.String())
		default:
			bad = failf(stele.Invalid, "import.noid-json-value", "the value {name} is neither a text nor a number", stele.Quote(name))
		}
		if err := take(pair, bad); err != nil {
			return err
		}
	}
	return nil
}
