package hdld

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// ask returns a request for a handle.
func ask(handle string, flags hdl.Flags) []byte {
	body := hdl.ResolveRequest{Handle: []byte(handle)}
	m := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: 7},
		Header: hdl.Header{Operation: hdl.Resolve, Flags: flags, SiteSerial: hdl.UnknownSerial}, Body: body.Append(nil, hdl.Latest())}
	return m.Append(nil)
}

// listen makes the server answer on loopback.
func (f *fixture) listen() netip.AddrPort {
	f.t.Helper()
	if err := f.Listen(f.t.Context(), "127.0.0.1:0"); err != nil {
		f.t.Fatal(err)
	}
	return f.Addrs()[0]
}

// overTCP sends octets, and returns all that comes back.
func overTCP(t testing.TB, at netip.AddrPort, octets []byte) []byte {
	t.Helper()
	c, err := net.DialTimeout("tcp", at.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(octets); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// overUDP sends datagrams, and returns the whole answer.
func overUDP(t testing.TB, at netip.AddrPort, datagrams ...[]byte) []byte {
	t.Helper()
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func() {
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		for _, d := range datagrams {
			if _, err := c.Write(d); err != nil {
				t.Fatal(err)
			}
		}
	}
	send()
	ends := time.Now().Add(patience)
	parts := hdl.NewCollector(hdl.DefaultLimits())
	buffer := make([]byte, 1024)
	for {
		n, err := c.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(ends) {
			send() // datagrams get lost, and clients repeat them
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n > hdl.MaxDatagram {
			t.Fatalf("a datagram has %d octets", n)
		}
		whole, err := parts.Add(time.Now(), at, bytes.Clone(buffer[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if whole != nil {
			return whole
		}
	}
}

func parse(t testing.TB, octets []byte) hdl.Message {
	t.Helper()
	m, err := hdl.Parse(octets)
	if err != nil {
		t.Fatalf("%v: %x", err, octets)
	}
	return m
}

// TestSockets: a request is answered in the same way over UDP, TCP and HTTP, with fragments both ways.
func TestSockets(t *testing.T) {
	f := newFixture(t)
	at := f.listen()
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	tunnel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsTunnel(r) {
			t.Error("it is not taken for the protocol")
		}
		f.ServeTunnel(w, r, netip.MustParseAddr("127.0.0.1"))
	}))
	defer tunnel.Close()
	answer, err := http.Post(tunnel.URL+"/20.500.99999%2Fabc-1", MediaType, bytes.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	inHTTP, err := io.ReadAll(answer.Body)
	if err != nil || answer.ContentLength != int64(len(inHTTP)) || answer.Header.Get("Content-Type") != MediaType {
		t.Errorf("HTTP: %v, length %d, %q", err, answer.ContentLength, answer.Header)
	}
	_ = answer.Body.Close()
	for way, octets := range map[string][]byte{"UDP": overUDP(t, at, request), "TCP": overTCP(t, at, request), "HTTP": inHTTP} {
		m := parse(t, octets)
		var body hdl.ValuesBody
		if err := body.Decode(m.Body); err != nil || m.Header.Response != hdl.Success || len(body.Values) != 4 || string(body.Handle) != "20.500.99999/abc-1" {
			t.Errorf("%s: code %d, %v, %d values of %q", way, m.Header.Response, err, len(body.Values), body.Handle)
		}
	}
	// A long request in fragments, in the wrong order, and a long answer.
	long := ask("20.500.99999/"+string(bytes.Repeat([]byte("x"), 700)), hdl.PublicOnly)
	var parts [][]byte
	for part := range hdl.Datagrams(long, true) {
		parts = append(parts, bytes.Clone(part))
	}
	if m := parse(t, overUDP(t, at, parts[1], parts[0])); m.Header.Response != hdl.HandleNotFound {
		t.Errorf("the answer to fragments has the code %d", m.Header.Response)
	}
	f.register("20.500.99999/LONG", 2000)
	if m := parse(t, overUDP(t, at, ask("20.500.99999/LONG", hdl.PublicOnly))); m.Header.Response != hdl.Success || len(m.Body) < 2000 {
		t.Errorf("the long answer has the code %d and %d octets", m.Header.Response, len(m.Body))
	}
}

// register makes a handle with a value of so many octets.
func (f *fixture) register(name string, octets int) {
	f.t.Helper()
	id, err := f.schemes.Parse("hdl:" + name)
	if err != nil {
		f.t.Fatal(err)
	}
	value := stele.HandleValue{Index: 1, Type: "NOTE", Data: bytes.Repeat([]byte("n"), octets), TTL: 60, Permissions: stele.DefaultPermissions}
	if _, err := f.registrar.Register(f.admin, &stele.Record{ID: id, Values: []stele.HandleValue{value}}); err != nil {
		f.t.Fatal(err)
	}
}

// TestAmplification: an address that nobody has proved to be theirs gets long answers over UDP for a while, and then
// answers of not more than three times the octets that it sent, with the code on which clients change to TCP.
func TestAmplification(t *testing.T) {
	f := newFixture(t)
	at := f.listen()
	f.register("20.500.99999/LONG", 20_000)
	request := ask("20.500.99999/LONG", hdl.PublicOnly)
	sent, held := 0, false
	for range 60 {
		answer := overUDP(t, at, request)
		m := parse(t, answer)
		if m.Header.Response == hdl.ServerError {
			held = true
			if len(answer) > amplification*len(request) {
				t.Errorf("an answer that was held back has %d octets, the request %d", len(answer), len(request))
			}
			break
		}
		sent += len(answer)
	}
	if !held || sent > spareBurst+spareBurst/2 {
		t.Errorf("%d octets were sent, held back: %t", sent, held)
	}
	if m := parse(t, overTCP(t, at, request)); m.Header.Response != hdl.Success {
		t.Errorf("over TCP the code is %d", m.Header.Response)
	}
	if f.Stats().Held == 0 {
		t.Error("nothing was counted")
	}
}

// TestBadInput: octets that are no message, lies about lengths and slow clients are answered or left, and the server
// goes on.
func TestBadInput(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.Request = 500 * time.Millisecond })
	at := f.listen()
	good := ask("20.500.99999/abc-1", hdl.PublicOnly)
	change := func(at int, b ...byte) []byte {
		bad := bytes.Clone(good)
		copy(bad[at:], b)
		return bad
	}
	version3 := change(0, 3, 0)
	for name, c := range map[string]struct {
		octets []byte
		want   hdl.ResponseCode
	}{
		"too long":                    {change(16, 0x7f, 0xff, 0xff, 0xff), hdl.ProtocolError},
		"length below the header":     {change(16, 0, 0, 0, 4), hdl.ProtocolError},
		"lying body":                  {change(hdl.EnvelopeSize+20, 0, 0, 0xff, 0xff), hdl.ServerError},
		"lying handle":                {change(hdl.EnvelopeSize+hdl.HeaderSize, 0x7f, 0, 0, 0), hdl.InvalidHandle},
		"not UTF-8":                   {ask("20.500.99999/\xff", hdl.PublicOnly), hdl.InvalidHandle},
		"no handle":                   {ask("", hdl.PublicOnly), hdl.InvalidHandle},
		"a prefix from elsewhere":     {ask("20.500.1/x", hdl.PublicOnly), hdl.NotResponsible},
		"unknown session":             {change(4, 0, 0, 0, 9), hdl.SessionExpired},
		"major version 3":             {version3, hdl.Success},
		"compressed":                  {change(2, 0x80|2), hdl.ProtocolError},
		"encrypted without a session": {change(2, 0x40|2), hdl.SessionExpired},
	} {
		answer := overTCP(t, at, c.octets)
		if m := parse(t, answer); m.Header.Response != c.want {
			t.Errorf("%s: code %d, want %d", name, m.Header.Response, c.want)
		}
	}
	// A client that does not finish its request is left after a time, without an answer.
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(good[:30]); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if b, err := io.ReadAll(c); err != nil && !errors.Is(err, io.EOF) && len(b) > 0 {
		t.Errorf("a slow client got %x (%v)", b, err)
	}
	if m := parse(t, overTCP(t, at, good)); m.Header.Response != hdl.Success {
		t.Errorf("afterwards the code is %d", m.Header.Response)
	}
}

// TestAnswersAreNotAnswered: a datagram that is an answer, of this server or another one, and an empty one get no answer, or two servers that are
// made to think of each other as clients would send for ever.
func TestAnswersAreNotAnswered(t *testing.T) {
	f := newFixture(t)
	at := f.listen()
	good := ask("20.500.99999/abc-1", hdl.PublicOnly)
	first := overUDP(t, at, good)
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := f.stats.udp.Load()
	answers := [][]byte{first, f.unreadable(nil), {}}
	for _, answer := range answers {
		if _, err := c.Write(answer); err != nil {
			t.Fatal(err)
		}
	}
	// The last one is answered, and nothing before it.
	other := ask("20.500.99999/missing", hdl.PublicOnly)
	ends := time.Now().Add(patience)
	b := make([]byte, hdl.MaxDatagram)
	for {
		if _, err := c.Write(other); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, err := c.Read(b)
		if err != nil && time.Now().Before(ends) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := parse(t, b[:n]); m.Header.Response != hdl.HandleNotFound {
			t.Errorf("an answer was answered with the code %d", m.Header.Response)
		}
		break
	}
	for f.stats.udp.Load() < before+3 && time.Now().Before(ends) { // until the server has seen them all
		time.Sleep(time.Millisecond)
	}
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		n, err := c.Read(b)
		if err != nil {
			break
		}
		if n == 0 || parse(t, b[:n]).Header.Response != hdl.HandleNotFound {
			t.Errorf("an answer was answered: %x", b[:n])
		}
	}
}

// TestNothingSent: where an answer would be too long for an address that may be forged, and the short one too, nothing is sent, not even an empty
// datagram.
func TestNothingSent(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.now = func() time.Time { return now } // what is used up does not come back
	q := &call{via: viaUDP, from: netip.MustParseAddrPort("192.0.2.1:1000")}
	for f.spare.Take("192.0.2.1", 1000, f.o.Now()) == nil {
	}
	if got := f.bounded(make([]byte, 10_000), &q.m, q.from, 1, f.o.Now()); len(got) != 0 {
		t.Errorf("%d octets are sent", len(got))
	}
	at := f.listen()
	for f.spare.Take("127.0.0.1", 1000, f.o.Now()) == nil {
	}
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 20 {
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 100)); err == nil {
		t.Errorf("a datagram of %d octets came back", n)
	}
}

// TestFlood: thousands of sessions and challenges that nobody finishes, and fragments that never complete, take
// bounded memory; a client that finishes is not locked out.
func TestFlood(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.Sessions, o.Limits.Challenges = 100, 100 })
	at := f.listen()
	now := time.Now()
	for i := range 10_000 {
		f.sessions.add(&session{id: uint32(i + 1), key: make([]byte, 32), algorithm: hdl.AES}, now)
		if err := f.challenges.add(&challenge{ends: now.Add(challengeLife), octets: 1000}, f.number, now); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := len(f.sessions.byID), len(f.challenges.byID); n > 100 || m > 100 || f.challenges.octets > 100*1000 {
		t.Errorf("there are %d sessions and %d challenges of %d octets", n, m, f.challenges.octets)
	}
	// One in which the client has proved who it is stays.
	kept := &session{id: 1 << 20, key: make([]byte, 32), algorithm: hdl.AES}
	f.sessions.add(kept, now)
	kept.prove(handlesIdentity(), "stamp")
	if f.sessions.find(kept.id, now) == nil {
		t.Fatal("the session is gone")
	}
	for i := range 1000 {
		f.sessions.add(&session{id: uint32(i + 2<<20), key: make([]byte, 32), algorithm: hdl.AES}, now)
	}
	if f.sessions.find(kept.id, now) == nil {
		t.Error("a flood ended a session of somebody who is known")
	}
	if f.sessions.find(kept.id, now.Add(sessionLife+time.Minute)) != nil {
		t.Error("the session does not end")
	}
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	part := bytes.Clone(ask("20.500.99999/abc-1", hdl.PublicOnly))
	for i := range 5000 {
		binary.BigEndian.PutUint32(part[8:], uint32(i))
		binary.BigEndian.PutUint32(part[16:], 100_000)
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if m := parse(t, overUDP(t, at, ask("20.500.99999/abc-1", hdl.PublicOnly))); m.Header.Response != hdl.Success {
		t.Errorf("after the flood the code is %d", m.Header.Response)
	}
	if messages, octets := f.fragments.Waiting(); messages > 1024 || octets > 8<<20 {
		t.Errorf("%d messages of %d octets wait for fragments", messages, octets)
	}
}

// TestConnections: more connections than allowed are closed at once, and others are answered when there is room.
func TestConnections(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.PerClient = 3 })
	at := f.listen()
	var open []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	for f.count() < 3 {
		time.Sleep(time.Millisecond)
	}
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection gave %d octets", n)
	}
	_ = open[0].Close()
	for f.count() > 2 {
		time.Sleep(time.Millisecond)
	}
	if m := parse(t, overTCP(t, at, ask("20.500.99999/abc-1", hdl.PublicOnly))); m.Header.Response != hdl.Success {
		t.Errorf("the code is %d", m.Header.Response)
	}
}

func (f *fixture) count() int {
	f.clients.mu.Lock()
	defer f.clients.mu.Unlock()
	return len(f.clients.open)
}

// TestConcurrently: many clients at once, while the server ends: each gets its answer or none.
func TestConcurrently(t *testing.T) {
	f := newFixture(t)
	at := f.listen()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 20 {
				request := ask(fmt.Sprintf("20.500.99999/%d-%d", i, k), hdl.PublicOnly)
				if m := parse(t, overTCP(t, at, request)); m.Header.Response != hdl.HandleNotFound {
					t.Errorf("the code is %d", m.Header.Response)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := f.Listen(t.Context(), "127.0.0.1:0"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it listens again: %v", err)
	}
}
