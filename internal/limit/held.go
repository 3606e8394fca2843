package limit

import (
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// Held counts the bytes of answers that the server holds in memory until clients have
// read them, in total and by client. A nil Held counts nothing.
//
// One answer is let through even if it alone is larger than a limit, as long as nothing
// else is held: otherwise it could never be read.
type Held struct {
	total, each int64 // 0: without limit

	mu  sync.Mutex
	all int64
	by  map[string]int64 // by client, without those that hold nothing
}

// Small is how many bytes an answer may have that is not worth counting: the buffers of
// its connection have more.
const Small = 4 << 10

// heldAgain is when to try again: a client that reads slowly is cut off after a while.
const heldAgain = 5 * time.Second

// NewHeld returns a Held with limits in bytes; 0 is without limit.
func NewHeld(total, each int64) *Held {
	return &Held{total: total, each: each, by: make(map[string]int64)}
}

// Take counts n bytes that are held for a client until release is called, or refuses
// them. The error is a *Refusal. Release is not nil and may be called more than once.
func (h *Held) Take(client string, n int64) (release func(), err error) {
	if h == nil || n <= Small {
		return func() {}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.each > 0 && h.by[client] > 0 && h.by[client]+n > h.each:
		return nil, &Refusal{Kind: stele.Exhausted, After: heldAgain, Message: stele.Messagef("limit.unread-client",
			"this client has {held} bytes of answers that it has not read, and may have {limit}; read them, or close their connections, and ask again",
			h.by[client], h.each)}
	case h.total > 0 && h.all > 0 && h.all+n > h.total:
		return nil, &Refusal{Kind: stele.Unavailable, After: heldAgain, Message: stele.Messagef("limit.unread-total",
			"the server holds as much as it may for clients that have not read their answers; ask again in a few seconds")}
	}
	h.add(client, n)
	return h.releaser(client, n), nil
}

// Add counts n bytes like [Held.Take], and never refuses: it is for answers about what is
// done already, such as a write.
func (h *Held) Add(client string, n int64) (release func()) {
	if h == nil || n <= Small {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(client, n)
	return h.releaser(client, n)
}

func (h *Held) add(client string, n int64) {
	h.all += n
	if h.by[client] += n; h.by[client] == 0 {
		delete(h.by, client)
	}
}

func (h *Held) releaser(client string, n int64) func() {
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.add(client, -n)
	})
}

// Bytes returns how much is held now.
func (h *Held) Bytes() int64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
