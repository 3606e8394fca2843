package dnssec

import "github.com/miekg/dns"

// byNSEC looks for a proof in NSEC records (RFC 4035, section 5.4).
func (d *denial) byNSEC(name string, kind uint16) (a absence, ok bool) {
	for _, n := range d.nsec {
		if dns.CanonicalName(n.Hdr.Name) == name {
			if a, ok = bitmap(n.TypeBitMap).denies(name, kind); ok {
				return a, true
			}
		}
	}
	for _, n := range d.nsec {
		switch {
		case !d.covers(n, name):
		case isBelow(name, dns.CanonicalName(n.NextDomain)):
			return absence{}, true // it has nothing but names below it
		case kind == dns.TypeDS:
			return absence{noName: true}, true // a wildcard delegates nothing
		default:
			if a, ok = d.withoutWildcard("*."+withoutRoot(closestBy(n, name)), kind); ok {
				return a, true
			}
		}
	}
	return absence{}, false
}

// withoutWildcard proves of a wildcard, from which a name that does not exist could be
// made, that there is none, or that it has no such records.
func (d *denial) withoutWildcard(wild string, kind uint16) (a absence, ok bool) {
	for _, n := range d.nsec {
		if d.covers(n, wild) {
			return absence{noName: true}, true
		}
		if dns.CanonicalName(n.Hdr.Name) == wild {
			if a, ok = bitmap(n.TypeBitMap).denies(wild, kind); ok {
				return a, true
			}
		}
	}
	return absence{}, false
}

// covers reports whether a record says that there is no such name in the zone. That of
// a cut, or of a DNAME record, says nothing of the names below it (RFC 6840, section
// 4.1).
func (d *denial) covers(n *dns.NSEC, name string) bool {
	owner, next := dns.CanonicalName(n.Hdr.Name), dns.CanonicalName(n.NextDomain)
	if !dns.IsSubDomain(d.zone, name) || isBelow(owner, name) && bitmap(n.TypeBitMap).hides() {
		return false
	}
	after, before := compareNames(name, owner) > 0, compareNames(name, next) < 0
	if compareNames(owner, next) >= 0 { // the last one leads back to the first
		return after && next == d.zone
	}
	return after && before
}

// closestBy returns the closest name above one, of those that exist, if a record covers
// it: one of the names beside it is there, too.
func closestBy(n *dns.NSEC, name string) string {
	return ancestor(name, max(dns.CompareDomainName(n.Hdr.Name, name), dns.CompareDomainName(n.NextDomain, name)))
}

// withoutRoot returns a name as it may follow a dot.
func withoutRoot(name string) string {
	if name == "." {
		return ""
	}
	return name
}
