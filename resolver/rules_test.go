package resolver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// ruled makes a namespace with rules, each written "pattern template" with more templates
// after it: a type before an equals sign, or a status.
func (r *registry) ruled(prefix string, list ...string) {
	r.t.Helper()
	key, _, err := r.schemes.ParsePrefix(prefix)
	if err != nil {
		r.t.Fatal(err)
	}
	ns := stele.Namespace{Scheme: key.Scheme(), Prefix: prefix}
	for _, text := range list {
		fields := strings.Fields(text)
		rule := stele.Rule{Pattern: fields[0]}
		for _, f := range fields[1:] {
			t := stele.Target{Service: stele.N2L, Order: 100, Preference: 10}
			if kind, url, ok := strings.Cut(f, ">"); ok {
				t.Type, t.URL = kind, url
			} else if _, err := fmt.Sscanf(f, "%d", &t.Status); err != nil {
				t.URL = f
			}
			rule.Targets = append(rule.Targets, t)
		}
		ns.Rules = append(ns.Rules, rule)
	}
	if _, problems := rules.Compile(&ns); len(problems) > 0 {
		r.t.Fatal(problems)
	}
	r.namespace(ns)
}

func TestRules(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.ruled("ark:12345/x", "{n:digit,3} https://h/{n}", "old{a:any} 410", "{a:any} https://rest/{a}")
		r.ruled("ark:12345/x77", "{a:digit,1} https://below/{a}")
		r.ruled("urn:example", ":{a:segment}/{b:any} https://h/{b}?x={a}")
		r.to("ark:12345/x123", page("https://record/123"))
		r.to("ark:12345/xab", partial("https://record/ab"))
		r.put(stele.Record{ID: r.id("ark:12345/x456"), State: stele.Reserved, Targets: []stele.Target{page("https://record/456")}})
		r.put(stele.Record{ID: r.id("ark:12345/x789"), State: stele.Withdrawn})
		for name, want := range map[string]string{
			"ark:12345/x123":   "https://record/123", // what is registered comes first
			"ark:12345/x124":   "https://h/124",
			"ark:12345/x456":   "https://h/456", // as if the hidden record was not there
			"ark:12345/x789":   "tombstone",
			"ark:12345/xold1":  "gone",
			"ark:12345/xabc/d": "https://rest/abc/d", // rules before partial names
			"ark:12345/x77a":   "not found",          // rules of the namespace above do not count
			"ark:12345/x771":   "https://below/1",
			"ark:12345/y1":     "not found",

			"ark:12345/x125?q=1":        "https://h/125?q=1",
			"urn:example:a/b/c":         "https://h/b/c?x=a",
			"urn:example:a%26/b%2F?c=d": "https://h/b%2F?x=a%26&c=d",
		} {
			for range 2 {
				if got := r.location(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		}
		if got := r.location("ark:12345/x456", "ann"); got != "https://h/456" {
			t.Errorf("%s", got)
		}
		res := r.resolve(Request{ID: r.id("ark:12345/x124"), Trace: true})
		if res.Rule == nil || res.Rule.Pattern != "{n:digit,3}" || res.Number != 1 || res.Record != nil || res.Namespace.Prefix != "ark:12345/x" || res.Matched != "ark:12345/x" {
			t.Errorf("%+v", res)
		}
		var steps []string
		for _, s := range res.Trace {
			steps = append(steps, s.Name+": "+s.Result.Error())
		}
		if all := strings.Join(steps, "\n"); !strings.Contains(all, "rule: rule 1 of ark:12345/x, {n:digit,3}; n=124") || !strings.Contains(all, "choice: 1. https://h/124") {
			t.Error(all)
		}
		if _, err := r.Resolve(t.Context(), Request{ID: r.id("ark:12345/x124"), Service: stele.N2C}); !errors.Is(err, stele.NotFound) || !strings.Contains(err.Error(), "rule 1 of ark:12345/x") {
			t.Error(err)
		}
	})
}

// Captures that would climb out of the path are refused, as what follows a partial name is.
func TestRulesDoNotClimb(t *testing.T) {
	r := newRegistry(t, Options{})
	r.ruled("urn:example", ":{a:any} https://h/base/{a}/end")
	for name, want := range map[string]string{
		"urn:example:a/../../b":      "invalid",
		"urn:example:%2e%2e/..%2f/b": "invalid",
		"urn:example:a/..%2f..%2f/b": "invalid",
		"urn:example:..;x/b":         "invalid",
		"urn:example:a/b/../c":       "https://h/base/a/b/../c/end",
		"urn:example:a..b":           "https://h/base/a..b/end",
	} {
		if got := r.location(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The names that rules lead to are followed inside, and rules that lead to themselves end.
func TestRulesThatLeadOn(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org"}})
	r.ruled("https://purl.org/a/", "{x:any} https://purl.org/b/{x}")
	r.ruled("https://purl.org/b/", "{x:digit} https://h/{x}", "{x:letter} https://purl.org/a/{x}")
	r.ruled("https://purl.org/c/", "{x:any} https://purl.org/c/{x}{x}")
	for name, want := range map[string]string{"https://purl.org/a/1": "https://h/1", "https://purl.org/a/z": "conflict", "https://purl.org/c/a": "conflict"} {
		if got := r.location(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := r.Resolve(t.Context(), Request{ID: r.id("https://purl.org/c/a")}); !errors.Is(err, ErrLoop) {
		t.Error(err)
	}
}

// An example of a rule is answered as a client's request is.
func TestExamplesChooseAsRequestsDo(t *testing.T) {
	kinds := []string{"", "text/html", "text/turtle", "application/rdf+xml", "image/png", "*/*"}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRegistry(t, Options{})
		rule := stele.Rule{Pattern: "{a:any}"}
		for i := range rapid.IntRange(1, 4).Draw(rt, "targets") {
			rule.Targets = append(rule.Targets, stele.Target{
				Service: stele.N2L, URL: fmt.Sprintf("https://h/%d/{a}", i), Type: rapid.SampledFrom(kinds[:5]).Draw(rt, "type"),
				Order: rapid.SampledFrom([]uint16{1, 2}).Draw(rt, "order"), Preference: rapid.SampledFrom([]uint16{1, 2}).Draw(rt, "preference"),
			})
		}
		ns := stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x", Rules: []stele.Rule{rule}}
		r.namespace(ns)
		set, _ := rules.Compile(&ns)
		kind := rapid.SampledFrom(kinds).Draw(rt, "accept")
		got, err := set.Try(r.schemes, &ns, "ark:12345/x1", kind)
		if err != nil {
			rt.Fatal(err)
		}
		res := r.resolve(Request{ID: r.id("ark:12345/x1"), Accept: accept(t, kind)})
		want := res.URL
		if !rules.Fits(res.Fit, res.Targets[0].Type) {
			want = "406"
		}
		if got.String() != want {
			rt.Fatalf("%s, want %s", got.String(), want)
		}
	})
}

// TestRuleForAllOthers: a target of a rule without a type is for all clients whose types no other target has.
func TestRuleForAllOthers(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.ruled("ark:12345/x", "{a:any} text/turtle>https://h/{a}.ttl https://h/{a} text/html>https://h/{a}.html")
		for kind, want := range map[string]string{"text/csv": "https://h/1", "application/pdf": "https://h/1", "text/turtle": "https://h/1.ttl", "text/html": "https://h/1.html"} {
			res := r.resolve(Request{ID: r.id("ark:12345/x1"), Accept: accept(t, kind)})
			if res.URL != want || !rules.Fits(res.Fit, res.Targets[0].Type) {
				t.Errorf("%s: %s, fits as %v, want %s", kind, res.URL, res.Fit, want)
			}
		}
	})
}

// BenchmarkRule measures redirects by rules beside those by records, as a server asks for
// them: by many names, briefly.
func BenchmarkRule(b *testing.B) {
	const n = 1000
	for _, kind := range []string{"record", "rule"} {
		b.Run(kind, func(b *testing.B) {
			r := newRegistry(b, Options{Now: clock, CacheBytes: 8 << 20, RedirectBytes: 8 << 20})
			defer r.Close()
			r.ruled("ark:12345/x", "{name:hex,10} https://archive.example.org/items/{name}/view")
			ids := make([]stele.ID, n)
			for i := range ids {
				ids[i] = r.id(fmt.Sprintf("ark:12345/x%010x", i))
				if kind == "record" {
					r.to(ids[i].String(), page(fmt.Sprintf("https://archive.example.org/items/%010x/view", i)))
				}
			}
			r.benchmark(b, ids, Request{Brief: true})
		})
	}
}

// TestRulesMeetRecords: what a rule says of another name does not take the place of a record, and a rule that leads to a record which has nothing
// of the type asked for leads to the record's own URL. A namespace that is gone is so for its rules, too.
func TestRulesMeetRecords(t *testing.T) {
	r := newRegistry(t, Options{Hosts: []string{"purl.org"}})
	r.ruled("https://purl.org/obo/", "old/{x:any} 410", "to/{x:any} https://purl.org/new/{x}", "{org:word}/public/{f:any} https://files.example/{org}/public/{f}")
	r.to("https://purl.org/a/1", page("https://purl.org/obo/old/x"))
	res, err := r.Resolve(t.Context(), Request{ID: r.id("https://purl.org/a/1")})
	if err != nil || res.Kind != Gone || res.Record == nil || res.Record.ID != r.id("https://purl.org/a/1") {
		t.Errorf("a record that leads to what a rule says is gone: %v, %v, %v", res.Kind, res.Record, err)
	}
	r.to("https://purl.org/new/1", stele.Target{Service: stele.N2L, URL: "https://h.example/1", Type: "text/html"})
	for accept, want := range map[string]string{"text/html": "https://h.example/1", "application/ld+json": "https://purl.org/new/1"} {
		liked, err := ParseAccept(accept)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := r.Resolve(t.Context(), Request{ID: r.id("https://purl.org/obo/to/1"), Accept: liked}); err != nil || res.URL != want {
			t.Errorf("%s: %s (%v), want %s", accept, res.URL, err, want)
		}
	}
	key, _, err := r.schemes.ParsePrefix("urn:example")
	if err != nil {
		t.Fatal(err)
	}
	rule := stele.Rule{Pattern: ":{x:word}", Targets: []stele.Target{{Service: stele.N2L, URL: "https://h.example/{x}"}}}
	r.namespace(stele.Namespace{Scheme: key.Scheme(), Prefix: "urn:example", Status: 410, Rules: []stele.Rule{rule}})
	if res, err := r.Resolve(t.Context(), Request{ID: r.id("urn:example:x")}); err != nil || res.Kind != Gone || res.URL != "" {
		t.Errorf("a namespace that is gone: %v %q (%v)", res.Kind, res.URL, err)
	}
}
