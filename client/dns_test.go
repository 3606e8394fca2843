package client

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/scheme/all"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func schemes(t testing.TB) *stele.Schemes {
	t.Helper()
	list, err := all.New(all.Config{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// newDNS makes a way over name servers of the test's own. Time-outs are short where
// servers do not answer, and long enough on slow machines otherwise.
func newDNS(t testing.TB, o DNSOptions, servers ...*nameServer) *DNS {
	t.Helper()
	o.Schemes = schemes(t)
	for _, s := range servers {
		o.Servers = append(o.Servers, PlainServer(s.addr))
	}
	if o.Roots == nil {
		o.Roots = map[string]string{"urn": "urn.example", "ark": "ark.example"}
	}
	d, err := NewDNS(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const paradisec = "urn:paradisec:AB1:001:A"

func TestParadisec(t *testing.T) {
	server := newNameServer(t, paradisecZone)
	d := newDNS(t, DNSOptions{}, server)
	for _, tt := range []struct {
		q    Request
		want string
		kind string
	}{
		{Request{}, "https://data.example/ab1/001/a.html", "text/html"},
		{Request{Accept: []ddds.Preference{{Range: "text/html", Q: 1000}}}, "https://data.example/ab1/001/a.html", "text/html"},
		{Request{Accept: []ddds.Preference{{Range: "audio/wav", Q: 1000}}}, "https://store.example/ab1/001/a.wav", "audio/wav"},
		{Request{Accept: []ddds.Preference{{Range: "audio/mpeg", Q: 1000}, {Range: "audio/*", Q: 500}}}, "ftp://store.example/ab1/001/a.mp3", "audio/mpeg"},
		{Request{Accept: []ddds.Preference{{Range: "audio/ogg", Q: 1000}}}, "https://store.example/ab1/001/a.wav", "audio/wav"},
		{Request{Protocols: []string{"FTP"}}, "ftp://store.example/ab1/001/a.mp3", "audio/mpeg"},
		{Request{Protocols: []string{"ftp"}, OnlyProtocols: true}, "ftp://store.example/ab1/001/a.mp3", "audio/mpeg"},
		{Request{Service: stele.N2C}, "https://data.example/ab1/001/a.json", "application/ld+json"},
		{Request{Service: stele.N2S}, "https://data.example/ab1/001/a.sig", "ED25519"},
		{Request{Service: stele.N2P}, "https://data.example/promise", ""},
		{Request{Name: "urn:paradisec:ab1:001:a?+r?=q#f"}, "https://data.example/ab1/001/a.html?q#f", "text/html"},
		{Request{Name: "https://id.example.org/urn:paradisec:ab1:001:a"}, "https://data.example/ab1/001/a.html", "text/html"},
	} {
		if tt.q.Name == "" {
			tt.q.Name = paradisec
		}
		tt.q.Trace = true
		res, err := d.Resolve(t.Context(), tt.q)
		if err != nil {
			t.Errorf("%+v: %v\n%s", tt.q, err, res.Trace)
			continue
		}
		if res.Location != tt.want || res.Type != tt.kind || res.Found != FoundLocation || res.Via != ViaDNS || res.TTL != 60 || res.ID.String() != "urn:paradisec:ab1:001:a" {
			t.Errorf("%+v: %+v\n%s", tt.q, res, res.Trace)
		}
	}
}

// TestTraceOfWalk: the trace has every question and rule, for people and in JSON.
func TestTraceOfWalk(t *testing.T) {
	server := newNameServer(t, paradisecZone)
	d := newDNS(t, DNSOptions{}, server)
	res, err := d.Resolve(t.Context(), Request{Name: paradisec, Accept: []ddds.Preference{{Range: "audio/mpeg", Q: 500}}, Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(res.Trace.String(), server.addr.String(), "SERVER")
	for _, want := range []string{
		"urn:paradisec:AB1:001:A, N2L, audio/mpeg;q=0.5\n",
		"1. paradisec.urn.example. NAPTR from SERVER (udp): NOERROR, 2 records for 3600 s\n",
		"2. rules at paradisec.urn.example. (discovery): 2 rules\n",
		"-> a.001.ab1.paradisec.example.\n",
		"3. a.001.ab1.paradisec.example. NAPTR from SERVER (udp): NOERROR, 6 records for 60 s\n",
		"4. rules at a.001.ab1.paradisec.example. (resolution): 6 rules, the best fit first\n",
		"=> ftp://store.example/ab1/001/a.mp3, N2L, audio/mpeg, for 60 s, and 2 more\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	enc, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"urn:paradisec:ab1:001:a"`, `"found":"location"`, `"location":"ftp://store.example/ab1/001/a.mp3"`, `"type":"audio/mpeg"`,
		`"protocol":"ftp"`, `"ttl":60`, `"via":"dns"`, `"flag":"RES:ftp"`, `"others":["https://store.example/ab1/001/a.wav"`,
		`"steps":[{"query":{"name":"paradisec.urn.example.","type":"NAPTR","server":"127.0.0.1:`, `"rcode":"NOERROR"`, `"verdict":"chosen"`,
	} {
		if !strings.Contains(string(enc), want) {
			t.Errorf("no %s in\n%s", want, enc)
		}
	}
	if res, err := d.Resolve(t.Context(), Request{Name: paradisec}); err != nil || res.Trace != nil {
		t.Errorf("a trace that nobody asked for: %v, %v", res, err)
	}
}

func TestThesisZones(t *testing.T) {
	server := newNameServer(t, thesisZones)
	d := newDNS(t, DNSOptions{Roots: map[string]string{"urn": "@urn.arpa"}, ThesisZones: []string{"arpa", "AU."}}, server)
	for _, tt := range []struct {
		service stele.Service
		accept  string
		want    string
	}{
		{stele.N2L, "", "http://dataserv.unisyd.edu.au/ab1/001/a.html"},
		{stele.N2L, "audio/mpeg", "http://store.anu.edu.au/ab1/001/a.wav"},
		{stele.N2C, "", "http://dataserv.unisyd.edu.au/ab1/001/a.xml"},
		{stele.N2S, "RSA", "http://store.anu.edu.au/ab1/001/a.rsa"},
		{stele.N2P, "", "ftp://store.anu.edu.au/ab1/001/a.txt"},
	} {
		q := Request{Name: paradisec, Service: tt.service, Trace: true}
		if tt.accept != "" {
			q.Accept = []ddds.Preference{{Range: tt.accept, Q: 1000}}
		}
		if res, err := d.Resolve(t.Context(), q); err != nil || res.Location != tt.want {
			t.Errorf("%s %s: %s, %v; want %s\n%s", tt.service, tt.accept, res.Location, err, tt.want, res.Trace)
		}
	}
	everywhere := newDNS(t, DNSOptions{Roots: map[string]string{"urn": "@urn.arpa"}, ThesisZones: []string{"."}}, server)
	if res, err := everywhere.Resolve(t.Context(), Request{Name: paradisec}); err != nil || res.Type != "text/html" {
		t.Errorf("all zones: %v, %v", res, err)
	}
	plain := newDNS(t, DNSOptions{Roots: map[string]string{"urn": "@urn.arpa"}}, server)
	if res, err := plain.Resolve(t.Context(), Request{Name: paradisec}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("the thesis's form is read without being asked for: %v, %v", res, err)
	}
	part := newDNS(t, DNSOptions{Roots: map[string]string{"urn": "@urn.arpa"}, ThesisZones: []string{"arpa"}}, server)
	if res, err := part.Resolve(t.Context(), Request{Name: paradisec}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("the thesis's form is read in other zones than those that were named: %v, %v", res, err)
	}
}

// TestKinds: what is not there, what is gone, and what no server can answer.
func TestKinds(t *testing.T) {
	server := newNameServer(t, paradisecZone+`
loop.urn.example. NAPTR 100 10 "" "" "" loop.urn.example.
dots.urn.example. NAPTR 100 10 "" "" "" a\.b.example.
huge.urn.example. NAPTR 100 10 "" "" "!.*!`+strings.Repeat("x", 200)+`!" .
only.urn.example. TXT "no rules"
`)
	d := newDNS(t, DNSOptions{}, server)
	for _, tt := range []struct {
		name    string
		service stele.Service
		kind    stele.Kind
		is      error
		text    string
	}{
		{"urn:paradisec:ab1:001:unknown", "", stele.NotFound, ddds.ErrNoSuchName, "resolve urn:paradisec:ab1:001:unknown: unknown.001.ab1.paradisec.example.: no such name"},
		{"urn:nowhere:x", "", stele.NotFound, ddds.ErrNoSuchName, "nowhere.urn.example."},
		{"urn:only:x", "", stele.NotFound, ddds.ErrNoData, "no rules"},
		{"urn:paradisec:ab1:001:gone", "", stele.Gone, nil, "withdrawn on 2024-05-17T10:00:00Z: the tape is lost; nobody has a copy; use urn:paradisec:ab1:001:a"},
		{"urn:paradisec:ab1:001:shared", "", stele.NotFound, ddds.ErrNoRule, ""},
		{"urn:paradisec:ab1:001:a", "X2", stele.Invalid, nil, "not a service"},
		{"urn:paradisec:ab1:001:a", "N2X", stele.NotFound, ddds.ErrNoRule, "offers N2X"}, // a service to come
		{"urn:loop:x", "", stele.Exhausted, ddds.ErrLoop, ""},
		{"urn:dots:x", "", stele.NotFound, ddds.ErrNoRule, ""},
		{"urn:huge:x", "", stele.NotFound, ddds.ErrNoRule, ""},
		{"10.1000/182", "", stele.NotFound, ddds.ErrNoSuchName, "doi.uri.arpa.: no such name"},
		{"8JMKD3MGP8W/34PGRBS", "", stele.Invalid, nil, "ibi names are not found over the DNS"},
		{"not a name", "", stele.Invalid, nil, ""},
	} {
		res, err := d.Resolve(t.Context(), Request{Name: tt.name, Service: tt.service, Trace: true})
		if err == nil || stele.KindOf(err) != tt.kind || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v (%v), want %v %v %q\n%s", tt.name, err, stele.KindOf(err), tt.kind, tt.is, tt.text, res.Trace)
		}
		if res.Location != "" {
			t.Errorf("%s: a location with an error: %+v", tt.name, res)
		}
	}
}

func TestNewDNS(t *testing.T) {
	list := schemes(t)
	some := []NameServer{PlainServer(netip.MustParseAddrPort("127.0.0.1:1"))}
	for _, o := range []DNSOptions{
		{Servers: some},
		{Schemes: list, Servers: some, Roots: map[string]string{"urn": "a..b"}},
		{Schemes: list, Servers: some, Roots: map[string]string{"ark": "@"}},
		{Schemes: list, Servers: some, ThesisZones: []string{strings.Repeat("a", 300)}},
	} {
		if _, err := NewDNS(o); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
