package rules

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// obo is a namespace as that of the OBO Foundry, with its ways to answer.
func obo() *stele.Namespace {
	target := func(url, kind string, status int) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Type: kind, Status: status, Order: 100, Preference: 10}
	}
	const at = "https://purl.obolibrary.org/obo/"
	return &stele.Namespace{Scheme: "purl", Prefix: at, Rules: []stele.Rule{{
		Pattern:  "hp_{n:digit,7}",
		Fold:     true,
		Targets:  []stele.Target{target("https://browser.example/term?iri={id}", "text/html", 0), target("https://data.example/HP_{n}.rdf", "application/rdf+xml", 303)},
		Examples: []stele.RuleExample{{Name: at + "HP_0000118", Type: "", Want: "https://browser.example/term?iri=https://purl.obolibrary.org/obo/HP_0000118"}, {Name: at + "hp_0000118", Type: "application/rdf+xml", Want: "https://data.example/HP_0000118.rdf"}, {Name: at + "HP_0000118", Type: "application/pdf", Want: "406"}, {Name: at + "HP_118", Type: "", Want: ""}},
	}, {
		Pattern:  "hp/old/{file:any}",
		Targets:  []stele.Target{target("", "", 410)},
		Reason:   "the releases before 2010 are lost",
		Examples: []stele.RuleExample{{Name: at + "hp/old/x.owl", Type: "", Want: "410"}},
	}, {
		Pattern:  "hp/{file:any}",
		Targets:  []stele.Target{target("https://files.example/hp/{file}", "", 302)},
		Examples: []stele.RuleExample{{Name: at + "hp/releases/2026-01-01/hp.owl", Type: "text/html", Want: "https://files.example/hp/releases/2026-01-01/hp.owl"}, {Name: "http://purl.obolibrary.org/obo/hp/old/y", Type: "", Want: ""}},
	}}}
}

func problems(t *testing.T, ns *stele.Namespace) (list []string) {
	t.Helper()
	Check(schemes(t), ns, func(path string, err error) { list = append(list, path+": "+err.Error()) })
	return list
}

func TestCheck(t *testing.T) {
	if list := problems(t, obo()); len(list) > 0 {
		t.Fatal(strings.Join(list, "\n"))
	}
	if err := obo().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		change func(ns *stele.Namespace)
		says   string
	}{
		{func(ns *stele.Namespace) { ns.Rules[0].Examples[0].Want = "https://browser.example/" },
			`rules[0].examples[0]: "https://purl.obolibrary.org/obo/HP_0000118": the wanted answer is https://browser.example/, but https://browser.example/term?iri=https://purl.obolibrary.org/obo/HP_0000118 came`},
		{func(ns *stele.Namespace) { ns.Rules[0].Fold = false }, `rules[0].examples[0]: "https://purl.obolibrary.org/obo/HP_0000118": the wanted answer is https://browser.example/term?iri=https://purl.obolibrary.org/obo/HP_0000118, but the pattern hp_{n:digit,7} does not match`},
		{func(ns *stele.Namespace) { slices.Reverse(ns.Rules); ns.Rules[0].Examples = ns.Rules[0].Examples[:1] }, `rules[1].examples[0]: "https://purl.obolibrary.org/obo/hp/old/x.owl": rule 1, hp/{file:any}, comes first and answers for this name with https://files.example/hp/old/x.owl; put the more exact rule first`},
		{func(ns *stele.Namespace) { ns.Rules[2].Examples[1].Name = "https://purl.obolibrary.org/obo/hp/x" }, `the rule must not answer for this name, but it does, with https://files.example/hp/x`},
		{func(ns *stele.Namespace) { ns.Rules[2].Examples[1].Name = "ark:12345/x" }, `does not belong to https://purl.obolibrary.org/obo/`},
		{func(ns *stele.Namespace) { ns.Rules[2].Examples[1].Name = "?" }, `rules[2].examples[1]: "?": `},
		{func(ns *stele.Namespace) { ns.Rules[2].Pattern = "{" }, `rules[2].pattern: `},
		{func(ns *stele.Namespace) { ns.Rules[2].Targets[0].URL = "https://{file}/" }, `rules[2].targets[0].url: `},
	} {
		ns := obo()
		tt.change(ns)
		if list := problems(t, ns); len(list) == 0 || !strings.Contains(list[0], tt.says) {
			t.Errorf("%q, want %q", list, tt.says)
		}
	}
}

// A namespace whose stored rules this program can't read answers by the others.
func TestCompileSkipsBrokenRules(t *testing.T) {
	ns := obo()
	ns.Rules[1].Pattern = "{file:emoji}"
	set, problems := Compile(ns)
	if len(problems) != 1 {
		t.Fatal(problems)
	}
	if m, ok := set.Match(ns.Prefix + "hp/old/x.owl"); !ok || m.Number != 2 {
		t.Errorf("%v %v", m, ok)
	}
	if _, ok := set.Match("ark:12345/x"); ok {
		t.Error("a name of another prefix matches")
	}
	var none *Set
	if _, ok := none.Match("x"); ok {
		t.Error("no rules match")
	}
}

func TestOverlaps(t *testing.T) {
	ns := obo()
	set, _ := Compile(ns)
	got, all := set.Overlaps(schemes(t), ns)
	if !all {
		t.Error("not all were compared")
	}
	if len(got) != 1 || got[0].Earlier != 1 || got[0].Later != 2 || !strings.HasPrefix(got[0].Name, ns.Prefix+"hp/old/") {
		t.Errorf("%+v", got)
	}
	var none *Set
	if list, _ := none.Overlaps(schemes(t), ns); list != nil {
		t.Error(list)
	}
}

// A name is read in time that grows with its length, also if it matches nearly.
func TestMatchDoesNotAllocate(t *testing.T) {
	set, _ := Compile(obo())
	name := "https://purl.obolibrary.org/obo/hp/releases/x.owl"
	if n := testing.AllocsPerRun(100, func() {
		m, ok := set.Match(name)
		if !ok {
			t.Fatal("no match")
		}
		if _, err := m.URL(0, name, "", false); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // the URL
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	set, _ := Compile(obo())
	name := "https://purl.obolibrary.org/obo/hp/releases/x.owl"
	b.ReportAllocs()
	for b.Loop() {
		m, _ := set.Match(name)
		if _, err := m.URL(0, name, "", false); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseLines(t *testing.T) {
	for line, want := range map[string]stele.RuleExample{
		"ark:12345/x1 https://h/1":             {Name: "ark:12345/x1", Want: "https://h/1"},
		" ark:12345/x1  text/turtle  410 ":     {Name: "ark:12345/x1", Type: "text/turtle", Want: "410"},
		"20.500/a b https://h/1":               {Name: "20.500/a b", Want: "https://h/1"},
		"https://h/x y/z text/html https://h/": {Name: "https://h/x y/z", Type: "text/html", Want: "https://h/"},
	} {
		got, ok := ParseExample(line)
		if !ok || got != want {
			t.Errorf("%q: %+v %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "x", " x "} {
		if x, ok := ParseExample(line); ok {
			t.Errorf("%q: %+v", line, x)
		}
	}
	if got := ParseTarget("Text/Turtle=https://h/?a=b", 303); got.Type != "text/turtle" || got.URL != "https://h/?a=b" || got.Status != 303 {
		t.Errorf("%+v", got)
	}
	if got := ParseTarget("https://h/?a=b", 0); got.Type != "" || got.URL != "https://h/?a=b" {
		t.Errorf("%+v", got)
	}
}

// TestOverlapsBounded: many rules for long names are not all held against each other.
func TestOverlapsBounded(t *testing.T) {
	ns := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x"}
	for i := range 200 {
		ns.Rules = append(ns.Rules, stele.Rule{Pattern: "{a:word,3990-4000}/" + strconv.Itoa(i), Targets: []stele.Target{{Service: stele.N2L, URL: "https://h/{a}"}}})
	}
	set, problems := Compile(ns)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if list, all := set.Overlaps(schemes(t), ns); all || len(list) > 0 {
		t.Errorf("%d overlaps, %t", len(list), all)
	}
}
