package dnsd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/secret"
)

// DefaultTTL is for how many seconds answers are kept where nobody says.
const DefaultTTL = 3600

// ZonesOptions are what Zones are made of. Store and Schemes must be set.
type ZonesOptions struct {
	Store      stele.Store
	Schemes    *stele.Schemes
	Log        *slog.Logger // of what somebody should look into; nothing is logged if nil
	DefaultTTL uint32       // 3600 if 0

	// Now is the clock, by which signatures are dated. It must be set.
	Now func() time.Time

	// Secrets are the keys that decrypt the private keys of zones and the keys of
	// secondaries. Without the right one a zone is served without signatures.
	Secrets *secret.Ring

	// Keyless says that the store has no keys, since it is the registry of a server as
	// seen from elsewhere. Zones are without signatures then.
	Keyless bool
}

// Zones are the zones that the registry publishes, always as the registry is now.
// They are used by many goroutines at once, and read the registry when they are
// first asked.
type Zones struct {
	store   stele.Store
	schemes *stele.Schemes
	log     *slog.Logger
	ttl     uint32
	now     func() time.Time
	signing func(*stele.Namespace) signing
	secrets *secret.Ring

	changed atomic.Uint64
	signed  atomic.Bool // some zone is
	serials zoneSerials
	stale   atomic.Bool // they may have grown
	asking  atomic.Bool // a caller asks for them

	loading chan struct{} // holds one value while somebody reads the namespaces

	mu        sync.Mutex
	forgotten uint64
	listeners []func(names []string)
	kept      atomic.Pointer[zoneSet] // nil: to be read
	last      *zoneSet                // what was kept before, for its index
	chains    map[string]keptChain    // of zones in the mode transfer
	ring      atomic.Pointer[keyring] // nil: to be read
	lives     atomic.Uint64           // how many registries took the place of one another
	eras      eras
	applied   applied

	life context.Context // of work beside answers
	end  context.CancelFunc
	work sync.WaitGroup
}

// NewZones makes the zones of a registry. They are closed with Close.
func NewZones(o ZonesOptions) *Zones {
	z := &Zones{store: o.Store, schemes: o.Schemes, log: o.Log, ttl: o.DefaultTTL, now: o.Now, signing: signingOf, secrets: o.Secrets, loading: make(chan struct{}, 1)}
	z.eras.zones = make(map[string]*zoneEras)
	if o.Keyless {
		z.signing = func(*stele.Namespace) signing { return unsigned }
	}
	if z.log == nil {
		z.log = slog.New(slog.DiscardHandler)
	}
	if z.ttl == 0 {
		z.ttl = DefaultTTL
	}
	z.stale.Store(true)
	z.life, z.end = context.WithCancel(context.Background())
	return z
}

// Close ends what works beside answers, before the store is closed.
func (z *Zones) Close() {
	z.end()
	z.work.Wait()
}

// compilerVersion grows with every change of the program that makes something else of
// the same registry.
const compilerVersion = 2

// Compiler says what the zones are made by: another text makes something else of the
// same registry, so that copies of zones must be made anew.
func (z *Zones) Compiler() string { return fmt.Sprintf("%d ttl=%d", compilerVersion, z.ttl) }

// Changed grows with everything that may change an answer, before those who asked for
// it are told.
func (z *Zones) Changed() uint64 { return z.changed.Load() }

// Invalidate says that records have been committed. Whoever writes calls it with the
// new versions, before anybody is told that they are written: no answer that is
// looked up after it returned is older.
func (z *Zones) Invalidate(records ...*stele.Record) {
	set := z.kept.Load()
	var names []string
	// What is to be known of records is taken up while no set is kept, too: the next
	// one goes on with what the last one knew.
	if known := z.known(set); known != nil {
		for _, r := range records {
			known.index.add(known, r)
			z.updateChains(known, r)
			names = known.appendNames(names, r)
		}
	}
	z.noteApplied(records)
	z.refreshSerials(z.known(set), records)
	z.changed.Add(1)
	switch {
	case set == nil || set != z.kept.Load():
		z.tell(nil) // nobody knows under which names they were published
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
	z.stale.Store(true)
	z.changed.Add(1)
	z.tell(nil)
}

// onChange registers who is told, before a change is acknowledged, the names in whose
// answers it may show; none for all.
func (z *Zones) onChange(f func(names []string)) {
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

// find returns the zone in which a name is: the longest that is its suffix; nil if
// none is. The name is in lower case and absolute.
func (z *Zones) find(ctx context.Context, name string) (*zone, error) {
	set, err := z.current(ctx)
	if err != nil {
		return nil, err
	}
	return set.find(name), nil
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

// latest returns the zones as they are now.
func (z *Zones) latest(ctx context.Context) (*zoneSet, error) {
	if set := z.kept.Load(); set != nil {
		return set, nil
	}
	select {
	case z.loading <- struct{}{}:
		defer func() { <-z.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if set := z.kept.Load(); set != nil {
		return set, nil
	}
	return z.load(ctx)
}

// load reads all namespaces. What was read before somebody said that it changed is
// used and not kept.
func (z *Zones) load(ctx context.Context) (*zoneSet, error) {
	z.mu.Lock()
	forgotten, last := z.forgotten, z.last
	z.mu.Unlock()
	set, err := z.read(ctx)
	if err != nil {
		return nil, err
	}
	reused := last != nil && last.shape == set.shape
	if reused {
		set.index = last.index
	}
	chains, empty, err := z.addChains(ctx, set)
	if err != nil {
		return nil, err
	}
	// It is kept before it is filled, so that it is told of what is committed meanwhile.
	z.mu.Lock()
	keep := z.forgotten == forgotten
	if keep {
		z.kept.Store(set)
		z.last, z.chains = set, chains
	}
	z.mu.Unlock()
	if !keep {
		return set, nil
	}
	if !reused {
		err = z.fill(ctx, set)
	}
	for _, one := range empty {
		if err == nil {
			err = z.fillChain(ctx, one)
		}
	}
	if err == nil {
		err = z.noteEras(ctx, set)
	}
	if err != nil {
		z.mu.Lock()
		z.last, z.chains = nil, nil
		z.kept.CompareAndSwap(set, nil)
		z.mu.Unlock()
		return nil, err
	}
	return set, nil
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

// zoneSet is the zones at one time.
type zoneSet struct {
	schemes *stele.Schemes
	list    []*stele.Namespace   // in order of their keys
	keys    []stele.NamespaceKey // by prefix
	byKey   map[stele.NamespaceKey]*stele.Namespace
	joints  map[string]string // of the namespaces that say where their names go on, by prefix
	zones   map[string]*zone
	order   []string // names of zones

	published *publish.Zones // decides what is in which

	clashes []string // zones that were left out
	shape   string   // what the index depends on
	index   *nameIndex
}

// newZoneSet makes the zones of namespaces, which come in order of their keys.
func newZoneSet(z *Zones, list []*stele.Namespace) *zoneSet {
	set := &zoneSet{
		schemes: z.schemes, list: list, byKey: make(map[stele.NamespaceKey]*stele.Namespace), joints: make(map[string]string),
		zones: make(map[string]*zone), index: newNameIndex(),
	}
	var shape strings.Builder
	for _, ns := range list {
		set.byKey[ns.Key()] = ns
		set.keys = append(set.keys, ns.Key())
		if p := &ns.Publication; leads(ns) {
			set.joints[ns.Prefix] = newCut(z.schemes, ns).joint
			shape.WriteString(strings.Join([]string{ns.Scheme, ns.Prefix, p.Zone, string(p.Layout), p.Separator, string(rune('0' + p.Parts)), "\n"}, "\t"))
		}
	}
	set.shape = shape.String()
	set.published = publish.New(z.schemes, set.byKey)
	slices.SortFunc(set.keys, compareKeys)
	for _, ns := range list {
		set.addZone(z, ns)
	}
	slices.Sort(set.order)
	for _, name := range set.order {
		zone := set.zones[name]
		if outer := set.outer(zone); outer != nil {
			outer.divided = true
		}
		zone.build(set.rulesOf(zone))
		if zone.ns.Publication.Layout == stele.LayoutRoot {
			set.addKeys(zone)
		}
	}
	return set
}

func (s *zoneSet) addZone(z *Zones, ns *stele.Namespace) {
	p := &ns.Publication
	if p.Zone == "" {
		return
	}
	if other := s.zones[p.Zone]; other != nil {
		s.clashes = append(s.clashes, ns.Key().String()+" is published in "+p.Zone+", which is the zone of "+other.ns.Key().String()+"; give it another one")
		return
	}
	one := &zone{name: p.Zone, ns: ns, zones: z, set: s, serial: z.serials.of(p.Zone), ttl: z.ttl, alone: len(s.under(ns)) == 1}
	if ns.TTL > 0 {
		one.ttl = ns.TTL
	}
	if p.Layout == stele.LayoutNames {
		one.cut = newCut(z.schemes, ns)
	}
	s.zones[p.Zone] = one
	s.order = append(s.order, p.Zone)
}

// find returns the zone in which a name is.
func (s *zoneSet) find(name string) *zone {
	for name != "" {
		if z := s.zones[name]; z != nil {
			return z
		}
		_, name, _ = strings.Cut(name, ".")
	}
	return nil
}

// namespaceOf returns the namespace that a name belongs to; nil if there is none.
func (s *zoneSet) namespaceOf(id stele.ID) *stele.Namespace {
	return s.nearest(id, func(*stele.Namespace) bool { return true })
}

// zoneOf returns the zone in which an identifier is published; nil if there is none.
func (s *zoneSet) zoneOf(id stele.ID) *zone {
	if ns := s.published.Owner(id); ns != nil {
		return s.zones[ns.Publication.Zone]
	}
	return nil
}

// leads reports whether a namespace says itself where its names go on. Those of one
// that does not go on as those of the namespace above it.
func leads(ns *stele.Namespace) bool { return publish.Leads(ns) }

// nearest returns the longest namespace of a name that is good.
func (s *zoneSet) nearest(id stele.ID, good func(*stele.Namespace) bool) *stele.Namespace {
	return s.published.Nearest(id, good)
}

// appendNames appends the names whose answers may have changed with a record: its
// owner names and, since they may have been nothing before, those above them.
func (s *zoneSet) appendNames(list []string, r *stele.Record) []string {
	for _, id := range r.Names() {
		z := s.zoneOf(id)
		if z == nil {
			continue
		}
		if z.cut == nil {
			list = append(list, z.name)
			continue
		}
		name, reason := z.cut.owner(id.String())
		if reason != "" {
			continue
		}
		for name != z.name {
			list = append(list, name)
			_, name, _ = strings.Cut(name, ".")
		}
	}
	return list
}
