package ibi

import (
	"net/netip"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// DateNames tells which labels a namespace's minter makes: a repository name if it
// has a host, an IBIp if it has an address, and both, from one date, if it has
// both. The prefixes are those of the labels, in that order.
func (*Scheme) DateNames(ns *stele.Namespace) (prefixes []string, at func(mint.Date) ([]stele.ID, error), err error) {
	m := &ns.Minter
	var forms []Prefix
	if m.Kind != stele.MinterIBI {
		return nil, nil, stele.Invalidf(Name, 0, "ibi.minter-not-of-ibis", `the minter "{kind}" makes no IBIs`, m.Kind)
	}
	if m.Host != "" {
		port := m.Port
		if port == 0 {
			port = defaultRepPort
		}
		p, err := RepPrefix(m.Host, port)
		if err != nil {
			return nil, nil, err
		}
		forms = append(forms, p)
	}
	if m.IP != "" {
		p, err := minterAddress(m)
		if err != nil {
			return nil, nil, err
		}
		forms = append(forms, p)
	}
	if len(forms) == 0 {
		return nil, nil, stele.Invalidf(Name, 0, "ibi.host-and-address-missing", "an IBI is made of a host name or an IP address; give at least one")
	}
	for _, p := range forms {
		prefixes = append(prefixes, p.text)
	}
	return prefixes, func(d mint.Date) ([]stele.ID, error) {
		ids := make([]stele.ID, len(forms))
		for i, p := range forms {
			id, err := p.ID(d)
			if err != nil {
				return nil, err
			}
			ids[i] = id
		}
		return ids, nil
	}, nil
}

// minterAddress returns the prefix of the IBIps that a minter makes.
func minterAddress(m *stele.Minter) (Prefix, error) {
	addr, err := netip.ParseAddr(m.IP)
	if err != nil {
		return Prefix{}, stele.Invalidf(Name, 0, "minter.ip-not-an-address", `"{address}" is not an IP address`, m.IP)
	}
	port := m.IPPort
	if port == 0 {
		port = defaultIBIpPort
	}
	return IBIpPrefix(addr, port, Reach(m.AllowPrivate))
}
