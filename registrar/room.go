package registrar

import (
	"container/list"
	"context"
	"sync"

	"github.com/stele-id/stele"
)

// room is a waiting room: one caller at a time has its turn, in order of arrival.
// A caller that gives up leaves it. (The report's "waiting room", chapter 6.)
type room struct {
	size int // how many may wait

	mu    sync.Mutex
	busy  bool      // somebody has the turn
	queue list.List // of chan struct{}, closed when its caller gets the turn
}

// place is a caller's place in the room.
type place struct {
	room *room
	at   *list.Element // nil: it has the turn at once
}

// join takes a place. A room that is full gives none: Exhausted. Who was in the
// room and comes back for more is always let in.
func (m *room) join(back bool) (place, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.busy {
		m.busy = true
		return place{m, nil}, nil
	}
	if !back && m.queue.Len() >= m.size {
		return place{}, refuse("mint", stele.ID{}, stele.Exhausted,
			"%d callers wait for a name already; try again later, use a smaller granularity or more subsystems", m.size)
	}
	return place{m, m.queue.PushBack(make(chan struct{}))}, nil
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
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	select {
	case <-turn: // just now: the next one gets it
		p.room.pass()
	default:
		p.room.queue.Remove(p.at)
	}
	return tell("mint", ctx.Err())
}

// leave ends the turn.
func (m *room) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass()
}

// pass gives the turn to the next.
func (m *room) pass() {
	next := m.queue.Front()
	if next == nil {
		m.busy = false
		return
	}
	m.queue.Remove(next)
	close(next.Value.(chan struct{}))
}

// inside returns how many are in the room, the one that has the turn included.
func (m *room) inside() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		return m.queue.Len() + 1
	}
	return 0
}
