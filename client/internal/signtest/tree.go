package signtest

import (
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Tree is zones, and answers as a resolver does that asks them and checks nothing.
type Tree []*Zone

// Answer answers a question.
func (t Tree) Answer(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	name, kind := dns.CanonicalName(q.Question[0].Name), q.Question[0].Qtype
	for range 12 {
		z := t.zone(name, kind)
		if z == nil {
			m.Rcode = dns.RcodeRefused
			break
		}
		next := z.answer(m, name, kind)
		if next == "" {
			break
		}
		name = next
	}
	if opt := q.IsEdns0(); opt != nil {
		if !opt.Do() {
			m.Answer, m.Ns = plain(m.Answer, kind), plain(m.Ns, kind)
		}
		m.SetEdns0(1232, opt.Do())
	}
	return m
}

func plain(list []dns.RR, kind uint16) []dns.RR {
	return slices.DeleteFunc(slices.Clone(list), func(r dns.RR) bool {
		t := r.Header().Rrtype
		return t != kind && (t == dns.TypeRRSIG || t == dns.TypeNSEC || t == dns.TypeNSEC3)
	})
}

// zone returns the zone that answers: the deepest that a name is in, and for DS records
// the one above it.
func (t Tree) zone(name string, kind uint16) (found *Zone) {
	for _, z := range t {
		if dns.IsSubDomain(z.Name, name) && (kind != dns.TypeDS || z.Name != name || name == ".") &&
			(found == nil || dns.CountLabel(z.Name) > dns.CountLabel(found.Name)) {
			found = z
		}
	}
	return found
}

// answer adds what the zone knows of a name, and returns the name to go on with.
func (z *Zone) answer(m *dns.Msg, name string, kind uint16) (next string) {
	if to, ok := z.redirected(m, name); ok {
		return to
	}
	owner := name
	if !slices.Contains(z.names, name) {
		if z.Denial == Compact && !z.Unsigned {
			z.compact(m, name, false)
			return ""
		}
		closest := z.closest(name)
		wild := "*." + strings.TrimPrefix(closest, ".")
		if !slices.Contains(z.names, wild) {
			m.Rcode = dns.RcodeNameError
			z.deny(m, name, closest, z.nextCloser(name, closest), wild)
			return ""
		}
		owner = wild
	}
	for _, want := range []uint16{kind, dns.TypeCNAME} {
		set := z.records[owner][want]
		if len(set) == 0 {
			continue
		}
		m.Answer = append(m.Answer, renamed(set, name)...)
		m.Answer = append(m.Answer, renamed(z.sigs[owner][want], name)...)
		if owner != name && !z.Unsigned {
			m.Ns = append(m.Ns, z.proof(z.covering(name))...)
		}
		if alias, ok := set[0].(*dns.CNAME); ok && kind != dns.TypeCNAME {
			return dns.CanonicalName(alias.Target)
		}
		return ""
	}
	switch {
	case owner != name:
		closest := z.closest(name)
		z.deny(m, name, closest, z.nextCloser(name, closest), owner)
	case z.Denial == Compact && !z.Unsigned:
		z.compact(m, name, true)
	case z.Denial == NSEC3 && z.OptOut && kind == dns.TypeDS && z.prover(name) != strings.ToLower(dns.HashName(name, dns.SHA1, z.Iterations, z.Salt))+"."+strings.TrimPrefix(z.Name, "."):
		z.deny(m, parent(name), name)
	default:
		z.deny(m, name)
	}
	return ""
}

// redirected answers for names below a DNAME record.
func (z *Zone) redirected(m *dns.Msg, name string) (to string, ok bool) {
	for at := parent(name); at != "." && dns.IsSubDomain(z.Name, at); at = parent(at) {
		set := z.records[at][dns.TypeDNAME]
		if len(set) == 0 {
			continue
		}
		r, ok := set[0].(*dns.DNAME)
		if !ok {
			continue
		}
		m.Answer = append(m.Answer, set...)
		m.Answer = append(m.Answer, z.sigs[at][dns.TypeDNAME]...)
		to = strings.TrimSuffix(name, at) + dns.CanonicalName(r.Target)
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 300}, Target: to})
		return to, true
	}
	return "", false
}

// closest returns the closest name above one, of those that exist.
func (z *Zone) closest(name string) string {
	for !slices.Contains(z.names, name) {
		name = parent(name)
	}
	return name
}

func (z *Zone) nextCloser(name, closest string) string {
	for parent(name) != closest {
		name = parent(name)
	}
	return name
}

// covering returns the name that shows that a wildcard may be used.
func (z *Zone) covering(name string) string {
	if z.Denial == NSEC3 {
		return z.nextCloser(name, z.closest(name))
	}
	return name
}

// deny adds the SOA record and a proof.
func (z *Zone) deny(m *dns.Msg, names ...string) {
	m.Ns = append(m.Ns, z.records[z.Name][dns.TypeSOA]...)
	if z.Unsigned {
		return
	}
	m.Ns = append(m.Ns, z.sigs[z.Name][dns.TypeSOA]...)
	m.Ns = append(m.Ns, z.proof(names...)...)
}

// compact denies as RFC 9824 has it: with a record made for the name, whether it exists
// or not.
func (z *Zone) compact(m *dns.Msg, name string, exists bool) {
	m.Ns = append(m.Ns, z.records[z.Name][dns.TypeSOA]...)
	m.Ns = append(m.Ns, z.sigs[z.Name][dns.TypeSOA]...)
	types := z.types(name, dns.TypeNSEC, dns.TypeRRSIG)
	if !exists {
		types = z.types(name, dns.TypeNSEC, dns.TypeRRSIG, dns.TypeNXNAME)
	}
	r := z.nsec(name, `\000.`+strings.TrimPrefix(name, "."), types)
	m.Ns = append(m.Ns, r)
	m.Ns = append(m.Ns, z.SignSet([]dns.RR{r}, z.signers(dns.TypeNSEC)...)...)
}

// renamed returns records as they are at another name.
func renamed(list []dns.RR, name string) (other []dns.RR) {
	for _, r := range list {
		r = dns.Copy(r)
		r.Header().Name = name
		other = append(other, r)
	}
	return other
}
