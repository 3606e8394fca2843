package client

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestCanonicalString: rules are applied to the canonical form of a URN, so that rules
// without the flag i match it however scheme and namespace are written (RFC 3404, 4.1;
// RFC 8141, 3.1). What else is canonical in a namespace is tried if no rule matches.
func TestCanonicalString(t *testing.T) {
	d := newDNS(t, DNSOptions{}, newNameServer(t, `
cs.urn.example. NAPTR 100 10 "u" "http+N2L" "!^urn:cs:(.*)$!https://there.example/\\1!" .
paradisec.urn.example. NAPTR 100 10 "u" "http+N2L" "!^urn:paradisec:([a-z:0-9]*)$!https://small.example/\\1!" .
paradisec.urn.example. NAPTR 100 10 "u" "http+N2L" "!^urn:paradisec:([A-Z:0-9]*)$!https://large.example/\\1!" .
`))
	for name, want := range map[string]string{
		"urn:cs:x":               "https://there.example/x",
		"URN:cs:x":               "https://there.example/x",
		"urn:CS:X":               "https://there.example/X",
		"Urn:Cs:x%c3%a9?+r#f":    "https://there.example/x%C3%A9#f",
		"urn:paradisec:AB1:1:A":  "https://large.example/AB1:1:A",
		"URN:PARADISEC:ab1:1:a":  "https://small.example/ab1:1:a",
		"urn:paradisec:Ab1:1:aB": "https://small.example/ab1:1:ab",
	} {
		res, err := d.Resolve(t.Context(), Request{Name: name, Trace: true})
		if err != nil || res.Location != want {
			t.Errorf("%s leads to %q, not to %q: %v\n%s", name, res.Location, want, err, res.Trace)
		}
	}
}

// TestComponents: a resolver gets the r- and the q-component, the target the
// q-component, and no server the f-component (RFC 8141, 2.3).
func TestComponents(t *testing.T) {
	web := newWebServer(t, func(w http.ResponseWriter, r *http.Request) {
		name, q, _ := strings.Cut(r.URL.RawQuery, "?=")
		name, _, _ = strings.Cut(name, "?+")
		w.Header().Set("Location", "https://thing.example/"+name+"?"+q)
		w.WriteHeader(http.StatusFound)
	})
	d := newDNS(t, DNSOptions{}, newNameServer(t, strings.ReplaceAll(`
thttp.urn.example. NAPTR 100 10 "s" "thttp+N2L+N2C" "" _http._tcp.good.example.
_http._tcp.good.example. SRV 10 0 PORT good.example.
good.example. A 127.0.0.1
res.urn.example. NAPTR 100 10 "RES:https" "N2L" "!.*!https://store.example/a?v=1!" .
res.urn.example. NAPTR 100 20 "RES:https" "N2L" "!.*!https://store.example/b#part!" .
res.urn.example. NAPTR 100 10 "RES:https" "N2C" "!.*!https://store.example/c!" .
uri.urn.example. NAPTR 100 10 "u" "http+N2L" "!.*!https://store.example/!" .
own.urn.example. NAPTR 100 10 "RES:http" "N2L" "!.*!http://id.example/uri-res/N2L?urn:own:x!" .
typed.urn.example. NAPTR 100 10 "RES:http" "N2L:text/csv" "!.*!http://id.example/urn:typed:x?+t=text/csv!" .
other.urn.example. NAPTR 100 10 "DIS:URL" "N2L" "!^(.*)$!https://other.example/\\1!" .
`, "PORT", web.port())))
	for _, tt := range []struct {
		name    string
		service stele.Service
		want    string
		others  []string
	}{
		{"urn:thttp:x?+cc=uk?=op=map#here", "", "https://thing.example/urn:thttp:x?op=map#here", nil},
		{"urn:res:x?=op=map", "", "https://store.example/a?v=1&op=map", []string{"https://store.example/b?op=map#part"}},
		{"urn:res:x?+cc=uk#here", "", "https://store.example/a?v=1#here", []string{"https://store.example/b#part"}},
		{"urn:res:x?=op=map#here", "N2C", "https://store.example/c?op=map", nil}, // not part of the resource
		{"urn:uri:x?=op=map#here", "", "https://store.example/?op=map#here", nil},
		{"urn:own:x?+cc=uk?=op=map", "", "http://id.example/uri-res/N2L?urn:own:x?+cc=uk?=op=map", nil},
		{"urn:typed:x?=op=map", "", "http://id.example/urn:typed:x?+t=text/csv?=op=map", nil},
		{"urn:typed:x?+cc=uk", "", "http://id.example/urn:typed:x?+t=text/csv&cc=uk", nil},
		{"urn:other:x?+cc=uk?=op=map#here", "", "https://other.example/urn:other:x?+cc=uk?=op=map#here", nil},
	} {
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Service: tt.service, Trace: true})
		if err != nil || res.Location != tt.want || !slices.Equal(res.Others, tt.others) {
			t.Errorf("%s leads to %q %q, not to %q %q: %v\n%s", tt.name, res.Location, res.Others, tt.want, tt.others, err, res.Trace)
		}
	}
	h, err := NewHTTP(HTTPOptions{Schemes: schemes(t), Server: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	res, err := h.Resolve(t.Context(), Request{Name: "URN:thttp:x?+cc=uk?=op=map#here"})
	if err != nil || res.Location != "https://thing.example/urn:thttp:x?op=map#here" {
		t.Errorf("over HTTP: %q, %v", res.Location, err)
	}
	for _, asked := range web.asked() {
		if !strings.HasSuffix(asked, " /uri-res/N2L?urn:thttp:x?+cc=uk?=op=map") {
			t.Errorf("the resolver was asked for %s", asked)
		}
	}
}
