package lsid

import (
	"container/list"
	"context"
	"sync"
)

// Limits of memory.
const (
	maxFetches  = 4 // at the same time
	maxOfHost   = 2 // of them from one host, so that a slow one does not keep others waiting
	maxContents = 4 // times the size of the largest data

	maxWaiting       = 64 // requests that wait to fetch
	maxWaitingOfHost = 16 // of them for one host
)

// contents keeps data in memory, by their digest: those that were asked for last. Data of a digest never change, so
// that nothing has to be forgotten, except to make room. It also limits how many are fetched at the same time.
type contents struct {
	most int64 // bytes

	mu      sync.Mutex
	taken   int            // fetches at present
	hosts   map[string]int // of them from each host
	waiting *list.List     // of *waiter, the first one first
	bytes   int64
	known   map[string]*list.Element
	order   *list.List // the last one that was asked for first
}

// waiter is a request that waits until it may fetch. Ready is closed when it may.
type waiter struct {
	host  string
	ready chan struct{}
}

type content struct {
	digest string
	data   []byte
}

func newContents(largest int64) *contents {
	return &contents{most: maxContents * largest, hosts: make(map[string]int), waiting: list.New(), known: make(map[string]*list.Element), order: list.New()}
}

// errBusy says that data can't be fetched now, since others are.
var errBusy error = &fault{internal, "too many data are being fetched at present; please try again later"}

// mayFetch reports whether data may be fetched from a host now. A host that is asked already does not get the last free
// place, so that slow hosts alone never take all of them. The caller has locked mu.
func (c *contents) mayFetch(host string) bool {
	n := c.hosts[host]
	return c.taken < maxFetches && n < maxOfHost && (n == 0 || c.taken < maxFetches-1)
}

// enter waits until data may be fetched from a host. The caller calls leave at its end. It does not wait if many wait
// already.
func (c *contents) enter(ctx context.Context, host string) (leave func(), err error) {
	leave = func() { c.leave(host) }
	c.mu.Lock()
	if c.mayFetch(host) {
		c.take(host)
		c.mu.Unlock()
		return leave, nil
	}
	same := 0
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		if e.Value.(*waiter).host == host {
			same++
		}
	}
	if c.waiting.Len() >= maxWaiting || same >= maxWaitingOfHost {
		c.mu.Unlock()
		return nil, errBusy
	}
	w := &waiter{host, make(chan struct{})}
	e := c.waiting.PushBack(w)
	c.mu.Unlock()
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.waiting.Remove(e) // it does nothing if the place was given at this moment
	c.mu.Unlock()
	select {
	case <-w.ready:
		leave()
	default:
	}
	return nil, ctx.Err()
}

func (c *contents) take(host string) {
	c.taken++
	c.hosts[host]++
}

// leave gives the place of a fetch to those that wait, the first one first.
func (c *contents) leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken--
	if c.hosts[host]--; c.hosts[host] == 0 {
		delete(c.hosts, host)
	}
	for e := c.waiting.Front(); e != nil; {
		w, next := e.Value.(*waiter), e.Next()
		if c.mayFetch(w.host) {
			c.take(w.host)
			c.waiting.Remove(e)
			close(w.ready)
		}
		e = next
	}
}

// get returns data.
func (c *contents) get(digest string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[digest]
	if e == nil {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*content).data, true
}

// put keeps data, in the place of those that were not asked for for the longest time.
func (c *contents) put(digest string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[digest] != nil || int64(len(data)) > c.most {
		return
	}
	c.known[digest] = c.order.PushFront(&content{digest, data})
	for c.bytes += int64(len(data)); c.bytes > c.most || c.order.Len() > maxKept; {
		last := c.order.Remove(c.order.Back()).(*content)
		delete(c.known, last.digest)
		c.bytes -= int64(len(last.data))
	}
}

// maxKept is how many data are kept, however small they are.
const maxKept = 10_000
