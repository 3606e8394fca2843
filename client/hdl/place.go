package hdlclient

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/wire/hdl"
)

// Port is the port of the protocol over UDP and TCP.
const Port = 2641

// Place is a server that the user names.
type Place struct {
	Host      string // a name or an address
	Port      uint16
	Addresses []netip.Addr // of the host, if they are known already
	URL       string       // of the protocol in HTTP or HTTPS; then it speaks nothing else
}

// ParsePlace reads a server: HOST or HOST:PORT, or http://HOST:PORT for the protocol in HTTP.
func ParsePlace(text string) (Place, error) {
	if strings.Contains(text, "://") {
		e, err := endpoint.Parse(text)
		if err != nil {
			return Place{}, refuse(stele.Invalid, "hdlclient.server-invalid", `"{server}" is not a server of the Handle protocol: {cause}; write HOST, HOST:PORT or http://HOST:PORT`, text, err)
		}
		return Place{Host: e.Host, Port: e.Port, URL: e.URL("/")}, nil
	}
	host, port := text, uint64(Port)
	if h, p, err := net.SplitHostPort(text); err == nil {
		host = h
		if port, err = strconv.ParseUint(p, 10, 16); err != nil {
			port = 0
		}
	} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); (err != nil && !endpoint.IsHostName(host)) || port == 0 {
		return Place{}, refuse(stele.Invalid, "hdlclient.server-malformed", `"{server}" is not a server of the Handle protocol; write HOST, HOST:PORT or http://HOST:PORT`, text)
	}
	return Place{Host: host, Port: uint16(port)}, nil
}

// String returns the place as people write it.
func (p *Place) String() string {
	if p.URL != "" {
		return strings.TrimSuffix(p.URL, "/")
	}
	return net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port)))
}

// server is one that is asked.
type server struct {
	name    string // for people
	addrs   []netip.Addr
	doors   []hdl.Interface
	tunnel  string // URL of the protocol in HTTP, for a place that the user names by a URL
	version hdl.Version
	serial  uint16
	key     *hdl.PublicKey // nil: not known
	given   bool           // the user named it, so that it may be anywhere
	trusted bool           // the key is one that the caller gave, or a certified answer had it
}

// unknownVersion is spoken to servers of whose site nothing is known (section 2 of the specification).
var unknownVersion = hdl.Version{Major: 2, Minor: 3}

// maxAddresses is how many addresses of a host are tried.
const maxAddresses = 4

// named returns the server that the user named.
func (c *Client) named(ctx context.Context, p *Place) (*server, error) {
	s := &server{name: p.String(), addrs: p.Addresses, tunnel: p.URL, version: unknownVersion, serial: hdl.UnknownSerial, given: true}
	if p.URL != "" {
		transport := hdl.HTTP
		if strings.HasPrefix(p.URL, "https:") {
			transport = hdl.HTTPS
		}
		s.doors = []hdl.Interface{{Type: hdl.InterfaceBoth, Protocol: transport, Port: uint32(p.Port)}}
	} else {
		s.doors = []hdl.Interface{{Type: hdl.InterfaceQuery, Protocol: hdl.UDP, Port: uint32(p.Port)}, {Type: hdl.InterfaceBoth, Protocol: hdl.TCP, Port: uint32(p.Port)}}
	}
	if len(s.addrs) > 0 {
		return s, nil
	}
	if addr, err := netip.ParseAddr(p.Host); err == nil {
		s.addrs = []netip.Addr{addr.Unmap()}
		return s, nil
	}
	list, err := c.o.Lookup(ctx, p.Host)
	if err != nil || len(list) == 0 {
		if err == nil {
			err = stele.Messagef("hdlclient.host-without-address", "no address is known for it")
		}
		return nil, refuse(stele.Unavailable, "hdlclient.host-unknown", "the address of {host} cannot be found: {cause}", p.Host, endpoint.Timely(ctx, err))
	}
	for _, a := range list[:min(len(list), maxAddresses)] {
		s.addrs = append(s.addrs, a.Unmap())
	}
	return s, nil
}

// site is one whose servers are asked.
type site struct {
	hdl.Site
	given   bool // the user named it
	trusted bool // its keys are those that the caller gave, or a certified answer had them
}

// server returns a server of the site. Keys that cannot be read count as none, and the caller decides what that means.
func (s *site) server(one *hdl.Server) *server {
	out := &server{addrs: []netip.Addr{one.Addr()}, doors: one.Interfaces, version: s.Version, serial: s.Serial, given: s.given, trusted: s.trusted}
	out.name = out.addrs[0].String()
	if len(one.Interfaces) > 0 {
		out.name = net.JoinHostPort(out.name, strconv.FormatUint(uint64(one.Interfaces[0].Port), 10))
	}
	if key, err := hdl.ParsePublicKey(one.Key); err == nil && key.DH == nil {
		out.key = &key
	}
	return out
}

// serverFor returns the server of the site that has a handle; nil if the site has none.
func (s *site) serverFor(handle string) *server {
	if one := s.ServerFor([]byte(handle)); one != nil {
		return s.server(one)
	}
	return nil
}

// service is where handles are.
type service struct {
	named *Place // by the user; else sites
	sites []site
}

// servers returns those to ask for a handle: one of each site, in the order of the sites. For changes it is that of the primary
// site.
func (c *Client) servers(ctx context.Context, sv *service, handle string, admin bool) (list []*server, err error) {
	if sv.named != nil {
		s, err := c.named(ctx, sv.named)
		if err != nil {
			return nil, err
		}
		return []*server{s}, nil
	}
	for i := range sv.sites {
		one := &sv.sites[i]
		if admin && one.Flags&(hdl.SitePrimary|hdl.SiteMultiPrimary) == 0 {
			continue
		}
		if s := one.serverFor(handle); s != nil {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, refuse(stele.NotFound, "hdlclient.service-without-server", "the service that has {handle} names no server that could be asked", handle)
	}
	return list[:min(len(list), maxSites)], nil
}

// primary returns all servers of the primary site of a service.
func (c *Client) primary(ctx context.Context, sv *service, handle string) (list []*server, err error) {
	for i := range sv.sites {
		if one := &sv.sites[i]; one.Flags&(hdl.SitePrimary|hdl.SiteMultiPrimary) != 0 {
			for k := range one.Servers[:min(len(one.Servers), maxServers)] {
				list = append(list, one.server(&one.Servers[k]))
			}
			return list, nil
		}
	}
	return c.servers(ctx, sv, handle, true)
}

// maxServers is how many servers of a site are asked.
const maxServers = 64

// maxSites is how many sites of a service are tried.
const maxSites = 8
