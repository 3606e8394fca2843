package httpd

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// fillTHTTP registers the names that the tests of the services ask for.
func (f *handleFixture) fillTHTTP() {
	f.t.Helper()
	f.fill()
	target := func(service stele.Service, url, media string) stele.Target {
		return stele.Target{Service: service, URL: url, Type: media, Order: 100, Preference: 10}
	}
	second := at("https://mirror.example.org/AB1", 200)
	second.Status = http.StatusSeeOther
	f.put("urn:paradisec:AB1:001:A", stele.Record{
		Aliases:     []stele.ID{f.id("20.500.99999/AB1")},
		Targets:     []stele.Target{second, at("https://catalog.example.org/AB1?x=1&y=2", 100), target(stele.N2C, "https://catalog.example.org/AB1.xml", "application/xml"), target(stele.N2S, "https://catalog.example.org/AB1.sig", ""), target(stele.N2P, "https://catalog.example.org/policy", ""), target("N2X", "https://catalog.example.org/new", "")},
		Metadata:    stele.Metadata{"who": "Lima, Ana", "what": "Songs", "when": "1998"},
		Persistence: stele.Persistence{Level: stele.Permanent},
	})
	f.put("urn:isbn:9783161484100", stele.Record{
		Metadata:    stele.Metadata{"who": "Ana", "what": "A book without a place"},
		Persistence: stele.Persistence{Level: stele.Permanent, Until: "2040-01-01", Statement: "It stays."},
	})
	f.commit(&stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "urn", Prefix: "urn:other", Version: 1, Delegate: "https://other.example.net/{id}"}}})
	gone := at("https://example.org/gone", 100)
	gone.Status = http.StatusGone
	f.to("urn:isbn:9781861972712", gone)
}

func TestTHTTP(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fillTHTTP()
	list := func(uri string, lines ...string) string {
		return "200 # " + strings.Join(append([]string{uri}, lines...), "\r\n") + "\r\n"
	}
	const (
		urn    = "urn:paradisec:AB1:001:A"
		first  = "https://catalog.example.org/AB1?x=1&y=2"
		mirror = "https://mirror.example.org/AB1"
	)
	for _, tt := range []struct{ target, want string }{
		{"/uri-res/N2L?" + urn, "302 " + first},
		{"/uri-res/n2l?URN:Paradisec:ab1:001:a", "302 " + first}, // equivalent names, equal answers
		{"/uri-res/N2L/?" + urn, "302 " + first},
		{"/uri-res/N2L?urn%3Aparadisec%3AAB1%3A001%3AA", "302 " + first},
		{"/uri-res/N2L?hdl:20.500.99999/ab1", "302 " + first},
		{"/uri-res/N2L?20.500.99999%2Fab1", "302 " + first},
		{"/uri-res/N2L?https://hdl.handle.net/20.500.99999/ab1", "302 " + first},
		{"http://id.example.org/uri-res/N2L?" + urn, "302 " + first}, // as proxies send it
		{"/uri-res/N2R?" + urn, "302 " + first},
		{"/uri-res/N2L?20.500.99999/ABC-1", "302 https://example.org/1"}, // by its values
		{"/uri-res/N2L?20.500.99999/ALIAS", "302 https://example.org/t"},
		{"/uri-res/N2L?20.500.88888/x", "302 https://hdl.example.net/20.500.88888/X"},
		{"/uri-res/N2L?20.500.99999/PART/a", "302 https://example.org/p//A"},

		// RFC 2483: I2x is N2x, in any case.
		{"/uri-res/I2L?" + urn, "302 " + first},
		{"/uri-res/i2r?" + urn, "302 " + first},
		{"/uri-res/I2Ls?" + urn, list(urn, first, mirror)},
		{"/uri-res/I2RS?" + urn, list(urn, first, mirror)},
		{"/uri-res/I2C?" + urn, "302 https://catalog.example.org/AB1.xml"},
		{"/uri-res/I2Cs?" + urn, list(urn, "https://catalog.example.org/AB1.xml", "http://example.com/uri-res/N2C?urn:paradisec:ab1:001:a")},
		{"/uri-res/I2Ns?" + urn, list(urn, "urn:paradisec:ab1:001:a", "hdl:20.500.99999/AB1")},
		{"/uri-res/I2N?20.500.99999/AB1", list("20.500.99999/AB1", "urn:paradisec:ab1:001:a")},
		{"/uri-res/N2N?" + urn, list(urn, "urn:paradisec:ab1:001:a")},
		{"/uri-res/I=I?" + urn + "%2020.500.99999/AB1", "200 TRUE\r\n"},
		{"/uri-res/i=i?" + urn + "%20URN:Paradisec:ab1:001:a", "200 TRUE\r\n"},
		{"/uri-res/I=I?" + urn + "%2020.500.99999/ABC-1", "200 FALSE\r\n"},
		{"/uri-res/N2X?" + urn, "302 https://catalog.example.org/new"}, // a service of the owner's (thesis, 6.3.2)

		// RFC 8141, 2.3: targets get the q-component, the resolver the r-component.
		{"/uri-res/N2L?" + urn + "?=op=map", "302 " + first + "&op=map"},
		{"/uri-res/N2L?urn%3Aparadisec%3AAB1%3A001%3AA%3F%3Dop=map", "302 " + first + "&op=map"},
		{"/uri-res/N2L?" + urn + "?+cc=uk?=op=map", "302 " + first + "&op=map"},
		{"/uri-res/N2C?" + urn + "?=a", "302 https://catalog.example.org/AB1.xml?a"},
		{"/uri-res/N2Ls?" + urn + "?=a", list(urn+"?=a", first+"&a", mirror+"?a")},
		{"/uri-res/N2L?" + urn + "%23part", "302 " + first},
		{"/uri-res/N2L?urn:other:x?+cc=uk?=op=map", "302 https://other.example.net/urn:other:x?+cc=uk?=op=map"},
		{"/" + urn + "?=op=map", "302 " + first + "&op=map"},
		{"/" + urn + "?op=map", "302 " + first}, // no component, and no partial target

		{"/uri-res/N2Ls?" + urn, list(urn, first, mirror)},
		{"/uri-res/N2Rs?" + urn, list(urn, first, mirror)},
		{"/uri-res/N2Ls?urn%3Aparadisec%3AAB1%3A001%3AA", list("urn%3Aparadisec%3AAB1%3A001%3AA", first, mirror)},
		{"/uri-res/N2Ls?20.500.99999/ABC-1", list("20.500.99999/ABC-1", "https://example.org/1")},
		{"/uri-res/N2Ls?urn:isbn:9783161484100", list("urn:isbn:9783161484100")},
		{"/uri-res/N2Ns?" + urn, list(urn, "urn:paradisec:ab1:001:a", "hdl:20.500.99999/AB1")},
		{"/uri-res/N2Ns?20.500.99999/ARK", list("20.500.99999/ARK", "ark:12345/x1", "hdl:20.500.99999/ARK", "urn:isbn:9780140449136")},
		{"/uri-res/N2Ns?20.500.99999/PART/a", list("20.500.99999/PART/a", "hdl:20.500.99999/PART/A")}, // and not the whole
		{"/uri-res/N2Cs?" + urn, list(urn, "https://catalog.example.org/AB1.xml", "http://example.com/uri-res/N2C?urn:paradisec:ab1:001:a")},

		{"/uri-res/N2C?" + urn, "302 https://catalog.example.org/AB1.xml"},
		{"/uri-res/N2S?" + urn, "302 https://catalog.example.org/AB1.sig"},
		{"/uri-res/N2P?" + urn, "302 https://catalog.example.org/policy"},
	} {
		got := told(f.ask("GET", tt.target))
		if got = strings.ReplaceAll(got, "http://id.example.org", "http://example.com"); got != tt.want {
			t.Errorf("GET %s:\ngot  %q\nwant %q", tt.target, got, tt.want)
		}
	}
	res, _ := f.ask("GET", "/uri-res/N2Ls?"+urn)
	if got := res.Header.Get("Content-Type"); got != "text/uri-list" {
		t.Errorf("N2Ls is %q", got)
	}
	if res, body := f.ask("HEAD", "/uri-res/N2Ls?"+urn); res.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %d %q", res.StatusCode, body)
	}
}

// The server describes a thing in the form that Accept asks for.
func TestTHTTPDescribes(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fillTHTTP()
	const book = "urn:isbn:9783161484100"
	for _, tt := range []struct{ service, uri, accept, media, in string }{
		{"N2C", book, "application/json", "application/json", "A book without a place"},
		{"N2C", book, "text/turtle", "text/turtle; charset=utf-8", "A book without a place"},
		{"N2C", book, "text/plain", "text/plain; charset=utf-8", "what: A book without a place"},
		{"N2C", book, "application/x-bibtex;q=0.5, application/ld+json", "application/ld+json", "A book without a place"},
		{"N2C", "urn:paradisec:AB1:001:A", "application/ld+json", "application/ld+json", "Songs"},
		{"N2P", book, "text/plain", "text/plain; charset=utf-8", "It stays."},
		{"N2P", book, "", "text/plain; charset=utf-8", "It stays."},
		{"N2P", book, "application/json", "application/json", `"statement":"It stays."`},
	} {
		res, body := f.ask("GET", "/uri-res/"+tt.service+"?"+tt.uri, "Accept", tt.accept)
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != tt.media || !strings.Contains(body, tt.in) {
			t.Errorf("%+v: got %d %s %s", tt, res.StatusCode, got, body)
		}
	}
	if res, body := f.ask("GET", "/uri-res/N2C?"+book, "Accept", "video/mp4"); res.StatusCode != http.StatusNotAcceptable {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestTHTTPFails(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fillTHTTP()
	for _, tt := range []struct {
		target string
		status int
		in     string // the body
	}{
		{"/uri-res/N2X?urn:isbn:9780140449136", 404, "has no target for N2X"},
		{"/uri-res/X2L?urn:isbn:9780140449136", 404, "N2L, N2Ls"},
		{"/uri-res/I=I?urn:isbn:9780140449136", 400, "two names"},
		{"/uri-res/I=I?urn:isbn:9780140449136%20urn:isbn:9780141036144", 404, "no such name"},
		{"/uri-res/I2N?20.500.99999/ABC-1", 404, "has no URN"},
		{"/uri-res?urn:isbn:9780140449136", 404, "N2L, N2Ls"},
		{"/uri-res/N2L/more?urn:isbn:9780140449136", 404, "N2L, N2Ls"},
		{"/uri-res/N2L", 400, "There is no name"},
		{"/uri-res/N2L?", 400, "There is no name"},
		{"/uri-res/N2L?urn:isbn:9780140449137", 400, "identifier"}, // a wrong check digit
		{"/uri-res/N2L?nothing", 400, "identifier"},
		{"/uri-res/N2L?%zz", 400, "identifier"},
		{"/uri-res/N2L?urn:isbn:9780306406157", 404, "urn:isbn:9780306406157"},
		{"/uri-res/N2L?urn:isbn:9783161484100", 404, "no location"},
		{"/uri-res/N2S?urn:isbn:9783161484100", 404, "N2S"},
		{"/uri-res/N2L?urn:isbn:9781861972712", 410, ""},
		{"/uri-res/N2Ls?20.500.99999/W-1", 410, "a copy"},
		{"/uri-res/N2Ns?20.500.99999/R-1", 404, ""},
		{"/uri-res/N2C?20.500.99999/H-1", 404, ""},
		{"/uri-res/N2L?20.500.99999/LOOP-A", 508, ""},
		{"/uri-res/N2Ls?20.500.99999/LOOP-A", 508, ""},
		{"/uri-res/N2L?20.500.99999/BAD", 404, "no location"},
		{"/uri-res/L2Ns?https://example.org/t", 403, "turn it on"},
		{"/uri-res/L2Ls?https://example.org/t", 403, "turn it on"},
		{"/uri-res/L2C?https://example.org/t", 403, "turn it on"},
		{"/uri-res/N2L?urn:x:a%0d%0aSet-Cookie:%20b", 400, ""},
		{"/uri-res/N2Ls?20.500.99999/a%0d%0ahttps://evil.example.org/", 404, "20.500.99999/A%0D%0A"}, // a percent sign may be part of a handle
		{"/uri-res/N2L?urn:isbn:" + strings.Repeat("9", 5000), 400, ""},
		{"/uri-res/N2L?urn:isbn:" + strings.Repeat("9", maxTarget), 414, ""},
	} {
		res, body := f.ask("GET", tt.target)
		if res.StatusCode != tt.status || !strings.Contains(body, tt.in) || res.Header.Get("Location") != "" {
			t.Errorf("GET %.80s: got %d %q, want %d with %q", tt.target, res.StatusCode, body, tt.status, tt.in)
		}
	}
	if res, _ := f.ask("POST", "/uri-res/N2L?urn:isbn:9780140449136"); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", res.StatusCode)
	}
}

// The services that search by location, where they are on.
func TestTHTTPPointing(t *testing.T) {
	var f *handleFixture
	f = newHandleFixture(t, func(o *Options) {
		o.Pointing = func(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
			return f.store.Pointing(ctx, at, after)
		}
	})
	f.fillTHTTP()
	const first = "https://catalog.example.org/AB1?x=1&y=2"
	f.to("urn:isbn:9780306406157", at("https://example.org/t", 100))
	for _, tt := range []struct{ target, want string }{
		{"/uri-res/L2Ns?" + first, "200 # " + first + "\r\nurn:paradisec:ab1:001:a\r\nhdl:20.500.99999/AB1\r\n"},
		{"/uri-res/l2ns?https%3A%2F%2Fcatalog.example.org%2FAB1%3Fx=1%26y=2", "200 # https%3A%2F%2Fcatalog.example.org%2FAB1%3Fx=1%26y=2\r\nurn:paradisec:ab1:001:a\r\nhdl:20.500.99999/AB1\r\n"},
		{"/uri-res/L2Ls?" + first, "200 # " + first + "\r\nhttps://mirror.example.org/AB1\r\n"},
		{"/uri-res/L2Ns?https://example.org/t", "200 # https://example.org/t\r\nhdl:20.500.99999/T-1\r\nurn:isbn:9780306406157\r\n"},
		{"/uri-res/L2C?https://example.org/t", "200 # https://example.org/t\r\nhttp://id.example.org/uri-res/N2C?20.500.99999/T-1\r\nhttp://id.example.org/uri-res/N2C?urn:isbn:9780306406157\r\n"},
		{"/uri-res/L2C?" + first, "302 https://catalog.example.org/AB1.xml"},
	} {
		if got := told(f.ask("GET", tt.target)); got != tt.want {
			t.Errorf("GET %s:\ngot  %q\nwant %q", tt.target, got, tt.want)
		}
	}
	// A withdrawn, reserved or restricted record is not found by its location by the public.
	for _, location := range []string{"https://example.org/w", "https://example.org/r", "https://example.org/h", "https://example.org/none"} {
		for _, service := range []string{"L2Ns", "L2Ls", "L2C"} {
			if res, body := f.ask("GET", "/uri-res/"+service+"?"+location); res.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", service, location, res.StatusCode, body)
			}
		}
	}
}

// Names that no namespace here has are passed on to the resolver of their scheme.
func TestTHTTPGlobal(t *testing.T) {
	f := newHandleFixture(t, func(o *Options) { o.Global = map[string]string{"ark": "https://n2t.example.net/{id}"} })
	f.fillTHTTP()
	for _, uri := range []string{"ark:/99999/x1", "ark%3A99999%2Fx1"} {
		if got := told(f.ask("GET", "/uri-res/N2L?"+uri)); got != "302 https://n2t.example.net/ark:99999/x1" {
			t.Errorf("%s: %s", uri, got)
		}
	}
}

// Squid asks so: HTTP/1.0, and no Host.
func TestTHTTPWithoutHost(t *testing.T) {
	f := newHandleFixture(t, nil)
	f.fillTHTTP()
	server := httptest.NewServer(f.handler)
	defer server.Close()
	for target, want := range map[string]string{
		"/uri-res/N2L?urn:paradisec:AB1:001:A":  "Location: https://catalog.example.org/AB1?x=1&y=2\r\n",
		"/uri-res/N2Ls?urn:paradisec:AB1:001:A": "\r\nhttps://mirror.example.org/AB1\r\n",
		"/uri-res/N2Cs?urn:paradisec:AB1:001:A": "\r\n/uri-res/N2C?urn:paradisec:ab1:001:a\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.0\r\nAccept: */*\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(bufio.NewReader(conn))
		conn.Close()
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %q, %v; want %q in it", target, answer, err, want)
		}
	}
}

// Whatever follows the question mark, there is an answer, its headers are whole, and a list
// is one: a comment, and URIs.
func FuzzTHTTP(f *testing.F) {
	fixture := newHandleFixture(f, nil)
	fixture.fillTHTTP()
	services := strings.FieldsFunc(thttpServices, func(r rune) bool { return !isAlphanumeric(byte(r)) })
	for i, uri := range []string{
		"urn:paradisec:AB1:001:A", "urn%3Aparadisec%3AAB1%3A001%3AA", "20.500.99999/ABC-1", "hdl:20.500.99999/W-1",
		"https://hdl.handle.net/20.500.99999/T-1", "ark:/12345/x1??", "urn:x:a%0d%0aSet-Cookie:b", "%", "javascript:alert(1)",
		"\x00", "urn:isbn:9780140449137", "20.500.99999/PART/../../x", "20.500.99999/PART/\r\nA: b", "世界",
	} {
		f.Add(uint8(i), uri)
	}
	f.Fuzz(func(t *testing.T, which uint8, uri string) {
		service := services[int(which)%len(services)]
		fixture.t = t
		res, body := fixture.ask("GET", "/uri-res/"+service+"?"+uri)
		if location := res.Header.Get("Location"); location != "" {
			if _, ok := destination.Safe(location); !ok {
				t.Errorf("%s?%q leads to %q", service, uri, location)
			}
		}
		if res.StatusCode >= 500 && res.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s?%q: %d %s", service, uri, res.StatusCode, body)
		}
		if res.Header.Get("Content-Type") != uriListType {
			return
		}
		for i, line := range strings.SplitAfter(strings.TrimSuffix(body, "\r\n"), "\r\n") {
			if line = strings.TrimSuffix(line, "\r\n"); i == 0 {
				line = strings.TrimPrefix(line, "# ")
			}
			if plainURI(line) != line {
				t.Errorf("%s?%q: the line %q", service, uri, line)
			}
		}
	})
}
