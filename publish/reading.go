package publish

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// ReadAtOnce is how many records zones read before the first answer. The reader goes on with
// those of a larger registry while answers are given.
const ReadAtOnce = 5000

// Numbers of the reader.
const (
	readAgain  = 10 * time.Second // after which a reading goes on that the store broke off
	lookWanted = 1024             // records between two looks whether zones are still wanted
)

// startReader has the names of a kept set read, by the reader that works already or by a
// new one. Questions never begin, end or restart a reading. Answers wait for a reading that
// has just begun, as they do for one of their own, but not for a long one.
func (z *Zones) startReader(set *zoneSet) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.life.Err() != nil || z.reading && z.readsLong {
		close(set.settled)
		return
	}
	z.unsettled = append(z.unsettled, set.settled)
	if !z.reading {
		z.reading = true
		z.work.Go(z.readNames)
	}
}

// readNames reads the registry for all zones that need it, in one pass for all of them, and
// again for those that were added or changed meanwhile, until there are no more.
func (z *Zones) readNames() {
	for p := z.nextPass(); p != nil; p = z.nextPass() {
		for !p.step(z.life) {
			select {
			case <-z.life.Done():
			case <-time.After(z.again):
			}
			if z.life.Err() != nil {
				break
			}
		}
		closeAll(p.settled)
	}
}

// nextPass returns the pass over the registry that is due; nil if none is, and then the
// reader ends.
func (z *Zones) nextPass() *pass {
	z.mu.Lock()
	defer z.mu.Unlock()
	p := &pass{zones: z, set: z.last, settled: z.unsettled}
	z.unsettled, z.readsLong = nil, false
	if z.life.Err() == nil && z.last != nil {
		p.add(z.last)
	}
	if len(p.list) > 0 {
		return p
	}
	z.reading = false
	closeAll(p.settled)
	return nil
}

func closeAll(list []chan struct{}) {
	for _, c := range list {
		close(c)
	}
}

// pass is a reading of the whole registry, for the indexes and chains of all zones that
// need it. After an error of the store it goes on where it was.
type pass struct {
	zones   *Zones
	set     *zoneSet // of which the zones are; it tells which names are in them
	list    []*Zone  // that are filled
	by      map[string]*Zone
	settled []chan struct{} // closed when enough is read to answer; empty: they are

	scheme int    // how many schemes are read
	after  string // what is read of the next one
	read   int    // records
	ended  int    // zones that are done, of those whose names are read
}

// add adds the zones of a set that are to be read.
func (p *pass) add(set *zoneSet) {
	p.by = make(map[string]*Zone)
	for _, name := range set.order {
		one := set.zones[name]
		if !one.index.isReady() || one.NSEC3() != nil && !one.NSEC3().isReady() {
			p.list = append(p.list, one)
			p.by[name] = one
		}
	}
	// Those that have no names of identifiers need not wait for the others.
	slices.SortStableFunc(p.list, func(a, b *Zone) int { return boolOrder(a.mapping != nil) - boolOrder(b.mapping != nil) })
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// letAnswer says that the pass takes long, so that answers need not wait for it, nor for
// the one after it.
func (p *pass) letAnswer() {
	z := p.zones
	z.mu.Lock()
	defer z.mu.Unlock()
	closeAll(p.settled)
	closeAll(z.unsettled)
	p.settled, z.unsettled, z.readsLong = nil, nil, true
}

// step goes on until all is read, or the store fails: then it returns false.
func (p *pass) step(ctx context.Context) (done bool) {
	err := p.finish(ctx, func(z *Zone) bool { return z.mapping == nil })
	if err == nil {
		err = p.readAll(ctx)
	}
	if err == nil {
		err = p.finish(ctx, func(*Zone) bool { return true })
	}
	if err == nil {
		return true
	}
	if ctx.Err() == nil {
		p.zones.log.Warn("the names of zones could not be read; the server goes on with it in a moment", "err", err)
	}
	p.letAnswer()
	return false
}

// readAll reads all records after those that are read.
func (p *pass) readAll(ctx context.Context) error {
	n := 0
	for scheme := range p.zones.schemes.All() {
		if n++; n <= p.scheme || p.ended == len(p.list) {
			continue
		}
		for r, err := range p.zones.store.Scan(ctx, scheme.Name(), "", p.after) {
			if err != nil {
				return err
			}
			if p.read++; p.read == ReadAtOnce {
				p.letAnswer()
			}
			if p.read%lookWanted == 0 && !p.isWanted() {
				p.ended = len(p.list)
				return nil
			}
			p.take(r)
			p.after = r.ID.String()
		}
		p.scheme, p.after = n, ""
	}
	return nil
}

// isWanted reports whether the latest set still needs the index or the chain of one of the
// zones. The reader begins anew if not.
func (p *pass) isWanted() bool {
	z := p.zones
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.last != nil && slices.ContainsFunc(p.list, func(one *Zone) bool {
		now := z.last.zones[one.Name]
		return now != nil && (now.index == one.index && !one.index.isReady() || one.NSEC3() != nil && now.NSEC3() == one.NSEC3() && !one.NSEC3().isReady())
	})
}

// take notes a record in the index and the chain of each of its zones.
func (p *pass) take(r *stele.Record) {
	if !isVisible(r) {
		return
	}
	for i, id := range r.Names() {
		one := p.set.zoneOf(id)
		if one == nil || one.mapping == nil || p.by[one.Name] == nil {
			continue
		}
		owner, reason := one.mapping.Owner(id.String())
		if reason != nil {
			continue
		}
		one.index.addName(one, owner, id, i > 0)
		if c := one.NSEC3(); c != nil && !c.isReady() && one.reaches(owner) && one.static[owner] == nil {
			one.link(owner, naptr.Named{ID: id, Record: r, Namespace: one.namespaceOf(id)})
		}
	}
}

// link puts an owner name into the chain. One that several identifiers share is looked up
// when all aliases are known, and so is one that a commit has changed meanwhile.
func (z *Zone) link(owner string, one naptr.Named) {
	c := z.chain
	out := z.compiler().Compile([]naptr.Named{one})
	c.changes.Lock()
	defer c.changes.Unlock()
	if c.Has(owner) {
		c.late[owner] = struct{}{}
		return
	}
	c.Set(owner, z.Name, nsec3.Types(zonesign.TypesAt(out.Records(owner))))
}

// finish completes the zones for which good is true: their indexes, and after that their
// chains, since looking up a name needs the index.
func (p *pass) finish(ctx context.Context, good func(*Zone) bool) error {
	before := p.ended
	for p.ended < len(p.list) && good(p.list[p.ended]) {
		one := p.list[p.ended]
		if !one.index.isReady() {
			close(one.index.ready)
		}
		if c := one.NSEC3(); c != nil && !c.isReady() {
			if err := one.finishNSEC3Chain(ctx); err != nil {
				return err
			}
		}
		p.ended++
	}
	if p.ended > before {
		p.zones.complete()
	}
	return nil
}

// finishNSEC3Chain adds the names that do not depend on records and looks up those that are
// late, and says that the chain has all names.
func (z *Zone) finishNSEC3Chain(ctx context.Context) error {
	c := z.chain
	err := z.EachStaticOwner(ctx, func(p *OwnerRecords) error {
		if !p.Glue {
			c.changes.Lock()
			defer c.changes.Unlock()
			c.Set(p.Name, z.Name, nsec3.Types(zonesign.TypesAt(p.Records)))
		}
		return nil
	})
	for done := false; err == nil && !done; {
		done, err = z.linkLate(ctx)
	}
	return err
}

// linkLate looks up one of the names that are late; without any it says that the chain is
// complete.
func (z *Zone) linkLate(ctx context.Context) (done bool, err error) {
	c := z.chain
	c.changes.Lock()
	defer c.changes.Unlock()
	for name := range c.late {
		if err := z.noteTypes(ctx, name); err != nil {
			return false, err
		}
		delete(c.late, name)
		return false, nil
	}
	close(c.ready)
	return true, nil
}

// AwaitNames waits until the reader has all names of the zone. Until then answers do not
// deny what it may find yet.
func (z *Zone) AwaitNames(ctx context.Context) error {
	err := z.index.await(ctx)
	if c := z.NSEC3(); err == nil && c != nil {
		err = c.await(ctx)
	}
	return err
}

// complete says that names are read: earlier answers that a name is empty may have been
// wrong.
func (z *Zones) complete() {
	z.changed.Add(1)
	z.tell(nil)
}
