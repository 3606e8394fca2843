package dnsd

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"

	"github.com/stele-id/stele"
)

// Version 2 of the PROXY protocol (HAProxy's proxy-protocol.txt, section 2.2), in which
// dnsdist, HAProxy and others tell the address of the client: in front of the first message
// of a connection, and of each datagram.
const (
	proxyHead    = 16 // the signature, version and command, family, length
	maxProxyBody = 512

	proxyLocal = 0x20 // the proxy asks for itself
	proxyFor   = 0x21
)

var (
	proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")

	errNotProxied = stele.Messagef("dns.proxy-header-missing", "a proxy that dns-proxies names has to tell whom it asks for, in version 2 of the PROXY protocol; have it do so, or do not name it")
)

// proxyBody returns how many bytes follow the first ones of a header.
func proxyBody(head []byte) (int, error) {
	if len(head) < proxyHead || !bytes.HasPrefix(head, proxySignature) || head[12] != proxyLocal && head[12] != proxyFor {
		return 0, errNotProxied
	}
	n := int(binary.BigEndian.Uint16(head[14:]))
	if n > maxProxyBody {
		return 0, errNotProxied
	}
	return n, nil
}

// proxied returns the client that a header names: the proxy itself, if it says so or does
// not know. What follows the addresses, such as the name that a client asked for in TLS, is
// ignored.
func proxied(head, body []byte, proxy netip.Addr) (netip.Addr, error) {
	if head[12] == proxyLocal {
		return proxy, nil
	}
	switch family := head[13] >> 4; {
	case family == 1 && len(body) >= 12:
		return netip.AddrFrom4([4]byte(body)), nil
	case family == 2 && len(body) >= 36:
		return netip.AddrFrom16([16]byte(body)).Unmap(), nil
	case family == 0:
		return proxy, nil
	}
	return netip.Addr{}, errNotProxied
}

// cutProxied takes the header off a datagram that came from a proxy.
func cutProxied(msg []byte, proxy netip.Addr) ([]byte, netip.Addr, error) {
	n, err := proxyBody(msg)
	if err != nil || len(msg) < proxyHead+n {
		return nil, netip.Addr{}, errNotProxied
	}
	from, err := proxied(msg[:proxyHead], msg[proxyHead:proxyHead+n], proxy)
	return msg[proxyHead+n:], from, err
}

// readProxied reads the header from a connection of a proxy, and nothing after it.
func readProxied(r io.Reader, proxy netip.Addr) (netip.Addr, error) {
	var buf [proxyHead + maxProxyBody]byte
	if _, err := io.ReadFull(r, buf[:proxyHead]); err != nil {
		return netip.Addr{}, err
	}
	n, err := proxyBody(buf[:proxyHead])
	if err != nil {
		return netip.Addr{}, err
	}
	body := buf[proxyHead : proxyHead+n]
	if _, err := io.ReadFull(r, body); err != nil {
		return netip.Addr{}, err
	}
	return proxied(buf[:proxyHead], body, proxy)
}

// isProxy reports whether an address is that of a proxy, which tells its client's address.
func (s *Server) isProxy(addr netip.Addr) bool {
	for _, network := range s.o.Proxies {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// sender returns a datagram as its client sent it, and the client's address. The datagram
// is nil if a proxy does not name the client.
func (s *Server) sender(msg []byte, from netip.Addr) ([]byte, netip.Addr) {
	if len(s.o.Proxies) == 0 || !s.isProxy(from) {
		return msg, from
	}
	msg, client, err := cutProxied(msg, from)
	if err != nil {
		s.unproxied.log(s.o.Log, s.o.Now(), "from", from, "err", err)
		return nil, from
	}
	return msg, client
}
