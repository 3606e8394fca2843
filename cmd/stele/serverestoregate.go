package main

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// gate is what requests pass on their way to the registry. While it is shut they wait:
// another registry takes the place of this one. The listeners stay open, so that
// nobody is refused.
type gate struct {
	inside atomic.Int64
	closed atomic.Pointer[chan struct{}] // nil: it is open; else closed when it opens
	mu     sync.Mutex                    // held by whoever shuts it
}

// before lets requests pass to the handler that there is when they do.
func (g *gate) before(next func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter(r.Context()) {
			return // nobody waits any more
		}
		defer g.leave()
		next().ServeHTTP(w, r)
	})
}

// enter waits until the gate is open. It returns false if the context ends before.
func (g *gate) enter(ctx context.Context) bool {
	for {
		g.inside.Add(1)
		wait := g.closed.Load()
		if wait == nil {
			return true
		}
		g.inside.Add(-1)
		select {
		case <-*wait:
		case <-ctx.Done():
			return false
		}
	}
}

func (g *gate) leave() { g.inside.Add(-1) }

// shut is called by a request that has passed the gate. It shuts the gate and waits
// until all other requests have left, and no longer than patience; open opens it.
func (g *gate) shut(ctx context.Context, patience time.Duration) (open func(), err error) {
	g.mu.Lock()
	opened := make(chan struct{})
	g.closed.Store(&opened)
	open = func() {
		g.closed.Store(nil)
		close(opened)
		g.mu.Unlock()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for g.inside.Load() > 1 { // but the caller
		select {
		case <-tick.C:
		case <-timer.C:
			open()
			return nil, refuse("restore", stele.Unavailable, "requests under way did not end in %s; try again", patience)
		case <-ctx.Done():
			open()
			return nil, refuse("restore", stele.Unavailable, "the request was cancelled: %w", ctx.Err())
		}
	}
	return open, nil
}
