package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/ddds"
)

func newHTTP(t *testing.T, server string) *HTTP {
	t.Helper()
	h, err := NewHTTP(HTTPOptions{Schemes: schemes(t), Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func TestHTTP(t *testing.T) {
	server := newWebServer(t, resolverAnswers)
	h := newHTTP(t, server.URL+"/")
	for _, tt := range []struct {
		q    Request
		want string
		kind stele.Kind
		sent string
	}{
		{Request{Name: paradisec}, "https://thing.example/" + paradisec, 0, "/uri-res/N2L?" + paradisec},
		{Request{Name: "https://doi.org/10.1000/182"}, "https://thing.example/10.1000/182", 0, "/uri-res/N2L?10.1000/182"},
		{Request{Name: paradisec, Service: stele.N2C}, server.URL + "/uri-res/N2C?" + paradisec, 0, ""},
		{Request{Name: paradisec, Protocols: []string{"ftp"}}, "ftp://thing.example/2", 0, "/uri-res/N2Ls?" + paradisec},
		{Request{Name: paradisec, Protocols: []string{"ftp"}, OnlyProtocols: true}, "ftp://thing.example/2", 0, ""},
		{Request{Name: paradisec, Protocols: []string{"rtsp"}, OnlyProtocols: true}, "", stele.NotFound, ""},
		{Request{Name: paradisec, Service: stele.N2C, Protocols: []string{"rtsp"}, OnlyProtocols: true}, "", stele.NotFound, ""},
		{Request{Name: paradisec, Service: stele.N2P}, "", stele.NotFound, ""},
		{Request{Name: "urn:x-y:unknown"}, "", stele.NotFound, ""},
		{Request{Name: "urn:x-y:gone"}, "", stele.Gone, ""},
		{Request{Name: "urn:x-y:down"}, "", stele.Unavailable, ""},
		{Request{Name: "nonsense"}, "", stele.Invalid, ""},
		{Request{Name: paradisec, OnlyProtocols: true}, "", stele.Invalid, ""},
	} {
		tt.q.Trace = true
		res, err := h.Resolve(t.Context(), tt.q)
		if tt.want == "" && stele.KindOf(orInternal(err)) != tt.kind || tt.want != "" && (err != nil || res.Via != ViaHTTP || res.Found != FoundLocation) || res.Location != tt.want {
			t.Errorf("%+v: %+v, %v; want %q, %v", tt.q, res, err, tt.want, tt.kind)
		}
		if asked := server.asked(); tt.sent != "" && !strings.HasSuffix(asked[len(asked)-1], " "+tt.sent) {
			t.Errorf("%+v: asked %q, want %q", tt.q, asked[len(asked)-1], tt.sent)
		}
	}
}

// TestHTTPHostile: the client limits what a malicious server can do.
func TestHTTPHostile(t *testing.T) {
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Location"] = []string{to}
			w.WriteHeader(http.StatusFound)
		}
	}
	for _, tt := range []struct {
		about  string
		answer http.HandlerFunc
		want   string
		kind   stele.Kind
	}{
		{"a relative location", redirect("/there?x"), "SERVER/there?x", 0},
		{"a location without ASCII", redirect("https://a.example/ü"), "https://a.example/%C3%BC", 0},
		{"a script", redirect("javascript:alert(1)"), "", stele.Unavailable},
		{"no host", redirect("mailto:x@example.org"), "", stele.Unavailable},
		{"no URL", redirect("http://[::1"), "", stele.Unavailable},
		{"a location that is too long", redirect("https://a.example/" + strings.Repeat("x", stele.MaxURL)), "", stele.Unavailable},
		{"no location", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, "", stele.Unavailable},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>hello") }, "", stele.Unavailable},
		{"a list without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", uriListType)
			for range 200 {
				fmt.Fprint(w, strings.Repeat("#", 1000))
			}
		}, "", stele.Unavailable},
		{"a list of nothing", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", uriListType)
			fmt.Fprint(w, "# nothing\r\n\r\nnonsense\r\n")
		}, "", stele.Unavailable},
		{"a head that is too large", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 2*endpoint.MaxHeader))
			w.WriteHeader(http.StatusFound)
		}, "", stele.Unavailable},
		{"it refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "", stele.Forbidden},
		{"it wants a name", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "", stele.Unauthenticated},
		{"it does not understand", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }, "", stele.Invalid},
		{"too often", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "", stele.Unavailable},
		{"a loop", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusLoopDetected) }, "", stele.Conflict},
	} {
		server := newWebServer(t, tt.answer)
		h := newHTTP(t, server.URL)
		res, err := h.Resolve(t.Context(), Request{Name: paradisec, Trace: true})
		want := strings.Replace(tt.want, "SERVER", server.URL, 1)
		if want == "" && stele.KindOf(orInternal(err)) != tt.kind || want != "" && err != nil || res.Location != want {
			t.Errorf("%s: %q, %v; want %q, %v", tt.about, res.Location, err, want, tt.kind)
		}
		if len(server.asked()) != 1 {
			t.Errorf("%s: a redirect was followed: %q", tt.about, server.asked())
		}
	}
}

// TestHTTPUpgrade: a resolver that redirects all requests to HTTPS has not answered yet.
func TestHTTPUpgrade(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(resolverAnswers))
	defer secure.Close()
	plain := newWebServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, secure.URL+r.RequestURI, http.StatusMovedPermanently)
	})
	transport := secure.Client().Transport
	h, err := NewHTTP(HTTPOptions{Schemes: schemes(t), Server: plain.URL, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Resolve(t.Context(), Request{Name: paradisec})
	if err != nil || res.Location != "https://thing.example/"+paradisec {
		t.Errorf("%+v, %v", res, err)
	}
	// A loop ends.
	again := httptest.NewUnstartedServer(nil)
	again.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, again.URL+r.RequestURI, http.StatusMovedPermanently)
	})
	again.StartTLS()
	defer again.Close()
	if h, err = NewHTTP(HTTPOptions{Schemes: schemes(t), Server: again.URL, Transport: again.Client().Transport}); err != nil {
		t.Fatal(err)
	}
	if res, err = h.Resolve(t.Context(), Request{Name: paradisec}); err != nil || !strings.HasPrefix(res.Location, again.URL) {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestHTTPSlow: a server that answers too slowly counts as unavailable.
func TestHTTPSlow(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", uriListType)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer server.Close()
	defer close(ended)
	h, err := NewHTTP(HTTPOptions{Schemes: schemes(t), Server: server.URL, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Resolve(t.Context(), Request{Name: paradisec}); stele.KindOf(orInternal(err)) != stele.Unavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}

func TestAcceptHeader(t *testing.T) {
	for _, tt := range []struct {
		q    Request
		want string
	}{
		{Request{}, "*/*"},
		{Request{Accept: []ddds.Preference{{Range: "audio/mpeg", Q: 1000}, {Range: "audio/*", Q: 500}, {Range: "text", Q: 125}}}, "audio/mpeg, audio/*;q=0.5, text/*;q=0.125"},
		{Request{Accept: []ddds.Preference{{Range: "text/html;level=1", Q: 0}}}, "text/html;level=1;q=0"},
		{Request{Accept: []ddds.Preference{{Range: "text/html\r\nX: y", Q: 1000}}}, ""},
		{Request{Service: stele.N2S, Accept: []ddds.Preference{{Range: "RSA", Q: 1000}}}, "*/*"},
	} {
		if got := tt.q.AcceptHeader(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.q, got, tt.want)
		}
	}
}

func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"urn:x:a%20b": "urn:x:a%20b", "10.1000/a b": "10.1000/a%20b", "a#b?c": "a%23b?c", "100%": "100%25", "%zz": "%25zz", "%4": "%254", "ü\r\n": "%C3%BC%0D%0A",
	} {
		if got := escapeName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestFirst: ways are tried in turn, and the error says what is known.
func TestFirst(t *testing.T) {
	unknown, down := newWebServer(t, http.NotFound), "http://127.0.0.1:"+closedPort(t)
	good := newWebServer(t, resolverAnswers)
	ways := map[string]Way{"unknown": newHTTP(t, unknown.URL), "down": newHTTP(t, down), "good": newHTTP(t, good.URL), "dns": newDNS(t, DNSOptions{}, newNameServer(t, ""))}
	for _, tt := range []struct {
		name, ways string
		kind       stele.Kind
		steps      int
	}{
		{"urn:x-y:z", "good unknown", 0, 1},
		{"urn:x-y:z", "unknown down good", 0, 5},
		{"urn:x-y:gone", "unknown good down", stele.Gone, 3},
		{"urn:x-y:z", "unknown down", stele.Unavailable, 3},
		{"urn:x-y:z", "down unknown", stele.Unavailable, 3},
		{"urn:x-y:z", "unknown", stele.NotFound, 1},
		{"8JMKD3MGP8W/34PGRBS", "dns unknown", stele.NotFound, 2},
		{"8JMKD3MGP8W/34PGRBS", "dns", stele.Invalid, 0},
		{"10.1000/182", "dns unknown", stele.NotFound, 6},
		{"urn:x-y:z", "", stele.Invalid, 0},
	} {
		var list []Way
		for _, w := range strings.Fields(tt.ways) {
			list = append(list, ways[w])
		}
		res, err := First(t.Context(), Request{Name: tt.name, Trace: true}, list...)
		if tt.kind == 0 && (err != nil || res.Location == "") || tt.kind != 0 && stele.KindOf(orInternal(err)) != tt.kind || len(res.Trace.Steps) != tt.steps {
			t.Errorf("%s by %s: %+v, %v\n%s", tt.name, tt.ways, res, err, res.Trace)
		}
	}
}

// FuzzReply: whatever a resolver answers, there is an error, or a location that may be
// shown and sent.
func FuzzReply(f *testing.F) {
	f.Add(302, "Location: https://a.example/1\r\n", "", uint8(0))
	f.Add(302, "Location: /relative?x#y\r\nCache-Control: max-age=30, no-transform\r\n", "", uint8(1))
	f.Add(302, "Location: javascript:alert(1)\r\n", "", uint8(0))
	f.Add(200, "Content-Type: text/uri-list\r\n", "# urn:x:y\r\nhttps://a.example/1\r\nftp://b.example/2\r\n", uint8(2))
	f.Add(200, "Content-Type: text/uri-list; charset=\"x\"\r\n", "\n\n#\nhttps://\x00/\nhttps://a.example/\xff\n", uint8(6))
	f.Add(200, "Content-Type: application/json\r\n", "{}", uint8(1))
	f.Add(410, "", "", uint8(0))
	f.Add(99999, "Content-Type: \x1b[2J\r\n", "", uint8(8))
	services := []stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}
	f.Fuzz(func(t *testing.T, status int, head, body string, options uint8) {
		header := http.Header{}
		for line := range strings.SplitSeq(head, "\r\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				header[http.CanonicalHeaderKey(name)] = []string{value}
			}
		}
		a := &reply{status: status, url: &url.URL{Scheme: "https", Host: "id.example", Path: "/uri-res/N2L"}, header: header, body: []byte(body)}
		a.ttl = a.maxAge()
		q := &Request{Service: services[options%4]}
		if options&4 != 0 {
			q.Protocols, q.OnlyProtocols = []string{"ftp", "https"}, options&8 != 0
		}
		res, err := a.result(q, "https://id.example/uri-res/N2L?urn:x:y", options&16 != 0)
		if err != nil {
			if res.Location != "" || stele.KindOf(err) == stele.Internal {
				t.Fatalf("%+v, %v", res, err)
			}
			return
		}
		for _, location := range append([]string{res.Location}, res.Others...) {
			checkFuzzed(t, location)
			if !q.allows(location) {
				t.Fatalf("%q has another protocol than was asked for", location)
			}
		}
		if res.TTL > maxTTL || strings.ContainsFunc(res.Type, func(r rune) bool { return r < ' ' }) {
			t.Fatalf("%+v", res)
		}
		if err := (&http.Request{Method: "GET", URL: a.url, Header: http.Header{"Referer": {res.Location}}}).Write(io.Discard); err != nil {
			t.Fatalf("%q can't stand in a header: %v", res.Location, err)
		}
	})
}

func checkFuzzed(t *testing.T, location string) {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.Scheme == "" || len(location) > stele.MaxURL || strings.ContainsFunc(location, func(r rune) bool { return r <= ' ' || r > '~' }) {
		t.Fatalf("%q is not a location: %v", location, err)
	}
	if again, err := checkLocation(location); err != nil || again != location {
		t.Fatalf("%q is read as %q, %v", location, again, err)
	}
	if slices.Contains([]string{"javascript", "data", "vbscript"}, u.Scheme) && u.Host == "" {
		t.Fatalf("%q", location)
	}
}
