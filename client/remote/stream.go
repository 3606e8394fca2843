package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/stele-id/stele"
)

// stream is the body of an answer that may be long. It fails when it is idle for too long.
type stream struct {
	body    io.ReadCloser
	header  http.Header
	watch   *time.Timer
	still   time.Duration // how long it may be idle
	cancel  context.CancelCauseFunc
	ctx     context.Context
	explain func(error) error
}

var errStill = stele.Messagef("ftp.timed-out", "nothing came for too long")

// open sends a request until the server answers with success, and returns the body of the
// answer, which the caller must close. The stream fails when it is idle for longer than
// still.
func (r *Registry) open(ctx context.Context, q *ask, in io.Reader, still time.Duration) (*stream, error) {
	left := r.o.Patience
	for attempt := 0; ; attempt++ {
		s, failed := r.openOnce(ctx, q, in, still)
		if failed == nil {
			return s, nil
		}
		pause, ok := failed.pause(q, attempt)
		if !ok || in != nil || pause > left || wait(ctx, pause) != nil {
			return nil, failed.told(ctx, r)
		}
		left -= pause
	}
}

func (r *Registry) openOnce(ctx context.Context, q *ask, in io.Reader, still time.Duration) (*stream, *failure) {
	running, cancel := context.WithCancelCause(ctx)
	s := &stream{still: still, cancel: cancel, ctx: running}
	s.watch = time.AfterFunc(still, func() { cancel(errStill) })
	s.explain = func(err error) error {
		if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
			err = cause
		}
		return (&failure{err: err}).told(ctx, r)
	}
	if in != nil {
		in = &steadyReader{in, s}
	}
	resp, failed := r.send(running, q, in)
	if failed != nil {
		s.watch.Stop()
		if errors.Is(context.Cause(running), errStill) {
			failed.err = errStill
		}
		cancel(nil)
		return nil, failed
	}
	s.body, s.header = resp.Body, resp.Header
	return s, nil
}

// Read reads from the body. Its errors are [stele.Error]s.
func (s *stream) Read(b []byte) (int, error) {
	s.watch.Reset(s.still)
	n, err := s.body.Read(b)
	if err != nil && err != io.EOF {
		err = s.explain(err)
	}
	return n, err
}

// Close ends the stream.
func (s *stream) Close() error {
	s.watch.Stop()
	err := s.body.Close()
	s.cancel(nil)
	return err
}

// steadyReader is the body of a request. While the transport reads it, the stream is not
// idle.
type steadyReader struct {
	in io.Reader
	s  *stream
}

func (r *steadyReader) Read(b []byte) (int, error) {
	r.s.watch.Reset(r.s.still)
	return r.in.Read(b)
}

// maxLine is how many bytes a line of an answer may have.
const maxLine = 2 * stele.MaxDocument

// textLines yields the lines of a stream that are not empty. A line is valid until the
// next. It leaves out a last line without a line end: the stream was cut off.
func textLines(in io.Reader) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if n := bytes.IndexByte(data, '\n'); n >= 0 {
				return n + 1, data[:n], nil
			}
			return 0, nil, nil
		})
		for lines.Scan() {
			if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 && !yield(text, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
