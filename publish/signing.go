package publish

import (
	"context"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
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
		ring, err := zonekey.Load(ctx, z.store, name, z.secrets)
		if err != nil && stele.KindOf(err) != stele.Internal {
			return err
		}
		if err == nil {
			one.signer, err = zonesign.New(mode, ring, z.ttl, z.now)
		}
		if err != nil {
			one.trouble = stele.Reason(err)
			z.log.Error("a zone is served without signatures, and those who expect them refuse it", "zone", name, "err", err)
		}
	}
	z.signed.Store(slices.ContainsFunc(s.order, func(name string) bool { return s.zones[name].signer != nil }))
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
		out := z.compiler().Compile(list)
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
