package bulk

import (
	"bytes"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

const (
	// MaxRow is how many bytes a line of JSON or a row of CSV has at most.
	MaxRow = stele.MaxDocument

	// blockBytes is how much is read at a time.
	blockBytes = 256 << 10
)

// Block is some whole rows of what is imported. A parser fills in what they say.
type Block struct {
	Text []byte
	Line int   // number of the first line
	Next int   // number of the line after it
	End  int64 // offset after it
	Read int64 // how much of the file was read for it, compressed as it is
	Long int   // if not 0: the block is the beginning of one row, of so many bytes
	Size int   // bytes that its rows take, if Text does not say it

	Rows   []Row
	done   chan struct{} // closed when it is parsed; made by the flow
	pieces int           // how much of the flow's room it takes
}

// bytes returns how much memory the rows take.
func (b *Block) bytes() int { return max(len(b.Text), b.Size) }

// Row is a row and what it says: a record, a namespace, or an error.
type Row struct {
	Line      int
	Text      []byte        // as it stands there, without the line's end
	Later     func() []byte // makes Text where that costs too much to be made for every row; nil if it is there
	Unit      any           // what a reader hands to its parser beside the text; nil when the row is parsed
	Record    *stele.Record
	Earlier   []*stele.Record      // the record's versions before this one, the oldest first; nil when they were not written
	Fixed     *registrar.FixedData // which bytes the record stands for, by another registry; nil if that is not said
	Patch     []byte               // what is merged with a registered record, as a document; nil if the record says everything
	Version   uint64               // that the registered record must have, which the row changes in any case; 0: none is asked for
	Namespace *stele.Namespace
	RulesOnly bool                    // of the namespace, which is registered, only the rules are imported
	Progress  registrar.Progress      // of the namespace's minter, in another registry or program
	Nameless  bool                    // a name will be made for it; Record has a placeholder
	Changes   []registrar.FieldChange // of a registered record, in a dry run of an update
	Err       error

	earlierLeft int // how many earlier versions were not written
}

// Reader cuts a text into blocks. It holds one block, or one row if that is
// larger, but never more than MaxRow of it.
type Reader struct {
	in        io.Reader
	whole     bool         // a read may wait for more than there is at the moment
	read      func() int64 // how much of the file is read
	delimiter byte         // between cells of CSV; 0 for lines of JSON
	decoder   *Decoder     // nil unless the text may have another encoding than UTF-8

	Lone  bool // a header may have one column, and then nothing to separate cells
	Keeps bool // what the reader passes over before the first row is kept; see Passed

	most    int    // bytes of a row
	room    []byte // what buf is a part of; nil if a block has a part of it
	buf     []byte // what is read and not handed over
	seen    int    // so much of buf has no end of a line; a client may send a line byte by byte
	offset  int64  // of it
	line    int    // at its beginning
	err     error  // from in; io.EOF at its end
	unended bool   // the last row of CSV has no line end
	marked  bool   // the text began with a byte order mark in UTF-8
	passed  []byte // see keeps
	before  []byte // what was passed over before the text was decoded
}

// NewReader returns a Reader at the beginning of a file.
func NewReader(f *File) *Reader {
	return &Reader{in: f.text, whole: f.whole, read: f.Read.Load, line: 1, most: MaxRow}
}

// NewLines returns a Reader of lines of JSON that arrive as they are sent, from the line
// after so many. A line has maxLine bytes at most.
func NewLines(in io.Reader, done, maxLine int) *Reader {
	return &Reader{in: in, read: func() int64 { return 0 }, line: done + 1, most: maxLine}
}

// Decoder returns what decodes the text; nil if it can only be UTF-8.
func (r *Reader) Decoder() *Decoder { return r.decoder }

// Passed returns what the reader has passed over since the text was decoded, if it keeps
// that, and Before what it has passed over before.
func (r *Reader) Passed() []byte { return r.passed }

// Before is what the reader had passed over when the text was found to need decoding.
func (r *Reader) Before() []byte { return r.before }

// Unended returns a note that a file was read to its end, and that its last row may be cut off. Editors and spreadsheets leave out the
// line end there, so that the row is taken.
func Unended(file string) error {
	return stele.Messagef("import.file-unended", "{file} does not end with a line end; check its last row", file)
}

// Unended reports whether the last row of a CSV file has no line end.
func (r *Reader) Unended() bool { return r.unended }

// Marked reports whether the text began with a byte order mark in UTF-8.
func (r *Reader) Marked() bool { return r.marked }

// fill reads more.
func (r *Reader) fill() {
	have := len(r.buf)
	size := max(blockBytes, min(2*have, r.most+blockBytes))
	buf := r.room
	if len(buf) < size {
		buf = make([]byte, size)
	}
	copy(buf, r.buf)
	n, err := r.in.Read(buf[have:])
	for r.whole && err == nil && have+n < len(buf) {
		var more int
		more, err = r.in.Read(buf[have+n:])
		n += more
	}
	r.err = err
	r.room, r.buf = buf, buf[:have+n]
}

// advance passes over the first n bytes.
func (r *Reader) advance(n int) {
	if r.Keeps {
		r.passed = append(r.passed, r.buf[:n]...)
	}
	r.line += bytes.Count(r.buf[:n], []byte{'\n'})
	r.offset += int64(n)
	r.buf, r.seen = r.buf[n:], 0
}

// Next returns the next block. What can be read before an error comes first; then
// the error, or io.EOF.
func (r *Reader) Next() (*Block, error) {
	for {
		if n := r.cut(); n > 0 {
			return r.take(n, 0), nil
		}
		switch {
		case r.err == io.EOF && len(r.buf) > 0:
			r.unended = r.delimiter != 0 && r.buf[len(r.buf)-1] != '\n'
			return r.take(r.lastRow(), 0), nil
		case r.err != nil:
			return nil, r.err
		case len(r.buf) > r.most:
			if n := r.firstLine(); n < len(r.buf) {
				return r.take(n, 0), nil
			}
			return r.tooLong()
		}
		r.fill()
	}
}

// take hands over the first n bytes.
func (r *Reader) take(n, long int) *Block {
	text := r.buf[:n:n]
	if !r.whole && n < blockBytes/2 {
		text = bytes.Clone(text) // a client that sends little at a time does not take a new buffer each time
	} else {
		r.room = nil
	}
	b := &Block{Text: text, Line: r.line, Long: long}
	r.advance(n)
	if text[n-1] != '\n' {
		r.line++ // the last line has no end
	}
	b.Next, b.End, b.Read = r.line, r.offset, r.read()
	return b
}

// firstLine returns the end of the first line. A row of CSV that continues after it,
// but has no end, is a mistake of that line.
func (r *Reader) firstLine() int {
	if n := bytes.IndexByte(r.buf, '\n'); n >= 0 {
		return n + 1
	}
	return len(r.buf)
}

// lastRow returns the end of a row that ends with the text.
func (r *Reader) lastRow() int {
	ended := append(bytes.Clone(r.buf), '\n')
	if r.delimiter == 0 || RowEnd(ended, r.delimiter) == len(ended) {
		return len(r.buf)
	}
	return r.firstLine()
}

// tooLong passes over a line that is too long, and hands over its beginning.
func (r *Reader) tooLong() (*Block, error) {
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
		if r.err == io.EOF {
			r.line++ // which has no end of its own
			break
		}
		if r.err != nil {
			return nil, r.err
		}
		r.fill()
	}
	return &Block{Text: head, Line: line, Next: r.line, End: r.offset, Read: r.read(), Long: size}, nil
}

// cut returns the end of the last whole row that is read; 0 if there is none.
func (r *Reader) cut() int {
	if r.delimiter == 0 || bytes.IndexByte(r.buf, '"') < 0 {
		n := bytes.LastIndexByte(r.buf[r.seen:], '\n')
		if n < 0 {
			r.seen = len(r.buf)
			return 0
		}
		return r.seen + n + 1
	}
	end := 0
	for end < len(r.buf) {
		n := RowEnd(r.buf[end:], r.delimiter)
		if n == 0 {
			break
		}
		end += n
	}
	return end
}

// SkipTo continues at an offset, where a line of that number begins.
func (r *Reader) SkipTo(offset int64, line int) error {
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
	r.offset, r.line, r.seen = offset, line, 0
	return nil
}

// Done returns how much of the file the reader has handed over, as far as it knows.
func (r *Reader) Done() int64 { return max(0, r.read()-int64(len(r.buf))) }

// start finds out what the text is, and stops at its first row: at a header if it is
// CSV.
func (r *Reader) start(e Encoding) {
	r.fill()
	if e == UTF16 || bytes.HasPrefix(r.buf, []byte("\xff\xfe")) || bytes.HasPrefix(r.buf, []byte("\xfe\xff")) {
		r.decode(UTF16)
	}
	if bytes.HasPrefix(r.buf, []byte("\xef\xbb\xbf")) {
		r.offset, r.buf, r.marked = r.offset+3, r.buf[3:], true
	}
	for {
		n := bytes.IndexByte(r.buf, '\n')
		switch {
		case n >= 0 && IsSkipped(r.buf[:n]):
			r.advance(n + 1)
		case n < 0 && r.err == nil && (len(r.buf) == 0 || IsSkipped(r.buf)) && len(r.buf) <= r.most:
			r.fill()
		default:
			return
		}
	}
}
