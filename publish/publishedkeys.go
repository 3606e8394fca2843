package publish

import (
	"cmp"
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	n2s "github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/publish/naptr"
)

// keysAt is keys of a namespace that are published in a zone.
type keysAt struct {
	ns   *stele.Namespace
	part bool // it is below the zone's namespace: they sign for its own names only
}

// keysOf returns the namespaces whose keys can have signed what is published in a zone:
// its own and those above it, the nearest first, then those below it whose names are in
// the zone too.
func (s *zoneSet) keysOf(z *Zone) (list []keysAt) {
	joint := s.joints[z.ns.Prefix]
	for _, ns := range s.list {
		if len(ns.Keys) == 0 || ns.Scheme != z.ns.Scheme {
			continue
		}
		switch {
		case ns.Prefix == "" || isUnder(z.ns.Prefix, ns.Prefix, naptr.NewMapping(s.schemes, ns).Joint):
			list = append(list, keysAt{ns, false})
		case isUnder(ns.Prefix, z.ns.Prefix, joint) && s.leader(ns) == z.ns:
			list = append(list, keysAt{ns, true})
		}
	}
	rank := func(k keysAt) int {
		if k.part {
			return len(k.ns.Prefix)
		}
		return -1 - len(k.ns.Prefix)
	}
	slices.SortStableFunc(list, func(a, b keysAt) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// leader returns the nearest namespace, this one or above it, that says where its names
// go on; nil if there is none.
func (s *zoneSet) leader(ns *stele.Namespace) (found *stele.Namespace) {
	for _, other := range s.list {
		if other.Scheme == ns.Scheme && hasDestination(other) && isUnder(ns.Prefix, other.Prefix, s.joints[other.Prefix]) &&
			(found == nil || len(other.Prefix) > len(found.Prefix)) {
			found = other
		}
	}
	return found
}

// addSigningKeys adds the keys by which what the names stand for is signed, as TXT
// records at _n2s of the zone.
func (z *Zone) addSigningKeys() {
	if z.ns.Publication.Layout == stele.LayoutRoot {
		return // no records are published in it
	}
	owner, n, size, left := n2s.Label+"."+z.Name, 0, 0, 0
	seen := make(map[string]bool)
	for _, at := range z.set.keysOf(z) {
		for _, k := range at.ns.Keys {
			text := n2s.TXT(k)
			if at.part {
				text = n2s.ScopedTXT(k, at.ns.Prefix)
			}
			if seen[text] {
				continue // a namespace above has the same one
			}
			seen[text] = true
			if n+1 > n2s.MaxKeys || size+len(text) > maxKeySet || len(owner) > dnsrr.MaxNameText+1 {
				left++
				continue
			}
			n, size = n+1, size+len(text)
			parts := naptr.SplitTexts([]string{text})
			for i := range parts {
				parts[i] = ddds.Escape(parts[i])
			}
			z.add(&dns.TXT{Hdr: dnsrr.Header(owner, dns.TypeTXT, z.zones.ttl), Txt: parts})
		}
	}
	switch {
	case left == 1:
		z.notes = append(z.notes, stele.Messagef("zone-note.signing-key-left-out", "1 signing key can't be published, since the zone's name is too long or too many namespaces share it; give some a zone of their own"))
	case left > 1:
		z.notes = append(z.notes, stele.Messagef("zone-note.signing-keys-left-out", "{keys} signing keys can't be published, since the zone's name is too long or too many namespaces share it; give some a zone of their own", left))
	}
}

// maxKeySet is how many bytes of keys fit an answer, with what stands around them.
const maxKeySet = 56 << 10
