package signtest

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"github.com/miekg/dns"
)

// exist finds the names that exist, with those that have nothing but names below them.
func (z *Zone) exist() {
	seen := make(map[string]bool)
	for name := range z.records {
		for at := name; dns.IsSubDomain(z.Name, at); at = parent(at) {
			seen[at] = true
			if at == z.Name {
				break
			}
		}
	}
	z.names = nil
	for name := range seen {
		z.names = append(z.names, name)
	}
	slices.SortFunc(z.names, compare)
}

func parent(name string) string {
	i, end := dns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[i:]
}

// compare is the canonical order of names, by their labels as bytes from the last on.
func compare(a, b string) int {
	left, right := dns.SplitDomainName(a), dns.SplitDomainName(b)
	slices.Reverse(left)
	slices.Reverse(right)
	for i := range min(len(left), len(right)) {
		if c := bytes.Compare(label(left[i]), label(right[i])); c != 0 {
			return c
		}
	}
	return len(left) - len(right)
}

func label(text string) []byte {
	var buf [80]byte
	if _, err := dns.PackDomainName(strings.ToLower(text)+".", buf[:], 0, nil, false); err != nil {
		return nil
	}
	return buf[1 : 1+buf[0]]
}

// types returns the types at a name, as a denial lists them, with those of it.
func (z *Zone) types(name string, more ...uint16) (list []uint16) {
	for kind := range z.records[name] {
		if z.isSigned(name, kind) || kind == dns.TypeNS {
			list = append(list, kind)
		}
	}
	list = append(list, more...)
	slices.Sort(list)
	return slices.Compact(list)
}

// hidden reports whether a name is below a cut.
func (z *Zone) hidden(name string) bool {
	return slices.ContainsFunc(z.cuts, func(at string) bool { return name != at && dns.IsSubDomain(at, name) })
}

// chain makes the NSEC records: of names with records, in order.
func (z *Zone) chain() {
	var owners []string
	for _, name := range z.names {
		if len(z.records[name]) > 0 && !z.hidden(name) {
			owners = append(owners, name)
		}
	}
	for i, name := range owners {
		z.AddRR(z.nsec(name, owners[(i+1)%len(owners)], z.types(name, dns.TypeNSEC, dns.TypeRRSIG)))
	}
}

func (z *Zone) nsec(name, next string, types []uint16) *dns.NSEC {
	return &dns.NSEC{
		Hdr:        dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: 60},
		NextDomain: next, TypeBitMap: types,
	}
}

// hashed makes the NSEC3 records.
func (z *Zone) hashed() {
	z.nsec3 = make(map[string]string)
	z.hashes = nil
	for _, name := range z.names {
		unsigned := slices.Contains(z.cuts, name) && len(z.records[name][dns.TypeDS]) == 0
		if z.hidden(name) || z.OptOut && unsigned {
			continue
		}
		h := dns.HashName(name, dns.SHA1, z.Iterations, z.Salt)
		z.nsec3[h] = name
		z.hashes = append(z.hashes, h)
	}
	sort.Strings(z.hashes)
	for i, h := range z.hashes {
		name, more := z.nsec3[h], []uint16{}
		if len(z.records[name]) > 0 && (!slices.Contains(z.cuts, name) || len(z.records[name][dns.TypeDS]) > 0) {
			more = append(more, dns.TypeRRSIG)
		}
		flags := uint8(0)
		if z.OptOut {
			flags = 1
		}
		z.AddRR(&dns.NSEC3{
			Hdr:  dns.RR_Header{Name: strings.ToLower(h) + "." + strings.TrimPrefix(z.Name, "."), Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: 60},
			Hash: dns.SHA1, Flags: flags, Iterations: z.Iterations, SaltLength: uint8(len(z.Salt) / 2), Salt: z.Salt,
			HashLength: 20, NextDomain: z.hashes[(i+1)%len(z.hashes)], TypeBitMap: z.types(name, more...),
		})
	}
}

// proof returns the records that deny something, with their signatures. Each of names is
// matched by a record, or covered by one.
func (z *Zone) proof(names ...string) (list []dns.RR) {
	seen := make(map[string]bool)
	for _, name := range names {
		at := z.prover(name)
		if at == "" || seen[at] {
			continue
		}
		seen[at] = true
		kind := dns.TypeNSEC
		if z.Denial == NSEC3 {
			kind = dns.TypeNSEC3
		}
		list = append(list, z.records[at][kind]...)
		list = append(list, z.sigs[at][kind]...)
	}
	return list
}

// prover returns the owner of the record that matches or covers a name.
func (z *Zone) prover(name string) (at string) {
	if z.Denial == NSEC3 {
		h := dns.HashName(name, dns.SHA1, z.Iterations, z.Salt)
		i := sort.SearchStrings(z.hashes, h)
		if i == len(z.hashes) || z.hashes[i] != h {
			i = (i + len(z.hashes) - 1) % len(z.hashes)
		}
		return strings.ToLower(z.hashes[i]) + "." + strings.TrimPrefix(z.Name, ".")
	}
	for _, owner := range z.names {
		if len(z.records[owner][dns.TypeNSEC]) > 0 && compare(owner, name) <= 0 {
			at = owner
		}
	}
	return at
}
