package minting

import (
	"container/list"
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// queue gives the turn to one caller at a time, in order of arrival. A caller that gives up
// leaves it. (The IBI report calls it the "waiting room", chapter 6.)
type queue struct {
	size int // how many may wait

	mu      sync.Mutex
	busy    bool      // a caller has the turn
	waiting list.List // of chan struct{}, closed when its caller gets the turn
}

// place is a caller's place in the queue.
type place struct {
	queue *queue
	at    *list.Element // nil: the caller has the turn at once
}

// join takes a place. Exhausted if the queue is full, except for a caller that comes back
// for more names.
func (q *queue) join(back bool) (place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.busy {
		q.busy = true
		return place{q, nil}, nil
	}
	if !back && q.waiting.Len() >= q.size {
		return place{}, stele.Errorf("mint", stele.ID{}, stele.Exhausted,
			"mint.queue-full", "{count} callers wait for a name already; try again later, use a smaller granularity or more subsystems", q.size)
	}
	return place{q, q.waiting.PushBack(make(chan struct{}))}, nil
}

// wait returns when the caller has the turn, and must be followed by leave. If the
// context ends first it is an error, and the place is given up.
func (p place) wait(ctx context.Context) error {
	if p.at == nil {
		return nil
	}
	turn := p.at.Value.(chan struct{})
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	select {
	case <-turn: // just now: the next one gets it
		p.queue.pass()
	default:
		p.queue.waiting.Remove(p.at)
	}
	return stele.AsError("mint", ctx.Err())
}

// leave ends the turn.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
}

// pass gives the turn to the next.
func (q *queue) pass() {
	next := q.waiting.Front()
	if next == nil {
		q.busy = false
		return
	}
	q.waiting.Remove(next)
	close(next.Value.(chan struct{}))
}

// length returns how many callers are in the queue, including the one that has the turn.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return q.waiting.Len() + 1
	}
	return 0
}
