package zonesign

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/internal/dnsrr"
)

// NSEC returns the record that says which types stand at a name and reveals no other name:
// its next name is the one that follows in the order of all possible names (RFC 9824,
// sections 3.1 and 3.2). For a name that does not exist, types is nil.
func (s *Signer) NSEC(name string, types []uint16, exists bool, ttl uint32) (dns.RR, error) {
	next, err := successor(name, s.Zone)
	if err != nil {
		return nil, err
	}
	marks := []uint16{dns.TypeRRSIG, dns.TypeNSEC}
	if !exists {
		marks = append(marks, dns.TypeNXNAME)
	}
	types = slices.Concat(types, marks)
	slices.Sort(types)
	return &dns.NSEC{Hdr: dnsrr.Header(name, dns.TypeNSEC, ttl), NextDomain: next, TypeBitMap: slices.Compact(types)}, nil
}

// successor returns the name that follows another one immediately in the order of
// names (RFC 4034, section 6.1; RFC 4471, section 3.1.2), within a zone. The name is in
// lower case.
func successor(name, zone string) (string, error) {
	var buf [dnsrr.MaxName + 2]byte
	n, err := dns.PackDomainName(name, buf[:dnsrr.MaxName], 0, nil, false)
	if err != nil {
		return "", err
	}
	var zoneBuf [dnsrr.MaxName]byte
	apex, err := dns.PackDomainName(zone, zoneBuf[:], 0, nil, false)
	if err != nil {
		return "", err
	}
	wire := nextName(buf[:n], apex)
	next, _, err := dns.UnpackDomainName(wire, 0)
	return next, err
}

// nextName is successor on names in wire form. apex is the size of the zone's name, at
// which the order begins again.
func nextName(wire []byte, apex int) []byte {
	if len(wire)+2 <= dnsrr.MaxName {
		return append([]byte{1, 0}, wire...)
	}
	for len(wire) > apex {
		label, rest := append([]byte(nil), wire[1:1+int(wire[0])]...), wire[1+int(wire[0]):]
		if len(label) < dnsrr.MaxLabel && len(wire)+1 <= dnsrr.MaxName {
			label = append(label, 0)
		} else if label = nextLabel(label); label == nil {
			wire = rest // its successor is the successor of the name above
			continue
		}
		next := append([]byte{byte(len(label))}, label...)
		return append(next, rest...)
	}
	return wire
}

// nextLabel returns the least label after one that can't be made longer, which is changed;
// nil if there is none. It skips capitals, which equal small letters.
func nextLabel(label []byte) []byte {
	for len(label) > 0 {
		last := &label[len(label)-1]
		if *last != 0xff {
			*last++
			if *last == 'A' {
				*last = 'Z' + 1
			}
			return label
		}
		label = label[:len(label)-1]
	}
	return nil
}
