package client

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestProtocolOfURL has rules that say RES:http and lead elsewhere: the protocol of the URL
// decides, and the result warns of a location that is not on a server.
func TestProtocolOfURL(t *testing.T) {
	d := newDNS(t, DNSOptions{}, newNameServer(t, `
bad.urn.example. NAPTR 100 10 "RES:http" "N2L" "!^urn:bad:(.*)$!\\1://x.example/y!" .
bad.urn.example. NAPTR 100 20 "RES:http" "N2L" "!^urn:bad:.*$!javascript:alert(1)!" .
mixed.urn.example. NAPTR 100 10 "RES:http" "N2L" "!.*!file:///etc/passwd!" .
mixed.urn.example. NAPTR 100 20 "RES:http" "N2L" "!.*!data:text/html,x!" .
mixed.urn.example. NAPTR 100 30 "RES:http" "N2L" "!.*!http://store.example/a!" .
mixed.urn.example. NAPTR 100 40 "RES:http" "N2L" "!.*!gopher://store.example/a!" .
uri.urn.example. NAPTR 100 10 "u" "http+N2L" "!.*!file:///etc/passwd!" .
`))
	only := func(name string) Request {
		return Request{Name: name, Protocols: []string{"http"}, OnlyProtocols: true}
	}
	for _, name := range []string{"urn:bad:file", "urn:bad:gopher", "urn:bad:ldap", "urn:uri:x"} {
		if res, err := d.Resolve(t.Context(), only(name)); err == nil || stele.KindOf(err) != stele.NotFound {
			t.Errorf("%s leads to %q: %v", name, res.Location, err)
		}
	}
	res, err := d.Resolve(t.Context(), only("urn:mixed:x"))
	if err != nil || res.Location != "http://store.example/a" || len(res.Others) > 0 || res.Note != "" {
		t.Errorf("%q, beside it %q (%q): %v", res.Location, res.Others, res.Note, err)
	}
	// Without OnlyProtocols the result has a note.
	for name, unsafe := range map[string]bool{"urn:bad:file": true, "urn:bad:javascript": true, "urn:bad:gopher": true, "urn:uri:x": true, "urn:bad:https": false, "urn:bad:ftp": false} {
		res, err := d.Resolve(t.Context(), Request{Name: name})
		if err != nil || strings.Contains(res.Note, "do not open it") != unsafe {
			t.Errorf("%s leads to %q, note %q: %v", name, res.Location, res.Note, err)
		}
	}
	// A resolver can lead anywhere too.
	web := newWebServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "gopher://store.example/a")
		w.WriteHeader(http.StatusFound)
	})
	if res, err := newHTTP(t, web.URL).Resolve(t.Context(), Request{Name: "urn:mixed:x"}); err != nil || !strings.Contains(res.Note, "do not open it") {
		t.Errorf("over HTTP it leads to %q, note %q: %v", res.Location, res.Note, err)
	}
	if res, err := d.Resolve(t.Context(), Request{Name: "urn:mixed:x"}); err != nil || !slices.Contains(res.Others, "http://store.example/a") {
		t.Errorf("%q: %v", res.Others, err)
	}
}
