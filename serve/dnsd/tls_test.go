package dnsd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/stele-id/stele"
)

// testTLS returns TLS of a server, with a certificate for example.com, and of a client
// that believes it.
func testTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.StartTLS() // it has a certificate of its own
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	cert := s.TLS.Certificates[0]
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }, NextProtos: []string{"h2"}},
		&tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"dot"}}
}

// listenTLS opens a server for TLS too.
func listenTLS(t testing.TB, o Options) (*Server, *tls.Config) {
	t.Helper()
	s, _ := listen(t, "127.0.0.1:0", o)
	config, client := testTLS(t)
	if err := s.ListenTLS(t.Context(), "127.0.0.1:0", config); err != nil {
		t.Fatal(err)
	}
	return s, client
}

func dialTLS(t *testing.T, s *Server, config *tls.Config) *tls.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.AddrTLS().String())
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(c, config)
	t.Cleanup(func() { secure.Close() })
	if err := secure.SetDeadline(time.Now().Add(waitForIt)); err != nil {
		t.Fatal(err)
	}
	return secure
}

// paddedQuestion is a question that asks for padding, and how long a connection may be
// idle.
func paddedQuestion(name string, qtype uint16, padding int) *dns.Msg {
	m := question(name, qtype).SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}, &dns.EDNS0_PADDING{Padding: make([]byte, padding)}}
	return m
}

// optionsOf returns the options of an answer by their codes.
func optionsOf(m *dns.Msg) (codes []uint16) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			codes = append(codes, o.Option())
		}
	}
	return codes
}

func TestTLS(t *testing.T) {
	s, client := listenTLS(t, Options{})
	c := dialTLS(t, s, client)
	for i, q := range []*dns.Msg{ // one after the other on one connection
		question("A.001.ab1.paradisec.example.", dns.TypeNAPTR),
		paddedQuestion("a.001.ab1.paradisec.example.", dns.TypeNAPTR, 0),
		paddedQuestion("none.paradisec.example.", dns.TypeNAPTR, 40),
		paddedQuestion("large.paradisec.example.", dns.TypeTXT, 7),
		question("paradisec.example.", dns.TypeAXFR),
	} {
		if _, err := c.Write(framed(t, q)); err != nil {
			t.Fatal(err)
		}
		r := receive(t, c)
		if r.Id != q.Id || r.Truncated {
			t.Fatalf("%v", r)
		}
		padded := slices.Equal(optionsOf(r), []uint16{dns.EDNS0TCPKEEPALIVE, dns.EDNS0PADDING})
		if q.IsEdns0() != nil != padded {
			t.Errorf("%d: options %v", i, optionsOf(r))
		}
		if r.Compress = true; padded {
			if wire, err := r.Pack(); err != nil || len(wire)%padTo != 0 {
				t.Errorf("%d: %d bytes, %v", i, len(wire), err)
			}
		}
	}
	if st := s.Stats(); st.TLS != 5 || st.TCP != 0 || st.UDP != 0 || st.Connections != 1 {
		t.Errorf("%+v", st)
	}
	if got := c.ConnectionState().NegotiatedProtocol; got != "dot" {
		t.Errorf("they speak %q", got)
	}
	plain := dial(t, s)
	if _, err := plain.Write(framed(t, paddedQuestion("a.001.ab1.paradisec.example.", dns.TypeNAPTR, 20))); err != nil {
		t.Fatal(err)
	}
	if got := optionsOf(receive(t, plain)); slices.Contains(got, dns.EDNS0PADDING) {
		t.Errorf("in clear, where all can be read, there is padding: %v", got)
	}
}

// TestTLSStrangers checks that the server soon cuts off a client that does not speak TLS,
// or speaks another protocol in it.
func TestTLSStrangers(t *testing.T) {
	s, client := listenTLS(t, Options{TCP: TCPLimits{Message: 300 * time.Millisecond, Idle: 300 * time.Millisecond}})
	for about, send := range map[string][]byte{"nothing": nil, "the DNS in clear": framed(t, question("paradisec.example.", dns.TypeSOA)), "HTTP": []byte("GET / HTTP/1.1\r\n\r\n")} {
		t.Run(about, func(t *testing.T) {
			c, err := net.Dial("tcp", s.AddrTLS().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(waitForIt)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(send); err != nil {
				t.Fatal(err)
			}
			isCut(t, c)
		})
	}
	for about, change := range map[string]func(c *tls.Config){
		"TLS 1.1":          func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"another protocol": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		config := client.Clone()
		change(config)
		if err := dialTLS(t, s, config).Handshake(); err == nil {
			t.Errorf("%s is spoken", about)
		}
	}
	idle := dialTLS(t, s, client)
	if err := idle.Handshake(); err != nil {
		t.Fatal(err)
	}
	isCut(t, idle.NetConn())
}

// TestTLSLimits: connections of both kinds count together.
func TestTLSLimits(t *testing.T) {
	s, client := listenTLS(t, Options{TCP: TCPLimits{Connections: 8, PerClient: 3}})
	for range 2 {
		if err := dialTLS(t, s, client).Handshake(); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, s)
	if _, err := c.Write(framed(t, question("paradisec.example.", dns.TypeSOA))); err != nil {
		t.Fatal(err)
	}
	receive(t, c)
	isCut(t, dialTLS(t, s, client).NetConn())
	isCut(t, dial(t, s))
	if st := s.Stats(); st.Refused != 2 || st.Connections != 3 {
		t.Errorf("%+v", st)
	}
}

func TestTLSShutdown(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	config, client := testTLS(t)
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20}, newMemory(t))
	if err := s.ListenTLS(context.Background(), "127.0.0.1:0", config); err != nil {
		t.Fatal(err)
	}
	if err := s.ListenTLS(context.Background(), s.AddrTLS().String(), config); !errors.Is(err, stele.Unavailable) {
		t.Errorf("an address that is taken: %v", err)
	}
	begun, half := dialTLS(t, s, client), dialTLS(t, s, client).NetConn() // one of them has not said anything
	if _, err := begun.Write(framed(t, question("paradisec.example.", dns.TypeSOA))); err != nil {
		t.Fatal(err)
	}
	receive(t, begun)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	isCut(t, begun)
	isCut(t, half)
	if err := s.ListenTLS(context.Background(), "127.0.0.1:0", config); !errors.Is(err, stele.Unavailable) {
		t.Errorf("after the end it listens again: %v", err)
	}
	if (&Server{}).AddrTLS() != (netip.AddrPort{}) {
		t.Error("an address without a socket")
	}
}

// TestPaddingSizes: whatever an answer's length, with padding it is a multiple, or all
// that there is room for.
func TestPaddingSizes(t *testing.T) {
	w := &worker{private: true}
	w.q.padded = true
	for n := 0; n <= maxMessage+10; n++ {
		size := w.paddingSize(n)
		if size == 0 && n+4 <= maxMessage || size != 0 && (size < 4 || n+size > maxMessage || (n+size)%padTo != 0 && n+size != maxMessage) {
			t.Fatalf("%d bytes are padded with %d", n, size)
		}
	}
	for _, w := range []*worker{{}, {private: true}, {q: query{padded: true}}} {
		if got := w.paddingSize(100); got != 0 {
			t.Errorf("%+v: %d", w, got)
		}
	}
}
