package foreign

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// folded reads files in which what is known of a record is in several places: it sorts what they
// do by names, keeps the order for each, and makes of it what the server would have in the end.
type folded struct {
	s     *Source
	texts []*window

	sorter   *sorter
	seq      uint64
	since    uint64              // what was done before is void
	prefixes map[string]prefixAt // homed, by name in upper case
	secrets  [][]byte            // the data of secrets, which are never written to a temporary file

	sorted bool
	done   int64 // how many names were handed over
	heads  []bulk.Row
}

type prefixAt struct {
	name  string
	line  int
	order int
}

// The kinds of what is done with a record.
const (
	opSet     = iota // it has these values and no others
	opErase          // it is gone, if it was there
	opPut            // it has this value too (a row of SQL)
	opCreate         // as opSet, if it is not there
	opAdd            // it has these values too, if their indexes are free
	opModify         // these values replace those with their indexes
	opRemove         // the values with these indexes are gone
	opDelete         // it is gone; it must be there
	opFault          // something about it can't be read
	opUnended        // the file of this name ends with it, and it may be cut off
	opNotUTF8        // it is not text
)

// commands are what batch files call kinds.
var commands = map[byte]string{opCreate: "CREATE", opAdd: "ADD", opModify: "MODIFY", opRemove: "REMOVE", opDelete: "DELETE"}

// op is what is done with a record.
type op struct {
	kind   byte
	line   int
	name   string // in its spelling
	values []hdl.Value
	index  []uint32 // of opRemove
	text   string   // of opFault; the file of opUnended
}

const (
	maxSecrets = 1 << 20
	maxOps     = 100_000   // with one record
	maxOpBytes = 256 << 20 // of them
	maxHomed   = 1_000_000
	maxHeads   = 10_000 // rows that belong to no record
	maxLists   = 256    // names that are looked up together
)

func newFolded(s *Source, texts []*window) *folded {
	return &folded{s: s, texts: texts, prefixes: make(map[string]prefixAt), sorter: s.newSorter()}
}

func (f *folded) close() error { return f.sorter.close() }

// add hands over what is done with a record. It leaves out at once what will not be imported, so that
// no temporary file has it.
func (f *folded) add(name string, line int, o op) error {
	o.name, o.line = name, line
	for i := range o.values {
		v := &o.values[i]
		if !isSecret(string(v.Type)) {
			continue
		}
		if !f.s.o.Secrets {
			v.Data = nil // it will be left out, and counted
			continue
		}
		if len(f.secrets) >= maxSecrets {
			return failf(stele.Exhausted, "import.foreign-too-many-secrets", "the files have more than {most} secrets", maxSecrets)
		}
		f.secrets = append(f.secrets, slices.Clone(v.Data))
		v.Data = appendNumber(nil, uint64(len(f.secrets)-1))
	}
	f.seq++
	return f.sorter.add(upper(name), f.seq, o.append(nil))
}

// home takes a homed prefix.
func (f *folded) home(name string, line int) error {
	if len(f.prefixes) >= maxHomed {
		return failf(stele.Exhausted, "import.foreign-too-many-prefixes", "the files home more than {most} prefixes; cut them into parts by prefix, and import each", maxHomed)
	}
	if _, ok := f.prefixes[upper(name)]; !ok {
		f.prefixes[upper(name)] = prefixAt{name, line, len(f.prefixes)}
	}
	return nil
}

// head takes a row that belongs to no record.
func (f *folded) head(row bulk.Row) error {
	if len(f.heads) >= maxHeads {
		return failf(stele.Invalid, "import.foreign-rows-refused", "more than {most} rows can't be read; the last one is at line {line}", maxHeads, row.Line)
	}
	f.heads = append(f.heads, row)
	return nil
}

func (f *folded) unhome(name string) { delete(f.prefixes, upper(name)) }

// read reads all files.
func (f *folded) read() error {
	f.sorted = true
	// A log is replayed over dumps, in whichever order they are named.
	order := make([]int, 0, len(f.texts))
	for _, last := range []bool{false, true} {
		for i, kind := range f.s.kinds {
			if (kind == Log) == last {
				order = append(order, i)
			}
		}
	}
	for _, i := range order {
		w := f.texts[i]
		var err error
		switch f.s.kinds[i] {
		case Log:
			err = readLog(w, f)
		case SQL:
			err = readSQL(w, f)
		case Batch:
			err = readBatch(w, f)
		case CSV:
			err = readCSV(w, f)
		case Dump:
			err = f.readDump(w)
		case JDB:
			err = f.readJDB(w, f.s.files[i])
		case JSON, DBList:
			err = failf(stele.Invalid, "import.foreign-files-mixed", "{file} is an export in JSON, which says all by itself; import it alone", w.name)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range slices.SortedFunc(maps.Values(f.prefixes), func(a, b prefixAt) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.line, b.line)) }) {
		f.heads = append(f.heads, f.s.prefix(p.name, p.line)...)
	}
	return f.sorter.sort()
}

// readDump reads a dump over which a log is replayed.
func (f *folded) readDump(w *window) error {
	p := &dumpPart{s: f.s, w: w}
	if err := p.header(); err != nil {
		return err
	}
	for {
		key, data, line, ok, err := p.pair()
		if bad, is := err.(*rowError); is {
			if err := f.head(bulk.Row{Line: line, Err: bad.err}); err != nil {
				return err
			}
			continue
		}
		if err != nil || !ok {
			return err
		}
		if err := f.stored(string(key), data, line); err != nil {
			return err
		}
	}
}

// stored takes a record as a server stores it: one without data is a homed prefix.
func (f *folded) stored(name string, data []byte, line int) error {
	if len(data) == 0 {
		return f.home(name, line)
	}
	stored, bad := parseStored(data)
	o := op{kind: opSet, values: stored}
	if bad != nil {
		o = op{kind: opFault, text: damaged(name, bad).Error()}
	}
	return f.add(name, line, o)
}

// skip implements part. What was sorted is the same each time, so names are counted.
func (f *folded) skip(end int64, _ int) error {
	if err := f.read(); err != nil {
		return err
	}
	f.heads = nil
	for f.done < end {
		if _, _, err := f.sorter.next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		f.done++
	}
	return nil
}

// next implements part.
func (f *folded) next() (*bulk.Block, error) {
	if !f.sorted {
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	b := &bulk.Block{Rows: f.heads}
	f.heads = nil
	// Names that are gone in the end give no rows: a block without rows would end the import.
	for end := false; !end && (len(b.Rows) == 0 || b.Size < windowBytes); {
		var lists [][]entry
		size := 0
		for len(lists) < maxLists && size < windowBytes {
			_, list, err := f.sorter.next()
			if end = err == io.EOF; end {
				break
			} else if err != nil {
				return nil, err
			}
			lists = append(lists, list)
			for i := range list {
				size += len(list[i].data)
			}
		}
		for i, registered := range f.lookUp(lists) {
			f.done++
			if registered != nil && isLost(registered.err) {
				return nil, registered.err
			}
			rows, bytes := f.fold(lists[i], registered)
			if b.Rows = append(b.Rows, rows...); len(b.Rows) > 0 {
				b.Size += bytes + 64
			}
		}
	}
	if len(b.Rows) == 0 {
		return nil, io.EOF
	}
	b.Line, b.Next, b.End = b.Rows[0].Line, b.Rows[len(b.Rows)-1].Line+1, max(f.done, 1)
	return b, nil
}

// row makes the row of a record, which parse completes.
func (f *folded) row(name string, line int, stored []hdl.Value) bulk.Row {
	for i := range stored {
		f.reveal(&stored[i])
	}
	row := bulk.Row{Line: line}
	values, err := fromWire(stored)
	if err != nil {
		row.Err = err
		return row
	}
	row.Record = &stele.Record{Spelling: name, Values: values}
	return row
}

// reveal gives a value of a file its secret, if it is one.
func (f *folded) reveal(v *hdl.Value) {
	if !isSecret(string(v.Type)) {
		return
	}
	if n, _, ok := cutNumber(v.Data); ok && n < uint64(len(f.secrets)) {
		v.Data = f.secrets[n]
	}
}

// parse implements part. The row of a registered record is complete.
func (f *folded) parse(row *bulk.Row) {
	if row.Version != 0 {
		return
	}
	rec := row.Record
	row.Record = nil
	f.s.build(row, rec.Spelling, rec.Values)
}
