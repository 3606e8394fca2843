package limit

import (
	"container/list"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// Rate counts work by client: each client has a bucket from which a request
// takes what it costs, and into which so much flows in a second as the rate says, up to
// the burst. A request is refused if less than one is left. A bucket may be overdrawn by
// work that costs more than is left; then its owner waits until that has flowed in.
//
// It remembers the buckets that were used last. A client that is forgotten begins with a
// full one, and so does a client that has waited long enough for that to be true. A nil
// Rate counts nothing.
type Rate struct {
	rate, burst float64 // rate 0: nothing is counted

	mu      sync.Mutex
	buckets map[string]*list.Element
	recent  *list.List // of *bucket, the last used first
}

// MaxBuckets is how many clients a [Rate] remembers: about 2 MB.
const MaxBuckets = 10_000

// bucket is the bucket of one client.
type bucket struct {
	who  string
	left float64
	at   time.Time // when that was so
}

// NewRate returns a Rate. If rate is 0 it counts nothing.
func NewRate(rate, burst int) *Rate {
	return &Rate{
		rate: float64(rate), burst: float64(max(burst, 1)),
		buckets: make(map[string]*list.Element), recent: list.New(),
	}
}

// Take takes what a request costs, or refuses the request. The error is a *Refusal.
func (l *Rate) Take(who string, cost float64, now time.Time) error {
	return l.draw(who, cost, true, now)
}

// Spend takes the cost of work that is done already.
func (l *Rate) Spend(who string, cost float64, now time.Time) { _ = l.draw(who, cost, false, now) }

func (l *Rate) draw(who string, cost float64, mayRefuse bool, now time.Time) error {
	if l == nil || l.rate <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(who, now)
	if mayRefuse && b.left < 1 {
		return &Refusal{Kind: stele.Exhausted, After: l.until(b.left, 1), Message: stele.Messagef("limit.rate",
			"too many requests in a short time; send the next one when Retry-After says")}
	}
	b.left -= cost
	return nil
}

// Debt returns how long it takes until a bucket is not overdrawn.
func (l *Rate) Debt(who string, now time.Time) time.Duration {
	if l == nil || l.rate <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until(l.bucket(who, now).left, 0)
}

// until returns how long it takes until so much has flowed in.
func (l *Rate) until(left, wanted float64) time.Duration {
	if left >= wanted {
		return 0
	}
	return time.Duration((wanted - left) / l.rate * float64(time.Second))
}

// bucket returns the bucket of a client, as it is now. The caller holds the lock.
func (l *Rate) bucket(who string, now time.Time) *bucket {
	e, ok := l.buckets[who]
	if !ok {
		if l.recent.Len() >= MaxBuckets {
			oldest := l.recent.Remove(l.recent.Back()).(*bucket)
			delete(l.buckets, oldest.who)
		}
		e = l.recent.PushFront(&bucket{who, l.burst, now})
		l.buckets[who] = e
	}
	l.recent.MoveToFront(e)
	b := e.Value.(*bucket)
	if passed := now.Sub(b.at); passed > 0 { // a clock may step back
		b.left = min(l.burst, b.left+passed.Seconds()*l.rate)
	}
	b.at = now
	return b
}
