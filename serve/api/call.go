package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// call is one request and its answer.
type call struct {
	h   *Handler
	w   http.ResponseWriter
	r   *http.Request
	ctx context.Context // holds the caller's principal
	op  *operation      // nil until it is found
	who auth.Principal

	token  bool   // the request came with a credential
	bucket string // the rate limit bucket that the request takes from

	tail    string            // what follows the first segment of the path, decoded once
	fields  map[string]string // of the query
	heads   map[string]string
	media   string // of the body; "" without a body
	began   bool   // the answer has begun
	made    func() // ends the turn of an operation that gathers; nil without a turn
	out     *stream
	drained bool // all of the body was read
}

var (
	errSayWho          = stele.Messagef("request.token-missing", "say who you are: send your token in the header Authorization: Bearer")
	errNoAdministrator = stele.Messagef("request.administrator-required", "this is for administrators; ask one")
	errWholeRegistry   = stele.Messagef("token.limited-to-namespaces", "this concerns the whole registry, and the token is limited to namespaces; use another token of an administrator")
)

// id reads the identifier in the path, in any spelling.
func (c *call) id() (stele.ID, error) { return c.h.o.Schemes.Parse(c.tail) }

// prefix reads the prefix of a namespace in the path, in any spelling; a scheme and a
// colon is its root.
func (c *call) prefix() (stele.NamespaceKey, error) { return c.h.o.Registrar.ParsePrefix(c.tail) }

// recordsAToken is how many records of a batch or a stream cost as much as a request.
const recordsAToken = 100

// charge takes from the caller's rate what so many records cost beside the request itself.
// Administrators are exempt: moving a registry takes millions of records.
func (c *call) charge(records int) {
	if c.who.Admin {
		return
	}
	c.h.callers.Spend(c.bucket, float64(records)/recordsAToken, c.h.o.Now())
}

// pace is charge for a stream: it waits until the caller may go on. The streams of a caller
// share a rate of their own, or a long one would leave nothing for other requests. The caller
// is authenticated anew, since a stream may last for days.
func (c *call) pace(records int) error {
	if err := c.recognise(); err != nil {
		return err
	}
	if c.who.Admin {
		return nil
	}
	bucket, now := "streams of "+c.bucket, c.h.o.Now()
	c.h.callers.Spend(bucket, float64(records)/recordsAToken, now)
	wait := c.h.callers.Debt(bucket, now)
	if wait == 0 {
		return nil
	}
	c.extend(wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: c.ctx.Err()}
	}
}

// extend gives the client time, and the server so much more: what a connection was granted
// for one document is not enough for a stream. The server can still tell a client that it
// sends too slowly.
func (c *call) extend(more time.Duration) {
	until := c.h.o.Now().Add(c.h.o.Patience + more)
	rc := http.NewResponseController(c.w)
	// A connection without deadlines, in a test, needs no more time.
	_ = rc.SetReadDeadline(until)
	_ = rc.SetWriteDeadline(until.Add(c.h.o.Patience))
}

// maxStreams is how many bodies without end a caller may send at the same time. Each takes
// some 30 MB, however slowly it comes.
const maxStreams = 8

// crowd counts the streams that each caller sends at the same time.
type crowd struct {
	mu     sync.Mutex
	inside map[string]int // by bucket
}

// enter counts one more stream of a caller; the caller of enter calls leave when the stream
// ends.
func (c *crowd) enter(who string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside[who] == maxStreams {
		return nil, &refusal{
			status: http.StatusTooManyRequests,
			detail: stele.Messagef("request.too-many-streams", "you send {streams} streams already, which are the most at the same time; wait until one has ended", maxStreams),
			after:  soon,
		}
	}
	if c.inside == nil {
		c.inside = make(map[string]int)
	}
	c.inside[who]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.inside[who]--; c.inside[who] == 0 {
			delete(c.inside, who)
		}
	}, nil
}
