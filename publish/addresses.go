package publish

import (
	"fmt"
	"net/netip"
)

// Addresses says where zones, and notices of their changes, may be sent. An owner of a
// namespace names the secondaries of its zone, and the operator of the server decides
// which addresses these can have: by default those of the public Internet.
type Addresses struct {
	Allow []netip.Prefix // networks that are allowed beside
}

// special are networks that an owner could use to reach what only the server should.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("ff00::/8"), netip.MustParsePrefix("2002::/16"),
}

// ParseAddresses reads addresses and networks that are allowed.
func ParseAddresses(list []string) (a Addresses, err error) {
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return a, fmt.Errorf("%.100q is neither an address nor a network such as 192.0.2.0/24", text)
		}
		a.Allow = append(a.Allow, network.Masked())
	}
	return a, nil
}

// May reports whether an address is allowed.
func (a Addresses) May(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, network := range a.Allow {
		if network.Contains(addr) {
			return true
		}
	}
	for _, network := range special {
		if network.Contains(addr) {
			return false
		}
	}
	return addr.IsValid()
}

// MayNetwork reports whether a network may be named: some of its addresses are allowed. Each
// address is judged when it comes.
func (a Addresses) MayNetwork(network netip.Prefix) bool {
	for _, allowed := range a.Allow {
		if allowed.Overlaps(network) {
			return true
		}
	}
	for _, one := range special {
		if one.Bits() <= network.Bits() && one.Contains(network.Addr()) {
			return false
		}
	}
	return network.IsValid()
}
