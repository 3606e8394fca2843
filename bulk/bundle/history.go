package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// history follows the versions of records.
type history struct {
	last  *RecordVersion
	files int // of records
	names map[[16]byte]struct{}
}

func nameHash(id stele.ID) (h [16]byte) {
	sum := sha256.Sum256([]byte(id.Scheme() + "\x00" + id.String()))
	copy(h[:], sum[:])
	return h
}

func (r *reader) readRecords(in io.Reader) error {
	r.history.files++
	if r.now != fmt.Sprintf(fileRecords, r.history.files) {
		return wrong("bundle.records-out-of-order", "the files of records are numbered from 1 on, without gaps")
	}
	lines := recordLines{r: r}
	defer lines.wait()
	err := r.eachLine(in, lines.add)
	if err == nil {
		err = lines.end()
	}
	if err == nil && (lines.judged == 0 || lines.judged > maxFileLines) {
		return wrong("bundle.records-wrong-count", "a file of records has from 1 to {most} lines", maxFileLines)
	}
	return err
}

// recordLines is the lines of a file of records. While some are read from the archive, those before them are parsed and hashed by all
// processors, and those before these are judged, in their order.
type recordLines struct {
	r      *reader
	next   *recordBatch // that is read
	under  *recordBatch // that is parsed
	judged int
}

// recordBatch is some lines of records.
type recordBatch struct {
	text    []byte
	ends    []int // of the lines in text
	list    []lineRead
	parsing sync.WaitGroup
}

// A batch ends with the line with which it has so many lines or bytes.
const (
	batchLines = 1000
	batchBytes = 1 << 20
)

// lineRead is a line that was read.
type lineRead struct {
	v    *RecordVersion
	hash [sha256.Size]byte // of the leaf
	err  error             // of the line
	made error             // of the leaf
}

func (l *recordLines) add(text []byte) error {
	if l.next == nil {
		l.next = new(recordBatch)
	}
	b := l.next
	b.text = append(b.text, text...)
	if b.ends = append(b.ends, len(b.text)); len(b.ends) < batchLines && len(b.text) < batchBytes {
		return nil
	}
	return l.turn()
}

// turn begins to parse the batch that was read, and judges the one before it.
func (l *recordLines) turn() error {
	done := l.under
	l.wait()
	if l.under, l.next = l.next, nil; l.under != nil {
		l.under.parse(l.r.o.Schemes)
	}
	if done == nil {
		return nil
	}
	for i := range done.list {
		l.judged++
		if err := l.r.record(&done.list[i]); err != nil {
			if _, own := errors.AsType[visitError](err); own {
				return err
			}
			return &fault{l.r.now, l.judged, err}
		}
	}
	if l.r.o.Progress != nil {
		l.r.o.Progress(len(done.list))
	}
	l.next = done.empty()
	return nil
}

// end judges all that was read.
func (l *recordLines) end() error {
	for range 2 { // the batch that is parsed, and the one that was read
		if err := l.turn(); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until nothing is parsed.
func (l *recordLines) wait() {
	if l.under != nil {
		l.under.parsing.Wait()
	}
}

// empty returns the memory of the batch for another one.
func (b *recordBatch) empty() *recordBatch {
	clear(b.list)
	b.text, b.ends, b.list = b.text[:0], b.ends[:0], b.list[:0]
	return b
}

// parse lets all processors parse the lines, and hash their leaves.
func (b *recordBatch) parse(schemes *stele.Schemes) {
	b.list = append(b.list, make([]lineRead, len(b.ends))...)
	share(&b.parsing, len(b.ends), func() func(int) {
		var leaves transparency.LeafMaker
		return func(i int) {
			begin := 0
			if i > 0 {
				begin = b.ends[i-1]
			}
			l := &b.list[i]
			if l.v, l.err = parseRecordLine(schemes, b.text[begin:b.ends[i]]); l.err == nil {
				var leaf *transparency.Leaf
				if leaf, l.made = leaves.Record(&l.v.Log, l.v.Record); l.made == nil {
					l.hash = leaf.Hash()
				}
			}
		}
	})
}

// share lets all processors do n things, each with a worker of its own, as parts of a group. A processor that has other work to do does fewer.
func share(group *sync.WaitGroup, n int, worker func() func(i int)) {
	const some = 16
	next := new(atomic.Int64)
	for range min(runtime.GOMAXPROCS(0), (n+some-1)/some) {
		group.Go(func() {
			do := worker()
			for {
				end := int(next.Add(some))
				for i := end - some; i < min(end, n); i++ {
					do(i)
				}
				if end >= n {
					return
				}
			}
		})
	}
}

// record judges a version.
func (r *reader) record(l *lineRead) error {
	if l.err != nil {
		return l.err
	}
	if err := r.recordFollows(l.v); err != nil {
		return err
	}
	if err := r.prove(l.v.Log.Index, l.hash, l.made); err != nil {
		return err
	}
	r.report.Counts.Versions++
	if l.v.Current {
		r.report.Counts.Records++
		if err := r.noteAliases(l.v.Record); err != nil {
			return err
		}
	}
	r.history.last = l.v
	return visit(r.o.Visit.Record, l.v)
}

// recordFollows makes sure that the version comes after the one before it, and that the history of each record is whole.
func (r *reader) recordFollows(v *RecordVersion) error {
	rec, last := v.Record, r.history.last
	if !r.report.Head.has(rec.ID.Scheme(), rec.ID.String()) {
		return wrong("bundle.record-outside", "{id} is not a name that the bundle is of", rec.ID)
	}
	if last == nil || last.Current {
		switch {
		case last != nil && last.Record.ID.Compare(rec.ID) >= 0:
			return errOrder
		case rec.Version != 1:
			return errHistory
		}
		return nil
	}
	if last.Record.ID != rec.ID || rec.Version != last.Record.Version+1 || v.Log.Index <= last.Log.Index {
		return errHistory
	}
	if last.isEntry() || v.isEntry() {
		return nil // of a version without its content nothing else is known
	}
	if err := rec.CheckFollows(last.Record); err != nil {
		return err
	}
	for _, alias := range last.Record.Aliases {
		if !slices.Contains(rec.Aliases, alias) {
			return wrong("bundle.alias-dropped", "it has not the alias {alias} any more, which no record ever loses", alias)
		}
	}
	return nil
}

// isEntry reports whether the document may be less than what was logged.
func (v *RecordVersion) isEntry() bool { return v.Log.Leaf != "" || v.Log.Bare }

// noteAliases makes sure that no alias is that of two records, and notes those that are not names of the bundle.
func (r *reader) noteAliases(rec *stele.Record) error {
	for _, alias := range rec.Aliases {
		h := nameHash(alias)
		if _, taken := r.history.names[h]; taken || alias == rec.ID {
			return wrong("bundle.alias-twice", "the alias {alias} is one of another record too", alias)
		}
		if r.history.names == nil {
			r.history.names = map[[16]byte]struct{}{}
		}
		r.history.names[h] = struct{}{}
		if !r.report.Head.has(alias.Scheme(), alias.String()) {
			if r.report.OutsideCount++; len(r.report.Outside) < maxOutside {
				r.report.Outside = append(r.report.Outside, Outside{rec.ID, alias})
			}
		}
	}
	return nil
}

func (r *reader) endRecords() error {
	if last := r.history.last; last != nil && !last.Current {
		return errCutHistory
	}
	return nil
}
