package client

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

// Ports where name servers answer.
const (
	dnsPort = 53
	dotPort = 853 // RFC 7858, section 3.1
)

// Transports of questions, as traces tell them.
const (
	netUDP   = "udp"
	netTCP   = "tcp"
	netTLS   = "tls"   // RFC 7858
	netHTTPS = "https" // RFC 8484
)

// NameServer is a name server, and how it is asked. [ParseServer] and [PlainServer]
// make them.
type NameServer struct {
	addr  netip.AddrPort // of one that is asked in clear
	at    string         // host and port of one that speaks TLS
	url   string         // of one that speaks HTTPS
	name  string         // that its certificate must be for; "" if a pin alone decides
	pins  []Pin          // of which its key must have one, if there are any
	hello string         // server name in the TLS handshake (SNI)
}

// PlainServer returns a name server that is asked in clear, over UDP and TCP.
func PlainServer(at netip.AddrPort) NameServer { return NameServer{addr: at} }

// transport returns how the server is asked first.
func (s *NameServer) transport() string {
	switch {
	case s.at != "":
		return netTLS
	case s.url != "":
		return netHTTPS
	}
	return netUDP
}

// isPrivate reports whether the connection to the server is encrypted.
func (s *NameServer) isPrivate() bool { return s.transport() != netUDP }

// String returns the server as [ParseServer] reads it, without pins.
func (s NameServer) String() string {
	switch s.transport() {
	case netTLS:
		if host, _, _ := net.SplitHostPort(s.at); s.name != "" && s.name != host {
			return "tls://" + s.at + "#" + s.name
		}
		return "tls://" + s.at
	case netHTTPS:
		return s.url
	}
	return s.addr.String()
}

// ParseServer reads the address of a name server: 192.0.2.1, 192.0.2.1:5353, ::1 or
// [::1]:5353. It must not be a host name, which only a name server could resolve. Servers
// that speak TLS or HTTPS may have host names, since they prove who they are, whatever
// address the system's name servers give:
//
//	tls://dns.example.org                       DNS over TLS, port 853
//	tls://192.0.2.1#dns.example.org             the certificate must be for that name
//	tls://192.0.2.1:8853?pin=sha256/BASE64      the key must be this one
//	https://dns.example.org/dns-query           DNS over HTTPS
func ParseServer(text string) (NameServer, error) {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		switch strings.ToLower(scheme) {
		case "tls":
			return parseTLSServer(rest)
		case "https":
			return parseHTTPSServer(rest)
		}
		return NameServer{}, invalid("dns.server-invalid", `"{server}" is not a name server; write 192.0.2.1, tls://192.0.2.1#dns.example.org or https://dns.example.org/dns-query`, text)
	}
	addr, err := parseAddrPort(text)
	return PlainServer(addr), err
}

func parseAddrPort(text string) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil && isZone(addr.Zone()) {
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
	case err != nil, bad != nil, !isZone(addr.Zone()):
		return netip.AddrPort{}, invalid("dns.server-address-invalid", `"{address}" is not an address of a name server; write 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353`, text)
	case badPort != nil || n == 0:
		return netip.AddrPort{}, invalid("dns.server-port-invalid", `"{port}" is not a port; write a number from 1 to 65535`, port)
	}
	return netip.AddrPortFrom(addr, uint16(n)), nil
}

// isZone reports whether a text can be what follows the percent sign in an address: a
// network interface's name, or nothing.
func isZone(text string) bool { return text == "" || endpoint.IsHostName(text) }

// systemFile is where systems other than Windows keep the addresses of their name
// servers.
const systemFile = "/etc/resolv.conf"

// SystemServers returns the name servers that this machine uses. It is of Kind
// Unavailable if they are not to be found; they must be given then.
func SystemServers() ([]NameServer, error) { return serversIn(systemFile) }

func serversIn(file string) (list []NameServer, err error) {
	config, err := dns.ClientConfigFromFile(file)
	if err == nil {
		for _, text := range config.Servers {
			if addr, err := netip.ParseAddr(text); err == nil {
				list = append(list, PlainServer(netip.AddrPortFrom(addr, dnsPort)))
			}
		}
		if len(list) == 0 {
			err = stele.Messagef("dns.no-servers-in-file", "there are none in {file}", file)
		}
	}
	if err != nil {
		return nil, &stele.Error{Op: "find name servers", Kind: stele.Unavailable, Err: stele.Messagef("dns.system-servers-not-found", "{cause}; name one", err)}
	}
	return list[:min(len(list), maxServers)], nil
}

// maxServers is how many name servers are asked, one after the other.
const maxServers = 8

// checkServers refuses a mixture of servers that are asked in clear and servers that are
// not: if an encrypted one failed, the next would be asked in clear, and the user would not
// notice.
func checkServers(list []NameServer) error {
	private := func(s NameServer) bool { return s.isPrivate() }
	if slices.ContainsFunc(list, private) && slices.ContainsFunc(list, func(s NameServer) bool { return !s.isPrivate() }) {
		return invalid("dns.servers-mixed-privacy", "some name servers are asked in clear and some are not, so that questions would be readable when the others fail; name servers of one kind")
	}
	return nil
}

func invalid(code, text string, args ...any) error {
	return &stele.Error{Op: "resolve", Kind: stele.Invalid, Err: stele.Messagef(code, text, args...)}
}
