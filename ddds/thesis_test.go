package ddds

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
)

// thesisZone is the thesis's example as it prints it, a pattern alone and a URL in
// the replacement: figures 7.10 to 7.15. Its character classes, which are Java's,
// are written as POSIX has them, and what stands in brackets in figure 7.13 without
// need is written without.
const thesisZone = `
urn.arpa. 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:[^\"&<>]+:[^\"&<>]+" ns1.paradisec.org.au.
 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:[^\"&<>]+:[^\"&<>]+:[^\"&<>]+" ns2.paradisec.org.au.
 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:[^\"&<>]+:[^\"&<>]+" ns3.paradisec.org.au.
ns1.paradisec.org.au. 300 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:jc1:[^\"&<>]+" jc1.collections.paradisec.org.au.
 100 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" ab1.collections.paradisec.org.au.
 200 10 "" "N2L+N2P+N2C+N2S" "urn:paradisec:tk1:[^\"&<>]+:[^\"&<>]+" tk1.collections.paradisec.org.au.
ab1.collections.paradisec.org.au. 100 10 "DIS:NAPTR" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" ab1.arts.unisyd.edu.au.
 200 10 "DIS:A" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" 150.203.0.178
 300 10 "DIS:SRV" "N2L+N2P+N2C+N2S" "urn:paradisec:ab1:[^\"&<>]+" _tcp_.http.handle-srv.unisyd.edu.au.
ab1.arts.unisyd.edu.au. 100 10 "" "N2L+N2C+N2S+N2P" "urn:paradisec:ab1:001:.*" torres.unisyd.edu.au.
 200 10 "" "N2L" "urn:paradisec:ab1:012:.*" torres-data.paradisec.org.au.
 300 10 "" "N2L" "urn:paradisec:ab1:002:.*" torres.store.anu.edu.au.
torres.unisyd.edu.au. 100 10 "RES:http" "N2L:text/html" "urn:paradisec:ab1:001:a" http://dataserv.unisyd.edu.au/ab1/001/a.html.
 100 20 "RES:http" "N2L:audio/wav" "urn:paradisec:ab1:001:a" http://store.anu.edu.au/ab1/001/a.wav.
 100 30 "RES:http" "N2C" "urn:paradisec:ab1:001:a" http://dataserv.unisyd.edu.au/ab1/001/a.xml.
 100 40 "RES:http" "N2S:RSA" "urn:paradisec:ab1:001:a" http://store.anu.edu.au/ab1/001/a.rsa.
 100 50 "RES:ftp" "N2P" "urn:paradisec:ab1:001:a" ftp://store.anu.edu.au/ab1/001/a.txt.
 100 10 "RES:http" "N2L:text/html" "urn:paradisec:ab1:001:b" http://dataserv.unisyd.edu.au/ab1/001/b.html.
`

const paradisec = "urn:paradisec:AB1:001:A"

func TestThesis(t *testing.T) {
	database := zone(t, Thesis, thesisZone)
	for _, ns := range []string{"ns2", "ns3"} { // they have the same rules
		database[ns+".paradisec.org.au."] = database["ns1.paradisec.org.au."]
	}
	first, err := URNKey("@urn.arpa")
	if err != nil {
		t.Fatal(err)
	}
	w := &Walker{Database: database, First: first, Random: rand.New(rand.NewPCG(1, 2)).IntN}
	const html, wav = "http://dataserv.unisyd.edu.au/ab1/001/a.html", "http://store.anu.edu.au/ab1/001/a.wav"
	for _, tt := range []struct {
		service stele.Service
		accept  []Preference
		want    string
		fit     Fit
	}{
		{"N2L", nil, html, Asked},
		{"N2L", []Preference{{"text/html", 1000}}, html, Asked},
		{"N2L", []Preference{{"audio/wav", 1000}}, wav, Asked},
		{"N2L", []Preference{{"audio/mpeg", 1000}}, wav, Similar}, // the thesis's own case, 7.4.2
		{"N2L", []Preference{{"audio", 1000}}, wav, Asked},
		{"N2L", []Preference{{"image/png", 1000}}, html, Different},
		{"N2C", nil, "http://dataserv.unisyd.edu.au/ab1/001/a.xml", Asked},
		{"N2C", []Preference{{"text/html", 1000}}, "http://dataserv.unisyd.edu.au/ab1/001/a.xml", Unstated},
		{"N2S", []Preference{{"rsa", 1000}}, "http://store.anu.edu.au/ab1/001/a.rsa", Asked},
		{"N2P", nil, "ftp://store.anu.edu.au/ab1/001/a.txt", Asked},
	} {
		res, err := w.Walk(t.Context(), Request{Name: paradisec, Service: tt.service, Accept: tt.accept, Trace: true})
		if err != nil {
			t.Errorf("%s, %v: %v\n%s", tt.service, tt.accept, err, res.Trace)
			continue
		}
		if res.Key != tt.want || res.Fit != tt.fit || !res.Flag.IsResolved() {
			t.Errorf("%s, %v: %s, %s, want %s, %s\n%s", tt.service, tt.accept, res.Key, res.Fit, tt.want, tt.fit, res.Trace)
		}
		var phases []Phase
		for _, s := range res.Trace.Steps {
			phases = append(phases, s.Phase)
		}
		if diff := cmp.Diff([]Phase{Discovery, Discovery, Discovery, Resolution, Resolution}, phases); diff != "" {
			t.Errorf("%s: %s", tt.service, diff)
		}
	}
	if res, err := w.Walk(t.Context(), Request{Name: "urn:paradisec:AB1:001:AB", Service: "N2L"}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a pattern matches a part of the name: %v, %v", res, err)
	}

	// Clients that read the same zone as the RFCs say find nothing in it.
	w.Database = zone(t, Standard, thesisZone)
	if res, err := w.Walk(t.Context(), Request{Name: paradisec, Service: "N2L"}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("the thesis's form is read without being asked for: %v, %v", res, err)
	}
}

// TestThesisDiscovery has figures 7.4 to 7.8: the DDDS, as the thesis uses it, and
// the discovery of figure 7.12 with another order.
func TestThesisDiscovery(t *testing.T) {
	const rewriting = `
urn.arpa. 100 10 "" "N2L" "urn:paradisec:[^\"&<>]+:[^\"&<>]+" ns1.paradisec.org.au.
ns1.paradisec.org.au. 100 10 "" "N2L" "urn:paradisec:ab1:[^\"&<>]+:[^\"&<>]+" ab1.collections.paradisec.org.
ab1.collections.paradisec.org. `
	for _, tt := range []struct{ zone, want string }{
		{`urn.arpa. 100 10 "A" "N2L" "urn:paradisec:[^\"&<>]+:[^\"&<>]+" ns1.paradisec.org.au.`, "a N2L ns1.paradisec.org.au."},
		{rewriting + `100 10 "S" "N2L" "urn:paradisec:ab1:001:a" _http._tcp.paradisec.org.au.`, "s N2L _http._tcp.paradisec.org.au."},
		{rewriting + `100 10 "U" "N2L" "urn:paradisec:ab1:001:a" http://www.paradisec.org.au/resolver/`, "u N2L http://www.paradisec.org.au/resolver/"},
		{rewriting + `100 10 "U" "N2L" "urn:paradisec:(.*)" http://www.paradisec.org.au/resolver/\1`, "u N2L http://www.paradisec.org.au/resolver/AB1:001:A"},
		{rewriting + `100 10 "A" "N2L" "urn:paradisec:ab1:001:a" resolver.paradisec.org.au.`, "a N2L resolver.paradisec.org.au."},
		{rewriting + `100 10 "DIS:A" "N2L" "urn:paradisec:ab1:.*" 150.203.0.178`, "DIS:A N2L 150.203.0.178"},
		{rewriting + `100 10 "DIS:AAA" "N2L" "urn:paradisec:ab1:.*" ab1.unisyd.edu.au.`, "DIS:AAAA N2L ab1.unisyd.edu.au."},
		{rewriting + `100 10 "DIS:SRV" "N2L" "urn:paradisec:ab1:.*" _tcp_.http.handle-srv.unisyd.edu.au.`, "DIS:SRV N2L _tcp_.http.handle-srv.unisyd.edu.au."},
		{rewriting + `100 10 "DIS:URL" "N2L" "urn:paradisec:ab1:.*" http://handle.unisyd.edu.au/`, "DIS:URL N2L http://handle.unisyd.edu.au/"},
	} {
		first, err := URNKey("@urn.arpa.")
		if err != nil {
			t.Fatal(err)
		}
		w := &Walker{Database: zone(t, Thesis, strings.TrimSpace(tt.zone)), First: first}
		res, err := w.Walk(t.Context(), Request{Name: paradisec, Service: "N2L", Trace: true})
		if err != nil || res.Candidate.String() != tt.want {
			t.Errorf("%v, %v; want %s\n%s", res, err, tt.want, res.Trace)
		}
	}
}

// namesZone is the same resource as we publish it, in the names layout.
const namesZone = `
paradisec.urn.arpa. 100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}([.][-_a-z0-9]{1,63})*)$!\\3.\\2.\\1.short.paradisec.example.!i" .
 200 10 "s" "thttp+N2L+N2C+N2R" "" _http._tcp.resolver.example.
a.001.ab1.short.paradisec.example. 100 10 "RES:http" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!http://dataserv.example/a.html!i" .
 100 20 "RES:https" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!https://store.example/a.wav!i" .
 100 20 "RES:ftp" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!ftp://store.example/a.wav!i" .
 100 30 "RES:http" "N2L:audio/mpeg" "!^urn:paradisec:ab1:001:a$!http://store.example/a.mpeg!i" .
 200 40 "RES:http" "N2L" "!^urn:paradisec:ab1:001:a$!http://store.example/a!i" .
 100 50 "RES:http" "N2C:application/ld+json+N2P" "!^urn:paradisec:ab1:001:a$!http://dataserv.example/a.json!i" .
 100 60 "s" "thttp+N2L+N2C+N2R" "" _http._tcp.resolver.example.
 100 70 "" "N2S" "" signatures.example.
signatures.example. 100 10 "RES:http" "N2S:RSA" "!.*!http://store.example/rsa!" .
 100 20 "RES:http" "N2S:ED25519" "!.*!http://store.example/ed!" .
`

// TestChoice asks for types, weights and protocols.
func TestChoice(t *testing.T) {
	w := &Walker{Database: zone(t, Standard, namesZone), First: urnKey(t)}
	for _, tt := range []struct {
		about string
		q     Request
		want  string // ends of the candidates' keys
	}{
		{"any type: by order and preference", Request{Service: "N2L"}, "a.html https:a.wav ftp:a.wav a.mpeg a srv"},
		{"one type", Request{Service: "N2L", Accept: []Preference{{"audio/mpeg", 1000}}}, "a.mpeg https:a.wav ftp:a.wav a a.html srv"},
		{"a type that is not there", Request{Service: "N2L", Accept: []Preference{{"audio/ogg", 1000}}}, "https:a.wav ftp:a.wav a.mpeg a a.html srv"},
		{"nothing like it", Request{Service: "N2L", Accept: []Preference{{"image/png", 1000}}}, "a a.html https:a.wav ftp:a.wav a.mpeg srv"},
		{"weights", Request{Service: "N2L", Accept: []Preference{{"audio/mpeg", 500}, {"text/html", 900}}}, "a.html a.mpeg https:a.wav ftp:a.wav a srv"},
		{"a range", Request{Service: "N2L", Accept: []Preference{{"audio/mpeg", 1000}, {"audio/*", 500}}}, "a.mpeg https:a.wav ftp:a.wav a a.html srv"},
		{"anything but", Request{Service: "N2L", Accept: []Preference{{"text/html", 0}, {"*/*", 1000}}}, "https:a.wav ftp:a.wav a.mpeg a a.html srv"},
		{"parameters", Request{Service: "N2L", Accept: []Preference{{"audio/mpeg; rate=1", 900}, {"audio/wav", 900}}}, "https:a.wav ftp:a.wav a.mpeg a a.html srv"},
		{"a protocol is preferred", Request{Service: "N2L", Protocols: []string{"ftp", "https"}}, "ftp:a.wav https:a.wav a.html a.mpeg a srv"},
		{"behind the type", Request{Service: "N2L", Accept: []Preference{{"text/html", 1000}}, Protocols: []string{"ftp"}}, "a.html a ftp:a.wav https:a.wav a.mpeg srv"},
		{"no other protocol", Request{Service: "N2L", Protocols: []string{"ftp"}, OnlyProtocols: true}, "ftp:a.wav srv"},
		{"another service", Request{Service: "N2C", Accept: []Preference{{"text/html", 1000}}}, "a.json srv"},
		{"a service in the same rule", Request{Service: "N2P"}, "a.json"},
		{"a service elsewhere", Request{Service: "N2S"}, "rsa ed"},
		{"an algorithm", Request{Service: "N2S", Accept: []Preference{{"ED25519", 1000}}}, "ed rsa"},
		{"a plain service", Request{Service: "N2R"}, "srv"},
	} {
		tt.q.Name, tt.q.Trace = paradisec, true
		res, err := w.Walk(t.Context(), tt.q)
		if err != nil {
			t.Errorf("%s: %v\n%s", tt.about, err, res.Trace)
			continue
		}
		var ends []string
		for _, c := range res.Candidates {
			end := c.Key[strings.LastIndexByte(c.Key, '/')+1:]
			switch {
			case c.Flag == FlagSRV:
				end = "srv"
			case end == "a.wav":
				end = c.Protocol + ":" + end
			}
			ends = append(ends, end)
		}
		if got := strings.Join(ends, " "); got != tt.want || res.TTL != 60 {
			t.Errorf("%s: %s, want %s\n%s", tt.about, got, tt.want, res.Trace)
		}
	}

	// What does not fit the DNS goes to the resolver.
	for _, name := range []string{"urn:paradisec:AB1:001:a%20b", "urn:paradisec:AB1:001", "urn:paradisec:AB1:001:" + strings.Repeat("a", 64)} {
		res, err := w.Walk(t.Context(), Request{Name: name, Service: "N2L"})
		if err != nil || res.Key != "_http._tcp.resolver.example." || res.Protocol != "thttp" {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if res, err := w.Walk(t.Context(), Request{Name: "urn:paradisec:AB1:001:B", Service: "N2L"}); stele.KindOf(err) != stele.NotFound {
		t.Errorf("what is not registered: %v, %v", res, err)
	}
}
