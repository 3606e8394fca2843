package usage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// logMark says how much of a log file is counted. Its cell is named after the first line of the file, and after its first lines, so that
// a file is known by them however it is named and compressed, and however much was added to it since.
type logMark struct {
	Base    int64  `json:"base"`            // bytes whose lines are counted
	Sum     string `json:"sum"`             // digest of these
	Lines   int    `json:"lines"`           // how many first lines the cell is named after
	Heads   []byte `json:"heads,omitempty"` // the first bytes of the digests of 1, 2 and more lines, up to Lines: tell shorter files apart
	Options string `json:"options,omitempty"`

	// Of a run that did not end yet:
	Goal    int64  `json:"goal,omitempty"`    // bytes that it counts
	GoalSum string `json:"goalSum,omitempty"` // digest of these
	Lists   string `json:"lists,omitempty"`   // as in LogImporter
	Begun   int64  `json:"begun,omitempty"`   // when it began, in Unix seconds
	Done    int    `json:"done,omitempty"`    // lines of the parts whose figures are written
	Last    []byte `json:"last,omitempty"`    // of the next part, the name of the last cell that is written
}

const (
	logCells  = registrar.UsageCells + "i"
	headLines = 100
	headBytes = 4    // of a digest in logMark.Heads
	maxMarks  = 1000 // files that begin with the same line
)

// beginsAs reports whether a file of so many lines, fewer than those that the cell of the mark is named after, may be the beginning of the file of the mark: head is the digest of these
// lines.
func (m *logMark) beginsAs(lines int, head []byte) bool {
	at := (lines - 1) * headBytes
	return len(m.Heads) < at+headBytes || bytes.Equal(m.Heads[at:at+headBytes], head) // marks of earlier versions do not tell
}

func (m logMark) bytes() []byte {
	text, _ := json.Marshal(m) // it has nothing that can't be written
	return text
}

// logDigest is the digest of lines. It has nothing of their readers, neither an address nor a user agent nor a query: the digest of a line
// that has could be tried for all addresses.
type logDigest struct {
	hash.Hash
	line []byte
}

func newLogDigest() *logDigest { return &logDigest{Hash: sha256.New()} }

// add adds a line, of which only the length counts if it is not in the format common.
func (d *logDigest) add(l *logLine, ok bool, size int64) {
	d.line = d.line[:0]
	if ok {
		path, _, _ := strings.Cut(l.target, "?")
		d.line = fmt.Appendf(d.line, "%d %s %s %d\n", l.at, l.method, path, l.status)
	} else {
		d.line = fmt.Appendf(d.line, "? %d\n", size)
	}
	_, _ = d.Write(d.line) // a hash never fails
}

func (d *logDigest) text() string { return hex.EncodeToString(d.Sum(nil)) }

// logFile is what is known of a file before it is counted.
type logFile struct {
	cell  string // with its mark
	mark  logMark
	have  []byte // value of the cell
	begun []byte // value of the guard
	heads []byte // as in logMark
	end   int64  // of the last line that has an end
	lines int    // up to there
	sum   string // digest of these
	rest  bool   // something follows that has no end
}

// lookAt reads a file once, to find out whether it was counted before.
func lookAt(ctx context.Context, store Store, name string, in io.Reader) (*logFile, error) {
	f := new(logFile)
	marks, found, err := f.digest(ctx, store, newLineReader(in))
	if err != nil || f.lines == 0 {
		return f, err
	}
	differs := false
	for _, m := range marks {
		switch {
		case f.lines >= m.mark.Lines && m.cell != f.cellOf(found, m.mark.Lines): // another file
		case f.lines < m.mark.Lines && !m.mark.beginsAs(f.lines, f.heads[(f.lines-1)*headBytes:]): // another file, too
		case f.lines < m.mark.Lines || !found.has(m.mark.Base, m.mark.Sum) || !found.has(m.mark.Goal, m.mark.GoalSum):
			differs = true
		case f.have == nil || m.mark.Base > f.mark.Base:
			f.cell, f.have, f.mark = m.cell, m.have, m.mark
		}
	}
	switch {
	case f.have != nil:
	case differs:
		return nil, refuse(stele.Conflict, "usage.log-differs", "{file} begins with the same lines as a log file that was counted, but is not that file with more lines; none of it is counted", name)
	default:
		f.mark.Lines, f.mark.Heads = min(f.lines, headLines), f.heads
		f.cell = f.cellOf(found, f.mark.Lines)
	}
	return f, nil
}

// logDigests are digests of beginnings of a file.
type logDigests struct {
	ends  map[int64]string // by bytes
	lines map[int]string   // by lines
}

// has reports whether a beginning has a digest; one of no bytes has any.
func (d *logDigests) has(end int64, sum string) bool { return end == 0 || d.ends[end] == sum }

// cellOf returns the name of the cell of a file with these first lines.
func (f *logFile) cellOf(d *logDigests, lines int) string {
	return logCells + d.lines[1][:32] + d.lines[lines][:32]
}

// guard returns the name of the cell that says how many files were begun to be counted that begin with the same line. Two processes that begin with a file at the same time, between which it
// grew, would have two marks: the second one finds that the guard has changed.
func (f *logFile) guard() string { return f.cell[:len(logCells)+32] }

// begunNow returns the value of the guard after this file was begun.
func (f *logFile) begunNow() []byte {
	n, _ := strconv.ParseUint(string(f.begun), 10, 64) // 0 if there is none
	return strconv.AppendUint(nil, n+1, 10)
}

// marked is a cell with a mark.
type marked struct {
	cell string
	have []byte
	mark logMark
}

// digest reads all of a file. It returns the marks of files that begin with its first line, and the digests of its beginnings that they tell of.
func (f *logFile) digest(ctx context.Context, store Store, in *lineReader) (marks []marked, found *logDigests, err error) {
	sum := newLogDigest()
	found = &logDigests{make(map[int64]string), make(map[int]string)}
	ends, lines := make(map[int64]bool), map[int]bool{1: true, headLines: true}
	for {
		text, fits, err := in.next()
		if errors.Is(err, io.EOF) {
			f.sum = sum.text()
			f.rest, found.lines[f.lines] = in.end > f.end, f.sum
			return marks, found, nil
		}
		if err == nil && f.lines%1000 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		l, ok := parseLogLine(text, false)
		sum.add(&l, fits && ok, in.end-f.end)
		f.lines++
		f.end = in.end
		if f.lines <= headLines {
			f.heads = append(f.heads, sum.Sum(nil)[:headBytes]...)
		}
		if lines[f.lines] {
			found.lines[f.lines] = sum.text()
		}
		if ends[f.end] {
			found.ends[f.end] = sum.text()
		}
		if f.lines > 1 {
			continue
		}
		if marks, f.begun, err = marksOf(ctx, store, logCells+found.lines[1][:32]); err != nil {
			return nil, nil, err
		}
		for _, m := range marks {
			ends[m.mark.Base], ends[m.mark.Goal], lines[m.mark.Lines] = true, true, true
		}
		if ends[f.end] {
			found.ends[f.end] = sum.text()
		}
	}
}

// marksOf returns the marks in cells whose names begin with that of a guard, and the value of the guard.
func marksOf(ctx context.Context, store Store, guard string) (list []marked, begun []byte, err error) {
	if begun, err = store.UsageCell(ctx, guard); err != nil { // before the marks: of one that comes meanwhile, the guard tells
		return nil, nil, err
	}
	for c, err := range store.UsageList(ctx, guard, "") {
		if err != nil {
			return nil, nil, err
		}
		if c.Name == guard {
			continue
		}
		m := marked{cell: c.Name, have: c.Value}
		if err := json.Unmarshal(c.Value, &m.mark); err != nil || m.mark.Lines < 1 {
			return nil, nil, errDamaged()
		}
		if list = append(list, m); len(list) > maxMarks {
			return nil, nil, refuse(stele.Exhausted, "usage.log-same-beginning", "more than {most} log files that were counted begin with the same line; remove the first line of this one", maxMarks)
		}
	}
	return list, begun, nil
}
