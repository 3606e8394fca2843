package server

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd"
)

// pause holds requests back while another registry takes the place of the present one. The
// listeners stay open, so that no client is refused.
type pause struct {
	inside atomic.Int64                  // requests that are being answered
	begun  atomic.Pointer[chan struct{}] // nil: requests pass; else closed when they pass again
	mu     sync.Mutex                    // held during a pause
}

// before lets requests pass to the handler that is next when they do.
func (p *pause) before(next func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.enter(r) {
			return // the client has gone, or net/http reads the request
		}
		defer p.leave()
		next().ServeHTTP(w, r)
	})
}

// enter waits until requests pass. It returns false if the context of the request ends before. A request of the fast path does
// not wait there: it is handed over to net/http, which notices if the client goes away, and enter returns false.
func (p *pause) enter(r *http.Request) bool {
	for {
		p.inside.Add(1)
		wait := p.begun.Load()
		if wait == nil {
			return true
		}
		p.inside.Add(-1)
		if httpd.HandOver(r) {
			return false
		}
		select {
		case <-*wait:
		case <-r.Context().Done():
			return false
		}
	}
}

func (p *pause) leave() { p.inside.Add(-1) }

// begin is called by a request that has passed. It holds all others back and waits, no longer
// than patience, until those that have passed are answered; end lets the others pass.
func (p *pause) begin(ctx context.Context, patience time.Duration) (end func(), err error) {
	p.mu.Lock()
	ended := make(chan struct{})
	p.begun.Store(&ended)
	end = func() {
		p.begun.Store(nil)
		close(ended)
		p.mu.Unlock()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for p.inside.Load() > 1 { // one is the caller
		select {
		case <-tick.C:
		case <-timer.C:
			end()
			return nil, refuse("restore", stele.Unavailable, "restore.requests-not-ended", "requests under way did not end in {duration}; try again", patience)
		case <-ctx.Done():
			end()
			return nil, refuse("restore", stele.Unavailable, "restore.cancelled", "the request was cancelled: {cause}", ctx.Err())
		}
	}
	return end, nil
}
