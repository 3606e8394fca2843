package httpd

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// Proxies are the trusted proxies in front of a server: it believes what they say of the
// client and of the address that the client used. A client can write the same headers itself,
// so the server ignores them when they come from elsewhere.
type Proxies struct {
	networks []netip.Prefix
	header   ProxyHeader
	log      *slog.Logger
	told     atomic.Bool // the warning was logged that requests have headers of both kinds
}

// ProxyHeader says in which headers proxies describe their clients.
type ProxyHeader string

// A proxy that writes headers of one kind passes on those of the other as its client sent
// them. So where both are in a request and the operator has not said which kind it is, the
// server believes neither.
const (
	EitherHeader ProxyHeader = "either"
	Forwarded    ProxyHeader = "forwarded"   // RFC 7239
	XForwarded   ProxyHeader = "x-forwarded" // X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host
)

// NewProxies makes Proxies of addresses and networks, as [ParseProxy] reads them. A
// text that it can't read is an error.
func NewProxies(texts []string, header ProxyHeader, log *slog.Logger) (*Proxies, error) {
	p := &Proxies{header: header, log: log}
	for _, text := range texts {
		network, err := ParseProxy(text)
		if err != nil {
			return nil, err
		}
		p.networks = append(p.networks, network)
	}
	return p, nil
}

// ParseProxy reads an address, 192.0.2.7, or a network, 10.0.0.0/8.
func ParseProxy(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil || network.Addr().Is4In6():
		return netip.Prefix{}, stele.Messagef("proxy.network-invalid", `"{network}" is neither an address nor a network; write one as in 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`, text)
	case network != network.Masked():
		return netip.Prefix{}, stele.Messagef("proxy.network-has-host-bits", "{network} has bits after its length; write {masked} for the network, or {address} for the address", network, network.Masked(), network.Addr())
	case network.Bits() == 0:
		return netip.Prefix{}, stele.Messagef("proxy.network-is-everything", "{network} is every address, and then any client could forge its address; name the proxies", network)
	}
	return network, nil
}

// Trust reports whether an address is that of a trusted proxy. Without proxies none is.
func (p *Proxies) Trust(addr netip.Addr) bool {
	if p == nil {
		return false
	}
	addr = addr.Unmap()
	return slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// Before returns a handler that hands on requests as if they had come straight from
// the client: RemoteAddr has its address, and where the proxies say so, Host the host
// that it asked for, and TLS whether it came by https. Requests of others are handed
// on as they are. The id of the request that a proxy gives is kept, see [trace.Request].
func (p *Proxies) Before(next http.Handler) http.Handler {
	if len(p.networks) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer := ClientAddr(r); p.Trust(peer) {
			r = p.straight(r.WithContext(caused(context.WithValue(r.Context(), fromProxy{}, true), r.Header)), peer)
		}
		next.ServeHTTP(w, r)
	})
}

type fromProxy struct{}

// IsFromProxy reports, after [Proxies.Before], whether a trusted proxy sent a request.
func IsFromProxy(r *http.Request) bool {
	from, _ := r.Context().Value(fromProxy{}).(bool)
	return from
}

// ClientAddr returns the address of the sender of a request, the zero one if there is none.
// After [Proxies.Before] it is the client's and not the proxy's.
func ClientAddr(r *http.Request) netip.Addr {
	if addr, ok := parseIPv4(r.RemoteAddr); ok {
		return addr
	}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// parseIPv4 is [netip.ParseAddrPort] for most of what [http.Server] writes, in a third of its time: each redirect that is counted needs it.
// It returns false for what it does not know.
func parseIPv4(text string) (netip.Addr, bool) {
	var octets [4]byte
	n, number, digits := 0, 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9' && digits < 3:
			if digits++; digits > 1 && number == 0 {
				return netip.Addr{}, false // 01
			}
			number = number*10 + int(c-'0')
		case (c == '.' && n < 3 || c == ':' && n == 3) && digits > 0 && number < 256:
			octets[n] = byte(number)
			n, number, digits = n+1, 0, 0
			if n == 4 {
				return netip.AddrFrom4(octets), isPort(text[i+1:])
			}
		default:
			return netip.Addr{}, false
		}
	}
	return netip.Addr{}, false
}

// isPort reports whether a text is the number of a port, in at most five digits.
func isPort(text string) bool {
	number := 0
	for i := range len(text) {
		if text[i] < '0' || '9' < text[i] || i == 5 {
			return false
		}
		number = number*10 + int(text[i]-'0')
	}
	return text != "" && number < 1<<16
}

// straight returns a proxy's request as the client's.
func (p *Proxies) straight(r *http.Request, peer netip.Addr) *http.Request {
	from, ok := p.origin(r.Header)
	if !ok {
		return r // the headers say nothing usable
	}
	out := r.WithContext(r.Context())
	if from.client.IsValid() {
		out.RemoteAddr = netip.AddrPortFrom(from.client, 0).String()
	}
	if from.host != "" {
		out.Host = from.host
	}
	switch {
	case from.proto == "https" && out.TLS == nil:
		out.TLS = &tls.ConnectionState{} // the state between client and proxy is not known
	case from.proto == "http":
		out.TLS = nil
	}
	return out
}

// hop is what a proxy says of its client.
type hop struct {
	client      netip.Addr // the zero one if the proxy does not name it
	proto, host string     // "" if the proxy does not name it
	unclear     bool       // what it says can't be read
}

// origin returns what is said of the client: of those that asked a proxy of ours, the last
// one that is not such a proxy. What stands before it the client may have written itself. It
// is not ok if nothing can be known.
func (p *Proxies) origin(head http.Header) (hop, bool) {
	hops, ok := p.hops(head)
	if !ok || len(hops) == 0 {
		return hop{}, false
	}
	for _, h := range slices.Backward(hops) {
		if !p.Trust(h.client) {
			return h, !h.unclear
		}
	}
	return hops[0], true
}

// hops reads the headers of the kind that the proxies write.
func (p *Proxies) hops(head http.Header) ([]hop, bool) {
	standard := head["Forwarded"]
	addresses, protos, hosts := head["X-Forwarded-For"], head["X-Forwarded-Proto"], head["X-Forwarded-Host"]
	usual := len(addresses)+len(protos)+len(hosts) > 0
	switch {
	case p.header == XForwarded, p.header == EitherHeader && len(standard) == 0:
		return readXForwarded(addresses, protos, hosts)
	case p.header == Forwarded, p.header == EitherHeader && !usual:
		return readForwarded(standard)
	}
	if p.log != nil && !p.told.Swap(true) {
		p.log.Warn("a proxy sends Forwarded and X-Forwarded-For, and one of them may be its client's own; neither is believed. Say by the setting proxy-header which one the proxy writes")
	}
	return nil, false
}
