package pebble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

// ingest is many new records on their way into the store. Their tables are built
// beside the committer, which goes on meanwhile, from what a view shows; names that
// are taken after it are noted by a watch. The committer then only has to look
// whether the tables are still right, and to hand them to Pebble, which takes in all
// of them or none. If they are not right they are built again while no other commit
// runs.
type ingest struct {
	ctx     context.Context
	entries []entry
	errs    []error // for each entry; nil for what is good
	refused []error // the same, with what the store refuses
	minter  *minterEntry
	models  []*stele.AuditEntry
	zones   zoneEntry
	names   []nameEntry // in order of keys, and then of records
	size    uint64
	last    uint64 // the last change after it was committed

	watch  *watch
	build  *build
	known  *known                       // what the builder knows of the store's names; nil for nothing
	counts map[stele.NamespaceKey]tally // of new records by namespace
}

// nameEntry is a name of the record with this index.
type nameEntry struct {
	sortKey
	record int32
	alias  bool
	shared bool // another record of the ingest has it too
}

// tally is how many records a namespace gets, and its quota.
type tally struct{ more, quota uint64 }

// watch notes what is committed while tables are built.
type watch struct {
	names [][]byte // that were taken
	all   bool     // all earlier look-ups are invalid
}

// Ingest implements [stele.Store]. A record beyond its namespace's quota is refused by
// itself, as one whose name is taken is.
func (s *Store) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, models ...*stele.AuditEntry) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := stele.CheckModels(models); err != nil {
		return nil, err
	}
	in := &ingest{ctx: ctx, models: models}
	if state != nil {
		if err := state.Check(); err != nil {
			return nil, err
		}
		m := newMinterEntry(state)
		in.minter = &m
	}
	if touch != nil {
		in.zones = zoneEntry{touch: true, namespaceVersions: touch.NamespaceVersions}
	}
	in.encode(records, count, touch)
	in.sortNames()
	if err := s.takeTurn(ctx, s.building, "ingest"); err != nil {
		return nil, err
	}
	defer func() { <-s.building }()
	if err := s.ingest(ctx, in); err != nil {
		return nil, err
	}
	return in.refused, nil
}

// takeTurn waits until turn has room.
func (s *Store) takeTurn(ctx context.Context, turn chan struct{}, op string) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return closed(op)
	}
}

// ingest builds tables and hands them over.
func (s *Store) ingest(ctx context.Context, in *ingest) error {
	v, err := s.startWatch(ctx, in)
	if err != nil {
		return err
	}
	defer s.endWatch(in)
	defer v.unpin()
	if err := s.writable("ingest", in.size); err != nil {
		return err
	}
	if !v.begin() {
		return s.stopped("ingest")
	}
	if in.known, err = s.knownAt(v.snap, v.opening, v.seq); err == nil {
		err = s.prepareTables(in, v.snap, v.opening, v.seq)
	}
	v.end()
	if err != nil {
		return err
	}
	// A backup has the log as it grows while it is taken, so it must have every table
	// that came before.
	if err := s.takeTurn(ctx, s.moving, "ingest"); err != nil {
		return err
	}
	defer func() { <-s.moving }()
	known := in.known
	in.known, s.known = nil, nil // valid for the state that was read here, and after a success only
	if err := s.submit(ctx, "ingest", &request{done: make(chan error, 1), ingest: in}); err != nil {
		return err
	}
	if known != nil && known.learn(in) {
		s.known = known
	}
	return nil
}

func (s *Store) startWatch(ctx context.Context, in *ingest) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.look(ctx, "ingest")
	if err == nil {
		in.watch = &watch{}
		s.watch = in.watch
	}
	return v, err
}

func (s *Store) endWatch(in *ingest) {
	s.mu.Lock()
	s.watch = nil
	s.mu.Unlock()
	in.build.remove(s.fs)
}

// encode makes entries of the records, on all processors.
func (in *ingest) encode(records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch) {
	in.entries, in.errs = make([]entry, len(records)), make([]error, len(records))
	workers := max(1, min(runtime.GOMAXPROCS(0), len(records)/1000))
	var wg sync.WaitGroup
	for w := range workers {
		first, end := w*len(records)/workers, (w+1)*len(records)/workers
		wg.Go(func() {
			e := encoder{arena: new(arena)}
			for i := first; i < end; i++ {
				r := records[i]
				if in.errs[i] = r.CheckFirst(); in.errs[i] == nil {
					in.entries[i], in.errs[i] = e.encode(r, count)
				}
				if in.errs[i] == nil && touch != nil && touch.Record != nil {
					in.entries[i].zones = touch.Record(r)
					in.errs[i] = stele.CheckZoneNames(in.entries[i].zones)
				}
			}
		})
	}
	wg.Wait()
	for i := range in.entries {
		n := &in.entries[i]
		in.size += uint64(len(n.value) + len(n.key)*(3+len(n.aliases)+len(n.places)))
	}
}

// sortNames lists all names in order, and marks those that several records have.
func (in *ingest) sortNames() {
	n := 0
	for i := range in.entries {
		n += 1 + len(in.entries[i].aliases)
	}
	in.names = make([]nameEntry, 0, n)
	for i := range in.entries {
		if in.errs[i] != nil {
			continue
		}
		e := &in.entries[i]
		in.names = append(in.names, nameEntry{sortKey: sortKey{key: e.key}, record: int32(i)})
		for _, key := range e.aliases {
			in.names = append(in.names, nameEntry{sortKey: sortKey{key: key}, record: int32(i), alias: true})
		}
	}
	sortKeys(in.names, func(n *nameEntry) *sortKey { return &n.sortKey }, func(a, b nameEntry) int {
		return cmp.Or(a.compare(b.sortKey), cmp.Compare(a.record, b.record))
	})
	for i := 1; i < len(in.names); i++ {
		if bytes.Equal(in.names[i-1].key, in.names[i].key) {
			in.names[i-1].shared, in.names[i].shared = true, true
		}
	}
}

// prepareTables decides which records are taken in, and builds tables for them on top
// of the change with number seq.
func (s *Store) prepareTables(in *ingest, db pebbledb.Reader, h *opening, seq uint64) error {
	in.build.remove(s.fs)
	in.build = nil
	in.refused = slices.Clone(in.errs)
	if err := in.checkTaken(db); err != nil {
		return h.damage("ingest", stele.ID{}, err)
	}
	if err := in.accept(db); err != nil {
		return h.damage("ingest", stele.ID{}, err)
	}
	if err := in.ctx.Err(); err != nil {
		return err
	}
	b := newBuild(s, h, in)
	in.build = b
	if err := b.write(seq); err != nil {
		return refuse("ingest", stele.ID{}, stele.Unavailable, "import.tables-not-written", "tables can't be written, and nothing was ingested: {cause}", err)
	}
	return in.ctx.Err()
}

// checkTaken refuses records with a name that the store has. Names are looked up in
// order, which Pebble does faster than at random, and not at all where the store has
// nothing between the first and the last.
func (in *ingest) checkTaken(db pebbledb.Reader) error {
	if len(in.names) == 0 {
		return nil
	}
	first, last := in.names[0].key, in.names[len(in.names)-1].key
	free, err := isFree(db, first, last)
	if err != nil || free {
		return err
	}
	f, err := newFinder(db)
	if err != nil {
		return err
	}
	defer f.close()
	var value []byte
	for i := range in.names {
		n := &in.names[i]
		if i%1024 == 0 && in.ctx.Err() != nil {
			return nil // prepareTables looks next
		}
		if i == 0 || !n.shared || !bytes.Equal(in.names[i-1].key, n.key) {
			if value = nil; !in.known.mayHave(n.key) {
				continue
			}
			if value, err = f.find(n.key); err != nil {
				return err
			}
		}
		if value != nil && in.refused[n.record] == nil {
			in.refused[n.record] = in.takenName(n, value)
		}
	}
	return nil
}

// takenName makes the error about a name under which the value stands.
func (in *ingest) takenName(n *nameEntry, value []byte) error {
	name, err := cutID(n.key[1:])
	if err != nil {
		return err
	}
	owner := name
	if len(value) > 0 && value[0] == isAlias {
		if owner, err = cutID(value[1:]); err != nil {
			return err
		}
	}
	return taken(in.entries[n.record].id, name, owner)
}

// isFree reports whether the store has no key from first to last.
func isFree(db pebbledb.Reader, first, last []byte) (bool, error) {
	it, err := db.NewIter(&pebbledb.IterOptions{LowerBound: first, UpperBound: after(last)})
	if err != nil {
		return false, err
	}
	free := !it.First()
	return free, it.Close()
}

// accept goes through the records in their order and refuses those with a name of one
// before, and those beyond a quota.
func (in *ingest) accept(db pebbledb.Reader) error {
	shared := make(map[int32][][]byte) // by record: its names that others have too
	for i := range in.names {
		if n := &in.names[i]; n.shared {
			shared[n.record] = append(shared[n.record], n.key)
		}
	}
	given := make(map[string]int32)
	in.counts = make(map[stele.NamespaceKey]tally)
	had := make(map[stele.NamespaceKey]uint64)
	for i := range in.entries {
		if in.refused[i] != nil {
			continue
		}
		n := &in.entries[i]
		if len(shared) > 0 {
			if err := in.takenBefore(n, shared[int32(i)], given); err != nil {
				in.refused[i] = err
				continue
			}
		}
		full, err := in.count(db, n, had)
		if err != nil {
			return err
		}
		if full != nil {
			in.refused[i] = exhausted(n.id, *full)
			continue
		}
		for _, key := range shared[int32(i)] {
			given[string(key)] = int32(i)
		}
	}
	return nil
}

// count counts all names of a new record, or none of them: it returns the first that is
// beyond its namespace's quota. had keeps what the store counts for a namespace.
func (in *ingest) count(db pebbledb.Reader, n *entry, had map[stele.NamespaceKey]uint64) (full *stele.NameCount, err error) {
	if n.counted.Namespace != (stele.NamespaceKey{}) {
		if full, err = in.countOne(db, n.counted, had); full != nil || err != nil {
			return full, err
		}
	}
	n.countedAliases = nil // this may be another attempt
	for _, c := range n.aliasCounts {
		if c.Namespace == (stele.NamespaceKey{}) {
			continue
		}
		if full, err = in.countOne(db, c, had); full != nil || err != nil {
			in.uncount(n)
			return full, err
		}
		n.countedAliases = append(n.countedAliases, c.Namespace)
	}
	return nil, nil
}

// countOne counts one more name, or returns it if the quota is used up.
func (in *ingest) countOne(db pebbledb.Reader, n stele.NameCount, had map[stele.NamespaceKey]uint64) (*stele.NameCount, error) {
	c, ok := in.counts[n.Namespace]
	if !ok {
		have, err := readCount(db, n.Namespace)
		if err != nil {
			return nil, err
		}
		had[n.Namespace] = have
	}
	if n.Quota > 0 && had[n.Namespace]+c.more >= n.Quota {
		in.counts[n.Namespace] = c
		return &n, nil
	}
	in.counts[n.Namespace] = tally{c.more + 1, max(c.quota, n.Quota)}
	return nil, nil
}

// uncount takes back what was counted for a record.
func (in *ingest) uncount(n *entry) {
	for _, space := range append(n.countedAliases, n.counted.Namespace) {
		if c := in.counts[space]; c.more > 0 {
			in.counts[space] = tally{c.more - 1, c.quota}
		}
	}
	n.countedAliases = nil
}

func (in *ingest) takenBefore(n *entry, names [][]byte, given map[string]int32) error {
	for _, key := range names {
		if other, ok := given[string(key)]; ok {
			name, err := cutID(key[1:])
			if err != nil {
				return err
			}
			return taken(n.id, name, in.entries[other].id)
		}
	}
	return nil
}

// readCount reads how many records a namespace has.
func readCount(db pebbledb.Reader, key stele.NamespaceKey) (uint64, error) {
	f, err := newFinder(db)
	if err != nil {
		return 0, err
	}
	defer f.close()
	value, err := f.find(countKey(key))
	if err != nil {
		return 0, err
	}
	return parseCount(value)
}

// finishIngest is the committer's part. No other commit runs meanwhile. It returns the
// new state, nil if nothing changed.
func (s *Store) finishIngest(in *ingest) (v *view, err error) {
	h := s.current.Load()
	if !h.begin() {
		return nil, s.stopped("ingest") // another opening is replacing this one
	}
	defer h.end()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
			h.failstop.freeze(err)
			v, err = nil, unknownIngest(err)
		}
	}()
	if err := errors.Join(h.sealed("ingest"), s.writable("ingest", in.size)); err != nil {
		return nil, err
	}
	if !s.isStill(in, h) {
		if err := s.prepareTables(in, h.db, h, h.seq); err != nil {
			return nil, err
		}
	}
	if err := in.checkFence(h); err != nil {
		return nil, err
	}
	if err := s.checkMinter(in, h); err != nil {
		return nil, err
	}
	trail, err := in.build.finish(h, s.now())
	if err != nil {
		return nil, refuse("ingest", stele.ID{}, stele.Unavailable, "import.tables-not-written", "tables can't be written, and nothing was ingested: {cause}", err)
	}
	if in.last = h.seq + in.build.accepted; len(in.build.paths) == 0 {
		return nil, nil
	}
	h.merging().ingests()
	if err := errors.Join(h.db.Ingest(context.WithoutCancel(in.ctx), in.build.paths), h.failstop.broken()); err != nil {
		h.failstop.freeze(err)
		return nil, unknownIngest(err)
	}
	in.build.paths = nil // Pebble has them
	s.recent.ingested()
	h.seq, h.trail = in.last, trail
	return h.newView(h.seq), nil
}

func unknownIngest(err error) error {
	return refuse("ingest", stele.ID{}, stele.Unavailable, "import.ingest-outcome-unknown", "it is unknown whether the records were ingested ({cause}); look before you try again", err)
}

// isStill reports whether what was found out about names and counts still holds.
func (s *Store) isStill(in *ingest, h *opening) bool {
	s.mu.Lock()
	w := *in.watch
	s.mu.Unlock()
	if w.all || in.build == nil {
		return false
	}
	for _, name := range w.names {
		if _, found := slices.BinarySearchFunc(in.names, name, func(n nameEntry, key []byte) int { return bytes.Compare(n.key, key) }); found {
			return false
		}
	}
	if len(w.names) == 0 {
		return true
	}
	for key, c := range in.counts {
		if c.quota == 0 {
			continue
		}
		if have, err := readCount(h.db, key); err != nil || have+c.more > c.quota {
			return false
		}
	}
	return true
}

// checkMinter checks the condition on the minter's state.
func (s *Store) checkMinter(in *ingest, h *opening) error {
	if in.minter == nil {
		return nil
	}
	f, err := newFinder(h.db)
	if err != nil {
		return h.damage("ingest", stele.ID{}, err)
	}
	defer f.close()
	g := group{store: s, opening: h, finder: f}
	t := tx{g: &g, pending: make(map[string][]byte)}
	err = t.putMinter(in.minter)
	if fault, ok := errors.AsType[*readFault](err); ok {
		return h.damage("ingest", stele.ID{}, fault.err)
	}
	return err
}

// lateKeys returns the counts and the minter's state that the ingest sets, by key.
func (in *ingest) lateKeys(db pebbledb.Reader) (map[string][]byte, error) {
	set := make(map[string][]byte)
	for key, c := range in.counts {
		if c.more == 0 {
			continue
		}
		have, err := readCount(db, key)
		if err != nil {
			return nil, err
		}
		set[string(countKey(key))] = binary.AppendUvarint(nil, have+c.more)
	}
	if in.minter != nil {
		set[string(in.minter.key)] = in.minter.after
	}
	return set, nil
}

func sortedKeys(set map[string][]byte) []string { return slices.Sorted(maps.Keys(set)) }
