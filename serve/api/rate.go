package api

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// limiter counts requests by who sends them: each has a bucket from which a request
// takes one, and into which so many flow in a second as the rate says, up to the
// burst. A bucket may be overdrawn by work that turns out to be more than one request;
// then its owner waits until that has flowed in.
//
// It remembers the buckets that were used last. Whoever is forgotten begins with a
// full one, and so does whoever has waited long enough for that to be true.
type limiter struct {
	rate, burst float64 // rate 0: nothing is counted

	mu      sync.Mutex
	buckets map[string]*list.Element
	recent  *list.List // of *bucket, the last used first
}

// maxBuckets is how many are remembered: about 2 MB.
const maxBuckets = 10_000

// bucket is that of one sender.
type bucket struct {
	who  string
	left float64
	at   time.Time // when that was so
}

func newLimiter(rate, burst int) *limiter {
	return &limiter{
		rate: float64(rate), burst: float64(max(burst, 1)),
		buckets: make(map[string]*list.Element), recent: list.New(),
	}
}

// take takes one request, or refuses it.
func (l *limiter) take(who string, now time.Time) error { return l.draw(who, 1, true, now) }

// spend takes whatever is left.
func (l *limiter) spend(who string, n float64, now time.Time) { _ = l.draw(who, n, false, now) }

func (l *limiter) draw(who string, n float64, mayRefuse bool, now time.Time) error {
	if l.rate <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(who, now)
	if mayRefuse && b.left < 1 {
		return &refusal{
			status: http.StatusTooManyRequests,
			detail: "too many requests in a short time; send the next one when Retry-After says",
			after:  l.until(b.left, 1),
		}
	}
	b.left -= n
	return nil
}

// debt returns how long it takes until a bucket is not overdrawn.
func (l *limiter) debt(who string, now time.Time) time.Duration {
	if l.rate <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until(l.bucket(who, now).left, 0)
}

// until returns how long it takes until so much is there.
func (l *limiter) until(left, wanted float64) time.Duration {
	if left >= wanted {
		return 0
	}
	return time.Duration((wanted - left) / l.rate * float64(time.Second))
}

// bucket returns that of a sender, as it is now. The caller holds the lock.
func (l *limiter) bucket(who string, now time.Time) *bucket {
	e, ok := l.buckets[who]
	if !ok {
		if l.recent.Len() >= maxBuckets {
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
