package usage

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/stele-id/stele"
)

// Options are what a Counter needs.
type Options struct {
	Store   Store
	Agents  *Agents
	Schemes *stele.Schemes
	Space   func(ctx context.Context, id stele.ID) stele.NamespaceKey // to which a name belongs; the zero key: to none
	Now     func() time.Time
	Log     *slog.Logger // nothing is logged if nil

	// Cut says that of addresses only the network counts: 24 bits of IPv4, 48 of IPv6. Readers of one network with the
	// same user agent count as one.
	Cut bool

	// Country returns the country of an address; nil: countries are not counted. It is called within requests.
	Country func(netip.Addr) Country

	// Interval is how often figures are written; 30 s if 0. A crash loses what was counted since.
	Interval time.Duration

	// Zones returns how many answers the name server has sent for each zone since it was started; nil: there is none.
	// Those before New was called are not counted.
	Zones func() map[string]uint64
}

// Counter counts answers. Its methods Redirected, RedirectedByRule, Described and Failed are for many goroutines at once; they neither wait nor allocate,
// and what they learn of the reader is gone when they return.
type Counter struct {
	o       Options
	schemes []string
	seed    maphash.Seed // of the hashes of names
	key     *dayKey
	classes *classes
	rings   []*ring
	second  atomic.Uint32 // the time, in Unix seconds
	day     atomic.Int64  // of the key
	rare    chan rare
	wake    chan struct{} // tells Run that many hits wait

	dropped atomic.Uint64
	failing atomic.Uint64

	// What follows belongs to the goroutine of Run.
	ctx     context.Context
	tally   *tally
	keeper  *keeper
	batch   [batchSize]event
	flushed int64
	hits    uint64            // that were taken from the rings; those that the tally dropped are among them
	kept    uint64            // of these, whose figures are written
	zones   map[string]uint64 // answers that were added to the figures
	touched uint64            // keeps the compiler from leaving out reads that are for the processor's cache only
	stats   atomic.Pointer[Stats]
}

// rare is a hit that needs more than a slot has room for.
type rare struct {
	event
	agent string // whose class is not known; "" if class says it
	host  string // that referred to the name
	known Class
}

// Sizes of what hits wait in.
const (
	maxRings  = 8
	ringSize  = 1 << 14
	wakeEvery = 1 << 11 // hits that wait in a ring until they are counted before the next tick: they are in the processor's cache then
	batchSize = 1 << 7  // hits that are counted at once
	rareSize  = 1 << 12
	tickEvery = 250 * time.Millisecond
)

// Stats are about the counter itself.
type Stats struct {
	Kept     uint64 // uses whose figures are written
	Dropped  uint64 // hits that were not counted, because too many came at once, or on too many names
	Overflow uint64 // hits that were counted without the rules for double clicks and sessions, because too many readers came
	Failed   uint64 // attempts to write figures that failed
	Waiting  int    // figures that are to be written
}

// New returns a counter. It counts from then on, and [Counter.Run] writes the figures.
func New(o Options) *Counter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	c := &Counter{o: o, key: newDayKey(), classes: newClasses(), rare: make(chan rare, rareSize), wake: make(chan struct{}, 1), keeper: newKeeper(o.Store, o.Log), zones: make(map[string]uint64)}
	if o.Zones != nil {
		maps.Copy(c.zones, o.Zones()) // a counter before this one added them
	}
	for s := range o.Schemes.All() {
		c.schemes = append(c.schemes, s.Name())
	}
	n := 1
	for n < min(runtime.GOMAXPROCS(0), maxRings) {
		n *= 2
	}
	for range n {
		c.rings = append(c.rings, newRing(ringSize))
	}
	c.tally = newTally(func(id stele.ID) stele.NamespaceKey { return o.Space(c.ctx, id) })
	c.seed = c.tally.seed
	now := o.Now()
	c.flushed = now.Unix()
	c.day.Store(c.flushed / secondsDay)
	c.keeper.between = func() { c.drain(c.o.Now()) }
	c.second.Store(uint32(now.Unix()))
	return c
}

// Redirected counts an answer that led to the target of a name.
func (c *Counter) Redirected(id stele.ID, from netip.Addr, agent, referrer string) {
	c.add(Redirect, id, from, agent, referrer)
}

// RedirectedByRule counts an answer that led a name which is not registered to the target of a rule. It counts for the
// namespace, and for no name: figures of names that anyone can think of would have no end.
func (c *Counter) RedirectedByRule(id stele.ID, from netip.Addr, agent, referrer string) {
	c.add(byRule, id, from, agent, referrer)
}

// Described counts an answer that told something about a name.
func (c *Counter) Described(id stele.ID, from netip.Addr, agent string) {
	c.add(Description, id, from, agent, "")
}

// Failed counts an answer that a name leads nowhere.
func (c *Counter) Failed(id stele.ID, from netip.Addr, agent string) {
	c.add(Failure, id, from, agent, "")
}

func (c *Counter) add(kind Kind, id stele.ID, from netip.Addr, agent, referrer string) {
	scheme := c.scheme(id.Scheme())
	if scheme < 0 {
		return
	}
	if c.o.Cut {
		from = cut(from)
	}
	agent = clip(agent, maxAgent)
	hash := c.classes.hash(agent)
	class := c.classes.find(hash)
	if class == Ignored {
		return
	}
	visitor := c.key.visitor(from, hash)
	if c.o.Country != nil {
		visitor = withCountry(visitor, c.o.Country(from))
	}
	e := event{text: id.String(), name: maphash.String(c.seed, id.String()), visitor: visitor, second: uint16(c.second.Load()), scheme: uint8(scheme), what: uint8(kind)<<4 | uint8(class)}
	host := refererHost(referrer)
	if class == unclassified || host != "" && class != Robot {
		r := rare{event: e, host: host, known: class}
		if class == unclassified {
			r.agent = agent
		}
		select {
		case c.rare <- r:
			return
		default:
		}
		if class == unclassified {
			c.dropped.Add(1)
			return
		}
		// It counts without its host.
	}
	ring := 0
	if len(c.rings) > 1 {
		ring = int(rand.Uint32()) & (len(c.rings) - 1)
	}
	at, ok := c.rings[ring].put(&e)
	if !ok {
		c.dropped.Add(1)
	}
	if at%wakeEvery == wakeEvery-1 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// scheme returns the number of a scheme.
func (c *Counter) scheme(name string) int {
	for i, s := range c.schemes {
		if s == name {
			return i
		}
	}
	return -1
}

// refererHost returns the host of the page that referred to a name; "" if there is none.
func refererHost(referrer string) string {
	_, rest, ok := strings.Cut(referrer, "://")
	if !ok {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return clip(rest, 253)
}

// registrable returns the registrable domain of a host: "" if it has none, such as an address or a machine of a local
// network.
func registrable(host string) string {
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		host = host[:at]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil || strings.HasPrefix(host, "[") {
		return ""
	}
	// The list has a rule for names of which it knows nothing, such as those of a local network: the last label is a suffix.
	if suffix, known := publicsuffix.PublicSuffix(host); !known && !strings.Contains(suffix, ".") {
		return ""
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil || !isDomain(domain) {
		return ""
	}
	return domain
}

func isDomain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '.' && c != '-' && (c < '0' || '9' < c) && (c < 'a' || 'z' < c) {
			return false
		}
	}
	return text != ""
}

// Run counts until the context ends, and writes the figures. It writes what is left before it returns.
func (c *Counter) Run(ctx context.Context) {
	c.ctx = ctx
	var clock sync.WaitGroup
	clock.Go(func() { c.watchClock(ctx) })
	defer clock.Wait()
	c.keeper.forgetMarks(ctx, c.o.Now())
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			c.work(c.o.Now())
		case <-c.wake:
			c.drain(c.o.Now())
		case <-ctx.Done():
			c.end(ctx)
			return
		}
	}
}

// watchClock tells the counter the time, also while figures are written: the key must change at midnight even if the
// database does not answer.
func (c *Counter) watchClock(ctx context.Context) {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			c.tick(c.o.Now())
		case <-ctx.Done():
			return
		}
	}
}

// end writes what is left.
func (c *Counter) end(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c.ctx = last
	c.drain(c.o.Now())
	c.flush(c.o.Now())
	c.keeper.end(last)
	if lost := c.Stats().Waiting; lost > 0 {
		c.o.Log.Warn("counting ends, and figures of use that could not be written are lost", "figures", lost)
	}
}

// work does what is due at a time.
func (c *Counter) work(now time.Time) {
	if c.ctx == nil {
		c.ctx = context.Background() // in tests that call it themselves
	}
	c.drain(now)
	// After a clock was set back, the last time may be hours ahead.
	if past := now.Unix() - c.flushed; past >= int64(c.o.Interval/time.Second) || past < 0 {
		c.flush(now)
		c.keeper.tidy(c.ctx, now)
	}
	c.fold(now)
}

// fold adds what journals have to the cells of names, some of it each time that it is called, so that hits do not wait for long.
func (c *Counter) fold(now time.Time) {
	every := foldAfter * c.o.Interval
	c.keeper.look(c.ctx, now, every)
	if err := c.keeper.fold(c.ctx, now, foldSteps); err != nil {
		c.failing.Add(1)
		if c.ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			c.o.Log.Warn("figures of use can't be added up; it is tried again", "error", err.Error())
		}
	}
}

// tick tells the counter the time. The key of visitors changes with the day.
func (c *Counter) tick(now time.Time) {
	second := now.Unix()
	if day := second / secondsDay; c.day.Swap(day) != day {
		c.key.change()
	}
	c.second.Store(uint32(second))
}

// drain counts the hits that wait.
func (c *Counter) drain(now time.Time) {
	c.tick(now)
	second := now.Unix()
	if second < c.tally.now-maxBack {
		c.tally.setBack(second)
	}
	for _, r := range c.rings {
		for left := len(r.slots); left > 0; { // no more, or it would never end
			n := r.take(c.batch[:])
			if n == 0 {
				break
			}
			c.countBatch(c.batch[:n], second)
			left -= n
		}
	}
	for range len(c.rare) {
		r := <-c.rare
		class := r.known
		if class == unclassified {
			hash := c.classes.hash(r.agent)
			if class = c.classes.find(hash); class == unclassified {
				class = c.o.Agents.Class(r.agent)
				c.classes.keep(hash, class)
			}
		}
		c.count(&r.event, second, class, registrable(r.host))
	}
	c.tally.advance(second)
	c.note()
}

// countBatch counts hits. First it reads, for all of them, where the last clicks of their readers are: the processor waits for memory once
// instead of once for each.
func (c *Counter) countBatch(batch []event, now int64) {
	c.touched = c.tally.touch(batch)
	for i := range batch {
		c.count(&batch[i], now, Class(batch[i].what&15), "")
	}
	clear(batch) // it names what was read
}

func (c *Counter) count(e *event, now int64, class Class, host string) {
	c.hits++
	late := uint16(now) - e.second
	if late > math.MaxUint16-60 { // the clock went on while hits were counted
		late = 0
	}
	at := now - int64(late)
	r := reading{at: at, id: stele.StoredID(c.schemes[e.scheme], e.text), hash: e.name, visitor: e.visitor, class: class, kind: Kind(e.what >> 4), host: host, lands: c.o.Country != nil}
	c.tally.count(&r)
}

// note keeps what Stats returns.
func (c *Counter) note() {
	c.stats.Store(&Stats{Kept: c.kept, Dropped: c.keeper.lost + c.tally.dropped, Overflow: c.tally.overflow, Waiting: len(c.tally.records.list) + c.keeper.waiting()})
}

// Stats returns how the counter is.
func (c *Counter) Stats() Stats {
	s := Stats{}
	if last := c.stats.Load(); last != nil {
		s = *last
	}
	s.Dropped, s.Failed = s.Dropped+c.dropped.Load(), c.failing.Load()
	return s
}

// flush adds what was counted to the figures of the registry. What can't be written now is written with the next.
func (c *Counter) flush(now time.Time) {
	c.flushed = now.Unix()
	c.tally.tellVisitors()
	var others []addition
	if c.o.Zones != nil {
		others = c.zoneAdditions(now)
	}
	if len(others) > 0 || !c.tally.isEmpty() {
		others = append(others, began(now))
	}
	list := c.tally.additions(c.keeper.nextPart, others...)
	hits := c.hits - c.tally.dropped // more are counted while these are written
	left, err := c.keeper.keep(c.ctx, now, list)
	if left == 0 {
		c.kept = hits
	}
	if err != nil {
		c.failing.Add(1)
		if c.ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			c.o.Log.Warn("figures of use can't be written; it is tried again", "error", err.Error(), "waiting", left)
		}
	}
	c.note()
}
