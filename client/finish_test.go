package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// webServer is a resolver that speaks THTTP, or does something else.
type webServer struct {
	*httptest.Server
	mu  sync.Mutex
	log []string
}

func newWebServer(t *testing.T, answer http.HandlerFunc) *webServer {
	s := &webServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, r.Host+" "+r.RequestURI)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *webServer) port() string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func (s *webServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// resolverAnswers is what a good resolver says.
func resolverAnswers(w http.ResponseWriter, r *http.Request) {
	name := r.URL.RawQuery
	switch {
	case strings.Contains(name, "unknown"):
		http.Error(w, "unknown", http.StatusNotFound)
	case strings.Contains(name, "gone"):
		http.Error(w, "gone", http.StatusGone)
	case strings.Contains(name, "down"):
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/uri-res/N2L":
		w.Header().Set("Cache-Control", "public, max-age=30")
		w.Header().Set("Location", "https://thing.example/"+name)
		w.WriteHeader(http.StatusFound)
	case r.URL.Path == "/uri-res/N2Ls":
		w.Header().Set("Content-Type", "text/uri-list; charset=utf-8")
		fmt.Fprintf(w, "# %s\r\nhttps://thing.example/1\r\nftp://thing.example/2\r\nhttps://thing.example/1\r\n", name)
	case r.URL.Path == "/uri-res/N2C":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	default:
		http.NotFound(w, r)
	}
}

// closedPort returns a port where no server listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestFinish(t *testing.T) {
	good := newWebServer(t, resolverAnswers)
	plain := newWebServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>Welcome") })
	zone := strings.NewReplacer("GOOD", good.port(), "PLAIN", plain.port(), "CLOSED", closedPort(t)).Replace(`
srv.urn.example. 600 NAPTR 100 10 "s" "thttp+N2L+N2Ls+N2C" "" _http._tcp.good.example.
_http._tcp.good.example. 300 SRV 20 0 GOOD good.example.
_http._tcp.good.example. 300 SRV 10 0 CLOSED good.example.
_http._tcp.good.example. 300 SRV 10 0 CLOSED nowhere.example.
good.example. 200 A 127.0.0.1
next.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.down.example.
next.urn.example. NAPTR 100 20 "s" "thttp+N2L" "" _http._tcp.nowhere.example.
next.urn.example. NAPTR 100 30 "s" "thttp+N2L" "" _http._tcp.none.example.
next.urn.example. NAPTR 100 40 "s" "thttp+N2L" "" _http._tcp.good.example.
_http._tcp.down.example. SRV 10 0 CLOSED good.example.
_http._tcp.none.example. SRV 0 0 0 .
alldown.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.down.example.
nohost.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.nowhere.example.
thttpuri.urn.example. NAPTR 100 10 "u" "thttp+N2L" "!.*!http://good.example:GOOD/!" .
thttpnamed.urn.example. NAPTR 100 10 "u" "thttp+N2L" "!.*!http://good.example:GOOD/uri-res/N2L?\\0!" .
uri.urn.example. NAPTR 100 10 "u" "http+N2L" "!^urn:uri:(.*)$!https://there.example/\\1!" .
handles.urn.example. NAPTR 100 10 "s" "hdl+N2L" "" _hdl._tcp.good.example.
_hdl._tcp.good.example. SRV 10 0 2641 good.example.
host.urn.example. NAPTR 100 10 "a" "z3950+N2L" "" good.example.
disa.urn.example. NAPTR 100 10 "DIS:A" "N2L" "!.*!127.0.0.1!" .
disaname.urn.example. NAPTR 100 10 "DIS:A" "N2L" "" good.example.
disaaaa.urn.example. NAPTR 100 10 "DIS:AAAA" "N2L" "" good.example.
dissrv.urn.example. NAPTR 100 10 "DIS:SRV" "N2L" "" _http._tcp.good.example.
disurl.urn.example. NAPTR 100 10 "DIS:URL" "N2L" "!.*!http://good.example:GOOD/!" .
displain.urn.example. NAPTR 100 10 "DIS:URL" "N2L" "!.*!http://good.example:PLAIN/!" .
disnamed.urn.example. NAPTR 100 10 "DIS:URL" "N2L" "!^(.*)$!https://other.example/\\1!" .
disftp.urn.example. NAPTR 100 10 "DIS:URL" "N2L" "!.*!ftp://good.example/!" .
unsure.urn.example. NAPTR 100 10 "s" "http+N2L" "" _http._tcp.plain.example.
_http._tcp.plain.example. SRV 10 0 PLAIN good.example.
better.urn.example. NAPTR 100 10 "s" "hdl+N2L" "" _hdl._tcp.good.example.
better.urn.example. NAPTR 100 20 "s" "thttp+N2L" "" _http._tcp.good.example.
pp.urn.example. NAPTR 100 10 "p" "z3950+N2L" "!.*!something!" .
sureplain.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.plain.example.
`)
	d := newDNS(t, DNSOptions{}, newNameServer(t, zone))
	server := func(text string) string { return "server " + text }
	for _, tt := range []struct {
		name, want string
		kind       stele.Kind
		ttl        uint32
	}{
		{"urn:srv:x", "https://thing.example/urn:srv:x", 0, 30},
		{"urn:srv:a%20b", "https://thing.example/urn:srv:a%20b", 0, 30},
		{"urn:srv:unknown", "", stele.NotFound, 0},
		{"urn:srv:gone", "", stele.Gone, 0},
		{"urn:srv:down", "", stele.Unavailable, 0},
		{"urn:next:x", "https://thing.example/urn:next:x", 0, 30},
		{"urn:next:unknown", "", stele.NotFound, 0},
		{"urn:alldown:x", "", stele.Unavailable, 0},
		{"urn:nohost:x", "", stele.NotFound, 0},
		{"urn:thttpuri:x", "https://thing.example/urn:thttpuri:x", 0, 30},
		{"urn:uri:x/y", "https://there.example/x/y", 0, 60},
		{"urn:handles:x", server("good.example:2641"), 0, 60},
		{"urn:host:x", server("good.example"), 0, 60},
		{"urn:disa:x", server("127.0.0.1"), 0, 60},
		{"urn:disaname:x", server("good.example"), 0, 60},
		{"urn:disaaaa:x", "", stele.NotFound, 0},
		{"urn:dissrv:x", "https://thing.example/urn:dissrv:x", 0, 30},
		{"urn:disurl:x", "https://thing.example/urn:disurl:x", 0, 30},
		{"urn:disurl:unknown", server("http://good.example:" + good.port() + "/"), 0, 60},
		{"urn:disurl:gone", "", stele.Gone, 0},
		{"urn:displain:x", server("http://good.example:" + plain.port() + "/"), 0, 60},
		{"urn:disnamed:x", "https://other.example/urn:disnamed:x", 0, 60},
		{"urn:disftp:x", server("ftp://good.example/"), 0, 60},
		{"urn:unsure:x", server("good.example:" + plain.port()), 0, 60},
		{"urn:better:x", "https://thing.example/urn:better:x", 0, 30},
		{"urn:pp:x", server("something"), 0, 60},
		{"urn:sureplain:x", "", stele.Unavailable, 0},
	} {
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Trace: true})
		got := res.Location
		if res.Found == FoundServer {
			got = server(got)
		}
		if tt.want == "" && stele.KindOf(orInternal(err)) != tt.kind || tt.want != "" && err != nil || got != tt.want || res.TTL != tt.ttl {
			t.Errorf("%s: %q, TTL %d, %v; want %q, TTL %d, %v\n%s", tt.name, got, res.TTL, err, tt.want, tt.ttl, tt.kind, res.Trace)
		}
		if res.Found == FoundServer && (res.Note == "" || !strings.Contains(res.Trace.Outcome, res.Note)) {
			t.Errorf("%s: nobody says that it is a server: %+v", tt.name, res)
		}
	}

	// A description is there where it is asked for.
	res, err := d.Resolve(t.Context(), Request{Name: "urn:srv:x", Service: stele.N2C})
	if err != nil || res.Location != "http://good.example:"+good.port()+"/uri-res/N2C?urn:srv:x" || res.Type != "application/json" {
		t.Errorf("%+v, %v", res, err)
	}
	// Of several locations, one by a protocol.
	res, err = d.Resolve(t.Context(), Request{Name: "urn:srv:x", Protocols: []string{"ftp"}})
	if err != nil || res.Location != "ftp://thing.example/2" || !slices.Equal(res.Others, []string{"https://thing.example/1"}) {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err = d.Resolve(t.Context(), Request{Name: "urn:srv:x", Protocols: []string{"rtsp"}, OnlyProtocols: true}); stele.KindOf(orInternal(err)) != stele.NotFound {
		t.Errorf("no such protocol: %v", err)
	}
	// Servers have addresses in the result too.
	if res, err = d.Resolve(t.Context(), Request{Name: "urn:handles:x"}); err != nil || !slices.Equal(res.Addresses, []string{"127.0.0.1"}) || res.Protocol != "hdl" {
		t.Errorf("%+v, %v", res, err)
	}
	if host := good.asked()[0]; host != "good.example:"+good.port()+" /uri-res/N2L?urn:srv:x" {
		t.Errorf("the resolver was asked %q", host)
	}
}

// orInternal makes an error of none, so that its kind can be asked for.
func orInternal(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// TestPermit: the client sends nothing to an address that Permit refuses.
func TestPermit(t *testing.T) {
	good := newWebServer(t, resolverAnswers)
	zone := `xx.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.good.example.
_http._tcp.good.example. SRV 20 0 ` + good.port() + ` good.example.
good.example. A 127.0.0.1`
	d := newDNS(t, DNSOptions{Permit: func(a netip.AddrPort) error {
		if a.Addr().IsLoopback() {
			return errors.New("this is our own network")
		}
		return nil
	}}, newNameServer(t, zone))
	res, err := d.Resolve(t.Context(), Request{Name: "urn:xx:y", Trace: true})
	if stele.KindOf(orInternal(err)) != stele.Unavailable || len(good.asked()) != 0 || !strings.Contains(res.Trace.String(), "our own network") {
		t.Errorf("%v, %v, %v", res, err, good.asked())
	}
}

// TestSRVAddress: the target of an SRV record is a name (RFC 2782, "Target"). The client
// ignores an address, though a server answers there, and asks the next server.
func TestSRVAddress(t *testing.T) {
	wrong, good := newWebServer(t, resolverAnswers), newWebServer(t, resolverAnswers)
	d := newDNS(t, DNSOptions{}, newNameServer(t, strings.NewReplacer("WRONG", wrong.port(), "GOOD", good.port()).Replace(`
xx.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.some.example.
_http._tcp.some.example. SRV 10 0 WRONG 127.0.0.1.
_http._tcp.some.example. SRV 20 0 GOOD good.example.
only.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.only.example.
_http._tcp.only.example. SRV 10 0 WRONG 127.0.0.1.
good.example. A 127.0.0.1
`)))
	res, err := d.Resolve(t.Context(), Request{Name: "urn:xx:y", Trace: true})
	if err != nil || res.Location != "https://thing.example/urn:xx:y" || len(good.asked()) != 1 || !strings.Contains(res.Trace.String(), "127.0.0.1 is an address") {
		t.Errorf("%+v, %v\n%s", res, err, res.Trace)
	}
	res, err = d.Resolve(t.Context(), Request{Name: "urn:only:y", Trace: true})
	if stele.KindOf(orInternal(err)) != stele.NotFound {
		t.Errorf("%+v, %v\n%s", res, err, res.Trace)
	}
	if asked := wrong.asked(); len(asked) != 0 {
		t.Errorf("the address was asked: %q", asked)
	}
}

// TestARK finds the host of an authority, and rules where there are some.
func TestARK(t *testing.T) {
	nma := newWebServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.RequestURI == "/ark:12345/x5":
			http.Redirect(w, r, "https://thing.example/x5", http.StatusFound)
		case r.RequestURI == "/ark:12345/page", strings.HasSuffix(r.RequestURI, "?info"):
			fmt.Fprint(w, "erc:\n")
		default:
			http.NotFound(w, r)
		}
	})
	zone := strings.NewReplacer("NMA", nma.port(), "CLOSED", closedPort(t)).Replace(`
12345.ark.example. NAPTR 100 10 "" "" "!^ark:12345/(r[0-9]+)$!\\1.ark.test.!i" .
12345.ark.example. NAPTR 10 10 "h" "ark" "USTEST" host.example:CLOSED.
12345.ark.example. NAPTR 20 10 "h" "ark" "" host.example:NMA.
12345.ark.example. NAPTR 5 10 "h" "other" "" wrong.example.
r1.ark.test. NAPTR 100 10 "RES:https" "N2L" "!.*!https://thing.example/r1!" .
host.example. A 127.0.0.1
`)
	d := newDNS(t, DNSOptions{}, newNameServer(t, zone))
	base := "http://host.example:" + nma.port()
	for _, tt := range []struct {
		name    string
		service stele.Service
		want    string
		kind    stele.Kind
	}{
		{"ark:/12345/x5", "", "https://thing.example/x5", 0},
		{"ark:12345/page", "", base + "/ark:12345/page", 0},
		{"ark:12345/x5", stele.N2C, base + "/ark:12345/x5?info", 0},
		{"ark:12345/x5", stele.N2S, "", stele.NotFound},
		{"ark:12345/r1", "", "https://thing.example/r1", 0},
		{"ark:12345/unknown", "", "", stele.NotFound},
		{"ark:99999/x", "", "", stele.NotFound},
	} {
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Service: tt.service, Trace: true})
		if tt.want == "" && stele.KindOf(orInternal(err)) != tt.kind || tt.want != "" && err != nil || res.Location != tt.want {
			t.Errorf("%s %s: %q, %v; want %q, %v\n%s", tt.name, tt.service, res.Location, err, tt.want, tt.kind, res.Trace)
		}
	}
}

// TestLSID finds the servers of an authority, and rules where there are some.
func TestLSID(t *testing.T) {
	good := newWebServer(t, resolverAnswers)
	other := newWebServer(t, http.NotFound)
	zone := strings.NewReplacer("GOOD", good.port(), "OTHER", other.port()).Replace(`
_lsid._tcp.good.example. SRV 1 1 GOOD host.example.
_lsid._tcp.other.example. SRV 1 1 OTHER host.example.
lsid.urn.example. NAPTR 100 10 "u" "http+N2L" "!^urn:lsid:ruled[.]example:.*$!https://thing.example/ruled!i" .
host.example. A 127.0.0.1
`)
	d := newDNS(t, DNSOptions{}, newNameServer(t, zone))
	for _, tt := range []struct {
		name, want string
		found      Found
	}{
		{"urn:lsid:good.example:ns:1", "https://thing.example/urn:lsid:good.example:ns:1", FoundLocation},
		{"urn:lsid:other.example:ns:1", "http://host.example:" + other.port() + "/authority/", FoundServer},
		{"urn:lsid:ruled.example:ns:1", "https://thing.example/ruled", FoundLocation},
		{"urn:lsid:nowhere.example:ns:1", "", ""},
	} {
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Trace: true})
		if (err == nil) != (tt.want != "") || res.Location != tt.want || res.Found != tt.found {
			t.Errorf("%s: %q, %v\n%s", tt.name, res.Location, err, res.Trace)
		}
		if err != nil && (stele.KindOf(err) != stele.NotFound || !errors.Is(err, ddds.ErrNoSuchName)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
