package dnsd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/nsec3"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"

	"github.com/stele-id/stele"
)

// Signer signs for the zone; nil if it is not signed.
func (z *Zone) Signer() *zonesign.Signer { return z.signer }

// Signs reports whether any zone is signed.
func (z *Zones) Signs() bool { return z.signed.Load() }

// Delegation returns what the zone has of a zone inside it: its name servers and, if it is
// signed, the digests of its keys.
func (z *Zone) Delegation(name string) Node {
	one := z.set.zones[name]
	if one == nil {
		return Node{}
	}
	_, records := one.Apex()
	if one.signer != nil {
		records = append(records, one.signer.Parent...)
	}
	return Node{Exists: true, Records: records}
}

// delegations returns the zones that are right inside this one, in order.
func (z *Zone) delegations() (list []*Zone) {
	for _, name := range z.set.order {
		if one := z.set.zones[name]; one != z && z.contains(name) && z.set.outer(one) == z && len(one.ns.Publication.Servers) > 0 {
			list = append(list, one)
		}
	}
	return list
}

// addSigners makes the signers of the zones that are to be signed. A zone without keys
// is served as it is.
func (s *zoneSet) addSigners(ctx context.Context, z *Zones) error {
	for _, name := range s.order {
		one := s.zones[name]
		mode := z.signing(one.ns)
		if mode == zonesign.Unsigned {
			continue
		}
		ring, err := z.readKeys(ctx, name)
		if err != nil && stele.KindOf(err) != stele.Internal {
			return err
		}
		if err == nil {
			one.signer, err = zonesign.New(mode, ring, z.ttl, z.now)
		}
		if err != nil {
			one.trouble = bareText(err)
			z.log.Error("a zone is served without signatures, and those who expect them refuse it", "zone", name, "err", err)
		}
	}
	z.signed.Store(slices.ContainsFunc(s.order, func(name string) bool { return s.zones[name].signer != nil }))
	return nil
}

// bareText is the text of an error without its operation.
func bareText(err error) string {
	if e, ok := err.(*stele.Error); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// readKeys reads the keys of a zone.
func (z *Zones) readKeys(ctx context.Context, name string) (*zonekey.Ring, error) {
	var cells []stele.Cell
	for c, err := range z.store.Cells(ctx, zonekey.CellPrefix+name+" ", "") {
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	ring, err := zonekey.ReadRing(name, cells)
	if err == nil {
		err = ring.Open(z.secrets)
	}
	return ring, err
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
			kept = keptNSEC3Chain{shape, NewNSEC3Chain()}
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
			var reason string
			if name, reason = one.mapping.owner(id.String()); reason != "" || set.find(name) != one {
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

// OwnerRecords is a name of a zone with all records there.
type OwnerRecords struct {
	Name      string
	Records   []dns.RR
	Delegated bool // another zone begins there: only its DS records are this one's
	Glue      bool // it is in another zone
	yields    bool // some of them are the owner's own, and give way to an identifier
}

// eachOwner calls do with all names of the zone that have records, in an order that is
// the same whenever the registry is: the apex, what does not depend on records, cuts,
// and what is registered.
func (z *Zone) eachOwner(ctx context.Context, told func(n int), do func(*OwnerRecords) error) error {
	if err := z.EachStaticOwner(ctx, do); err != nil || z.mapping == nil {
		return err
	}
	return z.eachRegistered(ctx, told, func(id stele.ID, r *stele.Record) error {
		owner, list, err := z.allAt(ctx, id, r, nil)
		if err != nil || len(list) == 0 || z.static[owner] != nil {
			return err
		}
		out := z.compiler().compile(list)
		return do(&OwnerRecords{Name: owner, Records: out.Records(owner)})
	})
}

// EachStaticOwner is eachOwner except for registered identifiers.
func (z *Zone) EachStaticOwner(ctx context.Context, do func(*OwnerRecords) error) error {
	for _, name := range append([]string{z.Name}, z.staticNames()...) {
		if z.set.find(name) != z {
			continue
		}
		n, err := z.Lookup(ctx, name)
		if err == nil {
			err = n.Unsure
		}
		if err != nil {
			return err
		}
		records := n.Records
		if name == z.Name {
			soa, ns := z.Apex()
			records = append(append([]dns.RR{soa}, ns...), records...)
			if z.signer != nil {
				records = append(records, z.signer.Records...)
			}
		}
		if err := do(&OwnerRecords{Name: name, Records: records}); err != nil {
			return err
		}
	}
	return z.eachDelegation(do)
}

// eachDelegation is eachOwner for the zones inside this one.
func (z *Zone) eachDelegation(do func(*OwnerRecords) error) error {
	for _, one := range z.delegations() {
		if err := do(&OwnerRecords{Name: one.Name, Records: z.Delegation(one.Name).Records, Delegated: true}); err != nil {
			return err
		}
		for _, s := range one.ns.Publication.Servers {
			records := addressRecords(s, z.zones.ttl)
			if !one.contains(s.Name) || len(records) == 0 {
				continue
			}
			if err := do(&OwnerRecords{Name: s.Name, Records: records, Glue: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
