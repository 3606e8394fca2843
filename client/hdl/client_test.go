package hdlclient

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// only makes a client use one transport.
func only(t hdl.Transport) func(*Options) {
	return func(o *Options) { o.Transports = []hdl.Transport{t} }
}

// codeOf returns the response code within an error; 0 if there is none.
func codeOf(err error) hdl.ResponseCode {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	return 0
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	for _, transport := range []hdl.Transport{hdl.UDP, hdl.TCP, hdl.HTTP} {
		for _, v := range []hdl.Version{{Major: 2, Minor: 1}, {Major: 2, Minor: 5}, {Major: 2, Minor: 7}, hdl.Latest()} {
			name := transports[transport] + " " + version(v)
			c := w.client(only(transport), func(o *Options) { o.Version = v })
			var steps []Step
			got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/abc-1", Trace: func(s Step) { steps = append(steps, s) }})
			if err != nil || len(got.Values) != 4 || got.Handle != prefix+"/abc-1" || !got.Certified {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
			if len(steps) != 1 || steps[0].Transport != transports[transport] || steps[0].Response != 1 || steps[0].Values != 4 || !steps[0].Certified || steps[0].Operation != "resolve" {
				t.Errorf("%s: the steps are %+v", name, steps)
			}
			if got, err = c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1", Types: []string{"URL"}}); err != nil || len(got.Values) != 1 || string(got.Values[0].Type) != "URL" {
				t.Errorf("%s, by type: %+v, %v", name, got, err)
			}
			_, err = c.Resolve(t.Context(), Query{Handle: prefix + "/none"})
			if stele.KindOf(err) != stele.NotFound || codeOf(err) != hdl.HandleNotFound {
				t.Errorf("%s, no such handle: %v", name, err)
			}
			_, err = c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1", Indexes: []uint32{77}})
			if stele.KindOf(err) != stele.NotFound || codeOf(err) != hdl.ValuesNotFound {
				t.Errorf("%s, no such value: %v", name, err)
			}
		}
	}
	_, err := w.client().Resolve(t.Context(), Query{Handle: "10.1/elsewhere"})
	if stele.KindOf(err) != stele.NotFound || codeOf(err) != hdl.NotResponsible {
		t.Errorf("another prefix: %v", err)
	}
	if _, err := w.client().Resolve(t.Context(), Query{Handle: ""}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("no handle: %v", err)
	}
	got, err := w.client().Resolve(t.Context(), Query{Handle: prefix + "/SEC-1"})
	if err != nil || slices.ContainsFunc(got.Values, func(v hdl.Value) bool { return v.Permissions&hdl.PublicRead == 0 }) {
		t.Errorf("a public answer has restricted values: %+v, %v", got, err)
	}
}

// A server that the user names has no key that the client knows: its answers are good, and not certified.
func TestNamedServer(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{w.at.String(), w.web.URL} {
		p, err := ParsePlace(text)
		if err != nil {
			t.Fatal(err)
		}
		c := w.client(func(o *Options) { o.Sites, o.Server = nil, &p })
		got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"})
		if err != nil || len(got.Values) != 4 || got.Certified {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		site, err := c.Site(t.Context(), nil)
		if err != nil || string(site.Append(nil)) != string(w.site.Append(nil)) {
			t.Errorf("%s: its site: %+v, %v", text, site, err)
		}
	}
	p := Place{Host: "localhost", Port: w.at.Port()}
	c := w.client(func(o *Options) {
		o.Sites, o.Server = nil, &p
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{w.at.Addr()}, nil }
	})
	if _, err := c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"}); err != nil {
		t.Error(err)
	}
	c = w.client(func(o *Options) {
		o.Sites, o.Server = nil, &p
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	})
	if _, err := c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"}); stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("an unknown host: %v", err)
	}
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]string{
		"hdl.example.org": "hdl.example.org:2641", "Hdl.Example.ORG.:99": "hdl.example.org:99", "192.0.2.1": "192.0.2.1:2641", "192.0.2.1:80": "192.0.2.1:80",
		"2001:db8::1": "[2001:db8::1]:2641", "[2001:db8::1]": "[2001:db8::1]:2641", "[2001:db8::1]:5": "[2001:db8::1]:5",
		"http://h.example:8000/": "http://h.example:8000", "https://h.example": "https://h.example",
		"": "", ":2641": "", "h:0": "", "h:99999": "", "h:x": "", "a b": "", "ftp://h.example": "", "[::1": "",
	} {
		p, err := ParsePlace(text)
		if want == "" {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("%q: %v, %v", text, p, err)
			}
		} else if err != nil || p.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, p.String(), err, want)
		}
	}
}

// Answers and requests that do not fit into a datagram are cut, and the parts put together.
func TestFragments(t *testing.T) {
	w := newWorld(t)
	var values []stele.HandleValue
	for i := range 200 {
		values = append(values, stele.HandleValue{Index: uint32(i + 1), Type: "NOTE", Data: []byte(strings.Repeat(fmt.Sprint(i), 40)), TTL: 60, Permissions: stele.DefaultPermissions})
	}
	w.put(prefix+"/LONG", values...)
	c := w.client(only(hdl.UDP))
	got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/LONG"})
	if err != nil || len(got.Values) != len(values) || !got.Certified {
		t.Fatalf("%d values, %v", len(got.Values), err)
	}
	var types []string
	for i := range 300 {
		types = append(types, fmt.Sprintf("TYPE.%d", i))
	}
	got, err = c.Resolve(t.Context(), Query{Handle: prefix + "/LONG", Types: append(types, "NOTE"), Indexes: []uint32{3, 4}})
	if err != nil || len(got.Values) != len(values) {
		t.Fatalf("a long request: %d values, %v", len(got.Values), err)
	}
}

// The response code 2 makes the client try the next transport: the server sends it where an answer over UDP would be too long.
func TestNextTransport(t *testing.T) {
	w := newWorld(t)
	big := stele.HandleValue{Index: 1, Type: "NOTE", Data: []byte(strings.Repeat("x", 60_000)), TTL: 60, Permissions: stele.DefaultPermissions}
	w.put(prefix+"/BIG", big)
	c := w.client()
	var last Step
	for range 8 { // the server's budget for such answers is used up soon
		got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/BIG", Trace: func(s Step) { last = s }})
		if err != nil || len(got.Values) != 1 || len(got.Values[0].Data) != 60_000 {
			t.Fatalf("%d values, %v", len(got.Values), err)
		}
	}
	if last.Transport != "tcp" {
		t.Errorf("the last answer came over %s", last.Transport)
	}
	// And so does an interface at which nobody listens.
	site := w.site
	site.Servers = slices.Clone(site.Servers)
	site.Servers[0].Interfaces = slices.Clone(site.Servers[0].Interfaces)
	site.Servers[0].Interfaces[0].Port, site.Servers[0].Interfaces[1].Port = freePort(t), freePort(t)
	c = w.client(func(o *Options) { o.Sites = []hdl.Site{site} })
	if _, err := c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1", Trace: func(s Step) { last = s }}); err != nil || last.Transport != "http" {
		t.Errorf("over %s: %v", last.Transport, err)
	}
}

// freePort returns a port at which nobody listens.
func freePort(t *testing.T) uint32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint32(l.Addr().(*net.TCPAddr).Port)
}

// An answer that another key signed than that of the site is refused, and no other transport is tried.
func TestWrongSiteKey(t *testing.T) {
	w := newWorld(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := hdl.PublicKey{RSA: &other.PublicKey}
	site := w.site
	site.Servers = slices.Clone(site.Servers)
	site.Servers[0].Key = public.Append(nil)
	var steps int
	_, err = w.client(func(o *Options) { o.Sites = []hdl.Site{site} }).Resolve(t.Context(), Query{Handle: prefix + "/ABC-1", Trace: func(Step) { steps++ }})
	if stele.KindOf(err) != stele.Conflict || steps != 1 || !strings.Contains(err.Error(), "fails verification") {
		t.Errorf("after %d steps: %v", steps, err)
	}
	got, err := w.client(func(o *Options) { o.Sites, o.Uncertified = []hdl.Site{site}, true }).Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"})
	if err != nil || got.Certified {
		t.Errorf("uncertified: %+v, %v", got, err)
	}
	late := w.client(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(24 * time.Hour) } })
	if _, err := late.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"}); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an old answer: %v", err)
	}
}

// siteValue is a value that names the site.
func (w *world) siteValue(index uint32, kind string) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: w.site.Append(nil), TTL: 3600, Permissions: stele.DefaultPermissions}
}

func text(index uint32, kind, data string) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: []byte(data), TTL: 3600, Permissions: stele.DefaultPermissions}
}

// The root says where a prefix is: by a site, by the handle of a service, or by a referral to those who know.
func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	root := newWorld(t)
	root.set("0.NA/"+prefix, func(list []stele.HandleValue) []stele.HandleValue {
		for i := range list {
			if list[i].Type == "HS_SITE" {
				list[i].Data = w.site.Append(nil)
			}
		}
		return list
	})
	fromRoot := func(o *Options) { o.Sites, o.Root = nil, []hdl.Site{root.site} }
	c := w.client(fromRoot)
	w.put(prefix+"/HERE", text(1, "URL", "https://here.example/"))
	var steps []string
	trace := func(s Step) { steps = append(steps, s.Handle+" "+s.Server) }
	for range 2 {
		got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/HERE", Trace: trace})
		if err != nil || !got.Certified || len(got.Values) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	want := []string{"0.NA/" + prefix + " " + root.at.String(), prefix + "/HERE " + w.at.String(), prefix + "/HERE " + w.at.String()}
	if !slices.Equal(steps, want) {
		t.Errorf("the steps are %q, want %q: a prefix is remembered", steps, want)
	}
	// A service has a handle of its own.
	w.home("20.501")
	w.put("20.501/X", text(1, "URL", "https://x.example/"))
	root.home("20.501")
	root.put("0.NA/20.501", text(1, "HS_SERV", prefix+"/SERVICE"))
	w.put(prefix+"/SERVICE", w.siteValue(1, "HS_SITE"))
	if got, err := c.Resolve(t.Context(), Query{Handle: "20.501/X"}); err != nil || !got.Certified {
		t.Errorf("by a service: %+v, %v", got, err)
	}
	// The root does not know a prefix, but who knows those below another one.
	w.home("20.502.1")
	w.put("0.NA/20.502.1", w.siteValue(1, "HS_SITE"))
	w.put("20.502.1/Y", text(1, "URL", "https://y.example/"))
	root.home("20.502")
	root.put("0.NA/20.502", root.siteValue(1, "HS_SITE"), w.siteValue(2, "HS_SITE.PREFIX"))
	if got, err := c.Resolve(t.Context(), Query{Handle: "20.502.1/Y"}); err != nil || !got.Certified {
		t.Errorf("by a referral: %+v, %v", got, err)
	}
	if _, err := c.Resolve(t.Context(), Query{Handle: "20.999/z"}); stele.KindOf(err) != stele.NotFound || !strings.Contains(err.Error(), "does not know the prefix 20.999") {
		t.Errorf("an unknown prefix: %v", err)
	}
	// Services that lead to one another end.
	root.home("20.503")
	root.put("0.NA/20.503", text(1, "HS_SERV", "0.NA/20.503"))
	if _, err := c.Resolve(t.Context(), Query{Handle: "20.503/z"}); stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "circle") {
		t.Errorf("a circle: %v", err)
	}
	root.home("20.504")
	root.put("0.NA/20.504", text(1, "NOTE", "no service"))
	if _, err := c.Resolve(t.Context(), Query{Handle: "20.504/z"}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a prefix without a service: %v", err)
	}
	// What a record names may be forbidden; what the user names is not.
	refuses := w.client(fromRoot, func(o *Options) {
		o.Permit = func(at netip.AddrPort) error { return fmt.Errorf("%s is private", at.Addr()) }
	})
	if _, err := refuses.Resolve(t.Context(), Query{Handle: prefix + "/HERE"}); stele.KindOf(err) != stele.Forbidden || !strings.Contains(err.Error(), w.at.String()) {
		t.Errorf("a forbidden address: %v", err)
	}
	if _, err := refuses.Resolve(t.Context(), Query{Handle: "0.NA/" + prefix}); err != nil {
		t.Errorf("the root itself: %v", err)
	}
}

// Which server of a site has a handle, its hash says.
func TestServerByHash(t *testing.T) {
	worlds := []*world{newWorld(t), newWorld(t)}
	site := worlds[0].site
	site.Servers = []hdl.Server{worlds[0].site.Servers[0], worlds[1].site.Servers[0]}
	c := worlds[0].client(func(o *Options) { o.Sites = []hdl.Site{site} })
	asked := make(map[string]bool)
	for i := range 16 {
		handle := fmt.Sprintf("%s/H%d", prefix, i)
		has := site.HashOption.Hash([]byte(handle)) % 2
		worlds[has].put(handle, text(1, "URL", "https://h.example/"))
		got, err := c.Resolve(t.Context(), Query{Handle: handle})
		if err != nil {
			t.Fatal(handle, err)
		}
		asked[got.Server] = true
	}
	if len(asked) != 2 {
		t.Errorf("only %v were asked", asked)
	}
	names := make(map[string]bool)
	for name, err := range worlds[0].administrator(c, AdministratorOptions{}).List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names[name] = true
	}
	for i := range 16 {
		if name := fmt.Sprintf("%s/H%d", prefix, i); !names[name] {
			t.Errorf("%s is not in the list of all servers", name)
		}
	}
}

// If a site does not answer, another one is asked.
func TestNextSite(t *testing.T) {
	w := newWorld(t)
	down := w.site
	down.Servers = slices.Clone(down.Servers)
	down.Servers[0].Interfaces = []hdl.Interface{{Type: hdl.InterfaceBoth, Protocol: hdl.TCP, Port: freePort(t)}}
	mirror := w.site
	mirror.Flags = 0
	c := w.client(func(o *Options) { o.Sites = []hdl.Site{down, mirror} })
	if _, err := c.Resolve(t.Context(), Query{Handle: prefix + "/ABC-1"}); err != nil {
		t.Error(err)
	}
	_, err := w.administrator(c, AdministratorOptions{}).Create(t.Context(), prefix+"/NEW", nil, CreateOptions{})
	if stele.KindOf(err) != stele.Unavailable {
		t.Errorf("a mirror was asked to change something: %v", err)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{Now: time.Now, Rand: rand.Reader}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("nowhere to begin: %v", err)
	}
	if _, err := New(Options{Sites: []hdl.Site{{}}}); stele.KindOf(err) != stele.Invalid {
		t.Errorf("no clock: %v", err)
	}
	c, err := New(Options{Sites: []hdl.Site{{}}, Now: time.Now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), Query{Handle: "20.1/x"}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a site without servers: %v", err)
	}
}
