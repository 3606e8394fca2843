package hdld

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// said returns the answer to a message.
func (f *fixture) said(q *call) hdl.Message {
	f.t.Helper()
	var answer []byte
	q.send = func(b []byte) error { answer = bytes.Clone(b); return nil }
	if !q.from.IsValid() {
		q.from = netip.MustParseAddrPort("192.0.2.1:5000")
	}
	f.answer(f.t.Context(), q)
	if answer == nil {
		f.t.Fatal("there is no answer")
	}
	return parse(f.t, answer)
}

// in returns a request in a session.
func in(n *session, v hdl.Version, op hdl.Operation, counter uint32, body []byte) *hdl.Message {
	m := &hdl.Message{Envelope: hdl.Envelope{Version: v, Suggested: v, Session: n.id, Request: 9}, Header: hdl.Header{Operation: op, SiteSerial: hdl.UnknownSerial}, Body: body}
	m.AddMAC(n.key, counter)
	return m
}

func (f *fixture) newSession(proved bool) *session {
	f.t.Helper()
	n := &session{id: 77, key: bytes.Repeat([]byte{7}, 32), algorithm: hdl.AES, from: netip.MustParseAddr("192.0.2.1")}
	f.sessions.add(n, time.Now())
	if proved {
		who := handlesIdentity()
		stamp, err := f.o.Handles.Stamp(f.t.Context(), who)
		if err != nil {
			f.t.Fatal(err)
		}
		n.prove(who, stamp)
	}
	return n
}

// TestEndNothing: a request to end a session that names none is refused, and ends nothing else.
func TestEndNothing(t *testing.T) {
	f := newFixture(t)
	m := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: 1}, Header: hdl.Header{Operation: hdl.EndSession}, Body: hdl.AppendHandle(nil, "/")}
	if got := f.said(&call{raw: m.Append(nil), via: viaTCP}); got.Header.Response != hdl.SessionExpired {
		t.Errorf("the code is %d", got.Header.Response)
	}
}

// TestReplayed: no number of a session is taken twice, nor one that is long past.
func TestReplayed(t *testing.T) {
	f := newFixture(t)
	n := f.newSession(true)
	body := (&hdl.HandleBody{Handle: []byte("20.500.99999/NOTHING")}).Append(nil, hdl.Latest())
	ask := func(v hdl.Version, counter uint32) hdl.ResponseCode {
		return f.said(&call{raw: in(n, v, hdl.DeleteHandle, counter, body).Append(nil), via: viaTCP}).Header.Response
	}
	if got := ask(hdl.Latest(), 1000); got != hdl.HandleNotFound {
		t.Fatalf("the first one: %d", got)
	}
	for _, counter := range []uint32{1000, 0, 5, 800} {
		if got := ask(hdl.Latest(), counter); got != hdl.Replayed {
			t.Errorf("the counter %d: %d", counter, got)
		}
	}
	if got := ask(hdl.Latest(), 801); got != hdl.HandleNotFound {
		t.Errorf("one that came late: %d", got)
	}
	old := hdl.Version{Major: 2, Minor: 5}
	if got := ask(old, 2000); got != hdl.HandleNotFound {
		t.Errorf("the first one of 2.5: %d", got)
	}
	if got := ask(old, 2000); got != hdl.Replayed {
		t.Errorf("the same again: %d", got)
	}
	if got := ask(hdl.Version{Major: 2, Minor: 4}, 0); got != hdl.HandleNotFound {
		t.Errorf("2.4 has no counters: %d", got)
	}
}

// TestKeyReplaced: a session ends when the key that proved its client is replaced.
func TestKeyReplaced(t *testing.T) {
	f := newFixture(t)
	n := f.newSession(true)
	body := (&hdl.HandleBody{Handle: []byte("20.500.99999/ABC-1")}).Append(nil, hdl.Latest())
	id, err := f.schemes.Parse("hdl:0.NA/20.500.99999")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.registrar.Update(f.admin, id, 0, func(rec *stele.Record) error {
		for i := range rec.Values {
			if rec.Values[i].Index == 300 {
				rec.Values[i].Data = []byte("another key")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.said(&call{raw: in(n, hdl.Latest(), hdl.DeleteHandle, 1, body).Append(nil), via: viaTCP}); got.Header.Response != hdl.SessionExpired {
		t.Errorf("the code is %d", got.Header.Response)
	}
}

// TestOneRefusal: whatever is wrong with an encrypted message, the answer is the same, and after some of them the session ends.
func TestOneRefusal(t *testing.T) {
	f := newFixture(t)
	n := f.newSession(true)
	body := (&hdl.HandleBody{Handle: []byte("20.500.99999/NOTHING")}).Append(nil, hdl.Latest())
	good := in(n, hdl.Latest(), hdl.DeleteHandle, 1, body)
	if err := good.Seal(n.algorithm, n.key, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	octets := good.Append(nil)
	var first string
	for i := range maxWrong {
		bad := bytes.Clone(octets)
		bad[len(bad)-1-i*7] ^= 1 // the padding first, then blocks before it
		m := f.said(&call{raw: bad, via: viaTCP})
		m.Header.Expiration = 0
		if got := string(m.AppendClear(nil)); i == 0 {
			first = got
		} else if got != first {
			t.Errorf("answer %d differs: %q and %q", i, got, first)
		}
	}
	if f.sessions.has(n.id) {
		t.Error("the session goes on")
	}
	if got := f.said(&call{raw: octets, via: viaTCP}); got.Header.Response != hdl.SessionExpired {
		t.Errorf("afterwards the code is %d", got.Header.Response)
	}
}

// TestProvedWhere: a session proves the address at which it was set up, and no other one.
func TestProvedWhere(t *testing.T) {
	f := newFixture(t)
	n := f.newSession(true)
	f.register("20.500.99999/LONG", 100)
	body := (&hdl.ResolveRequest{Handle: []byte("20.500.99999/LONG")}).Append(nil, hdl.Latest())
	for from, want := range map[string]bool{"192.0.2.1:1000": true, "198.51.100.1:1000": false} {
		q := &call{raw: in(n, hdl.Latest(), hdl.Resolve, uint32(len(from)), body).Append(nil), via: viaUDP, from: netip.MustParseAddrPort(from)}
		if f.said(q); q.proved != want {
			t.Errorf("%s: proved is %t", from, q.proved)
		}
	}
}

// TestWaitingInSessions: requests that wait for a proof in sessions are bounded with all others.
func TestWaitingInSessions(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.Challenges = 10 })
	for i := range 50 {
		n := &session{id: uint32(i + 1), key: bytes.Repeat([]byte{7}, 32), algorithm: hdl.AES, from: netip.MustParseAddr("192.0.2.1")}
		f.sessions.add(n, time.Now())
		body := (&hdl.HandleBody{Handle: []byte("20.500.99999/ABC-1")}).Append(nil, hdl.Latest())
		if got := f.said(&call{raw: in(n, hdl.Latest(), hdl.DeleteHandle, 1, body).Append(nil), via: viaTCP}); got.Header.Response != hdl.Challenged {
			t.Fatalf("the code is %d", got.Header.Response)
		}
	}
	if n := len(f.challenges.byID); n > 10 {
		t.Errorf("%d requests wait", n)
	}
}

// TestGuesses: an address that tries many proofs is told to wait.
func TestGuesses(t *testing.T) {
	f := newFixture(t)
	body := hdl.VerifyRequest{Identity: hdl.Reference{Handle: "20.500.99999/USER01", Index: 300}, Nonce: make([]byte, 16), Digest: make([]byte, 32), Answer: []byte{1}}
	m := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: 1}, Header: hdl.Header{Operation: hdl.VerifyAnswer}, Body: body.Append(nil, hdl.Latest())}
	busy := false
	for range guessBurst + 50 {
		busy = busy || f.said(&call{raw: m.Append(nil), via: viaTCP}).Header.Response == hdl.ServerBusy
	}
	if !busy {
		t.Error("guessing has no limit")
	}
}

// TestCreateTwice: of two clients that create one handle, the second is told that it exists, even if it asked before the first was done.
func TestCreateTwice(t *testing.T) {
	f := newFixture(t)
	make := func() *handles.Change {
		return &handles.Change{Operation: hdl.CreateHandle, Handle: "20.500.99999/TWICE", Values: []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("https://example.org/"), Permissions: stele.DefaultPermissions}}}
	}
	first, second := make(), make()
	for _, c := range []*handles.Change{first, second} {
		if err := f.o.Handles.Begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Commit(t.Context(), handlesIdentity()); err != nil {
		t.Fatal(err)
	}
	if err := second.Commit(t.Context(), handlesIdentity()); handles.CodeOf(err) != hdl.HandleExists {
		t.Errorf("the second one: %v", err)
	}
}
