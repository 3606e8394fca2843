package httpd

import (
	"io"
	"sync/atomic"
)

// A connection of HTTP/2 has many requests at once. It waits only if each of them waits for
// its body, or if it has no requests; net/http reports when it has none.

// begin notes a request that begins to be answered.
func (n *connection) begin(awaits bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests++
	if awaits {
		n.bodies++
	}
	n.judge()
}

// arrived notes that a body is there.
func (n *connection) arrived() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bodies--
	n.judge()
}

// finishStream notes that a request is answered, even if its body never came.
func (n *connection) finishStream(b *streamBody) {
	b.there()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests--; n.requests > 0 {
		n.judge()
	}
}

// judge sets since when the connection waits.
func (n *connection) judge() {
	if n.requests > n.bodies {
		n.since.Store(0)
	} else {
		n.since.Store(n.all.clock.Add(1))
	}
}

// streamBody is the body of a request of HTTP/2.
type streamBody struct {
	io.ReadCloser
	n      *connection
	awaits bool
	once   atomic.Bool
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.there()
	}
	return n, err
}

// there notes that the whole body has come, or never will.
func (b *streamBody) there() {
	if b.awaits && !b.once.Swap(true) {
		b.n.arrived()
	}
}
