package httpd

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/internal/destination"
)

// newProxies are those of the tests: two networks and an address.
func newProxies(t testing.TB, header ProxyHeader) *Proxies {
	t.Helper()
	p, err := NewProxies([]string{"10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"}, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// behind asks through the proxies, from an address, with lines of a head, and returns what
// the handler after them gets: client, scheme, host.
func behind(t *testing.T, p *Proxies, from string, lines ...string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/x", nil)
	r.RemoteAddr, r.Host = from, "inner.example"
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	var told string
	p.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told = ClientAddr(r).String() + " http " + r.Host
		if r.TLS != nil {
			told = ClientAddr(r).String() + " https " + r.Host
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	return told
}

func TestProxies(t *testing.T) {
	const proxy, stranger = "10.1.2.3:4711", "203.0.113.9:4711"
	own := func(addr string) string { return addr + " http inner.example" }
	for _, tt := range []struct {
		name, from string
		lines      []string
		want       string
	}{
		{"nothing is said", proxy, nil, own("10.1.2.3")},
		{"a stranger says so", stranger, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example", "Forwarded: for=198.51.100.1"}, own("203.0.113.9")},
		{"an address", proxy, []string{"X-Forwarded-For: 198.51.100.1"}, own("198.51.100.1")},
		{"all of it", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-Proto: HTTPS", "X-Forwarded-Host: id.example.org:8443"}, "198.51.100.1 https id.example.org:8443"},
		{"only the protocol", proxy, []string{"X-Forwarded-Proto: https"}, "10.1.2.3 https inner.example"},
		{"a proxy of IPv6", "[2001:db8:1::5]:80", []string{"X-Forwarded-For: 2001:db8:2::1"}, own("2001:db8:2::1")},
		{"a mapped proxy", "[::ffff:10.1.2.3]:80", []string{"X-Forwarded-For: ::ffff:198.51.100.1"}, own("198.51.100.1")},
		{"a single address", "192.0.2.7:1", []string{"X-Forwarded-For: 198.51.100.1"}, own("198.51.100.1")},
		{"its neighbour", "192.0.2.8:1", []string{"X-Forwarded-For: 198.51.100.1"}, own("192.0.2.8")},
		{"the client invents some", proxy, []string{"X-Forwarded-For: 1.1.1.1, 10.9.9.9, 198.51.100.1, 10.0.0.2"}, own("198.51.100.1")},
		{"the client writes rubbish", proxy, []string{"X-Forwarded-For: <x>, ,1.2.3.4.5, 198.51.100.1"}, own("198.51.100.1")},
		{"in two lines", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 10.0.0.2"}, own("198.51.100.1")},
		{"proxies only", proxy, []string{"X-Forwarded-For: 10.0.0.4, 10.0.0.2"}, own("10.0.0.4")},
		{"a port", proxy, []string{"X-Forwarded-For: 198.51.100.1:99"}, own("198.51.100.1")},
		{"a port of IPv6", proxy, []string{"X-Forwarded-For: [2001:db8:2::1]:99"}, own("2001:db8:2::1")},
		{"brackets", proxy, []string{"X-Forwarded-For: [2001:db8:2::1]"}, own("2001:db8:2::1")},
		{"rubbish from the nearest", proxy, []string{"X-Forwarded-For: 198.51.100.1, unknown", "X-Forwarded-Proto: https"}, own("10.1.2.3")},
		{"a zone", proxy, []string{"X-Forwarded-For: fe80::1%eth0"}, own("10.1.2.3")},
		{"an odd protocol", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-Proto: javascript"}, own("10.1.2.3")},
		{"an odd host", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-Host: a b"}, own("10.1.2.3")},
		{"a list for each hop", proxy, []string{"X-Forwarded-For: 198.51.100.1, 10.0.0.2", "X-Forwarded-Proto: https, http", "X-Forwarded-Host: id.example.org, inner.example"}, "198.51.100.1 https id.example.org"},
		{"one for all hops", proxy, []string{"X-Forwarded-For: 198.51.100.1, 10.0.0.2", "X-Forwarded-Proto: https"}, "198.51.100.1 https inner.example"},
		{"a list of another length", proxy, []string{"X-Forwarded-For: 198.51.100.1, 10.0.0.2", "X-Forwarded-Proto: https, http, http"}, own("10.1.2.3")},

		{"by the standard", proxy, []string{`Forwarded: for=198.51.100.1;proto=https;host=id.example.org;by=10.1.2.3`}, "198.51.100.1 https id.example.org"},
		{"in other letters", proxy, []string{`Forwarded: For="198.51.100.1:99" ; Proto=HTTPS; HOST="id.example.org:8443"`}, "198.51.100.1 https id.example.org:8443"},
		{"IPv6 by the standard", proxy, []string{`Forwarded: for="[2001:db8:2::1]:4711"`}, own("2001:db8:2::1")},
		{"IPv6 without brackets", proxy, []string{`Forwarded: for="2001:db8:2::1"`}, own("10.1.2.3")},
		{"each hop tells its own", proxy, []string{`Forwarded: for=1.1.1.1;host=evil.example;proto=http, for=198.51.100.1;host=id.example.org;proto=https`, `Forwarded: for=10.0.0.2;host=inner.example;proto=http`}, "198.51.100.1 https id.example.org"},
		{"who is not named", proxy, []string{`Forwarded: for=1.1.1.1, for=_hidden;proto=https`}, "10.1.2.3 https inner.example"},
		{"who is not known", proxy, []string{`Forwarded: for="unknown:99"`}, own("10.1.2.3")},
		{"escaped", proxy, []string{`Forwarded: for="198.51\.100.1";x="\"a, for=1.1.1.1"`}, own("198.51.100.1")},
		{"a quote without its end", proxy, []string{`Forwarded: for=1.1.1.1;x=", for=198.51.100.1`}, own("10.1.2.3")},
		{"a pair twice", proxy, []string{`Forwarded: for=198.51.100.1;for=1.1.1.1`}, own("10.1.2.3")},
		{"no value", proxy, []string{`Forwarded: for=`}, own("10.1.2.3")},
		{"no name", proxy, []string{`Forwarded: =198.51.100.1`}, own("10.1.2.3")},
		{"no equals sign", proxy, []string{`Forwarded: 198.51.100.1`}, own("10.1.2.3")},
		{"something behind a quote", proxy, []string{`Forwarded: for="198.51.100.1"x`}, own("10.1.2.3")},
		{"elements without pairs", proxy, []string{`Forwarded: , ;;, for=198.51.100.1;`}, own("198.51.100.1")},

		{"both kinds", proxy, []string{"Forwarded: for=1.1.1.1", "X-Forwarded-For: 198.51.100.1"}, own("10.1.2.3")},
		{"both kinds, in part", proxy, []string{"Forwarded: for=1.1.1.1", "X-Forwarded-Proto: https"}, own("10.1.2.3")},
		{"no address at all", "@", []string{"X-Forwarded-For: 198.51.100.1"}, own("invalid IP")},
	} {
		if got := behind(t, newProxies(t, EitherHeader), tt.from, tt.lines...); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An operator's choice of headers decides which ones are read, whatever others there are.
func TestProxyHeader(t *testing.T) {
	both := []string{"Forwarded: for=198.51.100.1", "X-Forwarded-For: 198.51.100.2", "X-Forwarded-Proto: https"}
	if got := behind(t, newProxies(t, Forwarded), "10.1.2.3:1", both...); got != "198.51.100.1 http inner.example" {
		t.Errorf("Forwarded: %s", got)
	}
	if got := behind(t, newProxies(t, XForwarded), "10.1.2.3:1", both...); got != "198.51.100.2 https inner.example" {
		t.Errorf("X-Forwarded-For: %s", got)
	}
	var log bytes.Buffer
	p := newProxies(t, EitherHeader)
	p.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		behind(t, p, "10.1.2.3:1", both...)
	}
	if n := strings.Count(log.String(), "proxy-header"); n != 1 {
		t.Errorf("it is told %d times: %s", n, &log)
	}
}

// A request that reached the proxy in clear came in clear, even if the proxy uses TLS.
func TestProxyInClear(t *testing.T) {
	p := newProxies(t, EitherHeader)
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.TLS = "10.1.2.3:1", &tls.ConnectionState{}
	r.Header.Set("X-Forwarded-Proto", "http")
	p.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			t.Error("it counts as https")
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if r.TLS == nil {
		t.Error("the proxy's own request was changed")
	}
}

func TestParseProxy(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "10.0.0.0/8": "10.0.0.0/8", "2001:db8::/32": "2001:db8::/32", "::1": "::1/128",
	} {
		if got, err := ParseProxy(text); err != nil || got.String() != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0", "10.0.0.0/33", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.0/8 "} {
		if got, err := ParseProxy(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
		if _, err := NewProxies([]string{text}, EitherHeader, nil); err == nil {
			t.Errorf("%q is a proxy", text)
		}
	}
}

// FuzzProxies feeds headers to the proxies. Whatever stands in them, the client is the
// proxy itself or an address that the last line names; host and protocol are such;
// and what a client puts in front of it changes nothing of its address.
func FuzzProxies(f *testing.F) {
	for _, seed := range [][2]string{
		{`for=198.51.100.1;proto=https;host=id.example.org`, `198.51.100.1`},
		{`for="[2001:db8::1]:80", for=_x;by=unknown`, `[2001:db8::1]:80, 10.0.0.1`},
		{`for=1.1.1.1;x="\", for=2.2.2.2`, `, ,::ffff:1.2.3.4`},
		{`For = 1.1.1.1`, `fe80::1%x`},
	} {
		f.Add(seed[0], seed[1])
	}
	standard, usual := newProxies(f, Forwarded), newProxies(f, XForwarded)
	f.Fuzz(func(t *testing.T, forwarded, addresses string) {
		const real = "203.0.113.77"
		for _, tt := range []struct {
			p           *Proxies
			name, value string
			alone, more string // what the nearest proxy writes: alone, and after a comma
		}{
			{standard, "Forwarded", forwarded, "for=" + real, ", for=" + real},
			{usual, "X-Forwarded-For", addresses, real, ", " + real},
		} {
			from, ok := tt.p.origin(http.Header{tt.name: {tt.value}})
			if !ok && from.client.IsValid() && !from.unclear {
				t.Errorf("%q gives %+v", tt.value, from)
			}
			if ok && (from.unclear || from.host != "" && !destination.IsHost(from.host) || !slices.Contains([]string{"", "http", "https"}, from.proto) || from.client.Zone() != "" || from.client.Is4In6()) {
				t.Errorf("%q gives %+v", tt.value, from)
			}
			for _, fields := range [][]string{{tt.value, tt.alone}, {tt.value + tt.more}} {
				if got, ok := tt.p.origin(http.Header{tt.name: fields}); ok && got.client != netip.MustParseAddr(real) {
					t.Errorf("%q gives %+v, and not %s", fields, got, real)
				}
			}
		}
		// Lists of addresses are read from the end, so that a client can't hide by writing
		// rubbish.
		if got, ok := usual.origin(http.Header{"X-Forwarded-For": {addresses + ", " + real}}); !ok || got.client != netip.MustParseAddr(real) {
			t.Errorf("%q gives %+v, %t", addresses, got, ok)
		}
	})
}
