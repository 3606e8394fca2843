package dnsd

import (
	"sync"
	"time"
)

// budget bounds how much is signed in a second. A client that asks for names that are made
// up makes the server sign each time, and must not use up what others need: a half of the
// budget is reserved for names that exist, and a quarter for clients over TCP.
type budget struct {
	mu   sync.Mutex
	rate int64 // tokens a second, and as many are kept at most
	left int64 // in nanoseconds of filling
	last time.Time
}

func newBudget(rate int, now time.Time) *budget {
	return &budget{rate: int64(rate), left: int64(time.Second), last: now}
}

// take reports whether there is something left to sign an answer.
func (b *budget) take(now time.Time, exists, tcp bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.last); passed > 0 {
		b.left = min(b.left+int64(passed), int64(time.Second))
		b.last = now
	} else if passed < -time.Second {
		b.last = now // the clock was set back
	}
	price, reserve := int64(time.Second)/b.rate, int64(0)
	if !exists {
		reserve += int64(time.Second) / 2
	}
	if !tcp {
		reserve += int64(time.Second) / 4
	}
	if b.left-price < reserve {
		return false
	}
	b.left -= price
	return true
}
