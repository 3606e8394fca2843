package api

import (
	"fmt"
	"net/http"
	"sync"
)

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
			detail: fmt.Sprintf("you send %d streams already, which are the most at the same time; wait until one has ended", maxStreams),
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
