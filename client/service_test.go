package client

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// TestServices: the client asks a resolver for a service in the words of the rule that leads
// there, I2L as well as N2L (RFC 2483; RFC 3404, 4.4.1). It also takes rules that name no
// service, or a more general one, and users may name any service.
func TestServices(t *testing.T) {
	web := newWebServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch service := r.URL.Path[len("/uri-res/"):]; {
		case strings.HasSuffix(service, "R"):
			fmt.Fprint(w, "the thing itself")
		case strings.HasSuffix(service, "Ns"):
			w.Header().Set("Content-Type", "text/uri-list")
			fmt.Fprint(w, "# names\r\nurn:i2l:x\r\nhdl:20.500.1/x\r\n")
		case strings.HasSuffix(service, "s"):
			w.Header().Set("Content-Type", "text/uri-list")
			fmt.Fprint(w, "# locations\r\nhttps://thing.example/1\r\nftp://thing.example/2\r\n")
		default:
			w.Header().Set("Location", "https://thing.example/"+service)
			w.WriteHeader(http.StatusFound)
		}
	})
	d := newDNS(t, DNSOptions{}, newNameServer(t, strings.ReplaceAll(`
i2l.urn.example. NAPTR 100 10 "s" "thttp+I2L+I2Ls+I2C+I2Ns+N2X" "" _http._tcp.good.example.
n2l.urn.example. NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.good.example.
onlyr.urn.example. NAPTR 100 10 "s" "thttp+I2R" "" _http._tcp.good.example.
onlyls.urn.example. NAPTR 100 10 "s" "thttp+I2Ls" "" _http._tcp.good.example.
bare.urn.example. NAPTR 100 10 "s" "thttp" "" _http._tcp.good.example.
empty.urn.example. NAPTR 100 10 "u" "" "!.*!https://there.example/!" .
new.urn.example. NAPTR 100 10 "RES:https" "N2X" "!.*!https://there.example/new!" .
_http._tcp.good.example. SRV 10 0 PORT good.example.
good.example. A 127.0.0.1
`, "PORT", web.port())))
	here := "http://good.example:" + web.port()
	for _, tt := range []struct {
		name    string
		service stele.Service
		q       Request
		want    string
		asked   string
	}{
		{"urn:i2l:x", "", Request{}, "https://thing.example/I2L", "I2L"},
		{"urn:i2l:x", "i2l", Request{}, "https://thing.example/I2L", "I2L"},
		{"urn:i2l:x", "N2C", Request{}, "https://thing.example/I2C", "I2C"},
		{"urn:i2l:x", "", Request{Protocols: []string{"ftp"}}, "ftp://thing.example/2", "I2Ls"},
		{"urn:i2l:x", "N2Ns", Request{}, "urn:i2l:x hdl:20.500.1/x", "I2Ns"},
		{"urn:i2l:x", "N2X", Request{}, "https://thing.example/N2X", "N2X"},
		{"urn:n2l:x", "I2L", Request{}, "https://thing.example/N2L", "N2L"},
		{"urn:onlyr:x", "", Request{}, here + "/uri-res/I2R?urn:onlyr:x", "I2R"},
		{"urn:onlyls:x", "", Request{}, "https://thing.example/1 ftp://thing.example/2", "I2Ls"},
		{"urn:bare:x", "", Request{}, "https://thing.example/N2L", "N2L"},
		{"urn:empty:x", "", Request{}, "https://there.example/", ""},
		{"urn:new:x", "N2X", Request{}, "https://there.example/new", ""},
	} {
		tt.q.Name, tt.q.Service, tt.q.Trace = tt.name, tt.service, true
		before := len(web.asked())
		res, err := d.Resolve(t.Context(), tt.q)
		got := strings.Join(append([]string{res.Location}, res.Others...), " ")
		if tt.q.Protocols != nil {
			got = res.Location
		}
		if err != nil || got != tt.want {
			t.Errorf("%s of %s is %q, not %q: %v\n%s", tt.service, tt.name, got, tt.want, err, res.Trace)
		}
		asked := ""
		for _, line := range web.asked()[before:] {
			_, asked, _ = strings.Cut(line, "/uri-res/")
			asked, _, _ = strings.Cut(asked, "?")
		}
		if asked != tt.asked {
			t.Errorf("%s of %s: the resolver was asked for %q, not %q", tt.service, tt.name, asked, tt.asked)
		}
	}
	for _, tt := range []struct {
		q    Request
		kind stele.Kind
	}{
		{Request{Name: "urn:n2l:x", Service: "N2X"}, stele.NotFound},
		{Request{Name: "urn:n2l:x", Service: "location"}, stele.Invalid},
		{Request{Name: "urn:empty:x", Flags: []ddds.Flag{ddds.FlagSRV}}, stele.NotFound},
	} {
		if res, err := d.Resolve(t.Context(), tt.q); stele.KindOf(err) != tt.kind {
			t.Errorf("%+v: %+v, %v", tt.q, res, err)
		}
	}
}

// TestExpiredRules: if a resolver does not answer, the client asks again for rules that
// expired meanwhile, and does not fall back to the old ones (RFC 3403, 3).
func TestExpiredRules(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	server := newNameServer(t, `
x1.urn.example. 20 NAPTR 100 10 "s" "thttp+N2L" "" _http._tcp.nowhere.example.
x1.urn.example. 20 NAPTR 100 20 "u" "http+N2L" "!.*!https://there.example/!" .
`)
	clock := func() time.Time { return now.Add(time.Duration(len(server.asked())) * 15 * time.Second) }
	d := newDNS(t, DNSOptions{Now: clock}, server)
	res, err := d.Resolve(t.Context(), Request{Name: "urn:x1:y"})
	if err != nil || res.Location != "https://there.example/" {
		t.Errorf("within the time: %+v, %v", res, err)
	}
	clock = func() time.Time { return now.Add(time.Duration(len(server.asked())) * 25 * time.Second) }
	d = newDNS(t, DNSOptions{Now: clock}, server)
	before := len(server.asked())
	res, err = d.Resolve(t.Context(), Request{Name: "urn:x1:y"})
	asked := server.asked()[before:]
	// The SRV records for the second walk are cached.
	if err != nil || res.Location != "https://there.example/" || !slices.Equal(asked, []string{
		"udp x1.urn.example. NAPTR", "udp _http._tcp.nowhere.example. SRV", "udp x1.urn.example. NAPTR",
	}) {
		t.Errorf("too late: %+v, %v, asked %q", res, err, asked)
	}
}
