// Package lease keeps a piece of work to one server of several, which share a registry: the server notes its name beside the work, and
// until when it has it, and renews that while it works. Another server takes the work when the time is over. The package knows neither what the
// work is nor where the note is kept.
package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Longest is how long a lease is at most.
const Longest = time.Hour

// IsFree reports whether no server has the work, given the note beside it: the name of a server, "" if there is none, and until when. A lease
// that ends later than any can was taken by a clock that was ahead, and does not count. How long leases of the reader are does not matter: each
// server has its own setting.
func IsFree(server string, until, now time.Time) bool {
	return server == "" || !now.Before(until) || until.Sub(now) > 2*Longest
}

// Keep does work, and renews its lease meanwhile, which is life long and has just been taken. Renew reports whether this server still has it; an
// error says that the lease was not renewed, and that this is to be tried again. The context of the work ends if another server has the
// lease, and if it was not renewed for its whole life, since another server may have it then: Keep reports that it was lost.
//
// Each try to renew the lease has a third of its life. Time is measured by timers, so that it does not matter if the clock is set.
func Keep(ctx context.Context, life time.Duration, renew func(ctx context.Context) (held bool, err error), work func(ctx context.Context)) (lost bool) {
	inner, cancel := context.WithCancel(ctx)
	var gone atomic.Bool
	lose := func() {
		gone.Store(true)
		cancel()
	}
	third := max(life/3, time.Millisecond)
	end := time.AfterFunc(life, lose)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		defer func() { end.Stop() }()
		tick := time.NewTicker(third)
		defer tick.Stop()
		for {
			select {
			case <-inner.Done():
				return
			case <-tick.C:
			}
			next := time.AfterFunc(life, lose) // what is renewed lasts from before it was
			try, done := context.WithTimeout(inner, third)
			held, err := renew(try)
			done()
			switch {
			case err != nil:
				next.Stop()
			case !held:
				next.Stop()
				lose()
				return
			default:
				end.Stop()
				end = next
			}
		}
	})
	work(inner)
	lost = gone.Load()
	cancel()
	renewing.Wait()
	return lost
}

// Often calls look at once, and again and again after a time, until the context ends.
func Often(ctx context.Context, every time.Duration, look func(ctx context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Work that failed is tried again after firstRetry, and after twice the time each further time, up to LastRetry.
const (
	firstRetry = 5 * time.Minute
	LastRetry  = 24 * time.Hour
)

// RetryAfter returns how long work waits that failed so many times, one after the other.
func RetryAfter(failures int) time.Duration {
	return min(firstRetry<<min(max(failures-1, 0), 20), LastRetry)
}
