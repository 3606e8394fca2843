package resolver

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/trace"
)

// unknownAge is how long the cache remembers that a name is not registered. Writes of this
// process end it at once, and those of other processes when this one learns of them; it is
// short so that a flood of made-up names is soon forgotten.
const unknownAge = 10 * time.Second

// cache reads records from the store and keeps them, each under the name by which
// it was asked for.
//
// That it never serves what a finished write has replaced rests on its tickets. A
// reader takes one for the name, then asks the store, then keeps the answer only
// if the ticket still holds. A writer commits, and then makes the tickets of all
// names of the record worthless and removes what is kept under them. Taking,
// keeping and removing exclude each other for a name, so there are two cases: the
// answer was kept before the writer came, and is removed; or the writer came
// first, and the answer is not kept. It makes no difference whether the answer is
// a record or that there is none.
//
// The redirect cache is kept beside the records, for as many names as there is room for,
// and by the same rules; see redirectCache.
//
// Once the cache is full, it keeps a name only when a client asks for it again: most of
// the names in a long tail, or in a flood of made-up ones, are asked for once, and it would
// cost more to keep and evict them than to read them.
type cache struct {
	store     stele.Records
	kept      *otter.Cache[stele.ID, *entry] // nil: keep nothing
	now       func() time.Time               // may be nil
	age       time.Duration                  // 0: without limit
	redirects *redirectCache                 // nil: keep none
	lags      func() (time.Time, bool)       // see Options.Lagging; may be nil
	seed      maphash.Seed
	shards    [numShards]shard

	full       atomic.Bool   // an entry was evicted
	generation atomic.Uint64 // grows when new names are registered; see forgetUnknown

	writes atomic.Uint64   // grows after this process has committed a record, before its names are forgotten
	asked  []atomic.Uint32 // marks of names that clients asked for

	epochs []atomic.Uint32 // how often a name was forgotten that has this epoch; see Epoch

	tally *cacheTally
}

const numShards = 512

// shard guards the names whose hash leads to it.
type shard struct {
	sync.Mutex
	forgotten uint64 // how often one of its names was
}

// state returns the present value of a ticket's field forgotten.
func (s *shard) state() uint64 {
	s.Lock()
	defer s.Unlock()
	return s.forgotten
}

// ticket is the state of a name's shard when it was taken.
type ticket struct {
	hash       uint64 // of the name
	shard      *shard
	forgotten  uint64
	generation uint64
	lag        int64 // see cache.lag
}

// entry is an answer of the store.
type entry struct {
	record     *stele.Record // nil: the name is not registered
	generation uint64        // of a name that is not registered: the entry is valid while the cache's generation is the same
	until      time.Time     // zero: without limit

	cut   int    // of a name that is not registered: length of the longest prefix of it that is registered; 0: none
	cutAt uint64 // one more than the cache's writes when cut was read; 0: it was not read
}

func newCache(store stele.Records, o Options) *cache {
	c := &cache{store: store, now: o.Now, age: o.CacheAge, lags: o.Lagging, seed: maphash.MakeSeed(), epochs: make([]atomic.Uint32, numEpochs), tally: new(cacheTally)}
	if o.RedirectBytes > 0 && o.CacheAge == 0 { // redirect entries do not expire
		c.redirects = newRedirectCache(o.RedirectBytes)
	}
	if o.CacheBytes == 0 {
		return c
	}
	// More marks than there can be records, within a hundredth of their memory.
	c.asked = make([]atomic.Uint32, max(1, o.CacheBytes/512))
	// These options have no error. Without a cache all answers are the same.
	c.kept, _ = otter.New(&otter.Options[stele.ID, *entry]{
		MaximumWeight: o.CacheBytes,
		Weigher:       weigh,
		OnAtomicDeletion: func(e otter.DeletionEvent[stele.ID, *entry]) {
			if e.Cause == otter.CauseOverflow && !c.full.Load() {
				c.full.Store(true)
			}
		},
	})
	return c
}

// redirect returns the record that has the name without its description, if the redirect
// cache has it; nil otherwise.
func (c *cache) redirect(name stele.ID) *stele.Record {
	if c.redirects == nil {
		return nil
	}
	record := c.redirects.find(name, c.hash(name))
	c.tally.redirects.count(record != nil)
	return record
}

// get returns the record that has the name, nil if there is none.
func (c *cache) get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	e := c.find(name)
	c.tally.records.count(e != nil)
	if e != nil {
		return e.record, nil
	}
	t := c.take(name)
	record, err := c.read(ctx, name)
	if err == nil {
		c.keep(t, name, record)
	}
	return record, err
}

// peek is like get, but does not keep what it reads: for names that no client asked for.
func (c *cache) peek(ctx context.Context, name stele.ID) (*stele.Record, error) {
	if e := c.find(name); e != nil {
		return e.record, nil
	}
	return c.read(ctx, name)
}

func (c *cache) read(ctx context.Context, name stele.ID) (*stele.Record, error) {
	ctx, span := trace.Start(ctx, "store read")
	record, err := c.store.Record(ctx, name)
	span.End(err)
	if isNotFound(err) {
		return nil, nil
	}
	return record, err
}

// longest returns the record of the longest prefix of a name that is registered, and that
// prefix; nil if none is. The entry of a name that is not registered remembers the prefix,
// until a name is registered.
func (c *cache) longest(ctx context.Context, schemes *stele.Schemes, name stele.ID) (*stele.Record, stele.Prefix, error) {
	if cut, ok := c.cutOf(name); ok {
		if cut == 0 {
			return nil, stele.Prefix{}, nil
		}
		at := name.Prefix(cut)
		// A replica of the store that lags may not have it yet.
		if record, err := c.get(ctx, nameOf(at)); record != nil || err != nil {
			return record, at, err
		}
	}
	t, writes := c.take(name), c.writes.Load()
	ctx, span := trace.Start(ctx, "store read prefix")
	record, at, err := c.store.Longest(ctx, name, func(n int) bool { return schemes.Cuts(name, n) })
	span.End(err)
	if isNotFound(err) {
		record, at, err = nil, stele.Prefix{}, nil
	}
	if err != nil {
		return nil, stele.Prefix{}, err
	}
	if e := c.find(name); e != nil && e.record == nil {
		c.keepEntry(t, name, &entry{generation: t.generation, cut: len(at.String()), cutAt: writes + 1})
	}
	return record, at, nil
}

// cutOf returns the length of the longest registered prefix of a name, 0 if there is none,
// if that is known.
func (c *cache) cutOf(name stele.ID) (cut int, ok bool) {
	e := c.find(name)
	if e == nil || e.record != nil || e.cutAt != c.writes.Load()+1 {
		return 0, false
	}
	return e.cut, true
}

// nameOf returns a prefix as a name, or the zero ID if it is not one.
func nameOf(p stele.Prefix) stele.ID {
	id, err := stele.NewID(p.Scheme(), p.String())
	if err != nil {
		return stele.ID{}
	}
	return id
}

// find returns the entry of a name, nil if there is none or it has expired.
func (c *cache) find(name stele.ID) *entry {
	if c.kept == nil {
		return nil
	}
	e, ok := c.kept.GetIfPresent(name)
	if !ok || !e.until.IsZero() && !c.now().Before(e.until) || e.record == nil && e.generation != c.generation.Load() {
		return nil
	}
	return e
}

// take returns a ticket, for what is about to be read from the store.
func (c *cache) take(name stele.ID) ticket {
	if c.kept == nil && c.redirects == nil {
		return ticket{}
	}
	t := c.ticket(name)
	t.lag, t.generation, t.forgotten = c.lag(), c.generation.Load(), t.shard.state()
	return t
}

// keep keeps what was read after the ticket was taken, if the ticket holds.
func (c *cache) keep(t ticket, name stele.ID, record *stele.Record) {
	if t.shard == nil || !name.IsValid() {
		return
	}
	if record != nil {
		c.keepRedirect(t, name, record)
	}
	c.keepEntry(t, name, &entry{record: record, generation: t.generation})
}

// keepEntry is keep without the redirect cache. It sets when the entry expires.
func (c *cache) keepEntry(t ticket, name stele.ID, e *entry) {
	if t.shard == nil || c.kept == nil || !c.mayKeep(t) || c.full.Load() && !c.again(t.hash) {
		return
	}
	record, age := e.record, c.age
	if record == nil && (age == 0 || age > unknownAge) {
		age = unknownAge
	}
	if age > 0 {
		if c.now == nil {
			return // it would never grow old
		}
		e.until = c.now().Add(age)
	}
	name = ownName(name, record)
	t.shard.Lock()
	defer t.shard.Unlock()
	if t.shard.forgotten == t.forgotten {
		c.kept.Set(name, e)
	}
}

// keepRedirect keeps the redirect entry of a name, if the ticket holds. It reports false if
// there was no room.
func (c *cache) keepRedirect(t ticket, name stele.ID, record *stele.Record) bool {
	if c.redirects == nil || !c.mayKeep(t) {
		return true
	}
	var room [maxRedirect]byte
	entry, ok := c.redirects.dictionary.appendRedirect(room[:0], name, record)
	if !ok {
		return true
	}
	t.shard.Lock()
	defer t.shard.Unlock()
	return t.shard.forgotten != t.forgotten || c.redirects.put(name, t.hash, entry)
}

// forget removes what is kept under a name, and makes its tickets worthless.
func (c *cache) forget(name stele.ID) {
	c.writes.Add(1)
	t := c.ticket(name)
	t.shard.Lock()
	defer t.shard.Unlock()
	t.shard.forgotten++
	c.epochs[epochOf(t.hash)].Add(1)
	if c.kept != nil {
		c.kept.Invalidate(name)
	}
	if c.redirects != nil {
		c.redirects.remove(name, t.hash)
	}
}

// lag identifies the last time in which the store lagged; -1 if it lags now. What is read
// between two moments with the same lag, which is not -1, does not come from a replica that
// lags.
func (c *cache) lag() int64 {
	if c.lags == nil {
		return 0
	}
	since, yes := c.lags()
	switch {
	case yes:
		return -1
	case since.IsZero():
		return 0
	}
	return since.UnixNano()
}

// mayKeep reports whether what was read with a ticket is current.
func (c *cache) mayKeep(t ticket) bool { return t.lag >= 0 && t.lag == c.lag() }

// forgetUnknown forgets which names are not registered. The names of a new record can be in
// the cache in no other way, so the caller need not say which they are.
func (c *cache) forgetUnknown() { c.generation.Add(1) }

// forgetAll forgets everything, and makes all tickets worthless.
func (c *cache) forgetAll() {
	c.forgetUnknown()
	for i := range c.shards {
		s := &c.shards[i]
		s.Lock()
		s.forgotten++
		s.Unlock()
	}
	// No reader keeps what it read before.
	if c.kept != nil {
		c.kept.InvalidateAll()
	}
	if c.redirects != nil {
		c.redirects.removeAll()
	}
}

// ticket returns a ticket of a name with its hash and shard only.
func (c *cache) ticket(name stele.ID) ticket {
	hash := c.hash(name)
	return ticket{hash: hash, shard: &c.shards[hash%numShards]}
}

func (c *cache) hash(name stele.ID) uint64 { return maphash.String(c.seed, name.String()) }

// again marks a name as asked for, and reports whether it was marked already and no other
// name has replaced the mark since.
func (c *cache) again(hash uint64) bool {
	mark := uint32(hash) | 1
	return c.asked[(hash>>32)%uint64(len(c.asked))].Swap(mark) == mark
}

// ownName returns the name in memory of its own, or in that of the record. The name of a
// request may be a small piece of a large text, which would stay in memory with it.
func ownName(name stele.ID, record *stele.Record) stele.ID {
	if record != nil {
		if name == record.ID {
			return record.ID
		}
		if i := slices.Index(record.Aliases, name); i >= 0 {
			return record.Aliases[i]
		}
	}
	own, err := stele.NewID(strings.Clone(name.Scheme()), strings.Clone(name.String()))
	if err != nil {
		return name
	}
	return own
}

// weigh returns how much memory an entry takes, about: what its texts have, and
// for what stands around them the sizes of the types, rounded up.
func weigh(name stele.ID, e *entry) uint32 {
	const node, record, target, value, text = 200, 400, 112, 128, 16
	n := node + len(name.String())
	r := e.record
	if r == nil {
		return uint32(n)
	}
	n += record + len(r.ID.String()) + len(r.Spelling) + len(r.By) +
		len(r.Persistence.Until) + len(r.Persistence.Statement)
	for _, a := range r.Aliases {
		n += 2*text + len(a.String())
	}
	if t := r.Tombstone; t != nil {
		n += 5*text + len(t.Reason) + len(t.Replacement.String())
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		n += target + len(t.URL) + len(t.Type) + len(t.Language)
	}
	for key, v := range r.Metadata {
		n += 3*text + len(key) + len(v)
	}
	for i := range r.Values {
		v := &r.Values[i]
		n += value + len(v.Type) + len(v.Data)
		for _, ref := range v.References {
			n += 2*text + len(ref.Handle)
		}
	}
	for _, who := range r.Readers {
		n += text + len(who)
	}
	for i := range r.Signatures {
		s := &r.Signatures[i]
		n += 7*text + len(s.Type) + len(s.Key) + len(s.JWS)
	}
	return uint32(min(n, 1<<31))
}
