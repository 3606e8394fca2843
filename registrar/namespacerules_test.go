package registrar

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func ruleTo(pattern, url, name, want string) stele.Rule {
	return stele.Rule{
		Pattern: pattern, Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}},
		Examples: []stele.RuleExample{{Name: name, Want: want}},
	}
}

// TestNamespaceRules checks which rules a namespace may have: their examples hold, they lead where its records may lead, and
// not to themselves.
func TestNamespaceRules(t *testing.T) {
	f := newFixture(t)
	f.space("https://purl.org/net/")
	key := f.key("https://purl.org/net/")
	good := func() stele.Rule {
		return ruleTo("{n:digit}", "https://example.org/{n}", "https://purl.org/net/1", "https://example.org/1")
	}
	set := func(change func(ns *stele.Namespace)) error {
		_, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error {
			ns.Rules, ns.Hosts, ns.Protocols = []stele.Rule{good()}, nil, nil
			change(ns)
			return nil
		})
		return err
	}
	if err := set(func(*stele.Namespace) {}); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(ns *stele.Namespace){
		`rules[0].examples: a rule needs at least one example`: func(ns *stele.Namespace) { ns.Rules[0].Examples = nil },
		`rules[1].pattern: is the same as rules[0].pattern`:    func(ns *stele.Namespace) { ns.Rules = append(ns.Rules, good()) },
		`rules[1].examples[0]: "https://purl.org/net/1": rule 1, {n:digit}, comes first`: func(ns *stele.Namespace) {
			ns.Rules = append(ns.Rules, ruleTo("{n:any}", "https://example.org/{n}", "https://purl.org/net/1", "https://example.org/1"))
		},
		`"example.org": targets of https://purl.org/net/ don't point there`: func(ns *stele.Namespace) { ns.Hosts = []string{"example.net"} },
		`the protocol "https" is not allowed`:                               func(ns *stele.Namespace) { ns.Protocols = []string{"http"} },
		`leads to a name of the same namespace`: func(ns *stele.Namespace) {
			ns.Rules[0] = ruleTo("{n:digit}", "https://purl.org/net/{n}1", "https://purl.org/net/1", "https://purl.org/net/11")
		},
		`rules[0].targets[0].status: 418 is not a status`:    func(ns *stele.Namespace) { ns.Rules[0].Targets[0].Status = 418 },
		`rules[0].targets[0].partial: means nothing`:         func(ns *stele.Namespace) { ns.Rules[0].Targets[0].Partial = true },
		`rules[0].targets[0].url: is not used`:               func(ns *stele.Namespace) { ns.Rules[0].Targets[0].Status = 410 },
		`rules[0].targets[0].url: is missing`:                func(ns *stele.Namespace) { ns.Rules[0].Targets[0].URL = "" },
		`rules: has 201 items; 200 are the most`:             func(ns *stele.Namespace) { ns.Rules = make([]stele.Rule, 201) },
		`rules: the rules have`:                              func(ns *stele.Namespace) { ns.Rules[0].Examples = many("https://purl.org/net/x", 50, 1500) },
		`rules[0].examples[0]: "https://purl.org/network/1"`: func(ns *stele.Namespace) { ns.Rules[0].Examples[0].Name = "https://purl.org/network/1" },
	} {
		if err := set(change); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if ns := must(f.Namespace(f.admin, key))(t); ns.Version != 2 || len(ns.Rules) != 1 {
		t.Errorf("version %d with %d rules", ns.Version, len(ns.Rules))
	}
	// Chains that end are allowed.
	if err := set(func(ns *stele.Namespace) {
		ns.Rules = append(ns.Rules, ruleTo("old{n:digit}", "https://purl.org/net/{n}", "https://purl.org/net/old1", "https://purl.org/net/1"))
	}); err != nil {
		t.Error(err)
	}
	if list := must(f.JudgeRules(f.admin, &stele.Namespace{Scheme: "purl", Prefix: "https://purl.org/net/", Rules: []stele.Rule{{Pattern: "{"}}}))(t); len(list) == 0 {
		t.Error("nothing is wrong with {")
	}
}

// TestRulesThroughOthers: rules that lead to themselves through those of another namespace are refused, also when they are only judged; a
// namespace between them that has no rules ends the way.
func TestRulesThroughOthers(t *testing.T) {
	f := newFixture(t)
	f.space("https://purl.org/a/")
	f.space("https://purl.org/b/")
	set := func(prefix string, list ...stele.Rule) error {
		_, err := f.SetNamespace(f.admin, f.key(prefix), 0, func(ns *stele.Namespace) error { ns.Rules = list; return nil })
		return err
	}
	toB := ruleTo("{x:any}", "https://purl.org/b/{x}", "https://purl.org/a/1", "https://purl.org/b/1")
	toA := ruleTo("{x:any}", "https://purl.org/a/{x}", "https://purl.org/b/1", "https://purl.org/a/1")
	if err := set("https://purl.org/a/", toB); err != nil { // nothing answers there yet
		t.Fatal(err)
	}
	const says = `rules[0].examples[0]: "https://purl.org/b/1" leads to a name of https://purl.org/a/`
	if err := set("https://purl.org/b/", toA); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %q", err, says)
	}
	judged := *must(f.Namespace(f.admin, f.key("https://purl.org/b/")))(t)
	judged.Rules = []stele.Rule{toA}
	if list := must(f.JudgeRules(f.admin, &judged))(t); len(list) != 1 || !strings.Contains(list.Error(), says) {
		t.Errorf("judged: %v, want %q", list, says)
	}
	f.space("https://purl.org/a/1") // names of a place of its own have its rules, and no others
	if err := set("https://purl.org/b/", toA); err != nil {
		t.Error(err)
	}
}

// many returns examples of names with so many bytes.
func many(name string, count, size int) (list []stele.RuleExample) {
	for range count {
		list = append(list, stele.RuleExample{Name: name + strings.Repeat("x", size), Want: "https://example.org/"})
	}
	return list
}
