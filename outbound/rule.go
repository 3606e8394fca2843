// Package outbound is the way out of the server: the one place where it opens connections
// and sends packets of its own accord (notices to secondaries, the audit trail to syslog).
//
// Where a user of the registry names the destination, the operator of the server decides
// which addresses it may have: by default those of the public Internet, so that no user can
// have the server reach what only the server should. The address is judged at the moment of
// connecting, after names were resolved, so that a name that resolves to another address the
// second time does not evade the rule. Package client, which works for the person who runs
// it, opens its own connections; 'stele get' asks the Rule about locations that it found
// through the DNS.
package outbound

import (
	"net/netip"
	"slices"

	"github.com/stele-id/stele"
)

// Rule says to which addresses something may be sent. The zero Rule allows the public
// Internet.
type Rule struct {
	Allow []netip.Prefix // networks that are allowed beside

	// Any allows every address: the operator names the destination, not a user of the
	// registry.
	Any bool
}

// special are networks that are not the public Internet, and those whose addresses embed an
// IPv4 address and lead to it.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), // RFC 1918
	netip.MustParsePrefix("100.64.0.0/10"),    // shared by providers, and metadata of some clouds
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // metadata of a cloud, at a public address
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local, and metadata of most clouds
	netip.MustParsePrefix("192.0.0.0/24"),     // of protocols (RFC 6890)
	netip.MustParsePrefix("192.88.99.0/24"),   // relays of 6to4
	netip.MustParsePrefix("198.18.0.0/15"),    // of benchmarks
	netip.MustParsePrefix("224.0.0.0/3"),      // multicast, reserved, broadcast
	netip.MustParsePrefix("::/96"),            // unspecified, loopback, IPv4-compatible
	netip.MustParsePrefix("::ffff:0:0:0/96"),  // IPv4-translated
	netip.MustParsePrefix("64:ff9b:1::/48"),   // NAT64 of a site
	netip.MustParsePrefix("100::/64"),         // discarded
	netip.MustParsePrefix("2001::/32"),        // Teredo
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("fc00::/7"),         // unique local, and metadata of a cloud
	netip.MustParsePrefix("fe80::/10"),        // link-local
	netip.MustParsePrefix("fec0::/10"),        // site-local
	netip.MustParsePrefix("ff00::/8"),         // multicast
}

// nat64 is the network by which hosts without IPv4 reach the IPv4 Internet (RFC 6052). An
// address there is judged as the IPv4 address in its last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// ParseRule reads addresses and networks that are allowed beside the public Internet.
func ParseRule(list []string) (r Rule, err error) {
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return r, stele.Messagef("outbound.address-invalid", `"{value}" is neither an address nor a network such as 192.0.2.0/24`, text)
		}
		r.Allow = append(r.Allow, network.Masked())
	}
	return r, nil
}

// May reports whether an address is allowed.
func (r Rule) May(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	contains := func(network netip.Prefix) bool { return network.Contains(addr) }
	switch {
	case !addr.IsValid():
		return false
	case r.Any || r.names(addr):
		return true
	case nat64.Contains(addr):
		inside := addr.As16()
		return r.May(netip.AddrFrom4([4]byte(inside[12:])))
	}
	return !slices.ContainsFunc(special, contains)
}

// names reports whether an address is in one of the networks that the operator named.
func (r Rule) names(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(r.Allow, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// plain returns an address without a zone, and the IPv4 address that an IPv6 address leads to.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		inside := addr.As16()
		return netip.AddrFrom4([4]byte(inside[12:]))
	}
	return addr
}

// MayNetwork reports whether a network may be named: some of its addresses are allowed. Each
// address is judged when it comes.
func (r Rule) MayNetwork(network netip.Prefix) bool {
	if r.Any || slices.ContainsFunc(r.Allow, network.Overlaps) {
		return network.IsValid()
	}
	return network.IsValid() && !slices.ContainsFunc(special, func(one netip.Prefix) bool {
		return one.Bits() <= network.Bits() && one.Contains(network.Addr())
	})
}
