package usage

import (
	"bufio"
	"container/heap"
	"errors"
	"io"
)

// Servers write a line when a request ends, with the time when it began. So lines are put into order as far as they are this near to each other.
const (
	windowSeconds = 120
	windowLines   = 8192
	windowBytes   = 16 << 20
)

// logWindow puts lines into the order of their times, those of one second in the order of the file.
type logWindow struct {
	lines  windowHeap
	size   int // in bytes
	newest int64
	number uint64
}

type windowLine struct {
	logLine
	number uint64
	size   int // in bytes, of the whole line
}

type windowHeap []windowLine

func (h windowHeap) Len() int { return len(h) }
func (h windowHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h windowHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *windowHeap) Push(x any)   { *h = append(*h, x.(windowLine)) }
func (h *windowHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = windowLine{}
	*h = (*h)[:len(*h)-1]
	return last
}

// add adds a line, and hands over those that no line is expected before any more.
func (w *logWindow) add(l logLine, size int, count func(*logLine) error) error {
	if l.at < w.newest-windowSeconds { // the file begins again with an earlier time
		if err := w.drain(count); err != nil {
			return err
		}
		w.newest = l.at
	}
	w.newest = max(w.newest, l.at)
	w.number++
	heap.Push(&w.lines, windowLine{l, w.number, size})
	w.size += size
	for len(w.lines) > windowLines || w.size > windowBytes || len(w.lines) > 0 && w.lines[0].at < w.newest-windowSeconds {
		if err := w.hand(count); err != nil {
			return err
		}
	}
	return nil
}

func (w *logWindow) hand(count func(*logLine) error) error {
	l := heap.Pop(&w.lines).(windowLine)
	w.size -= l.size
	return count(&l.logLine)
}

// drain hands over all lines.
func (w *logWindow) drain(count func(*logLine) error) error {
	for len(w.lines) > 0 {
		if err := w.hand(count); err != nil {
			return err
		}
	}
	return nil
}

// lineReader reads lines of bounded length.
type lineReader struct {
	in  *bufio.Reader
	end int64 // of the last line, in bytes from the beginning
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, maxLogLine)}
}

// next returns the next line without its end. It is false if the line is too long; then there is no text. io.EOF after the last line that has an end.
func (r *lineReader) next() (line string, fits bool, err error) {
	text, err := r.in.ReadSlice('\n')
	r.end += int64(len(text))
	if err == nil {
		text = text[:len(text)-1]
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		}
		return string(text), true, nil
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = r.in.ReadSlice('\n')
		r.end += int64(len(text))
	}
	return "", false, err
}
