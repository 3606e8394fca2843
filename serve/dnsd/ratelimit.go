package dnsd

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"
)

// RateLimit bounds what is sent over UDP to one network, so that attackers cannot use the
// server for amplification with forged source addresses. Clients that have shown a cookie,
// and those that ask over TCP, have a verified address and are not limited. The zero
// RateLimit limits nothing.
type RateLimit struct {
	Same int // times a second that the same answer, or the same kind of error, is sent to a network; 0: no limit
	All  int // answers of all kinds a second to a network; 0: no limit
	Slip int // every how many answers held back a truncated one goes out, so that real clients come by TCP; 0: never

	Exempt []netip.Prefix // networks without limits
}

// DefaultRateLimit is what a server on the public network should begin with.
func DefaultRateLimit() RateLimit { return RateLimit{Same: 20, All: 1000, Slip: 2} }

// kind of an answer, for counting which are the same.
type kind uint8

const (
	kindAnswer   kind = iota // there are records: the same for a name and type
	kindNegative             // there are none: the same for a zone
	kindError                // the same for everything
	kindAll
)

// action is what is done with an answer.
type action uint8

const (
	send action = iota
	slip        // send it truncated, or say that a cookie would help
	hold
)

// limiter counts what goes to each network in buckets of tokens. It has a fixed number of
// them, without pointers; when two networks fall on the same ones, the one that was quiet
// longer is forgotten.
type limiter struct {
	o       RateLimit
	seed    uint64
	mask    uint64
	buckets []atomic.Uint64 // tag, time of the last filling and tokens; see pour
	held    atomic.Uint64
	start   time.Time
}

const (
	limiterBuckets = 1 << 18
	maxRate        = 60_000 // tokens have 16 bits
	tagBits        = 16
)

// newLimiter returns nil if there is nothing to limit.
func newLimiter(o RateLimit, now time.Time) *limiter {
	if o.Same <= 0 && o.All <= 0 {
		return nil
	}
	o.Same, o.All = min(o.Same, maxRate), min(o.All, maxRate)
	return &limiter{o: o, seed: rand.Uint64(), mask: limiterBuckets - 1, buckets: make([]atomic.Uint64, limiterBuckets), start: now}
}

// judge says what to do with an answer of a kind to an address. which tells answers
// of that kind apart.
func (l *limiter) judge(to netip.Addr, k kind, which uint64, now time.Time) action {
	if l == nil || l.exempt(to) {
		return send
	}
	at := uint32(now.Sub(l.start).Milliseconds())
	net := network(to)
	allowed := true
	if l.o.Same > 0 {
		allowed = l.take(mix(l.seed^net, which<<2|uint64(k)), l.o.Same, at)
	}
	if l.o.All > 0 {
		allowed = l.take(mix(l.seed^net, uint64(kindAll)), l.o.All, at) && allowed
	}
	switch {
	case allowed:
		return send
	case l.o.Slip > 0 && l.held.Add(1)%uint64(l.o.Slip) == 0:
		return slip
	}
	return hold
}

func (l *limiter) exempt(a netip.Addr) bool {
	for _, p := range l.o.Exempt {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// network is the network an address is in, as far as one client can be expected to
// have the whole of it: /24, and /56 with IPv6.
func network(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:]) >> 8)
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8])>>8 | 1<<63
}

// mix is a hash of two words.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return bits.RotateLeft64(hi^lo, 23) * 0x9e3779b97f4a7c15
}

// take takes a token out of a bucket that gets rate of them a second and holds as
// many.
func (l *limiter) take(hash uint64, rate int, at uint32) bool {
	tag := hash>>(64-tagBits) | 1 // 0 is a bucket that was never used
	for range 4 {
		b, old := l.bucket(hash&l.mask, tag, at)
		next, ok := pour(old, tag, rate, at)
		if b.CompareAndSwap(old, next) {
			return ok
		}
	}
	return true // other goroutines took four in the meantime; those are counted
}

// bucket returns the bucket with a tag, or the one of two that can rather be spared.
func (l *limiter) bucket(i, tag uint64, at uint32) (*atomic.Uint64, uint64) {
	a, b := &l.buckets[i], &l.buckets[i^1]
	x, y := a.Load(), b.Load()
	switch {
	case x>>48 == tag:
		return a, x
	case y>>48 == tag:
		return b, y
	case x == 0 || y != 0 && at-uint32(x>>16) >= at-uint32(y>>16):
		return a, x
	}
	return b, y
}

// pour fills a bucket for the time that has passed and takes a token. A bucket is
// 16 bits of tag, 32 of milliseconds and 16 of tokens.
func pour(old, tag uint64, rate int, at uint32) (uint64, bool) {
	last, tokens := uint32(old>>16), int(uint16(old))
	passed := int64(int32(at - last))
	if old>>48 != tag || passed < -1000 { // the milliseconds go round in 49 days
		last, tokens = at, rate
	} else if passed > 0 {
		// What is less than a token is left in the time.
		if new := passed * int64(rate) / 1000; new > 0 {
			tokens = int(min(int64(tokens)+new, int64(rate)))
			last += uint32(new * 1000 / int64(rate))
		}
	}
	ok := tokens > 0
	if ok {
		tokens--
	}
	return tag<<48 | uint64(last)<<16 | uint64(tokens), ok
}
