package hdld

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// made returns the answer that the server makes, without what is kept.
func (f *fixture) made(request []byte) (answer []byte) {
	f.t.Helper()
	f.work(f.t.Context(), &call{raw: request, via: viaTCP, from: netip.MustParseAddrPort("192.0.2.1:5000"), send: func(b []byte) error {
		answer = append(answer, b...)
		return nil
	}})
	return answer
}

// code returns the response code of the answer to a request, and whether the answer was kept.
func (f *fixture) code(request []byte) (hdl.ResponseCode, bool) {
	f.t.Helper()
	answer, known := f.known(nil, request, f.now())
	if !known {
		answer = f.made(request)
	}
	return parse(f.t, answer).Header.Response, known
}

// TestKeptReplay: the answer to a recorded request for values that is kept is, octet for octet, the one that is made.
func TestKeptReplay(t *testing.T) {
	f := newFixture(t)
	at := time.Now()
	f.now = func() time.Time { return at }
	count := 0
	for _, x := range exchanges(t, "wire-9.2.0.txt") {
		for _, s := range x.steps {
			made := f.made(s.request)
			kept, ok := f.known([]byte("before"), s.request, at)
			if !ok {
				if !bytes.Equal(kept, []byte("before")) {
					t.Errorf("%s: something is appended", x.title)
				}
				continue
			}
			count++
			if !bytes.Equal(kept, append([]byte("before"), made...)) {
				t.Errorf("%s: kept\n%x, made\n%x", x.title, kept, made)
			}
			if m := parse(t, made); m.Header.Operation != hdl.Resolve || m.Header.Response != hdl.Success || m.Credential != nil {
				t.Errorf("%s: an answer of the operation %d and the code %d is kept", x.title, m.Header.Operation, m.Header.Response)
			}
		}
	}
	if count < 5 {
		t.Errorf("%d answers were kept", count)
	}
}

// TestKeptChanges: a write that is finished is seen by the next request, whatever was kept before it.
func TestKeptChanges(t *testing.T) {
	f := newFixture(t)
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	id, err := f.schemes.Parse("hdl:20.500.99999/ABC-1")
	if err != nil {
		t.Fatal(err)
	}
	update := func(change func(*stele.Record)) func() error {
		return func() error {
			_, err := f.registrar.Update(f.admin, id, 0, func(r *stele.Record) error { change(r); return nil })
			return err
		}
	}
	key, err := f.registrar.ParsePrefix("hdl:20.500.99999/")
	if err != nil {
		t.Fatal(err)
	}
	off := func(yes bool) func() error {
		return func() error {
			_, err := f.registrar.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Handles.Off = yes; return nil })
			return err
		}
	}
	values := 4
	for _, step := range []struct {
		what   string
		change func() error
		code   hdl.ResponseCode
		values int
	}{
		{"nothing", func() error { return nil }, hdl.Success, values},
		{"a value less", update(func(r *stele.Record) { r.Values = r.Values[:3] }), hdl.Success, 3},
		{"a value that is not public", update(func(r *stele.Record) {
			r.Values = append([]stele.HandleValue(nil), r.Values...)
			r.Values[2].Permissions = stele.AdminRead | stele.AdminWrite
		}), hdl.Success, 2},
		{"readers", update(func(r *stele.Record) { r.Readers = []string{"user:ann"} }), hdl.HandleNotFound, 0},
		{"no readers", update(func(r *stele.Record) { r.Readers = nil }), hdl.Success, 2},
		{"the prefix is not served", off(true), hdl.NotResponsible, 0},
		{"it is served again", off(false), hdl.Success, 2},
		{"it is withdrawn", func() error { _, err := f.registrar.Withdraw(f.admin, id, 0, "gone", stele.ID{}); return err }, hdl.HandleNotFound, 0},
	} {
		if err := step.change(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		for _, wantKnown := range []bool{false, step.code == hdl.Success} {
			answer, known := f.known(nil, request, f.now())
			if known != wantKnown {
				t.Errorf("%s: kept is %t", step.what, known)
			}
			if !known {
				answer = f.made(request)
			}
			m := parse(t, answer)
			if m.Header.Response != step.code {
				t.Errorf("%s: the code is %d, want %d", step.what, m.Header.Response, step.code)
			}
			if step.code != hdl.Success {
				continue
			}
			var body hdl.ValuesBody
			if err := body.Decode(m.Body); err != nil || len(body.Values) != step.values {
				t.Errorf("%s: %d values, %v; want %d", step.what, len(body.Values), err, step.values)
			}
		}
	}
}

// TestKeptPrivate: what is not for the public is not kept, and what is kept for a client that wants no more than the public may read
// is not the answer for one that asks for all.
func TestKeptPrivate(t *testing.T) {
	f := newFixture(t)
	public, all := ask("20.500.99999/sec-1", hdl.PublicOnly), ask("20.500.99999/sec-1", 0)
	for range 3 {
		f.code(public)
	}
	if code, known := f.code(public); code != hdl.Success || !known {
		t.Errorf("the public part has the code %d; kept: %t", code, known)
	}
	for range 3 {
		if code, known := f.code(all); code != hdl.Challenged || known {
			t.Errorf("all of it has the code %d; kept: %t", code, known)
		}
	}
	answer, _ := f.known(nil, public, f.now())
	m := parse(t, answer)
	var body hdl.ValuesBody
	if err := body.Decode(m.Body); err != nil {
		t.Fatal(err)
	}
	for _, v := range body.Values {
		if v.Permissions&uint8(stele.PublicRead) == 0 {
			t.Errorf("the value %d is not for the public", v.Index)
		}
	}
	// Nor is what asks for more than values: a signature, a digest, a session.
	for _, flags := range []hdl.Flags{hdl.Certify, hdl.ReturnDigest} {
		if _, known := f.known(nil, ask("20.500.99999/sec-1", hdl.PublicOnly|flags), f.now()); known {
			t.Errorf("with the flags %x it is kept", flags)
		}
	}
	binary.BigEndian.PutUint32(public[4:], 77)
	if _, known := f.known(nil, public, f.now()); known {
		t.Error("what is asked in a session is kept")
	}
}

// TestKeptFull: a cache that is full overwrites, and never mixes answers up.
func TestKeptFull(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.CacheBytes = 1 })
	found := 0
	for i := range 40 {
		f.register(fmt.Sprintf("20.500.99999/N%d", i), 3000+i)
	}
	for range 5 {
		for i := range 40 {
			request := ask(fmt.Sprintf("20.500.99999/n%d", i), hdl.PublicOnly)
			kept, known := f.known(nil, request, f.now())
			made := f.made(request)
			if known {
				found++
				mask := func(b []byte) []byte { // the time
					b = bytes.Clone(b)
					clear(b[hdl.EnvelopeSize+16 : hdl.EnvelopeSize+20])
					return b
				}
				if !bytes.Equal(mask(kept), mask(made)) {
					t.Errorf("the handle %d: kept %x, made %x", i, kept, made)
				}
			}
		}
	}
	if found == 0 {
		t.Error("nothing was kept")
	}
}

// TestKeptSockets: answers that are kept come over UDP and TCP as they did when they were made: in fragments if they are long, within the
// budget of the client's network.
func TestKeptSockets(t *testing.T) {
	f := newFixture(t)
	at := f.listen()
	f.register("20.500.99999/LONG", 3000)
	request := ask("20.500.99999/LONG", hdl.PublicOnly)
	version3 := bytes.Clone(request)
	version3[0], version3[1] = 3, 0
	for range 3 {
		for way, answer := range map[string][]byte{"UDP": overUDP(t, at, request), "UDP of version 3": overUDP(t, at, version3), "TCP": overTCP(t, at, request)} {
			if m := parse(t, answer); m.Header.Response != hdl.Success || len(m.Body) < 3000 {
				t.Errorf("%s: the code is %d, with %d octets", way, m.Header.Response, len(m.Body))
			}
		}
	}
	if _, known := f.known(nil, request, f.now()); !known {
		t.Error("it is not kept")
	}
	for range 1000 {
		if answer := overUDP(t, at, request); parse(t, answer).Header.Response == hdl.ServerError {
			if len(answer) > amplification*len(request) {
				t.Errorf("an answer that was held back has %d octets, the request %d", len(answer), len(request))
			}
			if f.Stats().Held == 0 {
				t.Error("nothing was counted")
			}
			return
		}
	}
	t.Error("nothing was held back")
}

// slow is a source of random octets that waits.
type slow struct {
	io.Reader
	begun, hold chan struct{}
	once        sync.Once
}

func (s *slow) Read(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.hold
	return rand.Read(b)
}

// TestKeptDoNotWait: answers that are kept do not wait for one that is being made.
func TestKeptDoNotWait(t *testing.T) {
	random := &slow{begun: make(chan struct{}), hold: make(chan struct{})}
	f := newFixture(t, func(o *Options) { o.Sockets, o.Rand = 1, random })
	at := f.listen()
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	overUDP(t, at, request)
	c, err := net.Dial("udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(ask("20.500.99999/sec-1", 0)); err != nil { // the challenge needs random octets
		t.Fatal(err)
	}
	<-random.begun
	for range 100 {
		if m := parse(t, overUDP(t, at, request)); m.Header.Response != hdl.Success {
			t.Errorf("the code is %d", m.Header.Response)
		}
	}
	close(random.hold)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 1024)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if m := parse(t, b[:n]); m.Header.Response != hdl.Challenged {
		t.Errorf("the slow answer has the code %d", m.Header.Response)
	}
}

// TestKnownAllocates: an answer that is kept costs no memory.
func TestKnownAllocates(t *testing.T) {
	f := newFixture(t)
	request := ask("20.500.99999/abc-1", hdl.PublicOnly)
	f.made(request)
	buffer, now := make([]byte, 0, hdl.MaxDatagram), f.now()
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok := f.known(buffer, request, now); !ok {
			t.Fatal("it is not kept")
		}
	}); n != 0 {
		t.Errorf("%v allocations for an answer", n)
	}
}

// TestNothingKept: a server may be told to keep nothing.
func TestNothingKept(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.CacheBytes = -1 })
	at := f.listen()
	for range 3 {
		if m := parse(t, overUDP(t, at, ask("20.500.99999/abc-1", hdl.PublicOnly))); m.Header.Response != hdl.Success {
			t.Errorf("the code is %d", m.Header.Response)
		}
	}
	if answer, ok := f.known(nil, ask("20.500.99999/abc-1", hdl.PublicOnly), f.o.Now()); ok {
		t.Errorf("%x is kept", answer)
	}
}
