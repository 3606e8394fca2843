package httpd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// spellings are the ways in which people ask for the names that newSpelled has
// registered.
var spellings = []struct{ name, target string }{
	{"urn:paradisec:ab1:001:a", "/urn:paradisec:AB1:001:A"},
	{"urn:paradisec:ab1:001:a", "/URN:PARADISEC:ab1:001:a"},
	{"urn:paradisec:ab1:001:a", "/urn%3Aparadisec%3AAB1%3A001%3AA"},
	{"urn:paradisec:ab1:001:a", "/urn:paradisec:AB1:001:A?+s=N2L"},
	{"urn:paradisec:ab1:001:a", "/urn:paradisec:AB1:001:A?unasked=1"},
	{"urn:paradisec:ab1:001:a", "http://id.example.org/urn:paradisec:AB1:001:A"},
	{"urn:paradisec:ab1:001:a", "/x/urn:paradisec:AB1:001:A"},

	{"ark:12345/x1", "/ark:12345/x1"},
	{"ark:12345/x1", "/ark:/12345/x1"},
	{"ark:12345/x1", "//ark:/12345/x1"},
	{"ark:12345/x1", "/ark:/12345//x-1/"},
	{"ark:12345/x1", "/ARK:12345/x1"},
	{"ark:12345/x1", "/ark%3A12345/x1"},
	{"ark:12345/x1", "/ark%3A%2F12345%2Fx1"},
	{"ark:12345/x1", "/n2t.net/ark:/12345/x1"},
	{"ark:12345/x1", "/https://n2t.net/ark:/12345/x1"},

	{"20.500.12345/A//B", "/hdl:20.500.12345/a//b"},
	{"20.500.12345/A//B", "/20.500.12345/a//b"},
	{"20.500.12345/A//B", "/hdl/20.500.12345/a//b"},
	{"20.500.12345/A//B", "/handle/20.500.12345/A//B"},
	{"20.500.12345/A//B", "/20.500.12345%2Fa%2F%2Fb"},
	{"20.500.12345/A//B", "/hdl%3A20.500.12345%2Fa%2F%2Fb"},
	{"20.500.12345/A//B", "/https://hdl.handle.net/20.500.12345/a//b"},
	{"20.500.12345/A//B", "/info:hdl/20.500.12345/a//b"},
	{"20.500.12345/A//B", "/urn:hdl:20.500.12345/a//b"},
	{"20.500.12345/50% OFF?", "/20.500.12345/50%25%20off%3F"},
	{"20.500.12345/50% OFF?", "/hdl/20.500.12345/50%25%20off%3f"},
	{"20.500.12345/50% OFF?", "/hdl:20.500.12345/50%25%20off%3F"},

	{"10.1000/182", "/doi:10.1000/182"},
	{"10.1000/182", "/10.1000/182"},
	{"10.1000/182", "/doi/10.1000/182"},
	{"10.1000/182", "/https://doi.org/10.1000/182"},
	{"10.1000/182", "/doi.org/10.1000/182"},
	{"10.1000/182", "/DOI:10.1000/182"},

	{"sid.inpe.br/mtc-m21d/2022/07.20.15.45", "/sid.inpe.br/mtc-m21d/2022/07.20.15.45"},
	{"sid.inpe.br/mtc-m21d/2022/07.20.15.45", "/ibi/sid.inpe.br/mtc-m21d/2022/07.20.15.45"},
	{"sid.inpe.br/mtc-m21d/2022/07.20.15.45", "/rep/sid.inpe.br/mtc-m21d/2022/07.20.15.45"},
	{"sid.inpe.br/mtc-m21d/2022/07.20.15.45", "/ibi/sid.inpe.br%2Fmtc-m21d%2F2022%2F07.20.15.45"},
	{"8JMKD3MGP3W34T/47AF772", "/8JMKD3MGP3W34T/47AF772"},
	{"8JMKD3MGP3W34T/47AF772", "/ibi/8JMKD3MGP3W34T/47AF772"},
	{"8JMKD3MGP3W34T/47AF772", "/8JMKD3MGP3W34T%2F47AF772"},

	{"https://id.example.org/net/a//b", "/net/a//b"},
	{"https://id.example.org/net/a//b", "/net/%61//b"},
	{"https://id.example.org/net/a//b", "/https://id.example.org/net/a//b"},
	{"https://purl.org/dc/title", "/https://purl.org/dc/title"},
	{"https://purl.org/dc/title", "/http://purl.org/dc/title"},

	{"urn:lsid:zoobank.org:act:8bdc0735", "/urn:lsid:zoobank.org:act:8bdc0735"},
	{"urn:lsid:zoobank.org:act:8bdc0735", "/URN:LSID:zoobank.org:act:8bdc0735"},
	{"urn:lsid:zoobank.org:act:8bdc0735", "/urn%3Alsid%3Azoobank.org%3Aact%3A8bdc0735"},
}

// newSpelled is a site with the names of spellings.
func newSpelled(t testing.TB, change ...func(*Options)) *site {
	s := newSite(t, change...)
	for _, prefix := range []string{"urn:paradisec", "ark:12345", "20.500.12345/", "10.1000/", "sid.inpe.br/mtc-m21d", "8JMKD3MGP3W34T",
		"https://id.example.org/net/", "https://purl.org/dc/", "urn:lsid:zoobank.org"} {
		s.space(prefix)
	}
	seen := map[string]bool{}
	for _, sp := range spellings {
		if !seen[sp.name] {
			s.to(sp.name, spelledTarget(s.id(sp.name)))
			seen[sp.name] = true
		}
	}
	return s
}

// spelledTarget is where newSpelled leads a name.
func spelledTarget(id stele.ID) string {
	return "https://repository.example.org/" + id.Scheme() + "/" + strings.Map(func(r rune) rune {
		if isAlphanumeric(byte(r)) {
			return r
		}
		return '-'
	}, id.String())
}

func TestSpellings(t *testing.T) {
	s := newSpelled(t)
	for _, sp := range spellings {
		a := s.leads(sp.target, spelledTarget(s.id(sp.name)), http.StatusFound)
		if got := a.get("Link"); !strings.Contains(got, `rel="cite-as"`) {
			t.Errorf("%s: the links are %q", sp.target, got)
		}
		if head := s.ask(http.MethodHead, sp.target); head.StatusCode != http.StatusFound || head.get("Location") != a.get("Location") {
			t.Errorf("HEAD %s: %d to %q", sp.target, head.StatusCode, head.get("Location"))
		}
	}
	// The URL of each name at this resolver leads to the same.
	for _, sp := range spellings {
		id := s.id(sp.name)
		s.leads("/"+strings.TrimPrefix(s.handler.self(&http.Request{Host: "id.example.org"}, id), "https://id.example.org/"), spelledTarget(id), http.StatusFound)
	}
}

// A host that gives no PURLs, such as an address of a test machine, reads paths as
// those of the configured one.
func TestOtherHost(t *testing.T) {
	s := newSpelled(t, func(o *Options) { o.Base = "" })
	for _, host := range []string{"127.0.0.1:8080", "localhost", "[::1]:80", ""} {
		for _, sp := range spellings {
			if strings.HasPrefix(sp.target, "/") {
				s.leads(sp.target, spelledTarget(s.id(sp.name)), http.StatusFound, "Host", host)
			}
		}
	}
	r := reached(httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/net/a//b", nil), "127.0.0.1:8080")
	r.RequestURI = "/net/a//b"
	a := s.send(r)
	if want := `<http://127.0.0.1:8080/net/a//b>; rel="cite-as"`; !strings.Contains(a.get("Link"), want) {
		t.Errorf("the links are %q, not %q", a.get("Link"), want)
	}
	a = s.get("/net/a//b", "Host", `evil"host`)
	if got := a.get("Link"); strings.Contains(got, "evil") {
		t.Errorf("the links are %q", got)
	}
}

func TestStatus(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345", func(ns *stele.Namespace) { ns.Status = http.StatusSeeOther })
	s.space("ark:12346", func(ns *stele.Namespace) { ns.TTL = 60 })
	s.to("ark:12345/plain", "https://example.org/1")
	s.to("ark:12346/plain", "https://example.org/1")
	for _, status := range []string{"301", "302", "303", "307", "308", "404", "410"} {
		s.add(`{"id":"ark:12345/s` + status + `","targets":[{"service":"N2L","url":"https://example.org/` + status + `","status":` + status + `}]}`)
	}
	s.leads("/ark:12345/plain", "https://example.org/1", http.StatusSeeOther)
	a := s.leads("/ark:12346/plain", "https://example.org/1", http.StatusFound)
	if got := a.get("Cache-Control"); got != "max-age=60" {
		t.Errorf("Cache-Control is %q", got)
	}
	s.leads("/ark:12345/s301", "https://example.org/301", http.StatusMovedPermanently)
	s.leads("/ark:12345/s302", "https://example.org/302", http.StatusFound)
	s.leads("/ark:12345/s303", "https://example.org/303", http.StatusSeeOther)
	s.leads("/ark:12345/s307", "https://example.org/307", http.StatusTemporaryRedirect)
	a = s.leads("/ark:12345/s308", "https://example.org/308", http.StatusPermanentRedirect)
	if got := a.get("Cache-Control"); got != "max-age=3600" {
		t.Errorf("Cache-Control is %q", got)
	}
	s.fails("/ark:12345/s404", http.StatusNotFound, "at present")
	s.fails("/ark:12345/s410", http.StatusGone, "is gone")
}

func TestPassthrough(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345")
	s.space("https://id.example.org/net/")
	s.space("urn:example")
	s.add(`{"id":"ark:12345/book","targets":[{"service":"N2L","url":"https://example.org/book","partial":true}]}`,
		`{"id":"https://id.example.org/net/","targets":[{"service":"N2L","url":"https://example.org/p/","partial":true}]}`,
		`{"id":"urn:example:part","targets":[{"service":"N2L","url":"https://example.org/u","partial":true}]}`)
	s.to("ark:12345/whole", "https://example.org/whole")
	for target, location := range map[string]string{
		"/ark:12345/book/p1.pdf?zoom=2":         "https://example.org/book/p1.pdf?zoom=2",
		"/ark:12345/book?zoom=2":                "https://example.org/book?zoom=2",
		"/ark:12345/book?a=%0d%0aSet-Cookie:x":  "https://example.org/book?a=%0d%0aSet-Cookie:x",
		"/ark:12345/book?a=b c\"<>":             "https://example.org/book?a=b%20c%22%3C%3E",
		"/ark:12345/whole?zoom=2":               "https://example.org/whole?zoom=2",
		"/net/x//y?q":                           "https://example.org/p/x//y?q",
		"/net/@evil.example":                    "https://example.org/p/@evil.example",
		"/urn:example:part?=page=2":             "https://example.org/u?page=2",
		"/urn:example:part?+s=N2L?=page=2":      "https://example.org/u?page=2",
		"/urn:example:part?+other=1":            "https://example.org/u",
		"/urn:example:part:x?page=2":            "https://example.org/u:x?page=2",
		"/net/%2e%2e/%2e%2e/x":                  "",
		"/ark:12345/book/%2e%2e/%2e%2e/%2e%2e/": "",
	} {
		if location != "" {
			s.leads(target, location, http.StatusFound)
		} else {
			s.fails(target, http.StatusNotFound)
		}
	}
}

func TestDelegation(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Global = map[string]string{"ark": "https://n2t.net/{id}", "hdl": "https://id.example.org/{id}", "urn": "https://urn.example.net/?id={id}"}
	})
	s.space("ark:12345")
	s.space("ark:99999", func(ns *stele.Namespace) { ns.Delegate = "https://other.example.org/{id}" })
	s.space("ark:88888", func(ns *stele.Namespace) { ns.Delegate = "https://id.example.org/{id}" })
	s.leads("/ark:99999/x1", "https://other.example.org/ark:99999/x1", http.StatusFound)
	s.leads("/ark:/99999/x1?info", "https://other.example.org/ark:99999/x1?info", http.StatusFound)
	s.leads("/ark:/99999/x1?+s=N2C", "https://other.example.org/ark:99999/x1?+s=N2C", http.StatusFound)
	s.leads("/ark:77777/x1", "https://n2t.net/ark:77777/x1", http.StatusFound)
	s.leads("/ark:77777/x1?info", "https://n2t.net/ark:77777/x1?info", http.StatusFound)
	s.leads("/ark:77777/x1?a=\r\nb", "https://n2t.net/ark:77777/x1?a=%0D%0Ab", http.StatusFound)
	s.leads("/urn:example:a+b", "https://urn.example.net/?id=urn%3Aexample%3Aa%2Bb", http.StatusFound)
	s.fails("/ark:12345/x1", http.StatusNotFound, `"identifier":"ark:12345/x1"`)
	s.fails("/10.9999/1", http.StatusNotFound) // its global resolver is this one
	s.fails("/ark:88888/x1", http.StatusLoopDetected)
}

func TestLoops(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345")
	s.space("https://id.example.org/net/")
	s.to("ark:12345/self", "https://id.example.org/ark:/12345/self")
	s.to("https://id.example.org/net/a", "https://id.example.org/net/b")
	s.to("https://id.example.org/net/b", "http://id.example.org/net/a")
	s.to("https://id.example.org/net/c", "https://id.example.org/net/d")
	s.to("https://id.example.org/net/d", "https://example.org/d")
	s.to("ark:12345/elsewhere", "http://127.0.0.1:8080/ark:12345/elsewhere")
	s.fails("/ark:12345/self", http.StatusLoopDetected, "its owner must change")
	s.fails("/net/a", http.StatusLoopDetected)
	s.leads("/net/c", "https://example.org/d", http.StatusFound)
	// By way of others, under a host that only the request names.
	s.to("ark:12345/l1", "http://127.0.0.1:8080/ark:12345/l2")
	s.to("ark:12345/l2", "http://127.0.0.1:8080/ark:12345/l3")
	s.to("ark:12345/l3", "http://127.0.0.1:8080/ark:12345/l1")
	s.to("ark:12345/into", "http://127.0.0.1:8080/ark:12345/l1")
	s.add(`{"id":"ark:12345/grows","targets":[{"url":"http://127.0.0.1:8080/ark:12345/grows/x","partial":true}]}`)
	s.to("ark:12345/end", "http://127.0.0.1:8080/ark:12345/last")
	s.to("ark:12345/last", "https://example.org/last")
	for _, name := range []string{"l1", "l2", "l3", "into", "grows/a"} {
		if a := s.get("/ark:12345/"+name, "Host", "127.0.0.1:8080"); a.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s: %d to %s", name, a.StatusCode, a.get("Location"))
		}
	}
	s.leads("/ark:12345/end", "http://127.0.0.1:8080/ark:12345/last", http.StatusFound, "Host", "127.0.0.1:8080")
	if a := s.get("/ark:12345/elsewhere", "Host", "127.0.0.1:8080"); a.StatusCode != http.StatusLoopDetected {
		t.Errorf("by another name of the host: %d to %q", a.StatusCode, a.get("Location"))
	}
}

func TestUnknown(t *testing.T) {
	s := newSite(t)
	s.space("ark:12345", func(ns *stele.Namespace) { ns.Checked = true })
	s.space("ark:12346")
	s.to("ark:12345/x54xz321k", "https://example.org/1")
	s.add(`{"id":"ark:12346/reserved","state":"reserved"}`, `{"id":"ark:12346/secret","url":"https://example.org/2","readers":["user:ann"]}`)
	s.fails("/ark:12345/x54xz312k", http.StatusNotFound, `"nearest":["ark:12345/x54xz321k"]`, `"asked":"ark:12345/x54xz312k"`)
	s.space("urn:isbn")
	s.to("urn:isbn:9780306406157", "https://example.org/book")
	s.fails("/urn:isbn:9780306406175", http.StatusNotFound, `"nearest":["urn:isbn:9780306406157"]`, `"position":`)
	if a := s.get("/urn:isbn:978-0-306-40617-5", "Accept", firefox); !strings.Contains(a.body, `"https://id.example.org/urn:isbn:9780306406157"`) {
		t.Errorf("the page does not name the book that may be meant:\n%s", a.body)
	}
	unknown := s.fails("/ark:12346/nothing0", http.StatusNotFound).body
	for _, name := range []string{"reserved", "secret"} {
		for _, folder := range []string{"/", "/.info/", "/.timemap/", "/.memento/20260101000000/"} {
			for _, query := range []string{"", "?info", "?+s=N2C", "?noredirect"} {
				s.fails(folder+"ark:12346/"+name+query, http.StatusNotFound)
			}
		}
		if got := strings.ReplaceAll(s.fails("/ark:12346/"+name, http.StatusNotFound).body, name, "nothing0"); got != unknown {
			t.Errorf("%s is told otherwise than what is not there:\n%s%s", name, got, unknown)
		}
	}
	for target, text := range map[string]string{
		"/ark:123/x":           `"position":4`,
		"/urn:isbn:0306406153": `"scheme":"urn"`,
		"/ark:12346/%zz":       `"position":10`,
		"/what is this?":       "not an identifier",
		"/%00":                 "not an identifier",
		"/ark:12346/%ff%00/":   "no such name",
	} {
		s.fails(target, http.StatusNotFound, text)
	}
	if a := s.get("/ark:123/x"); a.get("Content-Type") != textType || !strings.Contains(a.body, "asked: ark:123/x\n") {
		t.Errorf("in plain text: %s\n%s", a.get("Content-Type"), a.body)
	}
}

func TestMethods(t *testing.T) {
	s := newSpelled(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW"} {
		for _, target := range []string{"/ark:12345/x1", "/", "/.info/ark:12345/x1", "/healthz", "/api/v1"} {
			if a := s.ask(method, target); a.StatusCode != http.StatusMethodNotAllowed || a.get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s %s: %d, Allow %q", method, target, a.StatusCode, a.get("Allow"))
			}
		}
	}
	a := s.ask("OPTIONS", "/ark:12345/x1", "Access-Control-Request-Headers", "accept")
	if a.StatusCode != http.StatusNoContent || a.get("Allow") == "" || a.get("Access-Control-Allow-Origin") != "*" || a.get("Access-Control-Allow-Headers") == "" {
		t.Errorf("OPTIONS: %d %v", a.StatusCode, a.Header)
	}
	s.fails("/ark:12345/"+strings.Repeat("x", maxTarget), http.StatusRequestURITooLong)
	s.fails("/ark:12345/"+strings.Repeat("x", stele.MaxText), http.StatusRequestURITooLong)
}

// Targets that a registry refuses, but that a damaged one could have.
func TestLocations(t *testing.T) {
	for _, location := range []string{"javascript:alert(1)", "data:text/html,x", "JAVASCRIPT://x/%0aalert(1)", "file:///etc/passwd", "", "//evil.example", "/x",
		"https://", "https:///x", "https://a b/", "https://a\\@evil.example/", "https://a/\r\nSet-Cookie: x", "https://a/\x7f", "vbscript:x", "https://[evil/\x00", "mailto:a@b"} {
		if safe, ok := destination.Safe(location); ok {
			t.Errorf("%q is sent as %q", location, safe)
		}
	}
	for location, want := range map[string]string{
		"https://example.org":                    "https://example.org",
		"HTTPS://Example.org:8443/a?b#c":         "HTTPS://Example.org:8443/a?b#c",
		"https://example.org/ü b\"<>\\^`{|}":     "https://example.org/%C3%BC%20b%22%3C%3E%5C%5E%60%7B%7C%7D",
		"ftp://u@example.org/%zz[1]":             "ftp://u@example.org/%zz[1]",
		"https://[2001:db8::1]:80/x?javascript:": "https://[2001:db8::1]:80/x?javascript:",
	} {
		if safe, ok := destination.Safe(location); !ok || safe != want {
			t.Errorf("%q is sent as %q, %t, not as %q", location, safe, ok, want)
		}
	}
}
