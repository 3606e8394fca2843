package foreign

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

const (
	sortMemory = 64 << 20 // bytes that are sorted in memory
	maxRuns    = 512      // temporary files
)

// entry is one thing that is done with a name.
type entry struct {
	key  string
	seq  uint64
	data []byte
	err  error // why the entries of the key are not handed over; see next
}

func compareEntries(a, b entry) int {
	return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
}

// sorter sorts entries by key, and keeps the order of those with the same key. More than memory holds
// is in temporary files, which have no name once they are open.
type sorter struct {
	dir    string
	memory int
	list   []entry
	size   int
	runs   []*run
	heap   runs
	ahead  *entry
	at     int // in list, if all is in memory

	added, pulled int64 // bytes of entries
}

func newSorter(dir string, memory int) *sorter {
	return &sorter{dir: dir, memory: cmp.Or(memory, sortMemory)}
}

func (s *sorter) add(key string, seq uint64, data []byte) error {
	s.list = append(s.list, entry{key: key, seq: seq, data: data})
	s.added += int64(len(data))
	if s.size += len(key) + len(data) + 64; s.size < s.memory {
		return nil
	}
	return s.spill()
}

// spill writes what is in memory to a file.
func (s *sorter) spill() error {
	if len(s.runs) >= maxRuns {
		return failf(stele.Exhausted, "import.foreign-too-large-to-sort", "the files are too large to sort; cut them into parts by prefix, and import each")
	}
	slices.SortFunc(s.list, compareEntries)
	file, err := os.CreateTemp(s.dir, "stele-import-*")
	if err != nil {
		return sortFailed(err)
	}
	r := &run{file: file}
	s.runs = append(s.runs, r)
	if err := os.Remove(file.Name()); err != nil { // it is gone when this process is
		r.name = file.Name()
	}
	out := bufio.NewWriterSize(file, 1<<20)
	var b []byte
	for _, e := range s.list {
		b = binary.AppendUvarint(b[:0], uint64(len(e.key)))
		b = append(b, e.key...)
		b = binary.AppendUvarint(b, e.seq)
		b = binary.AppendUvarint(b, uint64(len(e.data)))
		if _, err := out.Write(append(b, e.data...)); err != nil {
			return sortFailed(err)
		}
	}
	if err := out.Flush(); err != nil {
		return sortFailed(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return sortFailed(err)
	}
	r.in = bufio.NewReaderSize(file, 256<<10)
	clear(s.list)
	s.list, s.size = s.list[:0], 0
	return nil
}

// sort ends the adding.
func (s *sorter) sort() error {
	if len(s.runs) == 0 {
		slices.SortFunc(s.list, compareEntries)
		return nil
	}
	if len(s.list) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.list = nil
	for _, r := range s.runs {
		if err := r.read(); err == io.EOF {
			continue
		} else if err != nil {
			return sortFailed(err)
		}
		s.heap = append(s.heap, r)
	}
	heap.Init(&s.heap)
	return nil
}

// pull returns the next entry.
func (s *sorter) pull() (entry, error) {
	if len(s.runs) == 0 {
		if s.at == len(s.list) {
			return entry{}, io.EOF
		}
		e := s.list[s.at]
		s.list[s.at] = entry{}
		s.at++
		return e, nil
	}
	if len(s.heap) == 0 {
		return entry{}, io.EOF
	}
	r := s.heap[0]
	e := r.entry
	switch err := r.read(); {
	case err == io.EOF:
		heap.Pop(&s.heap)
	case err != nil:
		return entry{}, sortFailed(err)
	default:
		heap.Fix(&s.heap, 0)
	}
	return e, nil
}

// next returns all entries of the next key. If they are too many, or too large together, it returns the first of them alone, with an
// error and the place of the last one, so that one record can be refused and the others are read.
func (s *sorter) next() (key string, list []entry, err error) {
	for size := 0; ; {
		e, err := s.step()
		if err == io.EOF && len(list) > 0 {
			return key, list, nil
		} else if err != nil {
			return "", nil, err
		}
		if len(list) > 0 && e.key != key {
			s.ahead = &e
			return key, list, nil
		}
		key = e.key
		if size += len(e.data); len(list) < maxOps && size <= maxOpBytes && (len(list) == 0 || list[0].err == nil) {
			list = append(list, e)
			continue
		}
		if len(list) == 0 {
			list = []entry{e}
		}
		if list[0].err == nil {
			list = []entry{list[0]} // the memory of the others is free
			list[0].err = failf(stele.Invalid, "import.foreign-too-many-changes", "the files change {name} more than {most} times, or by more than {bytes} bytes; make a new dump, and import that", stele.Quote(key), maxOps, maxOpBytes)
		}
		list[0].seq = e.seq
	}
}

func (s *sorter) step() (entry, error) {
	if s.ahead != nil {
		e := *s.ahead
		s.ahead = nil
		return e, nil
	}
	e, err := s.pull()
	s.pulled += int64(len(e.data))
	return e, err
}

func (s *sorter) close() error {
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.file.Close())
		if r.name != "" {
			errs = append(errs, os.Remove(r.name))
		}
	}
	s.runs, s.heap, s.list, s.ahead, s.at = nil, nil, nil, nil, 0
	return errors.Join(errs...)
}

func sortFailed(err error) error {
	return failf(stele.Unavailable, "import.foreign-sort-failed", "a temporary file for sorting can't be used: {cause}; make room, or set TMPDIR to another folder", err)
}

// run is a sorted temporary file.
type run struct {
	file  *os.File
	name  string // if it could not be removed yet
	in    *bufio.Reader
	entry entry
}

// read reads the next entry.
func (r *run) read() error {
	key, err := r.text()
	if err != nil {
		return err
	}
	seq, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	data, err := r.text()
	if err != nil {
		return err
	}
	r.entry = entry{key: string(key), seq: seq, data: data}
	return nil
}

func (r *run) text() ([]byte, error) {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r.in, b)
	return b, err
}

// runs is a heap of files by their next entries.
type runs []*run

func (h runs) Len() int           { return len(h) }
func (h runs) Less(i, j int) bool { return compareEntries(h[i].entry, h[j].entry) < 0 }
func (h runs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runs) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runs) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

func appendNumber(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// append writes an op for the sorter.
func (o *op) append(b []byte) []byte {
	b = append(b, o.kind)
	b = appendNumber(b, uint64(o.line))
	b = appendNumber(b, uint64(len(o.name)))
	b = append(b, o.name...)
	switch o.kind {
	case opRemove:
		for _, i := range o.index {
			b = appendNumber(b, uint64(i))
		}
		return b
	case opFault, opUnended, opNotUTF8:
		return append(b, o.text...)
	}
	return hdl.AppendValues(b, o.values)
}

var errSorted = stele.Messagef("import.foreign-sorted-damaged", "a temporary file for sorting is damaged")

// parseOp reads what append wrote.
func parseOp(b []byte) (o op, err error) {
	if len(b) == 0 {
		return o, errSorted
	}
	o.kind = b[0]
	line, b, ok := cutNumber(b[1:])
	if !ok {
		return o, errSorted
	}
	o.line = int(line)
	n, b, ok := cutNumber(b)
	if !ok || n > uint64(len(b)) {
		return o, errSorted
	}
	o.name, b = string(b[:n]), b[n:]
	switch o.kind {
	case opRemove:
		for len(b) > 0 {
			if n, b, ok = cutNumber(b); !ok {
				return o, errSorted
			}
			o.index = append(o.index, uint32(n))
		}
		return o, nil
	case opFault, opUnended, opNotUTF8:
		o.text = string(b)
		return o, nil
	}
	o.values, err = hdl.ParseValueList(b, nil)
	return o, err
}
