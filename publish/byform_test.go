package publish_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
)

// byForm is a rule with one example.
func byForm(pattern, url, name, want string) stele.Rule {
	return stele.Rule{Pattern: pattern, Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}},
		Examples: []stele.RuleExample{{Name: name, Want: want}}}
}

// TestByForm: in a zone with the layout rules, names that are not registered lead where the
// rules of the namespace lead them, as far as expressions can say that.
func TestByForm(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Namespace("urn:example", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "rules.example.", Layout: stele.LayoutRules, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Resolver: "id.example.org"}
		typed := byForm(":{a:letter}-{n:digit,2-3}", "http://example.org/{n}/{a}", "urn:example:Ab-12", "http://example.org/12/Ab")
		typed.Targets = append(typed.Targets, stele.Target{Service: stele.N2L, URL: "http://example.org/{n}.ttl", Type: "text/turtle", Order: 100, Preference: 20})
		ns.Rules = []stele.Rule{
			typed,
			byForm(":x.{ext=ttl|rdf}", "http://example.org/x.{ext}", "urn:example:x.ttl", "http://example.org/x.ttl"),
			byForm(":all/{rest1:any}", "http://example.org/all/{rest1}", "urn:example:all/x", "http://example.org/all/x"),
			byForm(":{n:digit}", "http://example.org/n/{n}", "urn:example:7", "http://example.org/n/7"),
		}
	})
	for id, want := range map[string]string{
		"urn:example:other-123": "RES:http http://example.org/123/other",
		"URN:Example:Other-12":  "RES:http http://example.org/12/Other",
		"urn:example:x.rdf":     "RES:http http://example.org/x.rdf",
		"urn:example:xyrdf":     "s _http._tcp.rules.example.",
		"urn:example:other-1":   "s _http._tcp.rules.example.",
		"urn:example:all/x":     "s _http._tcp.rules.example.", // it may have to be encoded
		"urn:example:7":         "s _http._tcp.rules.example.", // it comes after one that is not published
	} {
		if got := p.Walk("urn.example.", id, stele.N2L); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if notes := checked(t, p, "rules.example."); !strings.Contains(notes, "urn:example: rule 3, :all/{rest1:any}, and those after it are for HTTP only: what the capture \"rest1\" matches may have to be percent-encoded") {
		t.Error(notes)
	}

	// Names that fit two rules would be led by the media type.
	p.Namespace("urn:example", func(ns *stele.Namespace) {
		ns.Rules = append(ns.Rules[:1:1], byForm(":{b:word}", "http://example.org/word/{b}", "urn:example:w", "http://example.org/word/w"))
		ns.Rules[1].Pattern = ":{b:word}-{m:digit}"
		ns.Rules[1].Examples = []stele.RuleExample{{Name: "urn:example:w-1234", Want: "http://example.org/word/w"}}
	})
	if notes := checked(t, p, "rules.example."); !strings.Contains(notes, "clients of the DNS choose by media type") {
		t.Error(notes)
	}
	if got := p.Walk("urn.example.", "urn:example:other-123", stele.N2L); got != "s _http._tcp.rules.example." {
		t.Error(got)
	}
	p.Namespace("urn:example", func(ns *stele.Namespace) { ns.Rules = ns.Rules[:1] })
	if got := p.Walk("urn.example.", "urn:example:other-123", stele.N2L); got != "RES:http http://example.org/123/other" {
		t.Error(got)
	}

	// A registered name is answered by its own rule alone, also once it is withdrawn.
	p.Register("urn:example:known-12", "http://example.org/registered")
	for id, want := range map[string]string{
		"urn:example:known-12":  "RES:http http://example.org/registered",
		"urn:example:other-123": "s _http._tcp.rules.example.",
	} {
		if got := p.Walk("urn.example.", id, stele.N2L); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if notes := checked(t, p, "rules.example."); !strings.Contains(notes, "it has registered names, for which they would answer, too") {
		t.Error(notes)
	}

	// A namespace in the same zone has names for which these rules are not.
	p.Namespace("urn:example:all", func(*stele.Namespace) {})
	if got := p.Walk("urn.example.", "urn:example:other-123", stele.N2L); got != "s _http._tcp.rules.example." {
		t.Error(got)
	}
	if notes := checked(t, p, "rules.example."); !strings.Contains(notes, "urn:example:all is in the same zone") {
		t.Error(notes)
	}
}

// TestByFormElsewhere: in a zone of names, names that are not registered do not exist, and the check says so.
func TestByFormElsewhere(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{byForm(":{a:digit}", "http://example.org/{a}", "urn:paradisec:1", "http://example.org/1")}
	})
	if notes := checked(t, p, "paradisec.example."); !strings.Contains(notes, "names for which a rule of the namespace answers are found over HTTP only") {
		t.Error(notes)
	}
}

// checked returns what a check tells about a zone.
func checked(t *testing.T, p *publishtest.Registry, zone string) string {
	t.Helper()
	var list []string
	if err := p.Zones.Check(p.Ctx, zone, func(f publish.Problem) { list = append(list, f.Text) }, nil); err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, "\n")
}

// TestByFormSerial: rules are in the zone with the layout rules, and in no other one.
func TestByFormSerial(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Namespace("urn:example", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "rules.example.", Layout: stele.LayoutRules, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Resolver: "id.example.org"}
	})
	names, rules := p.Serial("paradisec.example."), p.Serial("rules.example.")
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{byForm(":{a:digit}", "http://example.org/{a}", "urn:paradisec:1", "http://example.org/1")}
	})
	if now := p.Serial("paradisec.example."); now != names {
		t.Errorf("the serial of a zone without the rules is %d, and was %d", now, names)
	}
	p.Namespace("urn:example", func(ns *stele.Namespace) {
		ns.Rules = []stele.Rule{byForm(":{a:digit}", "http://example.org/{a}", "urn:example:1", "http://example.org/1")}
	})
	if now := p.Serial("rules.example."); now == rules {
		t.Error("the serial of the zone with the rules has not moved")
	}
	if got := rulesAt(p, "rules.example."); len(got) != 3 || !strings.Contains(got[0], `\\1`) {
		t.Errorf("%q", got)
	}
}

// TestByFormBesideNames: rules leave the zone for names that the public may know of, also those that were registered before the
// namespace was added, and aliases. They stay for others: that a rule leaves must not tell that there is one.
func TestByFormBesideNames(t *testing.T) {
	const led, resolver = "RES:http http://example.org/n/7", "s _http._tcp.rules.example."
	for name, c := range map[string]struct {
		register func(p *publishtest.Registry)
		want     string
	}{
		"none": {func(*publishtest.Registry) {}, led},
		"reserved": {func(p *publishtest.Registry) {
			p.RegisterRecord(&stele.Record{ID: p.ID("urn:example:1"), State: stele.Reserved})
		}, led},
		"restricted": {func(p *publishtest.Registry) {
			p.RegisterRecord(&stele.Record{ID: p.ID("urn:example:1"), Readers: []string{"user:ann"}})
		}, led},
		"public": {func(p *publishtest.Registry) { p.RegisterRecord(&stele.Record{ID: p.ID("urn:example:1")}) }, resolver},
		"withdrawn": {func(p *publishtest.Registry) {
			r := p.Register("urn:example:1", "http://example.org/")
			if _, err := p.Registrar.Withdraw(p.Ctx, r.ID, 0, "wrong", stele.ID{}); err != nil {
				t.Fatal(err)
			}
		}, resolver},
		"alias": {func(p *publishtest.Registry) {
			p.RegisterRecord(&stele.Record{ID: p.ID("urn:paradisec:x"), Aliases: []stele.ID{p.ID("urn:example:1")}})
		}, resolver},
		"name that begins alike": {func(p *publishtest.Registry) { p.RegisterRecord(&stele.Record{ID: p.ID("urn:example2:1")}) }, led},
	} {
		for _, before := range []bool{false, true} { // the namespace is there
			if before && name == "alias" {
				continue // no store can list it
			}
			p := publishtest.New(t)
			p.Paradisec()
			if before {
				c.register(p)
			}
			p.Namespace("urn:example", func(ns *stele.Namespace) {
				ns.Publication = stele.Publication{Zone: "rules.example.", Layout: stele.LayoutRules, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Resolver: "id.example.org"}
				ns.Rules = []stele.Rule{byForm(":{n:digit}", "http://example.org/n/{n}", "urn:example:7", "http://example.org/n/7")}
			})
			if !before {
				c.register(p)
			}
			if got := p.Walk("urn.example.", "urn:example:7", stele.N2L); got != c.want {
				t.Errorf("%s, registered before the namespace: %t: %s, want %s", name, before, got, c.want)
			}
		}
	}
}
