package client

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// privateServer is a name server that is asked by TLS and HTTPS only. It keeps the questions
// byte for byte.
type privateServer struct {
	*nameServer
	tls   string // address
	https *httptest.Server

	mu       sync.Mutex
	messages [][]byte
	protos   []string // of HTTP
	conns    atomic.Int64

	// answer, if it is not nil, writes the answer on a connection for TLS, and
	// reports whether the connection goes on.
	answer func(w io.Writer, q *dns.Msg) bool
	// web, if it is not nil, answers by HTTPS.
	web http.HandlerFunc
}

func newPrivateServer(t testing.TB, zone string, cert tls.Certificate) *privateServer {
	t.Helper()
	s := &privateServer{nameServer: newNameServer(t, zone)}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"dot"}})
	if err != nil {
		t.Fatal(err)
	}
	s.tls = l.Addr().String()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { l.Close() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			running.Go(func() {
				defer c.Close()
				s.serve(c)
			})
		}
	})
	s.https = httptest.NewUnstartedServer(s)
	s.https.TLS, s.https.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{cert}}, true
	s.https.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of clients that reject its certificate
	s.https.StartTLS()
	t.Cleanup(s.https.Close)
	return s
}

// keep keeps a message.
func (s *privateServer) keep(message []byte, proto string) *dns.Msg {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages, s.protos = append(s.messages, message), append(s.protos, proto)
	q := new(dns.Msg)
	if q.Unpack(message) != nil {
		return nil
	}
	return q
}

func (s *privateServer) seen() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

func (s *privateServer) serve(c net.Conn) {
	for {
		message, err := readFrame(c)
		if err != nil {
			return
		}
		q := s.keep(message, "")
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		if answer == nil {
			answer = s.reply
		}
		if q == nil || !answer(c, q) {
			return
		}
	}
}

// reply answers correctly.
func (s *privateServer) reply(w io.Writer, q *dns.Msg) bool {
	_, err := w.Write(frame(packed(s.nameServer.answer(q), nil)))
	return err == nil
}

func (s *privateServer) behave(answer func(w io.Writer, q *dns.Msg) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *privateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := s.keep(body, r.Method+" "+r.Proto+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Accept"))
	switch {
	case s.web != nil:
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.web(w, r)
	case q == nil:
		http.Error(w, "no", http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", messageType)
		_, _ = w.Write(packed(s.nameServer.answer(q), nil))
	}
}

// parsed returns name servers.
func parsed(t testing.TB, texts ...string) (list []NameServer) {
	t.Helper()
	for _, text := range texts {
		s, err := ParseServer(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// TestPrivate: by TLS and by HTTPS the answer is the same, the server is checked in the
// way that was asked for, and nothing goes in clear.
func TestPrivate(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	named := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "dns.example.org"))
	numbered := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "127.0.0.1"))
	strange := newPrivateServer(t, paradisecZone, other.server(-time.Hour, "nobody.example")) // known by its key only
	pin := func(s *privateServer) string { return PinOf(s.https.TLS.Certificates[0].Leaf).String() }
	spare := Pin{1}.String()
	for _, tt := range []struct {
		at        *privateServer
		server    string
		transport string
	}{
		{named, "tls://" + named.tls + "#dns.example.org", "tls"},
		{named, "TLS://" + named.tls + "#DNS.Example.org.", "tls"},
		{numbered, "tls://" + numbered.tls, "tls"},
		{strange, "tls://" + strange.tls + "?pin=" + pin(strange), "tls"},
		{strange, "tls://" + strange.tls + "/?pin=" + spare + "&pin=" + pin(strange), "tls"},
		{named, "tls://" + named.tls + "?pin=" + pin(named) + "#dns.example.org", "tls"},
		{numbered, numbered.https.URL + "/dns-query", "https"},
		{numbered, numbered.https.URL, "https"},
		{numbered, numbered.https.URL + "/other{?dns}", "https"},
	} {
		t.Run(tt.server[:min(len(tt.server), 60)], func(t *testing.T) {
			before := len(tt.at.seen())
			d := newDNS(t, DNSOptions{Servers: parsed(t, tt.server), RootCAs: ca.pool})
			defer d.Close()
			res, err := d.Resolve(t.Context(), Request{Name: paradisec, Accept: []ddds.Preference{{Range: "audio/wav", Q: 1000}}, Trace: true})
			if err != nil || res.Location != "https://store.example/ab1/001/a.wav" {
				t.Fatalf("%v, %v\n%s", res.Location, err, res.Trace)
			}
			for _, step := range res.Trace.Steps {
				if q := step.Query; q != nil && (q.Transport != tt.transport || !strings.HasPrefix(q.Server, tt.transport+"://") || strings.Contains(q.Server, "pin")) {
					t.Errorf("%+v", q)
				}
			}
			list := tt.at.seen()[before:]
			if len(list) != 2 || len(tt.at.asked()) != 0 {
				t.Errorf("%d messages, and in clear %q", len(list), tt.at.asked())
			}
			for _, message := range list {
				checkPrivate(t, message, tt.transport)
			}
		})
	}
	for _, proto := range numbered.protos {
		if proto != "" && !strings.HasPrefix(proto, "POST HTTP/2.0 /") && !strings.HasSuffix(proto, messageType+" "+messageType) {
			t.Errorf("%q", proto)
		}
	}
}

// checkPrivate checks that neither the length of a question, nor its ID over HTTPS, reveals
// anything.
func checkPrivate(t *testing.T, message []byte, transport string) {
	t.Helper()
	q := new(dns.Msg)
	if err := q.Unpack(message); err != nil {
		t.Fatal(err)
	}
	if len(message)%padTo != 0 {
		t.Errorf("%d bytes: %v", len(message), q)
	}
	if transport == netHTTPS && q.Id != 0 {
		t.Errorf("ID %d over HTTPS", q.Id)
	}
	padded, alive := false, false
	for _, option := range q.IsEdns0().Option {
		switch option := option.(type) {
		case *dns.EDNS0_PADDING:
			padded = true
			if strings.Trim(string(option.Padding), "\x00") != "" {
				t.Errorf("padded with %x", option.Padding)
			}
		case *dns.EDNS0_TCP_KEEPALIVE:
			alive = true
		}
	}
	if !padded || alive != (transport == netTLS) {
		t.Errorf("padding %t, keepalive %t", padded, alive)
	}
}

// TestStrict: the client sends no question to a server that fails authentication, and asks
// no other one in clear.
func TestStrict(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "dns.example.org"))
	expired := newPrivateServer(t, paradisecZone, ca.server(-time.Hour, "127.0.0.1"))
	foreign := newPrivateServer(t, paradisecZone, other.server(time.Hour, "127.0.0.1", "dns.example.org"))
	plain := newPrivateServer(t, paradisecZone, ca.server(time.Hour, "127.0.0.1"))
	pin := func(s *privateServer) string { return PinOf(s.https.TLS.Certificates[0].Leaf).String() }
	for _, tt := range []struct {
		at     *privateServer
		server string
		want   string
	}{
		{good, "tls://" + good.tls, "not the server that was meant"},
		{good, "tls://" + good.tls + "#other.example.org", "not the server that was meant"},
		{good, "tls://" + good.tls + "?pin=" + pin(foreign), "none of the pins: it is " + pin(good)},
		{good, "tls://" + good.tls + "?pin=" + pin(foreign) + "#dns.example.org", "none of the pins"},
		{good, "tls://" + good.tls + "?pin=" + pin(good) + "#other.example.org", "not the server that was meant"},
		{foreign, "tls://" + foreign.tls + "#dns.example.org", "not the server that was meant"},
		{foreign, foreign.https.URL, "not the server that was meant"},
		{expired, "tls://" + expired.tls, "not the server that was meant"},
		{expired, expired.https.URL, "not the server that was meant"},
		{good, good.https.URL, "not the server that was meant"},
		{plain, "tls://" + plain.addr.String(), "127.0.0.1"}, // it speaks no TLS
	} {
		d := newDNS(t, DNSOptions{Servers: parsed(t, tt.server), RootCAs: ca.pool, TryTimeout: time.Minute, Tries: 1})
		res, err := d.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
		d.Close()
		if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q\n%s", tt.server, err, tt.want, res.Trace)
		}
		if n := len(tt.at.seen()) + len(tt.at.asked()); n > 0 {
			t.Errorf("%s: it was asked %d questions", tt.server, n)
		}
	}
}

// TestServersOfOneKind: a list in which the next server would be asked in clear is
// refused.
func TestServersOfOneKind(t *testing.T) {
	for _, tt := range []struct {
		o    DNSOptions
		want string
	}{
		{DNSOptions{Servers: parsed(t, "tls://192.0.2.1", "192.0.2.2")}, "servers of one kind"},
		{DNSOptions{Servers: parsed(t, "::1", "https://dns.example.org")}, "servers of one kind"},
		{DNSOptions{Servers: parsed(t, "192.0.2.2"), DNSSEC: TrustAD}, "can be forged"},
		{DNSOptions{Servers: parsed(t, "192.0.2.2"), DNSSEC: "yes"}, "validate and trust-ad"},
		{DNSOptions{Servers: parsed(t, "192.0.2.2"), DNSSEC: Validate}, "no clock"},
	} {
		tt.o.Schemes = schemes(t)
		if _, err := NewDNS(tt.o); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.o.Servers, err)
		}
	}
	d := newDNS(t, DNSOptions{Servers: parsed(t, "tls://192.0.2.1", "https://dns.example.org")})
	d.Close()
}

// TestLine: questions share a connection and do not wait for each other; the client reopens
// one that ends, and gives up a server that sends garbage.
func TestLine(t *testing.T) {
	ca := newAuthority(t)
	const n = 20
	var zone strings.Builder
	for i := range n {
		fmt.Fprintf(&zone, "n%d.urn.example. NAPTR 1 1 \"u\" \"http+N2L\" \"!.*!https://a.example/%d!\" .\n", i, i)
	}
	s := newPrivateServer(t, zone.String(), ca.server(time.Hour, "127.0.0.1"))
	resolve := func(t *testing.T, d *DNS, i int) error {
		res, err := d.Resolve(t.Context(), Request{Name: fmt.Sprintf("urn:n%d:x", i), Trace: true})
		if err == nil && res.Location != fmt.Sprintf("https://a.example/%d", i) {
			err = fmt.Errorf("%d: %s", i, res.Location)
		}
		return err
	}
	all := func(t *testing.T, d *DNS) {
		t.Helper()
		var asking sync.WaitGroup
		for i := range n {
			asking.Go(func() {
				if err := resolve(t, d, i); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
	}
	open := func(o DNSOptions) (*DNS, int64) {
		o.Servers, o.RootCAs = parsed(t, "tls://"+s.tls), ca.pool
		return newDNS(t, o), s.conns.Load()
	}
	t.Run("in reverse", func(t *testing.T) {
		d, before := open(DNSOptions{TryTimeout: 20 * time.Second})
		defer d.Close()
		var held []*dns.Msg // the connection's goroutine has it alone
		s.behave(func(w io.Writer, q *dns.Msg) bool {
			if held = append(held, q); len(held) < n {
				return true
			}
			for _, q := range slices.Backward(held) {
				if !s.reply(w, q) {
					return false
				}
			}
			return true
		})
		all(t, d)
		if got := s.conns.Load() - before; got != 1 {
			t.Errorf("%d connections", got)
		}
	})
	t.Run("closed after each", func(t *testing.T) {
		d, before := open(DNSOptions{})
		defer d.Close()
		s.behave(func(w io.Writer, q *dns.Msg) bool { s.reply(w, q); return false })
		for i := range 3 {
			if err := resolve(t, d, i); err != nil {
				t.Error(err)
			}
		}
		if got := s.conns.Load() - before; got < 3 {
			t.Errorf("%d connections", got)
		}
	})
	t.Run("not to be kept", func(t *testing.T) {
		d, before := open(DNSOptions{})
		defer d.Close()
		s.behave(func(w io.Writer, q *dns.Msg) bool {
			m := s.nameServer.answer(q)
			m.SetEdns0(1232, false)
			// The library's own option leaves a timeout of 0 out.
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_LOCAL{Code: dns.EDNS0TCPKEEPALIVE, Data: []byte{0, 0}})
			_, err := w.Write(frame(packed(m, nil)))
			return err == nil
		})
		for i := range 2 {
			if err := resolve(t, d, i); err != nil {
				t.Error(err)
			}
		}
		if got := s.conns.Load() - before; got != 2 {
			t.Errorf("%d connections", got)
		}
	})
	for about, answer := range map[string]func(w io.Writer, q *dns.Msg) bool{
		"rubbish":         func(w io.Writer, q *dns.Msg) bool { _, _ = w.Write(frame(make([]byte, 40))); return true },
		"half":            func(w io.Writer, q *dns.Msg) bool { _, _ = w.Write([]byte{1, 0, 7}); return false },
		"nothing":         func(io.Writer, *dns.Msg) bool { return true },
		"other IDs":       func(w io.Writer, q *dns.Msg) bool { q.Id++; return s.reply(w, q) },
		"other questions": func(w io.Writer, q *dns.Msg) bool { q.Question[0].Qtype++; return s.reply(w, q) },
		"too many": func(w io.Writer, q *dns.Msg) bool {
			q.Id++
			for range maxStrays + 1 {
				s.reply(w, q)
			}
			return true
		},
	} {
		t.Run(about, func(t *testing.T) {
			d, _ := open(DNSOptions{TryTimeout: 500 * time.Millisecond, Tries: 2})
			defer d.Close()
			var first atomic.Bool
			s.behave(func(w io.Writer, q *dns.Msg) bool {
				if first.CompareAndSwap(false, true) {
					return answer(w, q)
				}
				return s.reply(w, q)
			})
			// It may take the time of one try, which a slow machine needs for the next.
			for range 100 {
				if err := resolve(t, d, 1); err == nil {
					return
				}
			}
			t.Error("never answered again")
		})
	}
}
