package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// stream is the body of an answer that may be long. It ends with an error when nothing
// comes for a while.
type stream struct {
	body    io.ReadCloser
	watch   *time.Timer
	still   time.Duration // for which nothing may come
	cancel  context.CancelCauseFunc
	ctx     context.Context
	explain func(error) error
}

var errStill = errors.New("nothing came for too long")

// open sends a request until it is answered well, and returns the body of the answer,
// which must be closed. Nothing may come for so long at a time.
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
	s.body = resp.Body
	return s, nil
}

// Read reads what comes. Its error is one of ours.
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

// steadyReader is what is sent. As long as it goes on, the request does not stand still.
type steadyReader struct {
	in io.Reader
	s  *stream
}

func (r *steadyReader) Read(b []byte) (int, error) {
	r.s.watch.Reset(r.s.still)
	return r.in.Read(b)
}

// Export yields the records that begin so, in order, without their versions; with
// history all versions of each, the oldest first. Whoever asks must be reader there.
func (r *Registry) Export(ctx context.Context, key stele.NamespaceKey, history bool) iter.Seq2[*stele.Record, error] {
	q := &ask{method: http.MethodGet, path: "export", again: true, query: url.Values{"prefix": {key.String()}, "history": {strconv.FormatBool(history)}}}
	return func(yield func(*stele.Record, error) bool) {
		s, err := r.open(ctx, q, nil, r.o.Timeout)
		if err != nil {
			yield(nil, under("export", stele.ID{}, err))
			return
		}
		defer s.Close()
		for text, err := range textLines(s) {
			var rec *stele.Record
			if err == nil {
				rec, err = r.readRecord(text)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
