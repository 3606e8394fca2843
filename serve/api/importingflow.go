package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

const (
	// blockBytes is how much is read at a time.
	blockBytes = 256 << 10

	// inFlight is how many blocks are read and not committed, beside the chunk. It
	// bounds the memory of an import.
	inFlight = 8
)

// block is some whole lines of what is imported.
type block struct {
	text  []byte
	size  int
	first int // number of the first line
	last  int // number of the last one
	long  int // if not 0: it is one line of so many bytes, which was not kept

	rows   []row
	parsed chan struct{} // closed when rows are there
}

// flow is a body on its way: one goroutine reads it, some parse, and whoever takes the
// blocks commits.
type flow struct {
	c      *call
	blocks chan *block // in order
	err    error       // why reading ended, if not at the end; set before blocks is closed
	cancel context.CancelFunc
	ended  chan struct{}
}

// startFlow begins to read, behind so many lines.
func startFlow(ctx context.Context, c *call, line int, merges bool) *flow {
	ctx, cancel := context.WithCancel(ctx)
	f := &flow{c: c, blocks: make(chan *block, inFlight), cancel: cancel, ended: make(chan struct{})}
	in := &lineReader{in: &steady{ctx: ctx, c: c, left: c.h.o.Patience}, line: line}
	go func() {
		defer close(f.ended)
		defer close(f.blocks)
		for {
			b, err := in.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					f.err = cut(err)
				}
				return
			}
			b.size, b.parsed = len(b.text), make(chan struct{})
			select {
			case f.blocks <- b:
			case <-ctx.Done():
				return
			}
			go b.parse(c.h.o.Schemes, merges)
		}
	}()
	return f
}

// end ends reading, and waits for it: the body must not be used after the request was
// answered. Nobody waits for what still comes.
func (f *flow) end() {
	f.cancel()
	for {
		select {
		case <-f.ended:
			return
		case <-time.After(10 * time.Millisecond):
			_ = http.NewResponseController(f.c.w).SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// parse fills in what the lines say. Those that may be merged with what is registered
// stay in memory.
func (b *block) parse(schemes *stele.Schemes, merges bool) {
	defer close(b.parsed)
	if b.long > 0 {
		b.rows = []row{{line: b.last, err: &stele.Error{Kind: stele.Invalid, Err: fmt.Errorf("the line has %d bytes; %d are the most", b.long, maxLine)}}}
		return
	}
	b.rows = make([]row, 0, bytes.Count(b.text, []byte{'\n'})+1)
	number := b.first - 1
	for text := range bytes.Lines(b.text) {
		number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		r := row{line: number}
		if parsed, err := registrar.ParseLine(schemes, text); err == nil && !(merges && parsed.Namespace == nil) || registrar.IsNamespaceLine(text) {
			r.record, r.namespace, r.err = parsed.Record, parsed.Namespace, err
		} else {
			r.readRecord(schemes, text, merges)
		}
		b.rows = append(b.rows, r)
	}
	b.text = nil
}

// lineReader cuts a stream into blocks. It holds one block, or one line if that is
// larger, but never more than maxLine of it.
type lineReader struct {
	in   io.Reader
	line int    // how many lines were handed over
	buf  []byte // what is read and not handed over
	seen int    // so much of it has no end of a line
	err  error  // from in
}

// next returns the next block. What could be read before an error comes first; but the
// beginning of a line whose end did not come is none.
func (r *lineReader) next() (*block, error) {
	for {
		if n := bytes.LastIndexByte(r.buf[r.seen:], '\n') + 1; n > 0 {
			return r.take(r.seen + n), nil
		}
		r.seen = len(r.buf)
		switch {
		case errors.Is(r.err, io.EOF) && len(r.buf) > 0:
			return r.take(len(r.buf)), nil
		case r.err != nil:
			return nil, r.err
		case len(r.buf) > maxLine:
			return r.tooLong()
		}
		r.fill()
	}
}

// fill reads more.
func (r *lineReader) fill() {
	r.buf = slices.Grow(r.buf, blockBytes)
	n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf, r.err = r.buf[:len(r.buf)+n], err
}

// pass drops the first n bytes.
func (r *lineReader) pass(n int) {
	r.buf = append(r.buf[:0], r.buf[n:]...)
	r.seen = 0
}

// take hands over the first n bytes.
func (r *lineReader) take(n int) *block {
	b := &block{text: bytes.Clone(r.buf[:n]), first: r.line + 1}
	r.pass(n)
	r.line += bytes.Count(b.text, []byte{'\n'})
	if b.text[n-1] != '\n' {
		r.line++
	}
	b.last = r.line
	return b
}

// tooLong passes over a line.
func (r *lineReader) tooLong() (*block, error) {
	size := 0
	for {
		if n := bytes.IndexByte(r.buf, '\n'); n >= 0 {
			size += n
			r.pass(n + 1)
			break
		}
		size += len(r.buf)
		r.pass(len(r.buf))
		if errors.Is(r.err, io.EOF) {
			break
		}
		if r.err != nil {
			return nil, r.err
		}
		r.fill()
	}
	r.line++
	return &block{first: r.line, last: r.line, long: size}, nil
}

// steady reads the body of a client who must go on sending: each kilobyte gives it more
// time. The time in which the server does not read does not count.
type steady struct {
	ctx  context.Context
	c    *call
	left time.Duration
	got  int
}

func (s *steady) Read(b []byte) (int, error) {
	switch {
	case s.ctx.Err() != nil:
		return 0, s.ctx.Err()
	case s.left <= 0:
		return 0, os.ErrDeadlineExceeded
	}
	begin := s.c.h.o.Now()
	// A connection without deadlines, in a test, needs no more time.
	_ = http.NewResponseController(s.c.w).SetReadDeadline(begin.Add(s.left))
	n, err := s.c.r.Body.Read(b)
	s.left -= s.c.h.o.Now().Sub(begin)
	if s.got += n; s.got >= 1<<10 {
		s.got, s.left = 0, s.c.h.o.Patience
	}
	return n, err
}
