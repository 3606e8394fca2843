package dnssec

import (
	"strings"

	"github.com/miekg/dns"
)

// addNSEC3 adds a record to a denial. It ignores records that it does not understand, or
// that are of another chain than the first (RFC 5155, sections 8.1 and 8.2).
func (d *denial) addNSEC3(r *dns.NSEC3) {
	if r.Hash != dns.SHA1 || r.Flags&^1 != 0 || dns.CountLabel(r.Hdr.Name) != dns.CountLabel(d.zone)+1 {
		return
	}
	if len(d.nsec3) > 0 {
		if first := d.nsec3[0]; first.Iterations != r.Iterations || !strings.EqualFold(first.Salt, r.Salt) {
			return
		}
	}
	if r.Iterations > maxIterations {
		d.heavy = r
		return
	}
	d.nsec3 = append(d.nsec3, r)
}

func isOptOut(r *dns.NSEC3) bool { return r.Flags&1 != 0 }

// hash returns the hash of a name, as the records of the denial have it.
func (d *denial) hash(name string) (string, error) {
	if h, ok := d.hashes[name]; ok {
		return h, nil
	}
	first := d.nsec3[0]
	if !take(&d.budget.rounds, 1+int(first.Iterations), maxRounds) {
		return "", bogus(name, dns.TypeNSEC3, TooMuchWork, "dnssec.proof-rounds-too-many", "proofs take more than {limit} rounds of hashing", maxRounds)
	}
	h := dns.HashName(name, first.Hash, first.Iterations, first.Salt)
	d.hashes[name] = h
	return h, nil
}

// hashOf returns the hash that a record stands at.
func hashOf(r *dns.NSEC3) string {
	label, _, _ := strings.Cut(r.Hdr.Name, ".")
	return strings.ToUpper(label)
}

// matchedNSEC3 returns the record of a name, nil if it is not in the denial.
func (d *denial) matchedNSEC3(name string) (*dns.NSEC3, error) {
	if len(d.nsec3) == 0 {
		return nil, nil
	}
	h, err := d.hash(name)
	if err != nil || h == "" {
		return nil, err
	}
	for _, r := range d.nsec3 {
		if hashOf(r) == h {
			return r, nil
		}
	}
	return nil, nil
}

// coveredNSEC3 returns a record that says that there is no such name, or no signed one;
// nil if it is not in the denial.
func (d *denial) coveredNSEC3(name string) (*dns.NSEC3, error) {
	if len(d.nsec3) == 0 || !dns.IsSubDomain(d.zone, name) {
		return nil, nil
	}
	h, err := d.hash(name)
	if err != nil || h == "" {
		return nil, err
	}
	for _, r := range d.nsec3 {
		owner, next := hashOf(r), strings.ToUpper(r.NextDomain)
		inside := owner < h && h < next
		if owner >= next { // the last one leads back to the first
			inside = h > owner || h < next
		}
		if inside && h != owner {
			return r, nil
		}
	}
	return nil, nil
}

// byNSEC3 looks for a proof in NSEC3 records (RFC 5155, sections 8.4 to 8.7).
func (d *denial) byNSEC3(name string, kind uint16) (a absence, ok bool, err error) {
	at, err := d.matchedNSEC3(name)
	if err != nil {
		return a, false, err
	}
	if at != nil {
		a, ok = bitmap(at.TypeBitMap).denies(name, kind)
		return a, ok, nil
	}
	closest, by, err := d.closest(name)
	if err != nil || by == nil {
		return a, false, err
	}
	a = absence{noName: true, optOut: isOptOut(by)}
	if kind == dns.TypeDS {
		return a, true, nil // a wildcard delegates nothing
	}
	wild := "*." + withoutRoot(closest)
	above, err := d.coveredNSEC3(wild)
	if err != nil || above != nil {
		return a, above != nil, err
	}
	if at, err = d.matchedNSEC3(wild); err != nil || at == nil {
		return a, false, err
	}
	denied, ok := bitmap(at.TypeBitMap).denies(wild, kind)
	denied.optOut = a.optOut
	return denied, ok, nil
}

// closest returns the closest name above one, of those that exist, and the record that
// says that the next one on the way to it does not; nil if that is not proven (RFC
// 5155, section 8.3).
func (d *denial) closest(name string) (string, *dns.NSEC3, error) {
	if len(d.nsec3) == 0 {
		return "", nil, nil
	}
	for n := dns.CountLabel(name) - 1; n >= dns.CountLabel(d.zone); n-- {
		at, err := d.matchedNSEC3(ancestor(name, n))
		if err != nil {
			return "", nil, err
		}
		if at == nil {
			continue
		}
		if bitmap(at.TypeBitMap).hides() {
			return "", nil, nil
		}
		by, err := d.coveredNSEC3(ancestor(name, n+1))
		return ancestor(name, n), by, err
	}
	return "", nil, nil
}
