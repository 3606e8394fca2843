package client

import (
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/miekg/dns"
)

// cache remembers answers for as long as they hold. A nil one remembers nothing.
type cache struct {
	now  func() time.Time
	kept *otter.Cache[question, kept]
}

// kept is an answer, and until when it holds.
type kept struct {
	answer *answer
	until  time.Time
}

func newCache(now func() time.Time, bytes uint64) *cache {
	c := &cache{now: now}
	// These options have no error. Without a cache all answers are the same.
	c.kept, _ = otter.New(&otter.Options[question, kept]{MaximumWeight: bytes, Weigher: weigh})
	return c
}

// weigh estimates the memory of an answer. Rules and their expressions take several
// times what they take on the wire.
func weigh(q question, k kept) uint32 {
	n := 256 + len(q.name) + len(k.answer.owner)
	for _, r := range k.answer.records {
		n += 64 + dns.Len(r)
	}
	return uint32(n + len(k.answer.rules)*1024)
}

// find returns what is remembered of a question, with the time that is left; nil if
// nothing is.
func (c *cache) find(q question) *answer {
	if c == nil || c.kept == nil {
		return nil
	}
	k, ok := c.kept.GetIfPresent(q)
	if !ok {
		return nil
	}
	left := k.until.Sub(c.now())
	if left <= 0 || left > time.Duration(k.answer.ttl)*time.Second { // it is over, or the clock was put back
		c.kept.Invalidate(q)
		return nil
	}
	a := *k.answer
	a.ttl, a.cached = uint32((left+time.Second-1)/time.Second), true
	return &a
}

// keep remembers an answer.
func (c *cache) keep(q question, a *answer) {
	if c == nil || c.kept == nil || a.ttl == 0 {
		return
	}
	c.kept.Set(q, kept{a, c.now().Add(time.Duration(a.ttl) * time.Second)})
}
