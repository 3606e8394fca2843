package hdld

import (
	"bytes"
	"crypto/rand"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// rolled is a server whose site is that of its registry, as servers read it.
func rolled(t *testing.T) (f *fixture, roll func()) {
	t.Helper()
	var now atomic.Pointer[Site]
	f = newFixture(t, func(o *Options) {
		first := o.Site()
		o.Site = func() *Site {
			if site := now.Load(); site != nil {
				return site
			}
			return first
		}
	})
	read := func() {
		t.Helper()
		kept, err := f.registrar.HandleSite(f.admin)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := hdl.ParseSite(kept.Octets)
		if err != nil {
			t.Fatal(err)
		}
		next := &Site{Octets: kept.Octets, Serial: parsed.Serial, Primary: true}
		for _, k := range []struct {
			octets []byte
			to     **hdl.PrivateKey
		}{{kept.Key, &next.Key}, {kept.Former, &next.Former}} {
			if k.octets == nil {
				continue
			}
			key, err := hdl.ParseKeyFile(k.octets, nil)
			if err != nil {
				t.Fatal(err)
			}
			*k.to = &key
		}
		next.FormerSerial = kept.FormerSerial
		now.Store(next)
	}
	if _, err := f.o.Handles.SetUp(f.admin, handles.Setup{Prefix: "20.500.99999", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Random: rand.Reader}); err != nil {
		t.Fatal(err)
	}
	read()
	return f, func() {
		t.Helper()
		if _, err := f.o.Handles.RollSite(f.admin, rand.Reader); err != nil {
			t.Fatal(err)
		}
		read()
	}
}

// setUpRequest is a recorded request of the reference's client that sets up a session; it does not name the site.
func setUpRequest(t *testing.T) []byte {
	t.Helper()
	for _, x := range exchanges(t, "wire-9.2.0.txt") {
		for _, s := range x.steps {
			m, err := hdl.Parse(s.request)
			if err == nil && m.Header.Operation == hdl.SetUpSession && m.Header.Flags&hdl.Certify != 0 {
				if m.Header.SiteSerial != hdl.UnknownSerial {
					t.Fatalf("it names the site %d", m.Header.SiteSerial)
				}
				return s.request
			}
		}
	}
	t.Fatal("the recording has no request for a session")
	return nil
}

// named returns a request that names the site by a number.
func named(serial uint16) []byte {
	m, err := hdl.Parse(ask("20.500.99999/abc-1", 0))
	if err != nil {
		panic(err)
	}
	m.Header.SiteSerial = serial
	return m.Append(nil)
}

// After the key of the site was replaced, a client that still knows the former one sets up a session that the former key certifies: such a
// client alone, and not by what came over UDP.
func TestSessionAfterRoll(t *testing.T) {
	f, roll := rolled(t)
	at, request := f.listen(), setUpRequest(t)
	before := f.o.Site()
	roll()
	after := f.o.Site()
	if after.FormerSerial != before.Serial || after.Serial == before.Serial {
		t.Fatalf("the numbers are %d and %d", after.FormerSerial, after.Serial)
	}
	want := func(what string, answer []byte, key *hdl.PrivateKey) {
		t.Helper()
		m, err := hdl.Parse(answer)
		if err != nil || m.Header.Response != hdl.Success {
			t.Fatalf("%s: %v, response %v", what, err, m.Header.Response)
		}
		public := key.Public()
		if err := m.VerifySignature(&public); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	want("a client that named nothing", overTCP(t, at, request), after.Key)
	overUDP(t, at, named(before.Serial))
	want("after a request over UDP", overTCP(t, at, request), after.Key)
	overTCP(t, at, named(before.Serial))
	want("a client that named the former site", overTCP(t, at, request), before.Key)
	want("and again", overTCP(t, at, request), before.Key)

	// The same through HTTP, where another client is another one.
	tunnel := func(from string, request []byte) []byte {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(request))
		r.Header.Set("Content-Type", MediaType)
		w := httptest.NewRecorder()
		f.ServeTunnel(w, r, netip.MustParseAddr(from))
		return w.Body.Bytes()
	}
	tunnel("192.0.2.1", named(before.Serial))
	want("through HTTP", tunnel("192.0.2.1", request), before.Key)
	want("another client", tunnel("192.0.2.2", request), after.Key)

	overTCP(t, at, named(after.Serial))
	want("a client that has read the new site", overTCP(t, at, request), after.Key)
}

// What is remembered is bounded, and what is over makes room.
func TestFormerClientsBounded(t *testing.T) {
	var l formerClients
	now := time.Unix(1_800_000_000, 0)
	client := func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	for i := range formerMost + 10 {
		l.note(client(i), true, now)
	}
	if len(l.until) != formerMost || !l.has(client(0), now) || l.has(client(formerMost), now) {
		t.Errorf("%d are remembered", len(l.until))
	}
	now = now.Add(formerLife)
	if l.has(client(0), now) {
		t.Error("it is never over")
	}
	l.note(client(formerMost), true, now)
	if len(l.until) != 1 || !l.has(client(formerMost), now) {
		t.Errorf("%d are remembered", len(l.until))
	}
	l = formerClients{}
	for i := range 100 { // one client has all of them
		l.note(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: byte(i)}), true, now)
	}
	if len(l.until) != 1 {
		t.Errorf("%d addresses of one network are remembered", len(l.until))
	}
}
