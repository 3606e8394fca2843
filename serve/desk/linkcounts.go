package desk

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// How long the first page shows the same numbers of broken links, and of how many users and namespaces they are kept. Counting reads
// up to homeFound findings of each namespace. Where there are more, the numbers are the least ones, and are kept for longer.
const (
	countsLife  = time.Minute
	partialLife = 15 * time.Minute
	maxCounts   = 10_000
)

// countsOf is of what broken links are counted. Users see different names.
type countsOf struct {
	user string
	key  stele.NamespaceKey
}

// brokenCounts are the numbers that the first page shows of a namespace.
type brokenCounts struct {
	hosts, names int
	partial      bool // there may be more
	at           time.Time
}

// isOld reports whether the numbers must be counted anew.
func (n *brokenCounts) isOld(now time.Time) bool {
	life := countsLife
	if n.partial {
		life = partialLife
	}
	return now.Sub(n.at) >= life
}

// counting is a count under way, for all requests that wait for it. The fields are set when done is closed.
type counting struct {
	done chan struct{}
	n    brokenCounts
	ok   bool
}

// linkCounts keeps numbers of broken links for a while. Its zero value is ready for use by many goroutines.
type linkCounts struct {
	mu    sync.Mutex
	kept  map[countsOf]brokenCounts
	under map[countsOf]*counting
}

// get returns the numbers that are kept, or what count returns. Requests at the same time share one count; if it fails, each of the others
// counts for itself, since it may have failed only because the client of the first one left.
func (l *linkCounts) get(ctx context.Context, of countsOf, now time.Time, count func() (brokenCounts, error)) (brokenCounts, error) {
	l.mu.Lock()
	if n, ok := l.kept[of]; ok && !n.isOld(now) {
		l.mu.Unlock()
		return n, nil
	}
	if other := l.under[of]; other != nil {
		l.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return brokenCounts{}, ctx.Err()
		}
		if other.ok {
			return other.n, nil
		}
		return count()
	}
	own := &counting{done: make(chan struct{})}
	if l.under == nil {
		l.under = make(map[countsOf]*counting)
	}
	l.under[of] = own
	l.mu.Unlock()
	defer l.end(of, own)
	n, err := count()
	own.n, own.ok = n, err == nil
	return n, err
}

// end keeps the numbers of a count, unless it was forgotten meanwhile.
func (l *linkCounts) end(of countsOf, own *counting) {
	close(own.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under[of] != own {
		return
	}
	delete(l.under, of)
	if !own.ok {
		return
	}
	if len(l.kept) >= maxCounts {
		maps.DeleteFunc(l.kept, func(_ countsOf, old brokenCounts) bool { return old.isOld(own.n.at) })
	}
	if l.kept == nil || len(l.kept) >= maxCounts {
		l.kept = make(map[countsOf]brokenCounts)
	}
	l.kept[of] = own.n
}

// forget forgets the numbers of a user, who has just changed them.
func (l *linkCounts) forget(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.kept, func(of countsOf, _ brokenCounts) bool { return of.user == user })
	maps.DeleteFunc(l.under, func(of countsOf, _ *counting) bool { return of.user == user })
}

// countBroken counts the hosts that do not answer, and the names that lead nowhere, of a namespace, as the user may see them. The numbers
// may be a minute old, and a quarter of an hour if they are the least ones.
func (c *call) countBroken(key stele.NamespaceKey) (brokenCounts, error) {
	now := c.h.o.Now()
	return c.h.linkCounts.get(c.ctx, countsOf{c.who.Name, key}, now, func() (brokenCounts, error) {
		o, err := c.h.o.Links.Numbers(c.ctx, key, homeFound)
		if err != nil {
			return brokenCounts{}, err
		}
		n := brokenCounts{names: o.Counts["broken"] + o.Counts["gone"], partial: o.Partial, at: now}
		for _, h := range o.Hosts {
			if !h.Down.IsZero() {
				n.hosts++
			}
		}
		return n, nil
	})
}
