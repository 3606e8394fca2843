package publish_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/publishtest"
)

// rulesAt returns the rules at a name, as zone files have them.
func rulesAt(p *publishtest.Registry, name string) (list []string) {
	p.T.Helper()
	n, _ := p.Lookup(name)
	for _, rr := range n.Records {
		if rr, ok := rr.(*dns.NAPTR); ok {
			list = append(list, publishtest.Fields(p.T, rr).String())
		}
	}
	return list
}

// typesAt returns the types of records at a name.
func typesAt(p *publishtest.Registry, name string) (list []string) {
	n, _ := p.Lookup(name)
	for _, rr := range n.Records {
		if t := dns.TypeToString[rr.Header().Rrtype]; !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

func wantRules(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("rules:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const further = `200 10 "s" "thttp+N2L+N2Ls+N2R+N2Rs+N2C+N2Cs+N2N+N2Ns+I2L+I2Ls+I2R+I2Rs+I2C+I2Cs+I2N+I2Ns+N2S+N2P" "" _http._tcp.paradisec.example.`

func TestCompileSizes(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	url := func(n int) string { return "http://example.org/" + strings.Repeat("x", n-19) }

	p.Register("urn:paradisec:a:b:1", url(220))
	wantRules(t, rulesAt(p, "1.b.a.paradisec.example."), `100 10 "RES:http" "N2L" "!^urn:paradisec:a:b:1$!`+url(220)+`!i" .`, further)

	p.Register("urn:paradisec:a:b:2", url(250))
	wantRules(t, rulesAt(p, "2.b.a.paradisec.example."), `100 10 "RES:http" "N2L" "!.*!`+url(250)+`!" .`, further)

	p.Register("urn:paradisec:a:b:3", "N2L text/html "+url(300), "N2C "+url(2000), "N2L ftp://example.org/short")
	wantRules(t, rulesAt(p, "3.b.a.paradisec.example."),
		`100 10 "RES:http" "N2L:text/html" "!^urn:paradisec:a:b:3$!http://id.example.org/urn:paradisec:a:b:3?+t=text/html!i" .`,
		`100 10 "RES:http" "N2C" "!^urn:paradisec:a:b:3$!http://id.example.org/uri-res/N2C?urn:paradisec:a:b:3!i" .`,
		`100 11 "RES:ftp" "N2L" "!^urn:paradisec:a:b:3$!ftp://example.org/short!i" .`, further)
	p.Register("urn:paradisec:a:b:4", "N2L text/html "+url(300), "N2L image/svg+xml "+url(301), "N2C text/xml "+url(302), "N2L x/"+strings.Repeat("y", 120)+" "+url(303))
	wantRules(t, rulesAt(p, "4.b.a.paradisec.example."),
		`100 10 "RES:http" "N2L:text/html" "!^urn:paradisec:a:b:4$!http://id.example.org/urn:paradisec:a:b:4?+t=text/html!i" .`,
		`100 10 "RES:http" "N2C:text/xml" "!^urn:paradisec:a:b:4$!http://id.example.org/urn:paradisec:a:b:4?+s=N2C&t=text/xml!i" .`,
		`100 11 "RES:http" "N2L:image/svg+xml" "!^urn:paradisec:a:b:4$!http://id.example.org/urn:paradisec:a:b:4?+t=image/svg+xml!i" .`,
		`100 12 "RES:http" "N2L:x/`+strings.Repeat("y", 120)+`" "!^urn:paradisec:a:b:4$!http://id.example.org/urn:paradisec:a:b:4?+t=x/`+strings.Repeat("y", 120)+`!i" .`, further)
	n, _ := p.Lookup("3.b.a.paradisec.example.")
	var uris []string
	for _, rr := range n.Records {
		if rr.Header().Rrtype == dns.TypeURI {
			uris = append(uris, strings.TrimPrefix(naptr.Text(rr), "3600 IN URI "))
			if _, err := dns.PackRR(rr, make([]byte, 4096), 0, nil, false); err != nil {
				t.Errorf("%s: %v", rr, err)
			}
		}
	}
	wantRules(t, uris, `10 1 "`+url(300)+`"`, `20 1 "ftp://example.org/short"`, `65535 1 "`+url(2000)+`"`)
}

// TestCompileOnce checks that no record stands twice at a name (RFC 2181, section 5): other
// servers drop it, and then answers differ.
func TestCompileOnce(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	long := "http://example.org/" + strings.Repeat("x", 300)
	p.Register("urn:paradisec:a:b:1", "N2S "+long, "N2S "+long+"y", "N2L text/html http://example.org/", "N2L text/plain http://example.org/")
	wantRules(t, rulesAt(p, "1.b.a.paradisec.example."),
		`100 10 "RES:http" "N2S" "!^urn:paradisec:a:b:1$!http://id.example.org/uri-res/N2S?urn:paradisec:a:b:1!i" .`,
		`100 10 "RES:http" "N2L:text/html" "!^urn:paradisec:a:b:1$!http://example.org/!i" .`,
		`100 11 "RES:http" "N2L:text/plain" "!^urn:paradisec:a:b:1$!http://example.org/!i" .`, further)
	n, _ := p.Lookup("1.b.a.paradisec.example.")
	var uris []string
	for _, rr := range n.Records {
		if rr.Header().Rrtype == dns.TypeURI {
			uris = append(uris, strings.TrimPrefix(naptr.Text(rr), "3600 IN URI "))
		}
	}
	wantRules(t, uris, `10 1 "http://example.org/"`, `65535 1 "`+long+`"`, `65535 1 "`+long+`y"`)
}

func TestCompileProtocolsTypesAndTTL(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Protocols = []string{"https", "rtsp"} })
	r := &stele.Record{ID: p.ID("urn:paradisec:a:b:c"), Targets: []stele.Target{
		{Service: stele.N2L, URL: "HTTPS://example.org/a!b#c", Type: "text/html; charset=utf-8", Order: 300, Preference: 7, TTL: 60},
		{Service: stele.N2S, URL: "rtsp://example.org/$&'()*+,;=[]", Type: "application/pgp-signature", Order: 1},
		{Service: stele.N2L, URL: "https://example.org/gone", Status: 410},
		{Service: stele.N2C, URL: "https://example.org/m", Type: "application/vnd.x+xml"},
	}}
	if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
		t.Fatal(err)
	}
	wantRules(t, rulesAt(p, "c.b.a.paradisec.example."),
		`0 0 "RES:https" "N2C:application/vnd.x+xml" "!^urn:paradisec:a:b:c$!https://example.org/m!i" .`,
		`1 0 "RES:rtsp" "N2S" "!^urn:paradisec:a:b:c$!rtsp://example.org/$&'()*+,;=[]!i" .`,
		`300 7 "RES:https" "N2L:text/html" "~^urn:paradisec:a:b:c$~HTTPS://example.org/a!b#c~i" .`,
		further)
	n, _ := p.Lookup("c.b.a.paradisec.example.")
	for _, rr := range n.Records {
		if rr.Header().Ttl != 60 {
			t.Errorf("%s: want the TTL 60, the least of all", rr)
		}
	}
}

func TestCompileStates(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:1", "http://example.org/1")
	if _, err := p.Registrar.Withdraw(p.Ctx, p.ID("urn:paradisec:a:b:1"), 0, `Die "Käufer" \ klagten; §`, p.ID("urn:paradisec:a:b:2")); err != nil {
		t.Fatal(err)
	}
	wantRules(t, rulesAt(p, "1.b.a.paradisec.example."),
		`100 10 "RES:http" "N2P" "!^urn:paradisec:a:b:1$!http://id.example.org/urn:paradisec:a:b:1!i" .`, further)
	if zone := p.Export("paradisec.example."); !strings.Contains(zone, `TXT "withdrawn=2026-03-01T12:00:00Z" "reason=Die \"K\195\164ufer\" \\ klagten; \194\167" "replacement=urn:paradisec:a:b:2"`) {
		t.Errorf("no tombstone in\n%s", zone)
	}

	// What the public may not know of does not exist, nor does what is above it alone.
	for id, change := range map[string]func(*stele.Record){
		"urn:paradisec:s:t:1": func(r *stele.Record) { r.State = stele.Reserved },
		"urn:paradisec:s:t:2": func(r *stele.Record) { r.Readers = []string{"user:ana"} },
	} {
		r := &stele.Record{ID: p.ID(id), Targets: []stele.Target{publishtest.Target("http://example.org/secret")}}
		change(r)
		if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"1.t.s", "2.t.s", "t.s", "s", "3.b.a", "x"} {
		if n, _ := p.Lookup(name + ".paradisec.example."); n.Exists {
			t.Errorf("%s exists: %v", name, n.Records)
		}
	}
	if zone := p.Export("paradisec.example."); strings.Contains(zone, "secret") || strings.Contains(zone, "t.s") {
		t.Errorf("a secret in\n%s", zone)
	}
	if _, err := p.Registrar.Redact(p.Ctx, p.ID("urn:paradisec:s:t:2"), 0, "A court said so."); err != nil {
		t.Fatal(err)
	}
}

func TestTombstoneOfRedacted(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:1", "http://example.org/1")
	if _, err := p.Registrar.Redact(p.Ctx, p.ID("urn:paradisec:a:b:1"), 0, "A court said so."); err != nil {
		t.Fatal(err)
	}
	wantRules(t, rulesAt(p, "1.b.a.paradisec.example."),
		`100 10 "RES:http" "N2P" "!^urn:paradisec:a:b:1$!http://id.example.org/urn:paradisec:a:b:1!i" .`, further)
}

// TestCaseVariants checks that variants share an owner name where case counts, and that the
// rules tell them apart.
func TestCaseVariants(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:example", "example.org.", ":", 2)
	for _, id := range []string{"urn:example:Ab:x", "urn:example:ab:X", "urn:example:ab:x", "urn:example:aB:y", "urn:example:AC:x", "urn:example:12:34"} {
		p.Register(id, "http://example.net/"+id)
	}
	alias := &stele.Record{ID: p.ID("ark:12345/x1"), Aliases: []stele.ID{p.ID("urn:example:AB:X"), p.ID("urn:example:only:Alias")}, Targets: []stele.Target{publishtest.Target("http://example.net/alias")}}
	if _, err := p.Registrar.Register(p.Ctx, alias); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"urn:example:Ab:x":       "RES:http http://example.net/urn:example:Ab:x",
		"URN:EXAMPLE:ab:X":       "RES:http http://example.net/urn:example:ab:X",
		"urn:example:ab:x":       "RES:http http://example.net/urn:example:ab:x",
		"urn:example:AB:X":       "RES:http http://example.net/alias",
		"urn:example:only:Alias": "RES:http http://example.net/alias",
		"urn:example:12:34":      "RES:http http://example.net/urn:example:12:34",
		"urn:example:aB:y":       "RES:http http://example.net/urn:example:aB:y",
		"urn:example:ab:y":       "s _http._tcp.example.org.",
		"urn:example:zz:y":       "not found",
		"urn:example:a:b:c":      "s _http._tcp.example.org.",
		"urn:example:a%20:b":     "s _http._tcp.example.org.",
	} {
		if got := p.Walk("@example.org.", id, stele.N2L); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if n, _ := p.Lookup("x.ab.example.org."); len(n.Records) == 0 || slices.Contains(typesAt(p, "x.ab.example.org."), "URI") {
		t.Errorf("a shared name has %v", typesAt(p, "x.ab.example.org."))
	}
	for name, want := range map[string]bool{"ab": true, "ac": true, "only": true, "12": true, "ad": false, "a": false, "34": false} {
		if n, _ := p.Lookup(name + ".example.org."); n.Exists != want {
			t.Errorf("%s exists: %v", name, n.Exists)
		}
	}
	zone := p.Export("example.org.")
	if n := strings.Count(zone, "\nx.ab "); n != 5 {
		t.Errorf("%d records of a shared name, want 4 rules and a further one:\n%s", n, zone)
	}
}

// TestEveryRuleReads checks that a rule is published only if it can be read back.
func TestEveryRuleReads(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:example", "example.org.", ":", 1)
	chars := "!#$&'()*+,-./0:;=?@A[]_a~%C3%A4"
	p.Register("urn:example:1", "http://example.net/"+chars, "N2C ftp://example.net/"+strings.Repeat("!~%23,@=&:/'_", 10))
	for _, f := range rulesAt(p, "1.example.org.") {
		t.Log(f)
	}
	want := "RES:http http://example.net/" + chars
	if got := p.Walk("@example.org.", "urn:example:1", stele.N2L); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := p.Walk("@example.org.", "urn:example:1", stele.N2C); !strings.HasPrefix(got, "RES:ftp ") {
		t.Errorf("N2C: %s", got)
	}
}

func TestPlainClients(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:c", "http://example.org/c")
	plain := func(name string) (flags string) {
		for _, text := range rulesAt(p, name) {
			fields := strings.Fields(text)
			if flag := strings.Trim(fields[2], `"`); !strings.Contains(flag, ":") {
				flags += flag
			}
		}
		return flags
	}
	if got := plain("c.b.a.paradisec.example."); got != "s" {
		t.Errorf("a client of RFC 3404 sees the flags %q, want s", got)
	}
	// Without a resolver the location is all that they can get.
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Resolver = "" })
	wantRules(t, rulesAt(p, "c.b.a.paradisec.example."),
		`100 10 "RES:http" "N2L" "!^urn:paradisec:a:b:c$!http://example.org/c!i" .`,
		`200 10 "u" "http+N2L+N2R+I2L+I2R" "!.*!http://example.org/c!" .`)
	if got := p.Walk("@paradisec.example.", "urn:paradisec:a:b:c", stele.N2L); got != "RES:http http://example.org/c" {
		t.Error(got)
	}
}
