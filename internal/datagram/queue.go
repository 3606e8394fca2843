package datagram

import (
	"net/netip"
	"sync"
)

// Queue answers requests for which a server has to wait, so that a socket's own goroutine answers the others without
// delay. A nil Queue takes nothing.
type Queue struct {
	requests chan *Request
	free     sync.Pool
	running  sync.WaitGroup
}

// Request is a request that waits.
type Request struct {
	Message []byte
	From    netip.AddrPort
	Origin  []byte // what tells the system where to answer from; see [Batch.Origin]
}

// NewQueue starts workers goroutines, each with an answering function of its own, which keeps nothing of a request. So many more
// requests may wait. It returns nil if there are to be no workers.
func NewQueue(workers, waiting int, newWorker func() (answer func(*Request))) *Queue {
	if workers <= 0 {
		return nil
	}
	q := &Queue{requests: make(chan *Request, waiting)}
	q.free.New = func() any { return new(Request) }
	for range workers {
		answer := newWorker()
		q.running.Go(func() {
			for one := range q.requests {
				answer(one)
				q.free.Put(one)
			}
		})
	}
	return q
}

// Take takes a copy of a request, and reports false if there are too many already.
func (q *Queue) Take(message []byte, from netip.AddrPort, origin []byte) bool {
	if q == nil {
		return false
	}
	one, ok := q.free.Get().(*Request)
	if !ok {
		return false
	}
	one.Message, one.From, one.Origin = append(one.Message[:0], message...), from, append(one.Origin[:0], origin...)
	select {
	case q.requests <- one:
		return true
	default:
		q.free.Put(one)
		return false
	}
}

// Close ends the queue once all of it is answered.
func (q *Queue) Close() {
	if q != nil {
		close(q.requests)
		q.running.Wait()
	}
}
