package foreign

import (
	"bytes"
	"errors"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

const (
	windowBytes = 256 << 10
	maxRow      = bulk.MaxRow // bytes of a record as JSON
	maxLine     = 16 << 20    // bytes of a line of other formats: hexadecimal doubles data
)

// window reads a text from its beginning to its end. What it has handed over stays valid: it never
// writes to memory twice.
type window struct {
	name string
	in   io.Reader
	buf  []byte
	pos  int   // in buf: what is read next
	base int64 // offset of buf
	line int   // at pos, from 1
	err  error // why reading ended; io.EOF at the end
	last byte  // that was read

	decoder *bulk.Decoder // of the text; nil if it is in UTF-8
}

func newWindow(f *bulk.File) *window { return &window{name: f.Name, in: f.Text(), line: 1} }

func (w *window) offset() int64 { return w.base + int64(w.pos) }

// failure returns why reading failed; nil at the end.
func (w *window) failure() error {
	if errors.Is(w.err, io.EOF) {
		return nil
	}
	return w.err
}

// fill reads more. It returns false if there is no more.
func (w *window) fill() bool {
	if w.err != nil {
		return false
	}
	rest := w.buf[w.pos:]
	buf := make([]byte, len(rest)+max(windowBytes, len(rest)))
	copy(buf, rest)
	n, err := io.ReadAtLeast(w.in, buf[len(rest):], 1)
	for err == nil && len(rest)+n < len(buf) {
		var more int
		more, err = w.in.Read(buf[len(rest)+n:])
		n += more
	}
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	w.base += int64(w.pos)
	w.buf, w.pos, w.err = buf[:len(rest)+n], 0, err
	if n > 0 {
		w.last = buf[len(rest)+n-1]
	}
	return n > 0
}

// unended reports whether the text was read to its end and its last line has no end. It may be cut off there.
func (w *window) unended() bool {
	return errors.Is(w.err, io.EOF) && w.pos == len(w.buf) && w.last != 0 && w.last != '\n' && w.last != '\r'
}

// more makes sure that n bytes follow, if the text has them, and reports whether it has.
func (w *window) more(n int) bool {
	for len(w.buf)-w.pos < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// peekText returns up to n bytes that follow.
func (w *window) peekText(n int) []byte {
	w.more(n)
	return w.buf[w.pos:min(len(w.buf), w.pos+n)]
}

// byte returns the next byte and passes over it; ok is false at the end.
func (w *window) byte() (c byte, ok bool) {
	if w.pos == len(w.buf) && !w.fill() {
		return 0, false
	}
	c = w.buf[w.pos]
	w.pos++
	if c == '\n' {
		w.line++
	}
	return c, true
}

// peek returns the next byte; 0 at the end.
func (w *window) peek() byte {
	if w.pos == len(w.buf) && !w.fill() {
		return 0
	}
	return w.buf[w.pos]
}

// ended reports whether nothing follows.
func (w *window) ended() bool { return w.pos == len(w.buf) && !w.fill() }

// take passes over n bytes that are in the buffer, and returns them.
func (w *window) take(n int) []byte {
	text := w.buf[w.pos : w.pos+n : w.pos+n]
	w.line += bytes.Count(text, []byte{'\n'})
	w.pos += n
	return text
}

// space passes over white space of JSON.
func (w *window) space() {
	for {
		switch w.peek() {
		case ' ', '\t', '\r', '\n':
			w.byte()
		default:
			return
		}
	}
}

// nextLine returns the next line without its end. Of one that is longer than maxLine it returns
// the beginning, and how many bytes the line has. ok is false at the end of the text.
func (w *window) nextLine() (text []byte, long int, ok bool) {
	from := 0
	for {
		if n := bytes.IndexByte(w.buf[w.pos+from:], '\n'); n >= 0 {
			text = w.take(from + n + 1)
			return trimLine(text), 0, true
		}
		from = len(w.buf) - w.pos
		if from > maxLine {
			return w.longLine()
		}
		if !w.fill() {
			if from == 0 {
				return nil, 0, false
			}
			return trimLine(w.take(from)), 0, true
		}
	}
}

// longLine passes over a line that is too long.
func (w *window) longLine() (head []byte, size int, ok bool) {
	head = bytes.Clone(w.peekText(200))
	for {
		n := bytes.IndexByte(w.buf[w.pos:], '\n')
		if n >= 0 {
			w.take(n + 1)
			return head, size + n, true
		}
		size += len(w.buf) - w.pos
		w.pos = len(w.buf)
		if !w.fill() {
			return head, size, true
		}
	}
}

func trimLine(text []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
}

// skipTo passes over all up to an offset, where a line of this number is.
func (w *window) skipTo(offset int64, line int) error {
	for w.offset() < offset {
		have := int64(len(w.buf) - w.pos)
		if n := min(have, offset-w.offset()); n > 0 {
			w.pos += int(n)
			continue
		}
		if !w.fill() {
			if err := w.failure(); err != nil {
				return err
			}
			return failf(stele.Invalid, "import.foreign-file-shorter", "{file} is shorter than when its import began; start over with --again", w.name)
		}
	}
	w.line = line
	return nil
}

// tooLong refuses a record that is too long.
func tooLong(size, most int) error {
	return failf(stele.Invalid, "import.foreign-record-too-long", "the record has {size} bytes in the file; {most} are the most", size, most)
}
