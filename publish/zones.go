// Package publish makes the zones of the DNS that a registry publishes: it compiles
// namespaces and records into rules for DDDS and EDDDS clients, and gives zones to the
// server that answers from them and to secondaries, as deltas, snapshots and zone files.
//
// [Zones] are the registry as zones, always as the registry is now. [Zone.Lookup] returns
// what stands at a name, [Zones.Snapshot] a zone that stays as it is, [Zone.IXFR] what has
// changed in it. Packages below this one decide which zones there are (zonemap), make the
// records of one identifier (naptr), keep the keys of zones (zonekey), sign (zonesign) and
// deny names (nsec3).
//
// The package never changes the registry, opens no socket, and knows nothing of messages:
// package dnsd answers questions.
package publish

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
	"github.com/stele-id/stele/secret"
)

// DefaultTTL is for how many seconds answers are kept where the options do not say.
const DefaultTTL = 3600

// Store is the part of a [stele.Store] that zones are made of, with the same obligations. It
// may be a [stele.Replicated] too.
type Store interface {
	Record(ctx context.Context, name stele.ID) (*stele.Record, error)
	Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error)
	Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error]
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	Count(ctx context.Context, key stele.NamespaceKey) (uint64, error)
	Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error]
	LastChange(ctx context.Context) (uint64, error)
	Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] // keys of zones and of secondaries
	stele.Zones
}

// ZonesOptions are what Zones are made of. Store, Schemes and Now must be set.
type ZonesOptions struct {
	Store      Store
	Schemes    *stele.Schemes
	Log        *slog.Logger // of what the operator should look into; nothing is logged if nil
	DefaultTTL uint32       // 3600 if 0

	// Now is the clock, by which signatures are dated. It must be set.
	Now func() time.Time

	// Secrets are the keys that decrypt the private keys of zones and the keys of
	// secondaries. Without the right one a zone is served without signatures.
	Secrets *secret.Ring

	// Keyless says that the store has no keys, since it is the registry of a server as
	// seen from elsewhere. Zones are without signatures then.
	Keyless bool

	// Signing returns how the zone of a namespace is signed; if nil it is
	// [zonesign.ModeOf], which returns what the namespace says.
	Signing func(*stele.Namespace) zonesign.Mode

	// ReadAgain is how long the reader of names waits after an error of the store before it
	// goes on; 10 s if 0.
	ReadAgain time.Duration
}

// Zones are the zones that the registry publishes, always as the registry is now.
// They are used by many goroutines at once, and read the registry when they are
// first asked.
type Zones struct {
	store   Store
	schemes *stele.Schemes
	log     *slog.Logger
	ttl     uint32
	now     func() time.Time
	again   time.Duration // ZonesOptions.ReadAgain
	signing func(*stele.Namespace) zonesign.Mode
	secrets *secret.Ring

	changed atomic.Uint64
	signed  atomic.Bool // some zone is
	serials zoneSerials
	news    *serialNews // of them

	mu          sync.Mutex
	loading     *loading        // nil: the namespaces are not being read
	reading     bool            // the reader works
	readsLong   bool            // so long that answers do not wait for it
	unsettled   []chan struct{} // of sets whose answers wait for the next pass; see letAnswer
	forgotten   uint64
	listeners   []func(names []string)
	kept        atomic.Pointer[zoneSet]   // nil: to be read
	last        *zoneSet                  // what was kept before, for its index
	nsec3Chains map[string]keptNSEC3Chain // of zones in the mode transfer
	ring        atomic.Pointer[tsigKeys]  // nil: to be read
	lives       atomic.Uint64             // how many registries took the place of one another
	generations generations
	applied     applied

	life context.Context // of work beside answers
	end  context.CancelFunc
	work sync.WaitGroup
}

// NewZones makes the zones of a registry. They are closed with Close.
func NewZones(o ZonesOptions) *Zones {
	z := &Zones{store: o.Store, schemes: o.Schemes, log: o.Log, ttl: o.DefaultTTL, now: o.Now, again: o.ReadAgain, signing: o.Signing, secrets: o.Secrets}
	z.generations.zones = make(map[string]*zoneGenerations)
	switch {
	case o.Keyless:
		z.signing = func(*stele.Namespace) zonesign.Mode { return zonesign.Unsigned }
	case z.signing == nil:
		z.signing = zonesign.ModeOf
	}
	if z.again == 0 {
		z.again = readAgain
	}
	if z.log == nil {
		z.log = slog.New(slog.DiscardHandler)
	}
	if z.ttl == 0 {
		z.ttl = DefaultTTL
	}
	z.news = newSerialNews()
	z.news.add()
	z.life, z.end = context.WithCancel(context.Background())
	return z
}

// Close ends what works beside answers, before the store is closed.
func (z *Zones) Close() {
	z.mu.Lock() // nothing is begun after that
	z.end()
	z.mu.Unlock()
	z.work.Wait()
}

// compilerVersion grows with every change of the program that makes something else of
// the same registry.
const compilerVersion = 4

// Compiler identifies the program and the settings that make the zones. If it differs, the
// same registry may give other zones, so copies of zones must be made anew.
func (z *Zones) Compiler() string { return fmt.Sprintf("%d ttl=%d", compilerVersion, z.ttl) }

// Changed grows with everything that may change an answer, before the writer is
// acknowledged.
func (z *Zones) Changed() uint64 { return z.changed.Load() }

// Invalidate says that records have been committed. The writer calls it with the new
// versions, before it acknowledges them: no answer that is looked up after it returned is
// older.
func (z *Zones) Invalidate(records ...*stele.Record) {
	set := z.kept.Load()
	var names []string
	// Records are noted while no set is kept, too: the next set goes on with what the last
	// one knew.
	if known := z.known(set); known != nil {
		for _, r := range records {
			known.addToIndexes(r)
			z.updateNSEC3Chains(known, r)
			names = known.appendNames(names, r)
		}
	}
	z.noteApplied(records)
	z.refreshSerials(z.known(set), records)
	z.changed.Add(1)
	switch {
	case set == nil || set != z.kept.Load():
		z.tell(nil) // it is not known under which names they were published
	case len(names) > 0:
		z.tell(names)
	}
}

// known returns a set, or if it is nil the one before.
func (z *Zones) known(set *zoneSet) *zoneSet {
	if set != nil {
		return set
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.last
}

// InvalidateNamespaces says that a namespace was committed; see Invalidate.
func (z *Zones) InvalidateNamespaces() {
	z.mu.Lock()
	z.forgotten++
	z.kept.Store(nil)
	z.ring.Store(nil)
	z.mu.Unlock()
	z.news.add()
	z.changed.Add(1)
	z.tell(nil)
}

// OnChange registers a function that receives, before a change is acknowledged, the names
// in whose answers it may show; none for all.
func (z *Zones) OnChange(f func(names []string)) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.listeners = append(z.listeners, f)
}

func (z *Zones) tell(names []string) {
	z.mu.Lock()
	list := slices.Clone(z.listeners)
	z.mu.Unlock()
	for _, f := range list {
		f(names)
	}
}

// Find returns the zone in which a name is: the longest that is its suffix; nil if
// none is. The name is in lower case and absolute.
func (z *Zones) Find(ctx context.Context, name string) (*Zone, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	return set.find(name), nil
}

// Zone returns the zone with exactly that name, which is in lower case and absolute;
// nil if there is none.
func (z *Zones) Zone(ctx context.Context, name string) (*Zone, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	return set.zones[name], nil
}

// All returns all zones in the order of their names.
func (z *Zones) All(ctx context.Context) (list []*Zone, err error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range set.order {
		list = append(list, set.zones[name])
	}
	return list, nil
}

// ZonesOf returns the names of the zones in which names are, without reading the
// registry; ok is false if that is not known.
func (z *Zones) ZonesOf(names []string) (zones []string, ok bool) {
	set := z.kept.Load()
	if set == nil {
		return nil, false
	}
	for _, name := range names {
		if one := set.find(name); one != nil {
			zones = append(zones, one.Name)
		}
	}
	return zones, true
}

// current returns the zones as they are now, and makes sure that their serials are known.
func (z *Zones) current(ctx context.Context) (*zoneSet, error) {
	set, err := z.latest(ctx)
	if err == nil {
		err = z.renewSerials(ctx, set)
	}
	if err != nil {
		return nil, err
	}
	return set, nil
}

// latest returns the zones as they are now. One reading serves all callers, and goes on
// when the caller that began it gives up.
func (z *Zones) latest(ctx context.Context) (*zoneSet, error) {
	if set := z.kept.Load(); set != nil && isClosed(set.settled) {
		return set, nil
	}
	one := z.take(ctx)
	if err := await(ctx, one.done); err != nil {
		return nil, err
	}
	return one.set, one.err
}

// loading is the zones while they are read.
type loading struct {
	done chan struct{} // closed when the rest is there
	set  *zoneSet
	err  error
}

// take returns the loading that is under way, or begins one.
func (z *Zones) take(ctx context.Context) *loading {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.loading != nil {
		return z.loading
	}
	one := &loading{done: make(chan struct{})}
	if z.life.Err() != nil {
		one.err = &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: stele.Messagef("dns.name-server-shutting-down", "the name server is shutting down")}
		close(one.done)
		return one
	}
	z.loading = one
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(z.life, cancel)
	z.work.Go(func() {
		defer cancel()
		defer stop()
		one.set, one.err = z.load(ctx)
		z.mu.Lock()
		z.loading = nil
		z.mu.Unlock()
		close(one.done)
	})
	return one
}

// loadTries is how often load reads namespaces that change during the reading.
const loadTries = 5

// load reads all namespaces, until they do not change during a reading. If they always do,
// what was read last is used and not kept.
func (z *Zones) load(ctx context.Context) (set *zoneSet, err error) {
	for range loadTries {
		var kept bool
		if set, kept, err = z.loadOnce(ctx); kept || err != nil {
			return set, err
		}
	}
	return set, nil
}

// loadOnce reads all namespaces, and reports whether they are kept.
func (z *Zones) loadOnce(ctx context.Context) (_ *zoneSet, kept bool, err error) {
	if set := z.kept.Load(); set != nil {
		return set, true, await(ctx, set.settled)
	}
	z.mu.Lock()
	forgotten := z.forgotten
	z.mu.Unlock()
	set, err := z.read(ctx)
	if err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(set.order, func(zone string) bool { return set.zones[zone].serial.state.Load() == nil }) {
		if err := z.readSerials(ctx, set); err != nil {
			return nil, false, err
		}
	}
	// It is kept before its names are read, so that commits reach it meanwhile.
	if kept, err = z.keep(ctx, set, forgotten); err != nil || !kept {
		return set, false, err
	}
	z.startReader(set)
	if err := z.noteGenerations(ctx, set); err != nil {
		// Secondaries get the whole zone then, instead of what has changed.
		z.log.Warn("what the zones are at present could not be noted", "err", err)
	}
	return set, true, await(ctx, set.settled)
}

// keep gives zones the indexes and chains that are known already, and keeps them, unless
// some namespace changed since.
func (z *Zones) keep(ctx context.Context, set *zoneSet, forgotten uint64) (bool, error) {
	var last uint64
	if slices.ContainsFunc(set.order, func(name string) bool { return set.zones[name].hasNSEC3() }) {
		var err error
		if last, err = z.applied.begin(ctx, z.store); err != nil {
			return false, err
		}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	set.reuse(z.last)
	chains := z.addNSEC3Chains(set, last)
	if z.forgotten != forgotten {
		close(set.settled)
		return false, nil
	}
	z.kept.Store(set)
	z.last, z.nsec3Chains = set, chains
	return true, nil
}

// read makes the zones of the namespaces as they are.
func (z *Zones) read(ctx context.Context) (*zoneSet, error) {
	var list []*stele.Namespace
	for ns, err := range z.store.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, ns)
	}
	set := newZoneSet(z, list)
	return set, set.addSigners(ctx, z)
}

// InvalidateAll says that other processes may have committed any changes: everything is
// read again. See Invalidate.
func (z *Zones) InvalidateAll() {
	z.generations.forgetAll()
	z.mu.Lock()
	z.last, z.nsec3Chains = nil, nil
	z.mu.Unlock()
	z.applied.end()
	z.InvalidateNamespaces()
}

// Replace says that a registry which was restored from a backup took the place of this one:
// everything is read again, and serials are those that it says, although its changes have
// lower numbers. See InvalidateAll.
func (z *Zones) Replace() {
	z.lives.Add(1)
	z.InvalidateAll()
}
