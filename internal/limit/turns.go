package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// Turns limits how many large answers are made at the same time. To make one takes
// several times its size, and a thousand that are half made take it a thousand times. The
// others wait for their turn. A nil Turns has no limit.
type Turns struct {
	taken   chan struct{}
	waiting atomic.Int64
	most    int64         // that wait
	wait    time.Duration // how long at most
}

// turnAgain is when to try again.
const turnAgain = 2 * time.Second

// NewTurns returns a Turns for so many at the same time. As many as waiting says wait for
// their turn, and each as long as wait says.
func NewTurns(most, waiting int, wait time.Duration) *Turns {
	return &Turns{taken: make(chan struct{}, max(most, 1)), most: int64(waiting), wait: wait}
}

// Enter returns when it is the caller's turn. The caller makes its answer and calls leave
// before it writes the answer to the client; leave may be called more than once. The error
// is a *Refusal, or that of the context.
func (t *Turns) Enter(ctx context.Context) (leave func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	select {
	case t.taken <- struct{}{}:
		return t.leaver(), nil
	default:
	}
	if t.waiting.Add(1) > t.most {
		t.waiting.Add(-1)
		return nil, t.refusal()
	}
	defer t.waiting.Add(-1)
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case t.taken <- struct{}{}:
		return t.leaver(), nil
	case <-timer.C:
		return nil, t.refusal()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *Turns) leaver() func() { return sync.OnceFunc(func() { <-t.taken }) }

func (t *Turns) refusal() error {
	return &Refusal{Kind: stele.Unavailable, After: turnAgain, Message: stele.Messagef("limit.busy",
		"too many large answers are being made; ask again in a few seconds")}
}
