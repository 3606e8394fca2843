package dnsd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/publishtest"
)

// proxyHeader is what a proxy sends in front of a message: the command, the family, and
// what follows.
func proxyHeader(command, family byte, body []byte) []byte {
	b := append(append([]byte(nil), proxySignature...), command, family)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(body))), body...)
}

// addresses4 and addresses6 are those of a client and of us, with ports.
var (
	addresses4 = []byte{198, 51, 100, 7, 127, 0, 0, 1, 4, 0, 0, 53}
	addresses6 = append(append(append([]byte(nil), netip.MustParseAddr("2001:db8::7").AsSlice()...), netip.MustParseAddr("::1").AsSlice()...), 4, 0, 0, 53)
)

func TestProxyHeaders(t *testing.T) {
	proxy := netip.MustParseAddr("127.0.0.1")
	for about, test := range map[string]struct {
		header []byte
		want   string // "" if the header is refused
	}{
		"IPv4":                   {proxyHeader(proxyFor, 0x12, addresses4), "198.51.100.7"},
		"IPv4 over TCP":          {proxyHeader(proxyFor, 0x11, addresses4), "198.51.100.7"},
		"with more behind it":    {proxyHeader(proxyFor, 0x12, append(addresses4[:12:12], 3, 0, 1, 'x')), "198.51.100.7"},
		"IPv6":                   {proxyHeader(proxyFor, 0x22, addresses6), "2001:db8::7"},
		"for itself":             {proxyHeader(proxyLocal, 0, nil), "127.0.0.1"},
		"for itself, with more":  {proxyHeader(proxyLocal, 0x12, addresses4), "127.0.0.1"},
		"for an unknown client":  {proxyHeader(proxyFor, 0, nil), "127.0.0.1"},
		"too short":              {proxyHeader(proxyFor, 0x12, addresses4[:11]), ""},
		"IPv6, too short":        {proxyHeader(proxyFor, 0x22, addresses6[:35]), ""},
		"over a Unix socket":     {proxyHeader(proxyFor, 0x31, make([]byte, 216)), ""},
		"version 1":              {[]byte("PROXY TCP4 198.51.100.7 127.0.0.1 1024 53\r\n"), ""},
		"another version":        {proxyHeader(0x11, 0x12, addresses4), ""},
		"another command":        {proxyHeader(0x22, 0x12, addresses4), ""},
		"too long":               {proxyHeader(proxyFor, 0x12, make([]byte, maxProxyBody+1)), ""},
		"nothing":                {nil, ""},
		"a question":             {make([]byte, 40), ""},
		"without what it counts": {proxyHeader(proxyFor, 0x12, addresses4)[:20], ""},
	} {
		rest, from, err := cutProxied(append(test.header[:len(test.header):len(test.header)], "rest"...), proxy)
		if about == "without what it counts" {
			rest, from, err = cutProxied(test.header, proxy)
		}
		if got := from.String(); (err == nil) != (test.want != "") || err == nil && (got != test.want || string(rest) != "rest") {
			t.Errorf("%s, in a datagram: %s, %q, %v", about, got, rest, err)
		}
		r := bytes.NewReader(append(test.header[:len(test.header):len(test.header)], "rest"...))
		if about == "without what it counts" {
			r = bytes.NewReader(test.header)
		}
		from, err = readProxied(r, proxy)
		left, _ := io.ReadAll(r)
		if got := from.String(); (err == nil) != (test.want != "") || err == nil && (got != test.want || string(left) != "rest") {
			t.Errorf("%s, on a connection: %s, %q, %v", about, got, left, err)
		}
	}
}

// FuzzProxied checks that both ways of reading a header agree, whatever comes.
func FuzzProxied(f *testing.F) {
	for _, seed := range [][]byte{
		proxyHeader(proxyFor, 0x12, addresses4), proxyHeader(proxyFor, 0x22, addresses6), proxyHeader(proxyLocal, 0, nil),
		proxyHeader(proxyFor, 0x31, make([]byte, 216)), []byte("PROXY UNKNOWN\r\n"), nil,
	} {
		f.Add(append(seed, "rest"...))
	}
	proxy := netip.MustParseAddr("192.0.2.1")
	f.Fuzz(func(t *testing.T, msg []byte) {
		rest, from, err := cutProxied(msg, proxy)
		r := bytes.NewReader(msg)
		again, e := readProxied(r, proxy)
		if (err == nil) != (e == nil) {
			t.Fatalf("%v, and %v", err, e)
		}
		if err != nil {
			return
		}
		if left, _ := io.ReadAll(r); from != again || !bytes.Equal(rest, left) {
			t.Fatalf("%s and %q, or %s and %q", from, rest, again, left)
		}
	})
}

// TestProxiedClients checks that the server tells apart the clients of a proxy: one that is
// over its limit does not silence the others. It does not answer a proxy that does not name
// its client.
func TestProxiedClients(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	s := serve(p, Options{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, TCP: TCPLimits{PerClient: 2}})
	wire, err := question("paradisec.example.", dns.TypeSOA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	dial := func(network string, header []byte) net.Conn {
		c, err := net.Dial(network, s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		msg := append([]byte(nil), header...)
		if network == "tcp" {
			msg = binary.BigEndian.AppendUint16(msg, uint16(len(wire)))
		}
		if _, err := c.Write(append(msg, wire...)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn) bool {
		r, err := (&dns.Conn{Conn: c}).ReadMsg()
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		return err == nil && r.Rcode == dns.RcodeSuccess && len(r.Answer) == 1
	}
	client := func(n byte) []byte {
		body := append([]byte(nil), addresses4...)
		body[3] = n
		return proxyHeader(proxyFor, 0x11, body)
	}
	for n := range byte(5) { // twice each, which is the most for one client
		for range 2 {
			if !answered(dial("tcp", client(n))) {
				t.Errorf("client %d gets nothing", n)
			}
		}
	}
	if answered(dial("tcp", client(0))) {
		t.Error("a client has more connections than one may have")
	}
	if answered(dial("tcp", nil)) {
		t.Error("a connection without a header is answered")
	}
	if !answered(dial("udp", client(0))) {
		t.Error("a datagram is not answered")
	}
	silent := dial("udp", nil)
	if !answered(dial("udp", client(1))) {
		t.Error("a datagram is not answered")
	}
	// The other one came before that, but perhaps to another socket.
	if err := silent.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if answered(silent) {
		t.Error("a datagram without a header is answered")
	}
}
