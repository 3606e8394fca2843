package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

const (
	httpPort  = 80
	httpsPort = 443

	maxAddresses = 8 // of one host
)

// place is where a resolver may answer.
type place struct {
	host   string // a name without the dot at its end, or an address
	port   uint16
	secure bool   // it speaks HTTPS
	path   string // before that of requests, without a slash at its end
	ttl    uint32 // of the records that led here
	family uint16 // type of the addresses that count; 0 for both
}

func newPlace(host string, port uint16, secure bool, ttl uint32) place {
	return place{host: strings.TrimSuffix(host, "."), port: port, secure: secure || port == httpsPort, ttl: ttl}
}

// hostport returns host and port, as people write them.
func (p place) hostport() string { return net.JoinHostPort(p.host, strconv.Itoa(int(p.port))) }

// url returns the URL of a path there.
func (p place) url(path string) string {
	scheme, usual := "http", uint16(httpPort)
	if p.secure {
		scheme, usual = "https", httpsPort
	}
	host := p.hostport()
	if p.port == usual {
		if host = p.host; strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	}
	return scheme + "://" + host + p.path + path
}

// parseHostport reads a host, perhaps with a port, that stands in a record.
func parseHostport(text string) (place, error) {
	host, port, given := strings.Cut(strings.TrimSuffix(text, "."), ":")
	n := uint64(httpPort)
	var err error
	if given {
		n, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || n == 0 || !isHostName(host) {
		return place{}, errors.New("this is no host")
	}
	return newPlace(strings.ToLower(host), uint16(n), false, 0), nil
}

// parseBase reads the URL of a resolver.
func parseBase(text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil {
		return place{}, errors.New("this is no http or https URL")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if _, err := netip.ParseAddr(host); err != nil && !isHostName(host) {
		return place{}, errors.New("the URL has no host")
	}
	p := newPlace(host, httpPort, u.Scheme == "https", 0)
	if p.secure {
		p.port = httpsPort
	}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return place{}, errors.New("the URL has no good port")
		}
		p.port = uint16(n)
	}
	p.path = strings.TrimRight(u.EscapedPath(), "/")
	return p, nil
}

// isHostName reports whether a text is a host's name: letters, digits, hyphens, and
// underscores, which there are.
func isHostName(text string) bool {
	if text == "" || len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// host is a host of which the addresses are known.
type host struct {
	name   string
	family uint16
}

// addressed is what is known of a host's addresses.
type addressed struct {
	list []netip.Addr
	ttl  uint32
	err  error
}

// addresses returns the addresses of a place, in the order to try them, and for how
// long they hold. They are asked for once, though several rules may lead there.
func (s *session) addresses(ctx context.Context, p place) ([]netip.Addr, uint32, error) {
	h := host{p.host, p.family}
	known, ok := s.hosts[h]
	if !ok {
		known.list, known.ttl, known.err = s.findAddresses(ctx, p)
		if s.hosts == nil {
			s.hosts = make(map[host]addressed)
		}
		s.hosts[h] = known
	}
	return known.list, known.ttl, known.err
}

// findAddresses asks for both kinds of addresses at once.
func (s *session) findAddresses(ctx context.Context, p place) (list []netip.Addr, ttl uint32, err error) {
	if addr, err := netip.ParseAddr(p.host); err == nil {
		return []netip.Addr{addr.Unmap()}, maxTTL, nil
	}
	if p.host == "localhost" || strings.HasSuffix(p.host, ".localhost") { // RFC 6761, section 6.3
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, maxTTL, nil
	}
	type found struct {
		answer *answer
		err    error
		steps  *tracer
	}
	kinds := []uint16{dns.TypeAAAA, dns.TypeA}
	if p.family != 0 {
		kinds = []uint16{p.family}
	}
	results := make([]chan found, len(kinds))
	for i, kind := range kinds {
		results[i] = make(chan found, 1)
		go func(t *tracer) {
			a, err := s.lookup(ctx, t, p.host+".", kind)
			results[i] <- found{a, err, t}
		}(s.tracer.fork())
	}
	ttl = maxTTL
	for _, result := range results {
		f := <-result
		s.tracer.join(f.steps)
		if f.err != nil {
			err = worse(err, f.err)
			continue
		}
		list, ttl = append(list, addressesIn(f.answer.records)...), min(ttl, f.answer.ttl)
	}
	switch {
	case isBogus(err):
		return nil, 0, err
	case len(list) > 0:
		return list, ttl, nil
	case err == nil:
		err = notFound("%s has no address", p.host)
	}
	return nil, 0, err
}

// addressesIn returns the addresses in A and AAAA records.
func addressesIn(records []dns.RR) (list []netip.Addr) {
	for _, r := range records[:min(len(records), maxAddresses)] {
		var ip net.IP
		switch r := r.(type) {
		case *dns.A:
			ip = r.A
		case *dns.AAAA:
			ip = r.AAAA
		}
		addr, ok := netip.AddrFromSlice(ip)
		if addr = addr.Unmap(); ok && !addr.IsUnspecified() && !addr.IsMulticast() {
			list = append(list, addr)
		}
	}
	return list
}

// srvPlaces returns the servers that SRV records at a name lead to, in the order to
// try them (RFC 2782).
func (s *session) srvPlaces(ctx context.Context, name string, secure bool) ([]place, error) {
	a, err := s.lookup(ctx, s.tracer, name, dns.TypeSRV)
	if err != nil {
		return nil, err
	}
	list := orderSRV(a.records, s.dns.o.Random)
	told := &Servers{Name: name}
	var places []place
	for _, r := range list {
		told.List = append(told.List, Server{Host: r.Target, Port: r.Port, Priority: r.Priority, Weight: r.Weight})
		host := strings.TrimSuffix(dns.CanonicalName(r.Target), ".")
		if _, err := netip.ParseAddr(host); err == nil {
			s.tracer.note("%s is an address, and no name of a host (RFC 2782)", host)
			continue
		}
		if isHostName(host) && r.Port != 0 {
			places = append(places, newPlace(host, r.Port, secure, a.ttl))
		}
	}
	s.tracer.add(Step{Servers: told})
	if len(places) == 0 { // a lone dot says so (RFC 2782)
		return nil, &stele.Error{Op: "look up", Kind: stele.NotFound, Err: errors.New(name + ": no server offers this")}
	}
	return places, nil
}

// maxSRV is how many servers are put in order.
const maxSRV = 64

// orderSRV puts SRV records in the order in which they are tried: by priority, and
// within one by chance in proportion to weight (RFC 2782, "Usage rules").
func orderSRV(records []dns.RR, random func(n int) int) (list []*dns.SRV) {
	for _, r := range records[:min(len(records), maxSRV)] {
		if srv, ok := r.(*dns.SRV); ok {
			list = append(list, srv)
		}
	}
	// Those of weight 0 come first, so that they have a small chance.
	slices.SortStableFunc(list, func(a, b *dns.SRV) int {
		if a.Priority != b.Priority {
			return int(a.Priority) - int(b.Priority)
		}
		return int(min(a.Weight, 1)) - int(min(b.Weight, 1))
	})
	if random == nil {
		return list
	}
	for begin := 0; begin < len(list); begin++ {
		end, sum := begin, 0
		for end < len(list) && list[end].Priority == list[begin].Priority {
			sum += int(list[end].Weight)
			end++
		}
		pick, at, running := random(sum+1), begin, 0
		for ; at < end-1; at++ {
			if running += int(list[at].Weight); running >= pick {
				break
			}
		}
		chosen := list[at]
		copy(list[begin+1:at+1], list[begin:at])
		list[begin] = chosen
	}
	return list
}
