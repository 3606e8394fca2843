package client

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

const (
	httpPort  = endpoint.HTTPPort
	httpsPort = endpoint.HTTPSPort

	maxAddresses = 8 // of one host
)

// place is where a resolver may answer.
type place struct {
	endpoint.Endpoint
	ttl    uint32 // of the records that led here
	family uint16 // type of the addresses that count; 0 for both
}

func newPlace(host string, port uint16, secure bool, ttl uint32) place {
	return place{Endpoint: endpoint.Endpoint{Host: strings.TrimSuffix(host, "."), Port: port, Secure: secure || port == httpsPort}, ttl: ttl}
}

// parseHostport reads a host, perhaps with a port, that stands in a record.
func parseHostport(text string) (place, error) {
	host, port, given := strings.Cut(strings.TrimSuffix(text, "."), ":")
	n := uint64(httpPort)
	var err error
	if given {
		n, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || n == 0 || !endpoint.IsHostName(host) {
		return place{}, stele.Messagef("resolve.host-invalid", "this is not a host")
	}
	return newPlace(strings.ToLower(host), uint16(n), false, 0), nil
}

// parseBase reads the URL of a resolver.
func parseBase(text string) (place, error) {
	e, err := endpoint.Parse(text)
	return place{Endpoint: e}, err
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
// long they hold. They are looked up once, even if several rules lead there.
func (s *session) addresses(ctx context.Context, p place) ([]netip.Addr, uint32, error) {
	h := host{p.Host, p.family}
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
	if addr, err := netip.ParseAddr(p.Host); err == nil {
		return []netip.Addr{addr.Unmap()}, maxTTL, nil
	}
	if p.Host == "localhost" || strings.HasSuffix(p.Host, ".localhost") { // RFC 6761, section 6.3
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
			a, err := s.lookup(ctx, t, p.Host+".", kind)
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
		err = notFound("resolve.host-without-address", "{host} has no address", p.Host)
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
		if endpoint.IsHostName(host) && r.Port != 0 {
			places = append(places, newPlace(host, r.Port, secure, a.ttl))
		}
	}
	s.tracer.add(Step{Servers: told})
	if len(places) == 0 { // a lone dot says so (RFC 2782)
		return nil, &stele.Error{Op: "look up", Kind: stele.NotFound, Err: stele.Messagef("resolve.no-server-offers", "{name}: no server offers this", name)}
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
