package publish_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/publishtest"
)

// walkURI resolves a URI from a key.
func walkURI(p *publishtest.Registry, key, uri string) string {
	p.T.Helper()
	res, err := (&ddds.Walker{Database: p}).Walk(p.Ctx, ddds.Request{Name: uri, Start: key, Service: stele.N2L})
	if err != nil {
		return stele.KindOf(err).String()
	}
	return string(res.Candidate.Flag) + " " + res.Candidate.Key
}

// uris publishes handles, DOIs and PURLs, and a root of URIs.
func uris(p *publishtest.Registry) {
	p.T.Helper()
	p.Publish("20.500.12345/", "handles.example.", "/", 1)
	p.Publish("10.5555/", "dois.example.", "/", 2)
	p.Publish("https://purl.example.org/net/", "purls.example.", "/", 1)
	p.Register("20.500.12345/abc", "http://example.org/handle")
	p.Register("10.5555/a/x.1", "http://example.org/doi")
	p.Register("https://purl.example.org/net/A", "http://example.org/purl")
	p.Register("https://purl.example.org/net/a", "http://example.org/other")
	p.Namespace("10.7777/", func(ns *stele.Namespace) { ns.Delegate = "https://other.example/{id}?{rest}" })
	p.Namespace("purl:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "uri.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.example.net."}}}
	})
}

// TestRootOfURIs checks that a root of URIs has a key for each scheme of a URI (RFC 3404,
// section 4.2), whatever the scheme of the namespace that it belongs to.
func TestRootOfURIs(t *testing.T) {
	p := publishtest.New(t)
	uris(p)
	const services = `"thttp+N2L+N2Ls+N2R+N2Rs+N2C+N2Cs+N2N+N2Ns+I2L+I2Ls+I2R+I2Rs+I2C+I2Cs+I2N+I2Ns+N2S+N2P"`
	wantRules(t, rulesAt(p, "https.uri.example."),
		`99 10 "" "" "!^https?://purl[.]example[.]org/net/([-_A-Za-z0-9]{1,59}([.][-_A-Za-z0-9]{1,59}){0,3})$!\\1.purls.example.!" .`,
		`99 50 "s" `+services+` "!^https?://purl[.]example[.]org/net/.*$!_http._tcp.purls.example.!" .`,
		`99 60 "s" "thttp" "!^https?://purl[.]example[.]org/net/.*$!_http._tcp.purls.example.!" .`,
		`300 10 "" "" "!^https://([^:/?#]+).*$!\\1!i" .`)
	wantRules(t, rulesAt(p, "doi.uri.example."),
		`99 10 "" "" "!^(doi|hdl):10[.]5555/([-_a-z0-9]{1,47})/([-_a-z0-9]{1,47}([.][-_a-z0-9]{1,47}){0,3})$!\\3.\\2.dois.example.!i" .`,
		`99 50 "s" `+services+` "!^(doi|hdl):10[.]5555/.*$!_http._tcp.dois.example.!i" .`,
		`99 60 "s" "thttp" "!^(doi|hdl):10[.]5555/.*$!_http._tcp.dois.example.!i" .`,
		`99 10 "DIS:URL" "N2L" "!^(doi|hdl):(10[.]7777/(.*))$!https://other.example/\\2?\\3!i" .`,
		`99 20 "u" "http+N2L+N2R+I2L+I2R" "!^(doi|hdl):(10[.]7777/(.*))$!https://other.example/\\2?\\3!i" .`)
	for uri, want := range map[string]string{
		"hdl:20.500.12345/ABC":             "RES:http http://example.org/handle",
		"hdl:20.500.12345/A%20B":           "s _http._tcp.handles.example.",
		"doi:10.5555/A/X.1":                "RES:http http://example.org/doi",
		"hdl:10.5555/A/X.1":                "RES:http http://example.org/doi",
		"doi:10.7777/A":                    "DIS:URL https://other.example/10.7777/A?A",
		"https://purl.example.org/net/A":   "RES:http http://example.org/purl",
		"http://purl.example.org/net/A":    "RES:http http://example.org/purl",
		"https://purl.example.org/net/a":   "RES:http http://example.org/other",
		"https://purl.example.org/net/a~b": "s _http._tcp.purls.example.",
		"https://purl.example.org/other":   "not found",
		"hdl:20.500.54321/ABC":             "not found",
	} {
		scheme, _, _ := strings.Cut(uri, ":")
		if got := walkURI(p, scheme+".uri.example.", uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
	// The server has what changed, in the root too.
	p.Publish("20.500.777/", "more.example.", "/", 1)
	p.Register("20.500.777/x", "http://example.org/more")
	if got := walkURI(p, "hdl.uri.example.", "hdl:20.500.777/X"); got != "RES:http http://example.org/more" {
		t.Error(got)
	}
}

// TestZoneOfHost checks that the rules of RFC 3404, section 5.3, lead to the host in a URI,
// and that its zone has rules for all namespaces of the registry with that host.
func TestZoneOfHost(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("https://purl.example.org/net/", "purl.example.org.", "/", 1)
	p.Publish("https://purl.example.org/obo/HP_", "hp.example.", "/", 1)
	p.Register("https://purl.example.org/net/A", "http://example.org/net")
	p.Register("https://purl.example.org/obo/HP_1", "http://example.org/hp")
	for uri, want := range map[string]string{
		"https://purl.example.org/net/A":    "RES:http http://example.org/net",
		"http://purl.example.org/obo/HP_1":  "RES:http http://example.org/hp",
		"http://purl.example.org/obo/HP_1~": "s _http._tcp.hp.example.",
	} {
		if got := walkURI(p, "purl.example.org.", uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
	var b bytes.Buffer
	if err := p.Zones.ExportParent(p.Ctx, &b, "hp.example", ""); err != nil {
		t.Fatal(err)
	}
	if want := "; (the zone purl.example.org. of this registry has the rules that keys lead to)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

// TestParentOfURIs exports what other administrators must publish so that clients find
// URIs.
func TestParentOfURIs(t *testing.T) {
	p := publishtest.New(t)
	uris(p)
	var b bytes.Buffer
	for _, zone := range []string{"handles.example", "dois.example", "purls.example"} {
		for _, root := range []string{"uri.arpa", ""} {
			if err := p.Zones.ExportParent(p.Ctx, &b, zone, root); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "parenturi.zone", b.String())
}
