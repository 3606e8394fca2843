package outbound

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/stele-id/stele"
)

// Dialer opens connections to addresses that its rule allows.
type Dialer struct {
	Rule    Rule
	Timeout time.Duration // of connecting; 0: that of the context

	// Resolver finds the addresses of names; nil: the system's.
	Resolver *net.Resolver

	// Own returns the addresses of this machine, such as [net.InterfaceAddrs]. The dialer refuses them unless the rule
	// names them: the machine's own services may trust what comes from there. nil: it does not refuse them.
	Own func() ([]net.Addr, error)
}

// DialContext connects to an address as [net.Dialer] does. Each address that a name
// resolves to is judged when the socket is about to connect; the kernel connects to that
// very address. Sockets of this machine (networks unix and unixgram) are for rules that
// allow any address. The error is Forbidden if the rule allows none of the addresses.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: d.Timeout, Resolver: d.Resolver, Control: func(_, address string, _ syscall.RawConn) error { return d.judge(address) }}
	return dialer.DialContext(ctx, network, address)
}

// judge refuses an address, resolved already, that the rule does not allow.
func (d *Dialer) judge(address string) error {
	if d.Rule.Any {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !d.Rule.May(at.Addr()) || d.isOwn(at.Addr()) {
		return refused(address)
	}
	return nil
}

// isOwn reports whether an address is one of this machine that the rule does not name. It is, if that can't be found out.
func (d *Dialer) isOwn(addr netip.Addr) bool {
	if d.Own == nil || d.Rule.names(addr) {
		return false
	}
	list, err := d.Own()
	if err != nil {
		return true
	}
	addr = plain(addr)
	return slices.ContainsFunc(list, func(own net.Addr) bool {
		if n, ok := own.(*net.IPNet); ok {
			a, ok := netip.AddrFromSlice(n.IP)
			return ok && a.Unmap() == addr
		}
		a, err := netip.ParseAddr(own.String())
		return err == nil && plain(a) == addr
	})
}

func refused(address string) error {
	return &stele.Error{Op: "send", Kind: stele.Forbidden, Err: stele.Messagef("outbound.address-not-allowed",
		"{address} is not an address of the public Internet, and the server's settings do not allow it", address)}
}

// Packets is a socket that sends packets to addresses that a rule allows, and receives
// answers.
type Packets struct {
	rule Rule
	conn *net.UDPConn
}

// ListenPackets opens a socket at an address for the networks udp4 or udp6.
func ListenPackets(rule Rule, network string, at netip.AddrPort) (*Packets, error) {
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	return &Packets{rule, conn}, nil
}

// Send sends a packet. The error is Forbidden if the rule does not allow the address.
func (p *Packets) Send(msg []byte, to netip.AddrPort) error {
	if !p.rule.May(to.Addr()) {
		return refused(to.String())
	}
	_, err := p.conn.WriteToUDPAddrPort(msg, to)
	return err
}

// Receive reads the next packet.
func (p *Packets) Receive(b []byte) (n int, from netip.AddrPort, err error) {
	return p.conn.ReadFromUDPAddrPort(b)
}

// Close closes the socket.
func (p *Packets) Close() error { return p.conn.Close() }
