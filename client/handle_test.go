package client

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/hdld"
	"github.com/stele-id/stele/store/mem"
)

// newHandleServer starts a server of the Handle protocol with some handles.
func newHandleServer(t *testing.T) netip.AddrPort {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := mem.New(time.Now)
	reads := resolver.New(store, schemes, resolver.Options{Now: time.Now})
	writes := registrar.New(store, schemes, registrar.Options{Now: time.Now, OnCommit: reads.Invalidate, OnNamespaces: reads.InvalidateNamespaces})
	ctx := auth.With(t.Context(), auth.Local())
	key, err := writes.ParsePrefix("hdl:20.500.1/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writes.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string][]string{
		"url":   {"URL https://a.example/1", "URL ftp://b.example/1", "EMAIL a@example.org"},
		"alias": {"HS_ALIAS 20.500.1/url"},
		"loc":   {"URL https://a.example/2", `10320/loc <locations><location href="https://l.example/1" weight="1"/></locations>`},
		"none":  {"EMAIL a@example.org"},
		"here":  {"HS_ALIAS 20.500.1/there"},
		"there": {"HS_ALIAS 20.500.1/here"},
	} {
		rec := &stele.Record{}
		if rec.ID, err = schemes.Parse("hdl:20.500.1/" + name); err != nil {
			t.Fatal(err)
		}
		for i, text := range values {
			kind, data, _ := strings.Cut(text, " ")
			rec.Values = append(rec.Values, stele.HandleValue{Index: uint32(i + 1), Type: kind, Data: []byte(data), TTL: 90, Permissions: stele.DefaultPermissions})
		}
		if _, err := writes.Register(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	s := hdld.New(hdld.Options{Handles: handles.New(handles.Options{Registrar: writes, Resolver: reads, Schemes: schemes, Now: time.Now}), Now: time.Now, Rand: rand.Reader,
		Site: func() *hdld.Site { return &hdld.Site{Primary: true} }})
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	return s.Addrs()[0]
}

func TestHandle(t *testing.T) {
	at := newHandleServer(t)
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	place, err := hdlclient.ParsePlace(at.String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := hdlclient.New(hdlclient.Options{Server: &place, Now: time.Now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewHandle(HandleOptions{Schemes: schemes, Now: time.Now}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("no client: %v", err)
	}
	way, err := NewHandle(HandleOptions{Schemes: schemes, Client: c, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		q    Request
		want string // the location and the others; or a part of the error
		kind stele.Kind
	}{
		{Request{Name: "hdl:20.500.1/url"}, "https://a.example/1 ftp://b.example/1", 0},
		{Request{Name: "hdl:20.500.1/url", Service: "N2Ls"}, "https://a.example/1 ftp://b.example/1", 0},
		{Request{Name: "https://hdl.handle.net/20.500.1/URL", Protocols: []string{"ftp"}}, "ftp://b.example/1 https://a.example/1", 0},
		{Request{Name: "hdl:20.500.1/url", Protocols: []string{"rtsp"}, OnlyProtocols: true}, "none of the locations", stele.NotFound},
		{Request{Name: "hdl:20.500.1/alias"}, "https://a.example/1 ftp://b.example/1", 0},
		{Request{Name: "hdl:20.500.1/loc"}, "https://l.example/1 https://a.example/2", 0},
		{Request{Name: "hdl:20.500.1/none"}, "no value that leads to a location", stele.NotFound},
		{Request{Name: "hdl:20.500.1/here"}, "lead back to it", stele.Conflict},
		{Request{Name: "hdl:20.500.1/nothing"}, "no such handle", stele.NotFound},
		{Request{Name: "hdl:20.500.2/x"}, "does not have this prefix", stele.NotFound},
		{Request{Name: "hdl:20.500.1/url", Service: stele.N2C}, "tells locations", stele.NotFound},
		{Request{Name: "ark:12345/x"}, "are not found by the Handle protocol", stele.Invalid},
	} {
		tt.q.Trace = true
		res, err := way.Resolve(t.Context(), tt.q)
		if tt.kind != 0 {
			if stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || res.Trace.Error == "" {
				t.Errorf("%s: %v, want %s", tt.q.Name, err, tt.want)
			}
			continue
		}
		if got := strings.Join(append([]string{res.Location}, res.Others...), " "); err != nil || got != tt.want || res.Via != ViaHandle || res.TTL != 90 || res.Certified {
			t.Errorf("%s: %s, %v; want %s\n%s", tt.q.Name, got, err, tt.want, res.Trace)
		}
	}
	res, err := way.Resolve(t.Context(), Request{Name: "hdl:20.500.1/alias", Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"1. resolve 20.500.1/ALIAS from " + at.String() + " (udp): 1, 1 value\n", "2. 20.500.1/ALIAS is an alias of 20.500.1/URL\n",
		"3. resolve 20.500.1/URL from " + at.String() + " (udp): 1, 2 values\n", "=> https://a.example/1, N2L, for 90 s, and 1 more\n"} {
		if !strings.Contains(res.Trace.String(), line) {
			t.Errorf("%q is not in the trace:\n%s", line, res.Trace)
		}
	}
}

// Rules in the DNS may end at a server of the Handle System.
func TestHandleByRules(t *testing.T) {
	at := newHandleServer(t)
	zone := strings.ReplaceAll(`
hdl.uri.example. NAPTR 100 10 "s" "hdl+N2L" "" _hdl._tcp.good.example.
_hdl._tcp.good.example. SRV 10 0 CLOSED good.example.
_hdl._tcp.good.example. SRV 20 0 PORT good.example.
good.example. 40 A 127.0.0.1
`, "PORT", strconv.Itoa(int(at.Port())))
	zone = strings.ReplaceAll(zone, "CLOSED", closedPort(t))
	server := newNameServer(t, zone)
	d := newDNS(t, DNSOptions{Now: time.Now, Roots: map[string]string{RootOfURIs: "uri.example."}}, server)
	res, err := d.Resolve(t.Context(), Request{Name: "hdl:20.500.1/url", Trace: true})
	if err != nil || res.Location != "https://a.example/1" || res.TTL != 40 || res.Via != ViaDNS || res.Protocol != "https" {
		t.Errorf("%+v, %v\n%s", res, err, res.Trace)
	}
	if !slices.ContainsFunc(res.Trace.Steps, func(s Step) bool { return s.Handle != nil && s.Handle.Response == 1 }) {
		t.Errorf("the trace does not tell of the server:\n%s", res.Trace)
	}
	if _, err := d.Resolve(t.Context(), Request{Name: "hdl:20.500.1/nothing"}); stele.KindOf(orInternal(err)) != stele.NotFound {
		t.Errorf("no such handle: %v", err)
	}
	d = newDNS(t, DNSOptions{Now: time.Now, Roots: map[string]string{RootOfURIs: "uri.example."}, Permit: func(netip.AddrPort) error { return errors.New("not here") }}, server)
	if res, err := d.Resolve(t.Context(), Request{Name: "hdl:20.500.1/url", Trace: true}); stele.KindOf(orInternal(err)) != stele.Unavailable || !strings.Contains(res.Trace.String(), "not here") {
		t.Errorf("not permitted: %+v, %v", res, err)
	}
}
