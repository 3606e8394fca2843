package resolver

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// A prefix may end at any character of a PURL and an ARK, and the longest that is
// registered counts. What follows is passed on inside a part of a name only to targets that
// are marked as partial: x12 is not a part of x1.
func TestPrefixesInsideSegments(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		const obo = "http://purl.org/obo/"
		r.to(obo+"HP_", partial("https://hpo.example/browse/HP:"))
		r.to(obo+"HP_0000118", page("https://hpo.example/all"))
		r.to(obo+"GO_", partial("https://go.example/GO:"))
		r.to(obo+"GOC", partial("https://goc.example/"))
		r.to(obo, partial("https://obo.example/"))
		r.to("ark:13030/qt", partial("https://escholarship.example/uc/item/"))
		r.to("ark:13030/qt8n91c81t", page("https://escholarship.example/one"))
		r.to("ark:12345/x1", page("https://example.org/1"))
		r.to("ark:12345/y", page("https://example.org/y"))
		r.to("urn:example:par", partial("https://par.example/"))
		for range 2 {
			for name, want := range map[string]string{
				obo + "HP_0000001":       "https://hpo.example/browse/HP:0000001",
				obo + "HP_0000118":       "https://hpo.example/all",
				obo + "HP_00001189":      "https://hpo.example/browse/HP:00001189",
				obo + "HPX_1":            "https://obo.example/HPX_1",
				obo + "GO_1/a?b=c":       "https://go.example/GO:1/a?b=c",
				obo + "GOCHE_1":          "https://goc.example/HE_1",
				"ark:13030/qt2pd8608q":   "https://escholarship.example/uc/item/2pd8608q",
				"ark:13030/qt8n91c81t/a": "https://escholarship.example/one/a",
				"ark:13030/qt8n91c81tx":  "https://escholarship.example/uc/item/8n91c81tx",
				"ark:13030/q":            "not found",
				"ark:12345/x12":          "not found",
				"ark:12345/x1_2":         "not found",
				"ark:12345/x1.2":         "https://example.org/1.2",
				"ark:12345/yz":           "not found",
				"urn:example:paradisec":  "not found",
			} {
				if got := r.location(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		}
	})
}

// What is kept of a name ends when a longer prefix of it is registered.
func TestLongerPrefixIsRegistered(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		const name = "http://purl.org/obo/HP_0000001"
		for i, prefix := range []string{"", "http://purl.org/obo/", "http://purl.org/obo/H", "http://purl.org/obo/HP_", "http://purl.org/obo/HP_00"} {
			want := "not found"
			if prefix != "" {
				r.to(prefix, partial("https://example.org/"+strings.Repeat("i", i)+"?"))
				want = "https://example.org/" + strings.Repeat("i", i) + "?" + name[len(prefix):]
			}
			for range 3 {
				if got := r.location(name); got != want {
					t.Errorf("%s: %s, want %s", prefix, got, want)
				}
			}
		}
	})
}

// A name below a prefix is looked for once, and then known.
func TestLongestIsKept(t *testing.T) {
	store := &counting{Store: mem.New(clock)}
	r := &registry{New(store, newSchemes(t), Options{Now: clock, CacheBytes: 1 << 20}), t, store}
	r.to("http://purl.org/obo/HP_", partial("https://example.org/"))
	for range 3 {
		r.location("http://purl.org/obo/HP_1")
	}
	before := store.longest.Load()
	for range 10 {
		r.location("http://purl.org/obo/HP_1")
	}
	if asked := store.longest.Load() - before; asked != 0 || before == 0 {
		t.Errorf("the store was searched %d times, and then %d", before, asked)
	}
}

// A namespace can ask that what follows a registered name is passed on from any character
// on. It holds for names of this namespace only, and not for those of one below it.
func TestPassthroughOfNamespace(t *testing.T) {
	withAndWithout(t, func(t *testing.T, r *registry) {
		r.to("ark:12345/x1", page("https://example.org/1"))
		r.to("ark:12345/x1b2", page("https://example.org/b2"))
		r.to("ark:12345/y1", partial("https://example.org/part/"), page("https://example.org/whole"))
		r.to("http://purl.org/obo/HP", page("https://hpo.example/"))
		r.to("urn:example:par", page("https://par.example/"))
		r.to("ark:99999/fk4", page("https://other.example/"))
		r.put(stele.Record{ID: r.id("ark:12345/w1"), State: stele.Withdrawn, Tombstone: &stele.Tombstone{Reason: "gone"}, Targets: []stele.Target{page("https://example.org/w")}})
		r.put(stele.Record{ID: r.id("ark:12345/r1"), State: stele.Reserved, Targets: []stele.Target{page("https://example.org/r")}})
		r.put(stele.Record{ID: r.id("ark:12345/s1"), Readers: []string{"user:ana"}, Targets: []stele.Target{page("https://example.org/s")}})
		version := uint64(0)
		ask := func(passthrough bool) {
			t.Helper()
			for _, ns := range []stele.Namespace{
				{Scheme: "ark", Prefix: "ark:12345"}, {Scheme: "purl", Prefix: "https://purl.org/obo/"}, {Scheme: "urn", Prefix: "urn:example"},
			} {
				ns.Passthrough, ns.Version = passthrough, version
				r.namespace(ns)
			}
			version++
		}
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x1c"})
		r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:99999/fk4z", Passthrough: true})
		for _, passthrough := range []bool{false, true, false} {
			ask(passthrough)
			for name, want := range map[string][2]string{
				"ark:12345/x12":              {"not found", "https://example.org/12"},
				"ark:12345/x1_2/3?a=b":       {"not found", "https://example.org/1_2/3?a=b"},
				"ark:12345/x1/2":             {"https://example.org/1/2", "https://example.org/1/2"},
				"ark:12345/x1b2c":            {"not found", "https://example.org/b2c"},
				"ark:12345/x1c3":             {"not found", "not found"}, // of another namespace
				"ark:12345/y12":              {"https://example.org/part/2", "https://example.org/part/2"},
				"ark:12345/w12":              {"not found", "tombstone"},
				"ark:12345/r12":              {"not found", "not found"}, // what the public may not see
				"ark:12345/s12":              {"not found", "not found"},
				"ark:99999/fk4z1":            {"not found", "not found"}, // the registered name is of another one
				"http://purl.org/obo/HP_1":   {"not found", "https://hpo.example/_1"},
				"http://purl.org/obo/HP/1":   {"not found", "https://hpo.example//1"},
				"http://purl.org/obo/HP?a=b": {"https://hpo.example/", "https://hpo.example/?a=b"},
				"urn:example:par:1":          {"not found", "https://par.example/:1"},
				"urn:example:paradisec":      {"not found", "not found"}, // a URN is not cut there
			} {
				i := 0
				if passthrough {
					i = 1
				}
				if got := r.location(name); got != want[i] {
					t.Errorf("passthrough %v: %s: %s, want %s", passthrough, name, got, want[i])
				}
			}
		}
	})
}
