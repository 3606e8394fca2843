package outbound

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// listener accepts connections at a loopback address and counts them.
func listener(t *testing.T) (addr string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			c.Close()
		}
	}()
	return l.Addr().String(), accepted
}

func TestDialer(t *testing.T) {
	addr, accepted := listener(t)
	_, port, _ := net.SplitHostPort(addr)
	for _, address := range []string{addr, "localhost:" + port, "[::ffff:127.0.0.1]:" + port, "[::1]:" + port, "0.0.0.0:" + port} {
		c, err := (&Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, stele.Forbidden) {
			t.Errorf("%s: %v", address, err)
		}
		if code, _ := stele.CodeOf(err); code != "outbound.address-not-allowed" {
			t.Errorf("%s: the code is %q", address, code)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Fatalf("%d connections to loopback", n)
	}
	allowed, err := ParseRule([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []Rule{allowed, {Any: true}} {
		c, err := (&Dialer{Rule: rule, Timeout: time.Minute}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := (&Dialer{Rule: allowed}).DialContext(t.Context(), "unix", socket); !errors.Is(err, stele.Forbidden) {
		t.Errorf("a socket of this machine: %v", err)
	}
	c, err := (&Dialer{Rule: Rule{Any: true}}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// The machine's own public addresses are refused, unless the operator names them.
func TestOwnAddresses(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("203.0.113.7"), Mask: net.CIDRMask(24, 32)}, &net.IPAddr{IP: net.ParseIP("2001:db8::7")}}, nil
	}
	named, err := ParseRule([]string{"203.0.113.7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dialer  Dialer
		address string
		refused bool
	}{
		{Dialer{Own: own}, "203.0.113.7:80", true},
		{Dialer{Own: own}, "[::ffff:203.0.113.7]:80", true},
		{Dialer{Own: own}, "[64:ff9b::203.0.113.7]:80", true},
		{Dialer{Own: own}, "[2001:db8::7]:80", true},
		{Dialer{Own: own}, "203.0.113.8:80", false},
		{Dialer{Own: own, Rule: named}, "203.0.113.7:80", false},
		{Dialer{}, "203.0.113.7:80", false},
		{Dialer{Own: func() ([]net.Addr, error) { return nil, errors.New("no interfaces") }}, "203.0.113.8:80", true},
	} {
		if err := test.dialer.judge(test.address); errors.Is(err, stele.Forbidden) != test.refused {
			t.Errorf("%s: %v", test.address, err)
		}
	}
}

// rebinding is a resolver whose name is a public address at first, and loopback from the
// second question on.
func rebinding(asked *atomic.Int64) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			buf := make([]byte, 1024)
			for {
				// Over a stream a message has its length before it.
				if _, err := there.Read(buf[:2]); err != nil {
					return
				}
				n, err := there.Read(buf[:binary.BigEndian.Uint16(buf)])
				if err != nil {
					return
				}
				if _, err := there.Write(answer(buf[:n], asked)); err != nil {
					return
				}
			}
		}()
		return here, nil
	}}
}

// answer answers a question of the DNS with an address, if it is for one of IPv4.
func answer(question []byte, asked *atomic.Int64) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5
	b := append([]byte(nil), question[:end]...)
	b[2], b[3] = 0x81, 0x80
	copy(b[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if binary.BigEndian.Uint16(question[end-4:]) == 1 {
		b[7] = 1
		addr := netip.MustParseAddr("127.0.0.1")
		if asked.Add(1) == 1 {
			addr = netip.MustParseAddr("192.0.2.1")
		}
		b = append(b, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		b = append(b, addr.AsSlice()...)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
}

// A name that was public at the first look, and is loopback when the server connects,
// does not go round the rule.
func TestRebinding(t *testing.T) {
	addr, accepted := listener(t)
	_, port, _ := net.SplitHostPort(addr)
	var asked atomic.Int64
	d := &Dialer{Resolver: rebinding(&asked), Timeout: time.Minute}
	looked, err := d.Resolver.LookupNetIP(t.Context(), "ip4", "rebind.example")
	if err != nil || len(looked) != 1 || !d.Rule.May(looked[0]) {
		t.Fatalf("at first it is %v, %v", looked, err)
	}
	if _, err := d.DialContext(t.Context(), "tcp4", net.JoinHostPort("rebind.example", port)); !errors.Is(err, stele.Forbidden) {
		t.Errorf("then: %v", err)
	}
	if asked.Load() < 2 || accepted.Load() != 0 {
		t.Errorf("it was asked for %d times, and %d connections came", asked.Load(), accepted.Load())
	}
}

func TestPackets(t *testing.T) {
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	to := other.LocalAddr().(*net.UDPAddr).AddrPort()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	local := netip.MustParseAddrPort("127.0.0.1:0")
	strict, err := ListenPackets(Rule{}, "udp4", local)
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	if err := strict.Send([]byte("no"), to); !errors.Is(err, stele.Forbidden) {
		t.Errorf("to loopback: %v", err)
	}
	free, err := ListenPackets(Rule{Any: true}, "udp4", local)
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	if err := free.Send([]byte("yes"), to); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	n, from, err := other.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != "yes" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	if _, err := other.WriteToUDPAddrPort([]byte("back"), from); err != nil {
		t.Fatal(err)
	}
	if n, _, err := free.Receive(buf); err != nil || string(buf[:n]) != "back" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}
