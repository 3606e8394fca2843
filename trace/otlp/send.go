package otlp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/trace"
)

// Limits of sending.
const (
	maxBatch  = 512             // spans of one request
	every     = 2 * time.Second // how long a span waits for others
	flushTime = 3 * time.Second // for what is left at the end
	attempts  = 3               // of one request
	firstWait = time.Second     // before the second attempt; it doubles
)

// Exporter sends spans to a collector.
type Exporter struct {
	URL     string // of the collector, with the path /v1/traces
	Service Service
	Log     *slog.Logger

	// Do sends a request. It bounds the time and the answer.
	Do func(*http.Request) (*http.Response, error)

	sent, lost atomic.Uint64
	broken     bool // the last batch was not taken; that is logged once
}

// Sent returns how many spans the collector has taken, and how many it has not.
func (e *Exporter) Sent() (sent, lost uint64) { return e.sent.Load(), e.lost.Load() }

// Run sends what comes until ctx ends, and then, for a few seconds at most, what is left.
func (e *Exporter) Run(ctx context.Context, spans <-chan *trace.Span) {
	often := time.NewTicker(every)
	defer often.Stop()
	batch := make([]*trace.Span, 0, maxBatch)
	for {
		select {
		case s := <-spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-often.C:
		case <-ctx.Done():
			e.flush(context.WithoutCancel(ctx), batch, spans)
			return
		}
		e.deliver(ctx, batch)
		batch = batch[:0]
	}
}

// flush sends what is left, each batch once.
func (e *Exporter) flush(ctx context.Context, batch []*trace.Span, spans <-chan *trace.Span) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	for {
		select {
		case s := <-spans:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		default:
			if len(batch) == 0 {
				return
			}
		}
		_, err := e.post(ctx, batch)
		e.account(len(batch), err)
		batch = batch[:0]
	}
}

// deliver sends a batch, and sends it again if the collector asks for that. The batch is lost if ctx ends first, or
// after a few attempts.
func (e *Exporter) deliver(ctx context.Context, batch []*trace.Span) {
	if len(batch) == 0 {
		return
	}
	again, err := e.post(ctx, batch)
	for wait, n := firstWait, 1; again && n < attempts && sleep(ctx, wait); wait, n = 2*wait, n+1 {
		again, err = e.post(ctx, batch)
	}
	e.account(len(batch), err)
}

// account counts the spans of a batch. That a collector does not take them is logged once, until it does again.
func (e *Exporter) account(spans int, err error) {
	switch {
	case err == nil:
		e.sent.Add(uint64(spans))
	default:
		e.lost.Add(uint64(spans))
		if !e.broken {
			e.Log.Warn("the collector of traces does not take spans; they are lost", "error", err.Error())
		}
	}
	e.broken = err != nil
}

// post sends a batch once. If it fails, again says whether to send it again: which status allows that, the
// specification of OTLP lists in its section on failures.
func (e *Exporter) post(ctx context.Context, batch []*trace.Span) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(appendRequest(nil, e.Service, batch)))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "OTel-OTLP-Exporter-Stele/"+e.Service.Version)
	a, err := e.Do(r)
	if err != nil {
		return true, err
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body) // so that the connection is used again
	switch a.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, &stele.Error{Op: "send traces", Kind: stele.Unavailable, Err: stele.Messagef("trace.collector-refuses", "the collector answers {status}; see trace in 'stele config list'", a.Status)}
}

// sleep waits, and reports false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
