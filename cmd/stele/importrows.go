package main

import (
	"bytes"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

const (
	// maxRow is how many bytes a line of JSON or a row of CSV has at most.
	maxRow = stele.MaxDocument

	// rowBlock is how much is read at a time.
	rowBlock = 256 << 10
)

// block is some whole rows of what is imported. A parser fills in what they say.
type block struct {
	text []byte
	line int   // number of the first line
	next int   // number of the line behind it
	end  int64 // offset behind it
	read int64 // how much of the file was read for it, compressed as it is
	long int   // if not 0: the block is the beginning of one row, of so many bytes

	rows []importRow
	done chan struct{} // closed by the parser
}

// importRow is a row and what it says: a record, a namespace, or an error.
type importRow struct {
	line      int
	text      []byte // as it stands there, without the line's end
	record    *stele.Record
	patch     []byte // what is merged with a registered record, as a document; nil if the record says everything
	namespace *stele.Namespace
	err       error
}

// rowReader cuts a text into blocks. It holds one block, or one row if that is
// larger, but never more than maxRow of it.
type rowReader struct {
	in        io.Reader
	whole     bool          // a read may wait for more than there is at the moment
	read      func() int64  // how much of the file is read
	delimiter byte          // between cells of CSV; 0 for lines of JSON
	decoder   *bulk.Decoder // nil unless the text may have another encoding than UTF-8
	lone      bool          // a header may have one column, and then nothing to separate cells
	keeps     bool          // what is passed over before the first row is kept in passed

	buf    []byte // what is read and not handed over
	offset int64  // of it
	line   int    // at its beginning
	err    error  // from in; io.EOF at its end
	marked bool   // the text began with a byte order mark in UTF-8
	passed []byte // see keeps
	before []byte // what was passed over before the text was decoded
}

func newRowReader(f *importFile) *rowReader {
	return &rowReader{in: f.text, whole: f.whole, read: f.read.Load, line: 1}
}

// fill reads more.
func (r *rowReader) fill() {
	have := len(r.buf)
	size := max(rowBlock, min(2*have, maxRow+rowBlock))
	buf := make([]byte, size) // what was handed over keeps the old one
	copy(buf, r.buf)
	n, err := r.in.Read(buf[have:])
	for r.whole && err == nil && have+n < size {
		var more int
		more, err = r.in.Read(buf[have+n:])
		n += more
	}
	r.err = err
	r.buf = buf[:have+n]
}

// advance passes over the first n bytes.
func (r *rowReader) advance(n int) {
	if r.keeps {
		r.passed = append(r.passed, r.buf[:n]...)
	}
	r.line += bytes.Count(r.buf[:n], []byte{'\n'})
	r.offset += int64(n)
	r.buf = r.buf[n:]
}

// next returns the next block. What can be read before an error comes first; then
// the error, or io.EOF.
func (r *rowReader) next() (*block, error) {
	for {
		if n := r.cut(); n > 0 {
			return r.take(n, 0), nil
		}
		switch {
		case r.err == io.EOF && len(r.buf) > 0:
			return r.take(r.lastRow(), 0), nil
		case r.err != nil:
			return nil, r.err
		case len(r.buf) > maxRow:
			if n := r.firstLine(); n < len(r.buf) {
				return r.take(n, 0), nil
			}
			return r.tooLong(), nil
		}
		r.fill()
	}
}

// take hands over the first n bytes.
func (r *rowReader) take(n, long int) *block {
	b := &block{text: r.buf[:n:n], line: r.line, long: long, done: make(chan struct{})}
	r.advance(n)
	b.next, b.end, b.read = r.line, r.offset, r.read()
	return b
}

// firstLine returns the end of the first line. A row of CSV that goes on behind it,
// but has no end, is a mistake of that line.
func (r *rowReader) firstLine() int {
	if n := bytes.IndexByte(r.buf, '\n'); n >= 0 {
		return n + 1
	}
	return len(r.buf)
}

// lastRow returns the end of a row that ends with the text.
func (r *rowReader) lastRow() int {
	ended := append(bytes.Clone(r.buf), '\n')
	if r.delimiter == 0 || bulk.RowEnd(ended, r.delimiter) == len(ended) {
		return len(r.buf)
	}
	return r.firstLine()
}

// tooLong passes over a line that is too long, and hands over its beginning.
func (r *rowReader) tooLong() *block {
	size := 0
	head := bytes.Clone(r.buf[:longShown])
	line := r.line
	for {
		n := bytes.IndexByte(r.buf, '\n')
		if n >= 0 {
			size += n
			r.advance(n + 1)
			break
		}
		size += len(r.buf)
		r.advance(len(r.buf))
		if r.err != nil {
			break
		}
		r.fill()
	}
	return &block{text: head, line: line, next: r.line, end: r.offset, read: r.read(), long: size, done: make(chan struct{})}
}

// cut returns the end of the last whole row that is read; 0 if there is none.
func (r *rowReader) cut() int {
	if r.delimiter == 0 || bytes.IndexByte(r.buf, '"') < 0 {
		return bytes.LastIndexByte(r.buf, '\n') + 1
	}
	end := 0
	for end < len(r.buf) {
		n := bulk.RowEnd(r.buf[end:], r.delimiter)
		if n == 0 {
			break
		}
		end += n
	}
	return end
}

// skipTo goes on at an offset, where a line of that number begins.
func (r *rowReader) skipTo(offset int64, line int) error {
	if n := offset - r.offset; n >= 0 && n <= int64(len(r.buf)) {
		r.buf = r.buf[n:]
	} else if s, ok := r.in.(*seekingReader); ok {
		if err := s.seekTo(offset); err != nil {
			return err
		}
		r.buf, r.err = nil, nil
	} else if n > 0 {
		if _, err := io.CopyN(io.Discard, r.in, n-int64(len(r.buf))); err != nil {
			return err
		}
		r.buf = nil
	}
	r.offset, r.line = offset, line
	return nil
}

// done returns how much of the file is behind the reader, as far as it knows.
func (r *rowReader) done() int64 { return max(0, r.read()-int64(len(r.buf))) }

// start finds out what the text is, and stops at its first row: at a header if it is
// CSV.
func (r *rowReader) start(e bulk.Encoding) {
	r.fill()
	if e == bulk.UTF16 || bytes.HasPrefix(r.buf, []byte("\xff\xfe")) || bytes.HasPrefix(r.buf, []byte("\xfe\xff")) {
		r.decode(bulk.UTF16)
	}
	if bytes.HasPrefix(r.buf, []byte("\xef\xbb\xbf")) {
		r.offset, r.buf, r.marked = r.offset+3, r.buf[3:], true
	}
	for {
		n := bytes.IndexByte(r.buf, '\n')
		switch {
		case n >= 0 && bulk.IsSkipped(r.buf[:n]):
			r.advance(n + 1)
		case n < 0 && r.err == nil && (len(r.buf) == 0 || bulk.IsSkipped(r.buf)) && len(r.buf) <= maxRow:
			r.fill()
		default:
			return
		}
	}
}
