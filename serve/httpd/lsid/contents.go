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
)

// contents keeps data in memory, by their digest: those that were asked for last. Data of a digest never change, so
// that nothing has to be forgotten but for space. It also limits how many are fetched at the same time.
type contents struct {
	most  int64 // bytes
	turns chan struct{}

	mu    sync.Mutex
	hosts map[string]*hostTurns
	bytes int64
	known map[string]*list.Element
	order *list.List // the last one that was asked for first
}

// hostTurns are the fetches from a host, and how many requests make or await one.
type hostTurns struct {
	turns chan struct{}
	users int
}

type content struct {
	digest string
	data   []byte
}

func newContents(largest int64) *contents {
	return &contents{most: maxContents * largest, turns: make(chan struct{}, maxFetches), hosts: make(map[string]*hostTurns), known: make(map[string]*list.Element), order: list.New()}
}

// enter waits until data may be fetched from a host. The caller calls leave at its end.
func (c *contents) enter(ctx context.Context, host string) (leave func(), err error) {
	c.mu.Lock()
	h := c.hosts[host]
	if h == nil {
		h = &hostTurns{turns: make(chan struct{}, maxOfHost)}
		c.hosts[host] = h
	}
	h.users++
	c.mu.Unlock()
	end := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(c.hosts, host)
		}
	}
	select {
	case h.turns <- struct{}{}:
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		<-h.turns
		end()
		return nil, ctx.Err()
	}
	return func() {
		<-c.turns
		<-h.turns
		end()
	}, nil
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
