package api

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/stele-id/stele/bulk"
)

// inFlight is how many pieces of a body, of 256 KiB, are read and not committed. It bounds
// the memory of an import; a chunk and the longest line must fit.
const inFlight = 8 + chunkBytes>>18

// flow is a body on its way: one goroutine reads it, some parse, and the importer commits.
type flow struct {
	*bulk.Flow
	c      *call
	cancel context.CancelFunc
}

// startFlow begins to read, after so many lines.
func startFlow(ctx context.Context, c *call, line int, merges bool) *flow {
	ctx, cancel := context.WithCancel(ctx)
	in := bulk.NewLines(&steady{ctx: ctx, c: c, left: c.h.o.Patience}, line, maxLine)
	return &flow{bulk.NewLineParser(c.h.o.Schemes, maxLine, merges).Flow(ctx, in, inFlight, cut), c, cancel}
}

// end ends reading, and waits for it: the body must not be used after the request was
// answered. What still comes is dropped.
func (f *flow) end() {
	f.cancel()
	for {
		select {
		case _, more := <-f.Blocks():
			if !more {
				return
			}
		case <-time.After(10 * time.Millisecond):
			_ = http.NewResponseController(f.c.w).SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// appendRows appends what the rows of a block say.
func appendRows(rows []row, b *bulk.Block) []row {
	for i := range b.Rows {
		r := &b.Rows[i]
		rows = append(rows, row{line: r.Line, record: r.Record, namespace: r.Namespace, text: r.Patch, err: r.Err})
	}
	return rows
}

// steady reads the body of a client that must go on sending: each kilobyte gives it more
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
