package dnsd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/stele-id/stele"
)

// listen starts a server on real sockets.
func listen(t testing.TB, addr string, o Options) (*Server, *memory) {
	t.Helper()
	from := newMemory(t)
	o.Now = time.Now
	if o.CacheBytes == 0 {
		o.CacheBytes = 1 << 20
	}
	s := newServer(o, from)
	if err := s.Listen(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, from
}

const waitForIt = time.Minute // for what comes at once on loopback, on a busy machine

func exchange(t testing.TB, network string, at netip.AddrPort, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: waitForIt}
	r, _, err := c.Exchange(m, at.String())
	if err != nil {
		t.Fatalf("%s: %v", network, err)
	}
	return r
}

func TestServer(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		s, from := listen(t, addr, Options{Sockets: 3})
		for _, network := range []string{"udp", "tcp"} {
			r := exchange(t, network, s.Addr(), question("A.001.ab1.paradisec.EXAMPLE.", dns.TypeNAPTR))
			if got := brief(r); got != "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR" || r.Question[0].Name != "A.001.ab1.paradisec.EXAMPLE." {
				t.Errorf("%s: %v", network, r)
			}
			name := fmt.Sprintf("new.%s.paradisec.example.", network)
			if got := brief(exchange(t, network, s.Addr(), question(name, dns.TypeTXT))); got != "NXDOMAIN aa authority:SOA" {
				t.Error(got)
			}
			from.change(t, name, name+" 60 TXT x")
			if got := brief(exchange(t, network, s.Addr(), question(name, dns.TypeTXT))); got != "NOERROR aa answer:TXT" {
				t.Error(got)
			}
		}
		if got := brief(exchange(t, "udp", s.Addr(), question("large.paradisec.example.", dns.TypeTXT))); got != "NOERROR aa tc" {
			t.Error(got)
		}
		if got := brief(exchange(t, "tcp", s.Addr(), question("large.paradisec.example.", dns.TypeTXT))); got != "NOERROR aa answer:TXT" {
			t.Error(got)
		}
		st := s.Stats()
		if st.UDP != 4 || st.TCP != 4 || st.Truncated != 1 || st.Rcodes["NOERROR"] != 6 || st.Rcodes["NXDOMAIN"] != 2 || st.Hits == 0 || st.Hits+st.Misses != 8 {
			t.Errorf("%+v", st)
		}
	}
}

// TestManyAtOnce asks from many sockets, so that all of the server's have to do.
func TestManyAtOnce(t *testing.T) {
	s, from := listen(t, "127.0.0.1:0", Options{Sockets: 4})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			c := dns.Client{Timeout: waitForIt}
			conn, err := c.Dial(s.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for i := range 200 {
				q := question(fmt.Sprintf("x%d.paradisec.example.", i%50), dns.TypeTXT)
				want := "NXDOMAIN aa authority:SOA"
				if i%2 == 0 {
					q, want = question("a.001.ab1.paradisec.example.", dns.TypeURI), "NOERROR aa answer:URI"
				}
				r, _, err := c.ExchangeWithConn(q, conn)
				if err != nil || brief(r) != want {
					t.Errorf("%d, %d: %v %v", g, i, err, r)
					return
				}
				if g == 0 && i%20 == 0 {
					from.change(t, "changing.paradisec.example.", `changing.paradisec.example. 60 TXT "x"`)
				}
			}
		})
	}
	all.Wait()
}

// dial opens a TCP connection.
func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(waitForIt))
	return c
}

// framed is a message as it is sent over TCP.
func framed(t *testing.T, m *dns.Msg) []byte {
	t.Helper()
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)
}

// receive reads the next answer.
func receive(t *testing.T, c net.Conn) *dns.Msg {
	t.Helper()
	r, err := (&dns.Conn{Conn: c}).ReadMsg()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// isCut waits for the server to close a connection.
func isCut(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) {
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			t.Errorf("the connection is still open after %d bytes", n)
		}
	}
}

func TestPipelining(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{})
	c := dial(t, s)
	var all []byte
	const n = 300
	for i := range n {
		m := question("large.paradisec.example.", dns.TypeTXT)
		m.Id = uint16(i)
		all = append(all, framed(t, m)...)
	}
	go c.Write(all) // more than fits into the buffers on the way
	for range n {
		if r := receive(t, c); int(r.Id) >= n || len(r.Answer) != 1 {
			t.Fatalf("%v", r)
		}
	}
	if st := s.Stats(); st.TCP != n || st.Connections != 1 {
		t.Errorf("%+v", st)
	}
}

func TestPieces(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{})
	c := dial(t, s)
	m := question("paradisec.example.", dns.TypeSOA)
	for _, b := range framed(t, m) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if r := receive(t, c); r.Id != m.Id {
		t.Errorf("%v", r)
	}
}

func TestBadStreams(t *testing.T) {
	limits := TCPLimits{Idle: 300 * time.Millisecond, Message: 300 * time.Millisecond}
	s, _ := listen(t, "127.0.0.1:0", Options{TCP: limits})
	good := framed(t, question("paradisec.example.", dns.TypeSOA))
	answer := question("paradisec.example.", dns.TypeSOA)
	answer.Response = true
	for what, bytes := range map[string][]byte{
		"nothing":         nil,
		"half a length":   {0},
		"half a message":  good[:20],
		"length 0":        {0, 0},
		"length 11":       append([]byte{0, 11}, make([]byte, 11)...),
		"an answer":       framed(t, answer),
		"HTTP":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"65535 bytes":     append([]byte{255, 255}, make([]byte, 1000)...),
		"good, then none": good,
	} {
		t.Run(what, func(t *testing.T) {
			c := dial(t, s)
			if _, err := c.Write(bytes); err != nil {
				t.Fatal(err)
			}
			isCut(t, c)
		})
	}
	// The largest message there is: no question begins it.
	c := dial(t, s)
	go c.Write(append([]byte{255, 255}, make([]byte, 65535)...))
	if r := receive(t, c); r.Rcode != dns.RcodeFormatError {
		t.Errorf("%v", r)
	}
}

// TestClientThatDoesNotRead asks and asks, and never takes an answer.
func TestClientThatDoesNotRead(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{TCP: TCPLimits{Message: 200 * time.Millisecond}})
	c := dial(t, s)
	ask := framed(t, question("large.paradisec.example.", dns.TypeTXT))
	for { // until it is cut off
		if _, err := c.Write(ask); err != nil {
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				t.Error("the connection is still open")
			}
			return
		}
	}
}

func TestConnectionLimits(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{TCP: TCPLimits{Connections: 8, PerClient: 3}})
	ask := framed(t, question("paradisec.example.", dns.TypeSOA))
	for range 3 {
		c := dial(t, s)
		c.Write(ask)
		receive(t, c)
	}
	isCut(t, dial(t, s))
	if st := s.Stats(); st.Refused != 1 || st.Connections != 3 {
		t.Errorf("%+v", st)
	}
}

// closing is a connection that only notes that it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error                    { c.closed = true; return nil }
func (c *closing) SetReadDeadline(time.Time) error { return nil }

func TestClients(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newClients(TCPLimits{Connections: 4, PerClient: 2, Idle: time.Minute, Message: 5 * time.Second}, func() time.Time { return now })
	var places []*place
	admit := func(from string) bool {
		now = now.Add(time.Millisecond)
		p := c.admit(new(closing), netip.MustParseAddr(from))
		places = append(places, p)
		if p != nil {
			p.asks(now)
		}
		return p != nil
	}
	for _, step := range []struct {
		from string
		want bool
	}{{"2001:db8::1", true}, {"2001:db8::2", true}, {"2001:db8::3", false}, {"2001:db8:0:1::1", true}, {"192.0.2.1", true}} {
		if got := admit(step.from); got != step.want {
			t.Errorf("%s: %v", step.from, got)
		}
	}
	if c.idle() != time.Second {
		t.Errorf("may be idle for %v though it is full", c.idle())
	}
	c.leave(places[0])
	c.leave(places[3])
	if !admit("2001:db8::9") || c.idle() != time.Minute {
		t.Error("no place after one has left")
	}
	c.stop()
	if admit("192.0.2.7") {
		t.Error("admitted after the end")
	}
}

// TestFairPlaces has twelve clients take all places, and others come after them.
func TestFairPlaces(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newClients(TCPLimits{Connections: 60, PerClient: 5, Idle: time.Minute, Message: 5 * time.Second}, func() time.Time { return now })
	admit := func(from string) *place {
		now = now.Add(time.Millisecond)
		p := c.admit(new(closing), netip.MustParseAddr(from))
		if p != nil {
			p.asks(now)
		}
		return p
	}
	var greedy [12][]*place
	for i := range 12 {
		for range 5 {
			greedy[i] = append(greedy[i], admit(fmt.Sprintf("192.0.2.%d", i+1)))
		}
	}
	greedy[3][2].rests()
	// The one that waits is closed first of its client's, and after that the oldest.
	var others []*place
	for i := range 40 {
		p := admit(fmt.Sprintf("198.51.100.%d", i+1))
		if p == nil {
			t.Fatalf("client %d of others is not admitted", i)
		}
		others = append(others, p)
	}
	left := func(list []*place) (n int) {
		for _, p := range list {
			if !p.conn.(*closing).closed {
				n++
			}
		}
		return n
	}
	for i, list := range greedy {
		if n := left(list); n < 1 || n > 2 {
			t.Errorf("the client %d has %d connections left", i, n)
		}
	}
	if !greedy[3][2].conn.(*closing).closed || !greedy[0][0].conn.(*closing).closed || greedy[0][4].conn.(*closing).closed {
		t.Error("the wrong ones were closed")
	}
	if n := left(others); n != 40 || c.count.Load() != 60 || c.replaced.Load() != 40 {
		t.Errorf("%d of the others, %d of all, %d replaced", n, c.count.Load(), c.replaced.Load())
	}
	// A client that has its share takes the place of its own.
	for range 6 {
		admit("203.0.113.1")
	}
	if n := left(others); n != 40 {
		t.Errorf("%d of the others are left", n)
	}
	// With one connection each, what is at work is left alone, and what waits is not.
	one := newClients(TCPLimits{Connections: 2, PerClient: 5, Message: 5 * time.Second}, func() time.Time { return now })
	first, second := one.admit(new(closing), netip.MustParseAddr("192.0.2.1")), one.admit(new(closing), netip.MustParseAddr("192.0.2.2"))
	first.asks(now)
	second.asks(now)
	if one.admit(new(closing), netip.MustParseAddr("192.0.2.3")) != nil {
		t.Error("a connection that is at work was closed")
	}
	second.rests()
	if one.admit(new(closing), netip.MustParseAddr("192.0.2.3")) == nil || first.conn.(*closing).closed {
		t.Error("one that waits did not make room")
	}
}

// TestStarvedServer has twelve addresses take all places of a server, and another one ask.
func TestStarvedServer(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{TCP: TCPLimits{Connections: 24, PerClient: 2, Idle: time.Minute}})
	ask := framed(t, question("paradisec.example.", dns.TypeSOA))
	dialFrom := func(addr string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
		c, err := d.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(waitForIt))
		c.Write(ask)
		receive(t, c)
		return c
	}
	for i := range 24 {
		dialFrom(fmt.Sprintf("127.0.1.%d", i/2+1))
	}
	for i := range 5 {
		c := dialFrom(fmt.Sprintf("127.0.2.%d", i+1))
		c.Write(ask)
		receive(t, c)
	}
	if st := s.Stats(); st.Refused != 0 || st.Replaced != 5 {
		t.Errorf("%d refused, %d replaced", st.Refused, st.Replaced)
	}
}

func TestShutdown(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Sockets: 2}, newMemory(t))
	if s.Addr().IsValid() {
		t.Error("an address before there is one")
	}
	if err := s.Listen(context.Background(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	exchange(t, "udp", s.Addr(), question("paradisec.example.", dns.TypeSOA))
	idle := dial(t, s)
	idle.Write(framed(t, question("paradisec.example.", dns.TypeSOA)))
	receive(t, idle)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	isCut(t, idle)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.Listen(context.Background(), "127.0.0.1:0"); !errors.Is(err, stele.Unavailable) {
		t.Errorf("after the end it listens again: %v", err)
	}
	if c, err := net.Dial("tcp", s.Addr().String()); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

func TestEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Sockets: 2}, newMemory(t))
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Listen(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	cancel()
	isCut(t, c)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// slow is a source that answers when the test lets it.
type slow struct {
	*memory
	asked, answer chan struct{}
}

func (s *slow) find(ctx context.Context, name string) (authority, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case <-s.answer:
		return s.memory.find(ctx, name)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestShutdownWaits ends a server while it works out an answer.
func TestShutdownWaits(t *testing.T) {
	for _, waits := range []bool{true, false} {
		from := &slow{newMemory(t), make(chan struct{}, 1), make(chan struct{})}
		s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Sockets: 1, LookupTimeout: time.Hour}, from)
		if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		c := dial(t, s)
		c.Write(framed(t, question("paradisec.example.", dns.TypeSOA)))
		<-from.asked
		ctx, cancel := context.WithCancel(context.Background())
		if waits {
			close(from.answer)
		} else {
			cancel()
		}
		if err := s.Shutdown(ctx); waits != (err == nil) {
			t.Errorf("waits %v: %v", waits, err)
		}
		if waits {
			if r := receive(t, c); len(r.Answer) != 1 {
				t.Errorf("%v", r)
			}
		}
		cancel()
		s.Shutdown(context.Background())
	}
}

// TestKnownAnswersDoNotWait asks for what is known while others wait for the registry.
func TestKnownAnswersDoNotWait(t *testing.T) {
	from := &slow{newMemory(t), make(chan struct{}, 1), make(chan struct{}, 1)}
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Sockets: 1, Lookups: 2, LookupTimeout: time.Hour}, from)
	defer s.Shutdown(context.Background())
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	known := question("ns1.paradisec.example.", dns.TypeA)
	from.answer <- struct{}{}
	exchange(t, "udp", s.Addr(), known)
	<-from.asked
	waits := make(chan *dns.Msg)
	go func() {
		c := dns.Client{Timeout: waitForIt}
		r, _, _ := c.Exchange(question("www.paradisec.example.", dns.TypeA), s.Addr().String())
		waits <- r
	}()
	<-from.asked // the other question is being looked up
	if got := brief(exchange(t, "udp", s.Addr(), known)); got != "NOERROR aa answer:A" {
		t.Error(got)
	}
	from.answer <- struct{}{}
	if got := brief(<-waits); got != "NOERROR aa answer:A" {
		t.Error(got)
	}
}

// TestQueueIsBounded fills the queue: what has no place in it is dropped.
func TestQueueIsBounded(t *testing.T) {
	from := &slow{newMemory(t), make(chan struct{}, 1), make(chan struct{})}
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, Sockets: 1, Lookups: 1, LookupTimeout: time.Hour}, from)
	defer s.Shutdown(context.Background())
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := 0; s.Stats().Dropped == 0; i++ {
		wire, err := question(fmt.Sprintf("x%d.paradisec.example.", i), dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		c.Write(wire)
		if i > 100_000 {
			t.Fatal("nothing is dropped")
		}
	}
	close(from.answer)
}

func TestListenErrors(t *testing.T) {
	s, _ := listen(t, "127.0.0.1:0", Options{})
	other := newServer(Options{Now: time.Now, CacheBytes: 1}, newMemory(t))
	defer other.Shutdown(context.Background())
	for _, addr := range []string{s.Addr().String(), "nonsense", "127.0.0.1:99999", "192.0.2.1:0"} {
		if err := other.Listen(t.Context(), addr); !errors.Is(err, stele.Unavailable) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
