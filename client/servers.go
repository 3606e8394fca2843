package client

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// dnsPort is where name servers answer.
const dnsPort = 53

// ParseServer reads the address of a name server: 192.0.2.1, 192.0.2.1:5353, ::1 or
// [::1]:5353. A name is none: it would take a name server to find it.
func ParseServer(text string) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		return netip.AddrPortFrom(addr, dnsPort), nil
	}
	host, port, err := net.SplitHostPort(text)
	if err == nil && host == "localhost" {
		host = "127.0.0.1"
	}
	addr, bad := netip.ParseAddr(host)
	n, badPort := strconv.ParseUint(port, 10, 16)
	switch {
	case text == "localhost":
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsPort), nil
	case err != nil, bad != nil:
		return netip.AddrPort{}, invalid("%.60q is no address of a name server; write 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353", text)
	case badPort != nil || n == 0:
		return netip.AddrPort{}, invalid("%.60q is no port; write a number from 1 to 65535", port)
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}

// systemFile is where systems other than Windows keep the addresses of their name
// servers.
const systemFile = "/etc/resolv.conf"

// SystemServers returns the name servers that this machine uses. It is of Kind
// Unavailable if they are not to be found; they must be given then.
func SystemServers() ([]netip.AddrPort, error) { return serversIn(systemFile) }

func serversIn(file string) (list []netip.AddrPort, err error) {
	config, err := dns.ClientConfigFromFile(file)
	if err == nil {
		for _, text := range config.Servers {
			if addr, err := netip.ParseAddr(text); err == nil {
				list = append(list, netip.AddrPortFrom(addr, dnsPort))
			}
		}
		if len(list) == 0 {
			err = errors.New("there are none in " + file)
		}
	}
	if err != nil {
		return nil, &stele.Error{Op: "find name servers", Kind: stele.Unavailable, Err: fmt.Errorf("%w; name one", err)}
	}
	return list[:min(len(list), maxServers)], nil
}

// maxServers is how many name servers are asked, one after the other.
const maxServers = 8

func invalid(format string, args ...any) error {
	return &stele.Error{Op: "resolve", Kind: stele.Invalid, Err: fmt.Errorf(format, args...)}
}
