package datagram

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens n sockets at one address. The system spreads clients over them. The address must be one with an IP address and a port
// that other processes do not use for TCP: they could open sockets at it, too.
func Open(ctx context.Context, addr string, n int) ([]*net.UDPConn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if e := raw.Control(func(fd uintptr) { err = setUp(int(fd), at.Addr().IsUnspecified()) }); e != nil {
			return e
		}
		return err
	}}
	var conns []*net.UDPConn
	for range n {
		c, err := lc.ListenPacket(ctx, "udp", addr)
		if err != nil {
			for _, c := range conns {
				c.Close()
			}
			return nil, err
		}
		u := c.(*net.UDPConn)           // what net returns for "udp"
		_ = u.SetReadBuffer(readBuffer) // the system may allow less
		conns = append(conns, u)
	}
	return conns, nil
}

// setUp prepares a socket: it shares its address; if it has them all it is told to which of
// them a request came; and an attacker can't make it believe in a path with a small MTU,
// which would have answers cut into fragments that can be forged (RFC 9715).
func setUp(fd int, all bool) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	level, discover, omit, info := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT, unix.IP_PKTINFO
	if family == unix.AF_INET6 {
		level, discover, omit, info = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT, unix.IPV6_RECVPKTINFO
	}
	_ = unix.SetsockoptInt(fd, level, discover, omit) // an old system does not know it
	if !all {
		return nil
	}
	return unix.SetsockoptInt(fd, level, info, 1)
}
