package publish

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonesign"
)

// NSEC3Chain is the NSEC3 chain of a zone in the mode transfer, and how far its names are
// read from the registry. It is told of every change before the change is acknowledged.
type NSEC3Chain struct {
	*nsec3.Chain
	ready chan struct{}       // closed when all names are in it
	born  uint64              // changes up to this one are read from the registry; the chain is told of later ones
	late  map[string]struct{} // names to look up when all are read; under changes

	// changes is held while the records at a name are looked up and their types noted:
	// otherwise one caller could overwrite newer types with older ones.
	changes sync.Mutex
}

// newNSEC3Chain returns a chain whose names are not read yet.
func newNSEC3Chain() *NSEC3Chain {
	return &NSEC3Chain{Chain: nsec3.New(), late: make(map[string]struct{}), ready: make(chan struct{})}
}

// CompleteNSEC3Chain returns a chain that has all names of its zone.
func CompleteNSEC3Chain(links *nsec3.Chain) *NSEC3Chain {
	c := &NSEC3Chain{Chain: links, ready: make(chan struct{})}
	close(c.ready)
	return c
}

// isReady reports whether all names are in the chain.
func (c *NSEC3Chain) isReady() bool { return isClosed(c.ready) }

// await waits until all names are in the chain.
func (c *NSEC3Chain) await(ctx context.Context) error { return await(ctx, c.ready) }

// Check returns an error as long as the chain is not complete.
func (c *NSEC3Chain) Check(zone string) error {
	if c.isReady() {
		return nil
	}
	return &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: stele.Messagef(
		"zone.absent-names-unknown", "the names of {zone} are being read, and it is not known yet what does not exist; try again in a minute", zone)}
}

// addNSEC3Chains gives the zones that need them their chains of names: those there are, if
// they would be the same, or new ones, which are to have what was committed up to a
// change. It returns all. The caller holds the lock.
func (z *Zones) addNSEC3Chains(set *zoneSet, last uint64) map[string]keptNSEC3Chain {
	chains := make(map[string]keptNSEC3Chain)
	for _, name := range set.order {
		one := set.zones[name]
		if !one.hasNSEC3() {
			continue
		}
		shape := one.nsec3Shape()
		kept, ok := z.nsec3Chains[name]
		if !ok || kept.shape != shape {
			kept = keptNSEC3Chain{shape, newNSEC3Chain()}
			kept.chain.born = last
		}
		one.chain = kept.chain
		chains[name] = kept
	}
	return chains
}

// hasNSEC3 reports whether the zone has a chain of its names.
func (z *Zone) hasNSEC3() bool { return z.signer != nil && z.signer.Mode == zonesign.Transfer }

// noteApplied notes that chains know of records, if there are chains.
func (z *Zones) noteApplied(records []*stele.Record) {
	look := false
	for _, r := range records {
		look = z.applied.note(r) || look
	}
	if !look {
		return
	}
	ctx, cancel := context.WithTimeout(z.life, serialTimeout)
	defer cancel()
	_, _ = z.applied.look(ctx, z.store) // a caller that needs the result looks again
}

// completeUpTo returns up to which change a chain of names has everything.
func (z *Zones) completeUpTo(ctx context.Context, c *NSEC3Chain) (uint64, error) {
	n, err := z.applied.look(ctx, z.store)
	return max(n, c.born), err
}

// keptNSEC3Chain is a chain, and what it was made for.
type keptNSEC3Chain struct {
	shape string
	chain *NSEC3Chain
}

// nsec3Shape is all that a chain depends on beside the records of the registry.
func (z *Zone) nsec3Shape() string {
	var b strings.Builder
	p := &z.ns.Publication
	fmt.Fprintf(&b, "%s\n%q %v\n", z.form(), p.Resolver, z.signer.Records != nil)
	for _, name := range append([]string{z.Name}, z.staticNames()...) {
		fmt.Fprintln(&b, name, zonesign.TypesAt(z.static[name]))
	}
	for _, one := range z.delegations() {
		fmt.Fprintln(&b, one.Name, zonesign.TypesAt(z.Delegation(one.Name).Records))
	}
	return b.String()
}

// updateNSEC3Chains notes what stands at the names of a record now. If it can't look that
// up, the chain is discarded and made anew.
func (z *Zones) updateNSEC3Chains(set *zoneSet, r *stele.Record) {
	for _, id := range r.Names() {
		one := set.zoneOf(id)
		if one == nil || one.chain == nil {
			continue
		}
		name := one.Name
		if one.mapping != nil {
			var reason *stele.Message
			if name, reason = one.mapping.Owner(id.String()); reason != nil || set.find(name) != one {
				continue
			}
		}
		if err := one.updateNSEC3Chain(z.life, name); err != nil {
			z.log.Error("a name could not be looked up, so the chain of a zone is made anew", "zone", one.Name, "err", err)
			z.mu.Lock()
			delete(z.nsec3Chains, one.Name)
			z.forgotten++
			z.kept.Store(nil)
			z.mu.Unlock()
		}
	}
}

// updateNSEC3Chain looks up what stands at a name, and notes it. While the names of the zone
// are being read, it notes the name: what stands there can't be told before all aliases
// are known.
func (z *Zone) updateNSEC3Chain(ctx context.Context, name string) error {
	c := z.chain
	c.changes.Lock()
	defer c.changes.Unlock()
	if !c.isReady() {
		c.late[name] = struct{}{}
		return nil
	}
	return z.noteTypes(ctx, name)
}

// noteTypes looks up what stands at a name, and puts its types into the chain. The caller
// holds changes of the chain.
func (z *Zone) noteTypes(ctx context.Context, name string) error {
	n, err := z.Lookup(ctx, name)
	if err == nil {
		err = n.Unsure
	}
	if err != nil {
		return err
	}
	n.Records = append(n.Records[:len(n.Records):len(n.Records)], z.signer.ApexRecords(name)...)
	z.chain.Set(name, z.Name, nsec3.Types(n.Types(name == z.Name)))
	return nil
}

// NSEC3 returns the chain of the zone's names; nil if it is not signed in the mode transfer.
func (z *Zone) NSEC3() *NSEC3Chain { return z.chain }
