package client

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// Delegation is how a zone is found from above, and what its name servers say.
type Delegation struct {
	Zone    string       // absolute and in lower case
	Parent  string       // the zone above; "" if it was not found
	Names   []string     // of the name servers that the parent names, in order; none if it knows nothing of the zone
	Servers []ZoneServer // that were asked for the zone: the parent's, and those that should be
	Trust   ZoneTrust    // of its keys, if the parent was found
}

// ZoneServer is a name server of a zone, at one of its addresses.
type ZoneServer struct {
	Name   string
	At     netip.AddrPort // the zero one if the name has no address
	Serial uint32         // of the zone there
	Late   bool           // it has an older state of the zone than another server had before
	Err    error          // why it does not answer for the zone as it should
}

// Delegations checks how zones are delegated. Servers answer its questions about the
// DNS; they are asked in turn.
type Delegations struct {
	Servers []netip.AddrPort
	Timeout time.Duration // for one question; 3 s if 0

	// Port is where the servers of zones are asked; 53 if 0.
	Port uint16

	// Again is how long a server has to transfer what another one has; 1 s if 0.
	Again time.Duration

	// Dial opens connections to the servers of zones and of their parents, whose addresses others
	// decide: a server passes one with a rule. Nil: any address is asked. Servers are the
	// operator's, and are asked wherever they are.
	Dial Dial
}

// Limits on the questions that other servers can cause.
const (
	maxZoneServers   = 32 // of one zone
	maxZoneAddresses = 8  // of one server
	maxLateTries     = 2  // questions to a server that has an older state of the zone
)

// SystemAddresses returns the addresses of this machine's name servers.
func SystemAddresses() (list []netip.AddrPort, err error) {
	servers, err := SystemServers()
	for _, s := range servers {
		list = append(list, s.addr)
	}
	return list, err
}

// ParseAddress reads the address of a name server that is asked in clear, with a port
// or without.
func ParseAddress(text string) (netip.AddrPort, error) { return parseAddrPort(text) }

// NewDelegations returns a client that asks the name servers at the addresses about zones and their
// parents, or the name servers of the system if none is given. The servers of zones are asked at the
// port of the last address.
func NewDelegations(addresses ...string) (*Delegations, error) {
	d := &Delegations{}
	for _, text := range addresses {
		server, err := ParseAddress(text)
		if err != nil {
			return nil, err
		}
		d.Servers, d.Port = append(d.Servers, server), server.Port()
	}
	if len(d.Servers) > 0 {
		return d, nil
	}
	var err error
	d.Servers, err = SystemAddresses()
	return d, err
}

// Check finds the delegation of a zone, and asks its servers and those that it should
// have. An error says why the zone above could not be asked; what is known by then is
// returned with it.
func (d *Delegations) Check(ctx context.Context, zone string, should []stele.NameServer) (*Delegation, error) {
	if _, ok := dns.IsDomainName(zone); !ok || zone == "" || zone == "." {
		return nil, invalid("zone.name-invalid", `"{zone}" is not a name of a zone`, zone)
	}
	found := &Delegation{Zone: dns.CanonicalName(zone)}
	addresses := map[string][]netip.Addr{}
	for _, server := range should {
		name := dns.CanonicalName(server.Name)
		addresses[name] = nil
		for _, text := range server.Addresses {
			if addr, err := netip.ParseAddr(text); err == nil {
				addresses[name] = append(addresses[name], addr)
			}
		}
	}
	err := d.ask(ctx, found, addresses)
	names := make([]string, 0, len(addresses))
	for name := range addresses {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxZoneServers)] {
		list := addresses[name]
		if len(list) == 0 {
			list = d.addresses(ctx, name)
		}
		if len(list) == 0 {
			found.Servers = append(found.Servers, ZoneServer{Name: name, Err: stele.Messagef("dns.server-without-address", "it has no address")})
		}
		slices.SortFunc(list, netip.Addr.Compare)
		list = slices.Compact(list)
		for _, addr := range list[:min(len(list), maxZoneAddresses)] {
			found.Servers = append(found.Servers, d.zoneServer(ctx, found.Zone, name, addr))
		}
	}
	d.judgeLate(ctx, found)
	if err == nil && len(found.Names) > 0 {
		found.Trust = d.trust(ctx, found)
	}
	return found, err
}

// judgeLate finds the servers that have an older state of the zone. A zone may change
// while its servers are asked one after the other, and a secondary needs a moment to
// transfer it. So a server is late only if, when it is asked again, it still has an older
// state than another server had before.
func (d *Delegations) judgeLate(ctx context.Context, found *Delegation) {
	newest, known := uint32(0), false
	for _, s := range found.Servers {
		if s.Err == nil && (!known || stele.SerialAfter(s.Serial, newest)) {
			newest, known = s.Serial, true
		}
	}
	for i := range found.Servers {
		s := &found.Servers[i]
		for try := 0; s.Err == nil && stele.SerialAfter(newest, s.Serial) && try < maxLateTries; try++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(cmp.Or(d.Again, time.Second)):
			}
			*s = d.zoneServer(ctx, found.Zone, s.Name, s.At.Addr())
		}
		s.Late = s.Err == nil && stele.SerialAfter(newest, s.Serial)
	}
}

// ask finds the parent and what it says. It adds the servers with the addresses that
// the parent gives (RFC 1034, section 4.2.1).
func (d *Delegations) ask(ctx context.Context, found *Delegation, addresses map[string][]netip.Addr) error {
	parent, err := d.parent(ctx, found.Zone)
	if err != nil {
		return err
	}
	found.Parent = parent
	reply, err := d.parentSays(ctx, parent, found.Zone, dns.TypeNS)
	if err != nil {
		return err
	}
	// A referral, or the answer of a server that has both zones.
	for _, rr := range slices.Concat(reply.Ns, reply.Answer) {
		if ns, ok := rr.(*dns.NS); ok && dns.CanonicalName(ns.Hdr.Name) == found.Zone {
			found.Names = append(found.Names, dns.CanonicalName(ns.Ns))
		}
	}
	slices.Sort(found.Names)
	found.Names = slices.Compact(found.Names)
	for _, name := range found.Names {
		addresses[name] = append(addresses[name], glue(reply, name)...)
	}
	return nil
}

// parent finds the zone above: the nearest name that begins one.
func (d *Delegations) parent(ctx context.Context, zone string) (string, error) {
	for name := zone; name != "."; {
		_, rest, _ := strings.Cut(name, ".")
		name = cmp.Or(rest, ".")
		reply, err := d.resolve(ctx, name, dns.TypeSOA)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(reply.Answer, func(rr dns.RR) bool {
			return rr.Header().Rrtype == dns.TypeSOA && dns.CanonicalName(rr.Header().Name) == name
		}) {
			return name, nil
		}
	}
	return "", &stele.Error{Op: "find the zone above", Kind: stele.NotFound, Err: stele.Messagef("dns.parent-zone-unknown", "no name server knows a zone above {zone}", zone)}
}

// parentSays asks the parent's servers for records of the zone, until one answers.
func (d *Delegations) parentSays(ctx context.Context, parent, zone string, kind uint16) (*dns.Msg, error) {
	reply, err := d.resolve(ctx, parent, dns.TypeNS)
	if err != nil {
		return nil, err
	}
	failed := stele.Messagef("dns.parent-without-name-servers", "{parent} has no name servers", parent)
	for _, rr := range reply.Answer[:min(len(reply.Answer), maxZoneServers)] {
		ns, ok := rr.(*dns.NS)
		if !ok {
			continue
		}
		name := dns.CanonicalName(ns.Ns)
		list := glue(reply, name)
		if len(list) == 0 {
			list = d.addresses(ctx, name)
		}
		for _, addr := range list[:min(len(list), maxZoneAddresses)] {
			answer, err := d.exchange(ctx, d.at(addr), "udp", zone, kind, false)
			if err == nil && (answer.Rcode == dns.RcodeSuccess || answer.Rcode == dns.RcodeNameError) {
				return answer, nil
			}
			failed = stele.Messagef("dns.name-server-failed", "{server} at {address}: {cause}", name, addr, cmp.Or(err, error(rcodeError(answer))))
		}
	}
	return nil, &stele.Error{Op: "ask the zone above", Kind: stele.Unavailable, Err: failed}
}

// zoneServer asks a server for the zone, over UDP and over TCP, which both have to
// work (RFC 7766, section 5).
func (d *Delegations) zoneServer(ctx context.Context, zone, name string, addr netip.Addr) ZoneServer {
	s := ZoneServer{Name: name, At: d.at(addr)}
	for _, network := range []string{"udp", "tcp"} {
		reply, err := d.exchange(ctx, s.At, network, zone, dns.TypeSOA, false)
		if err == nil && reply.Rcode != dns.RcodeSuccess {
			err = rcodeError(reply)
		}
		if err == nil && !reply.Authoritative {
			err = stele.Messagef("dns.server-not-authoritative", "it does not answer for the zone by itself")
		}
		if err == nil {
			if s.Serial, err = serialOf(reply, zone); err == nil {
				continue
			}
		}
		s.Err = stele.Messagef("dns.transport-failed", "over {transport}: {cause}", strings.ToUpper(network), err)
		return s
	}
	return s
}

// serialOf returns the serial in an answer.
func serialOf(reply *dns.Msg, zone string) (uint32, error) {
	for _, rr := range reply.Answer {
		if soa, ok := rr.(*dns.SOA); ok && dns.CanonicalName(soa.Hdr.Name) == zone {
			return soa.Serial, nil
		}
	}
	return 0, stele.Messagef("dns.answer-without-soa", "the answer has no SOA of the zone")
}

// addresses returns the addresses of a host; none if they can't be found.
func (d *Delegations) addresses(ctx context.Context, name string) (list []netip.Addr) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		if reply, err := d.resolve(ctx, name, kind); err == nil {
			list = append(list, addressesIn(reply.Answer)...)
		}
	}
	return list
}

// glue returns the addresses of a host that an answer brings along.
func glue(reply *dns.Msg, name string) []netip.Addr {
	return addressesIn(slices.DeleteFunc(slices.Clone(reply.Extra), func(rr dns.RR) bool { return dns.CanonicalName(rr.Header().Name) != name }))
}

func (d *Delegations) at(addr netip.Addr) netip.AddrPort {
	return netip.AddrPortFrom(addr, cmp.Or(d.Port, dnsPort))
}

// resolve asks one of the servers that answer about the whole DNS. That a name is not
// there is an answer.
func (d *Delegations) resolve(ctx context.Context, name string, kind uint16) (*dns.Msg, error) {
	failed := stele.Messagef("dns.server-missing", "there is no name server to ask")
	for _, server := range d.Servers {
		reply, err := d.exchange(ctx, server, "udp", name, kind, true)
		if err == nil && (reply.Rcode == dns.RcodeSuccess || reply.Rcode == dns.RcodeNameError) {
			return reply, nil
		}
		failed = stele.Messagef("dns.question-failed", "{server}, asked for {name} {type}: {cause}", server, name, dns.TypeToString[kind], cmp.Or(err, error(rcodeError(reply))))
	}
	return nil, &stele.Error{Op: "ask the DNS", Kind: stele.Unavailable, Err: failed}
}

// exchange asks a server. What does not fit into a datagram is asked again over TCP.
func (d *Delegations) exchange(ctx context.Context, server netip.AddrPort, network, name string, kind uint16, recursive bool) (*dns.Msg, error) {
	q := new(dns.Msg).SetQuestion(name, kind)
	q.RecursionDesired = recursive
	q.SetEdns0(1232, false)
	for {
		c := &dns.Client{Net: network, Timeout: cmp.Or(d.Timeout, 3*time.Second), UDPSize: 1232}
		reply, err := d.send(ctx, c, q, server.String(), recursive)
		if err == nil && reply.Truncated && network == "udp" {
			network = "tcp"
			continue
		}
		return reply, err
	}
}

// send sends a question by the way that the server may be asked.
func (d *Delegations) send(ctx context.Context, c *dns.Client, q *dns.Msg, server string, recursive bool) (*dns.Msg, error) {
	if d.Dial == nil || recursive {
		reply, _, err := c.ExchangeContext(ctx, q, server)
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	conn, err := d.Dial(ctx, c.Net, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, _, err := c.ExchangeWithConnContext(ctx, q, &dns.Conn{Conn: conn, UDPSize: c.UDPSize})
	return reply, err
}

// rcodeError is the error of a response code.
func rcodeError(reply *dns.Msg) error {
	if reply == nil {
		return nil
	}
	return stele.Messagef("dns.answers-rcode", "it answers {rcode}", cmp.Or(dns.RcodeToString[reply.Rcode], "code "+strconv.Itoa(reply.Rcode)))
}
