package httpd

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// from is a connection from an address, to nowhere.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func (c from) Close() error { return nil }

// Whatever connections come, go and wait, the counts are right and the bounds hold.
func TestConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, each := rapid.IntRange(1, 20).Draw(t, "most"), rapid.IntRange(0, 5).Draw(t, "each")
		c := newConnections(most, each)
		var made []*connection
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				ip := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"}).Draw(t, "ip")
				if n := c.admit(from{addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}); n != nil {
					made = append(made, n)
				} else if len(c.open) < most && each == 0 {
					t.Fatalf("refused, with %d of %d", len(c.open), most)
				}
			},
			"change": func(t *rapid.T) {
				if len(made) > 0 {
					c.changed(rapid.SampledFrom(made).Draw(t, "which"), rapid.SampledFrom([]http.ConnState{http.StateActive, http.StateIdle}).Draw(t, "state"))
				}
			},
			"go": func(t *rapid.T) {
				if len(made) > 0 {
					_ = rapid.SampledFrom(made).Draw(t, "which").Close() // perhaps not for the first time
				}
			},
			"": func(t *rapid.T) {
				byClient := map[netip.Prefix]int{}
				for i, n := range c.open {
					if n.place != i {
						t.Fatalf("number %d believes to be number %d", i, n.place)
					}
					byClient[n.client]++
				}
				for client, n := range byClient {
					if c.byClient[client] != n || each > 0 && n > each {
						t.Fatalf("%s has %d connections, and %d in the books", client, n, c.byClient[client])
					}
				}
				if len(c.byClient) != len(byClient) || len(c.open) > most {
					t.Fatalf("%d connections of %d clients, and %d in the books", len(c.open), len(byClient), len(c.byClient))
				}
			},
		})
	})
}

// The connection that waits longest is closed, and never one that is being answered.
func TestIdlest(t *testing.T) {
	c := newConnections(3, 0)
	var made []*connection
	for range 3 {
		made = append(made, c.admit(from{}))
	}
	c.changed(made[0], http.StateActive)
	c.changed(made[1], http.StateActive)
	c.changed(made[1], http.StateIdle)
	for _, gone := range []int{2, 1} {
		made = append(made, c.admit(from{}))
		c.changed(made[len(made)-1], http.StateActive)
		if slices.Contains(c.open, made[gone]) {
			t.Errorf("number %d is still there", gone)
		}
	}
	if c.admit(from{}) != nil {
		t.Error("one was let in though all are being answered")
	}
}

func TestClients(t *testing.T) {
	for text, want := range map[string]string{"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32", "[2001:db8::1]:80": "2001:db8::/64"} {
		if got := clientOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))); got.String() != want {
			t.Errorf("%s is %s", text, got)
		}
	}
	if got := clientOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a Unix socket is %s", got)
	}
}

// With TLS around them connections are bounded all the same.
func TestBoundedTLS(t *testing.T) {
	lent := httptest.NewTLSServer(nil)
	defer lent.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }), ServerOptions{Connections: 1})
	s.TLSConfig = &tls.Config{Certificates: lent.TLS.Certificates}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(l) }()
	trust := lent.Client().Transport.(*http.Transport).TLSClientConfig
	for range 3 {
		transport := &http.Transport{TLSClientConfig: trust.Clone()}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		eventually(t, func() bool { // until it waits for the next request
			s.connections.mu.Lock()
			defer s.connections.mu.Unlock()
			return len(s.connections.open) == 1 && s.connections.open[0].since.Load() > 0
		})
	}
	_ = s.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestFresh: a connection is fresh until it has sent a whole head, or is gone.
func TestFresh(t *testing.T) {
	s := NewServer(http.NotFoundHandler(), ServerOptions{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	await := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); s.Fresh() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections are fresh, want %d", s.Fresh(), want)
			}
		}
	}
	var list []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		list = append(list, conn)
	}
	await(3)
	for _, half := range []string{"GET / HTTP/1.1\r\nHo", "st: x\r\n\r\n"} {
		if _, err := io.WriteString(list[0], half); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(half, "GET") && s.Fresh() != 3 {
			t.Errorf("half a head: %d are fresh", s.Fresh())
		}
	}
	await(2)
	list[1].Close()
	await(1)
	if _, err := io.WriteString(list[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(list[2], "nonsense\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await(0)
}
