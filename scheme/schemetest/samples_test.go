package schemetest

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Each check of Run must find the scheme that breaks it, and samples that are
// impossible.
func TestSampleFaultsAreFound(t *testing.T) {
	deaf := func(h *honest) {
		h.parse = func(string) (stele.ID, error) { return stele.ID{}, stele.ErrForeign }
	}
	warns := func(warnings ...string) func(*honest) {
		return func(h *honest) {
			h.explain = func(text string) (stele.Explanation, error) {
				id, err := h.parse(text)
				return stele.Explanation{ID: id, Form: "x", Warnings: warnings}, err
			}
		}
	}
	refusesAt := func(pos int) func(*honest) {
		return func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.ID{}, stele.Invalidf("x", pos, "x.y", "no") }
		}
	}
	wasteful := func(h *honest) {
		parse := h.parse
		h.parse = func(text string) (stele.ID, error) { return parse(strings.Clone(text)) }
	}
	for _, c := range []struct {
		check, fault, complaint string
		samples                 Samples
		spoil                   func(h *honest)
	}{
		{"canonical", "another form", `want "x:a"`, Samples{Canonical: map[string]string{"x:A": "x:a"}}, func(h *honest) {
			h.parse = func(text string) (stele.ID, error) { return stele.NewID("x", text) }
		}},
		{"canonical", "not claimed", `want "x:a"`, Samples{Canonical: map[string]string{"x:A": "x:a"}}, deaf},
		{"same", "two names", "must name one thing", Samples{Same: [][]string{{"x:a", "x:A"}}}, func(h *honest) {
			h.parse = func(text string) (stele.ID, error) { return stele.NewID("x", text) }
		}},
		{"same", "not claimed", "no mark", Samples{Same: [][]string{{"x:a", "x:A"}}}, deaf},
		{"distinct", "one name", "must be two names", Samples{Distinct: []string{"x:a", "x:b"}}, func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.NewID("x", "x:a") }
		}},
		{"distinct", "not claimed", "no mark", Samples{Distinct: []string{"x:a", "x:b"}}, deaf},
		{"invalid", "taken", "want a refusal", Samples{Invalid: map[string]string{"x:": ""}}, func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.NewID("x", "x:a") }
		}},
		{"invalid", "not claimed", "want a refusal", Samples{Invalid: map[string]string{"x:": ""}}, deaf},
		{"invalid", "another reason", "does not hold", Samples{Invalid: map[string]string{"x:": "nothing"}}, refusesAt(2)},
		{"foreign", "claimed", "want ErrForeign", Samples{Foreign: []string{"y:"}}, refusesAt(0)},
		{"parents", "none", "parents of", Samples{Parents: map[string][]string{"x:a": {"x:"}}}, func(h *honest) {
			h.parents = func(stele.ID) iter.Seq[stele.Prefix] { return func(func(stele.Prefix) bool) {} }
		}},
		{"parents", "more cuts", "want its parents", Samples{Parents: map[string][]string{"x:ab": {"x:"}}}, anywhere},
		{"parents", "fewer cuts", "cuts of", Samples{Cuts: map[string][]string{"x:ab": {"x:a", "x:"}}}, func(*honest) {}},
		{"parents", "cuts of what is not claimed", "no mark", Samples{Cuts: map[string][]string{"x:ab": {"x:"}}}, deaf},
		{"parents", "not claimed", "no mark", Samples{Parents: map[string][]string{"x:a": {"x:"}}}, deaf},

		{"warnings", "one without need", "warnings", Samples{Warnings: map[string]string{"x:a": ""}}, warns("Beware.")},
		{"warnings", "none", "warnings", Samples{Warnings: map[string]string{"x:a": "letters"}}, warns()},
		{"warnings", "another", "warnings", Samples{Warnings: map[string]string{"x:a": "letters"}}, warns("Beware.")},
		{"warnings", "one more", "warnings", Samples{Warnings: map[string]string{"x:a": "Beware"}}, warns("Beware.", "Beware.")},
		{"warnings", "one less", "warnings", Samples{Warnings: map[string]string{"x:a": "One\nTwo"}}, warns("One Two.")},
		{"warnings", "another order", "warnings", Samples{Warnings: map[string]string{"x:a": "One\nTwo"}}, warns("Two.", "One.")},
		{"warnings", "not claimed", "Explain", Samples{Warnings: map[string]string{"x:a": ""}}, deaf},

		{"positions", "too early", "the error is at 2", Samples{Positions: map[string]string{"x:a b": " b"}}, refusesAt(2)},
		{"positions", "too late", "the error is at 4", Samples{Positions: map[string]string{"x:a b": " b"}}, refusesAt(4)},
		{"positions", "not the end", "the error is at 0", Samples{Positions: map[string]string{"x:": ""}}, refusesAt(0)},
		{"positions", "not the last place", "the error is at 2", Samples{Positions: map[string]string{"x:aa": "a"}}, refusesAt(2)},
		{"positions", "the sample is not in the text", "want -1", Samples{Positions: map[string]string{"x:": "b"}}, refusesAt(0)},
		{"positions", "taken", "want a refusal", Samples{Positions: map[string]string{"x:a": "a"}}, func(*honest) {}},
		{"positions", "not claimed", "want a refusal", Samples{Positions: map[string]string{"x:": ""}}, deaf},

		{"allocations", "too many", "1 allocations, want at most 0", Samples{Allocations: map[string]int{"x:a": 0}}, wasteful},
		{"allocations", "the sample grants too many", "more than 3", Samples{Allocations: map[string]int{"x:a": 4}}, func(*honest) {}},
		{"allocations", "refused", "must be valid", Samples{Allocations: map[string]int{"x:": 3}}, func(*honest) {}},
		{"allocations", "not claimed", "must be valid", Samples{Allocations: map[string]int{"x:a": 3}}, deaf},

		{"zero", "a spelling", "is also spelled", Samples{}, func(h *honest) {
			h.spellings = func(stele.ID) []stele.Spelling { return []stele.Spelling{{Name: "n", Text: "x:"}} }
		}},
		{"zero", "a parent", "has the parent", Samples{}, func(h *honest) {
			h.parents = func(id stele.ID) iter.Seq[stele.Prefix] {
				return func(yield func(stele.Prefix) bool) { yield(id.Prefix(2)) }
			}
		}},
	} {
		h := newHonest()
		c.spoil(h)
		all := c.samples.checks()
		i := slices.IndexFunc(all, func(s sampleCheck) bool { return s.name == c.check })
		if i < 0 {
			t.Fatalf("there is no check %q", c.check)
		}
		var r recorder
		all[i].check(&r, h)
		if !strings.Contains(strings.Join(r.complaints, "\n"), c.complaint) {
			t.Errorf("%s, %s: complaints %q, want %q", c.check, c.fault, r.complaints, c.complaint)
		}
	}
}

// Every sample is also a seed, whatever its kind.
func TestSamplesAreSeeds(t *testing.T) {
	got := Samples{
		Canonical:   map[string]string{"x:A": "x:a"},
		Same:        [][]string{{"x:b"}},
		Distinct:    []string{"x:c"},
		Invalid:     map[string]string{"x:d": ""},
		Foreign:     []string{"x:e"},
		Parents:     map[string][]string{"x:f": nil},
		Cuts:        map[string][]string{"x:j": nil},
		Warnings:    map[string]string{"x:g": ""},
		Positions:   map[string]string{"x:h": ""},
		Allocations: map[string]int{"x:i": 0},
	}.texts()
	for _, want := range append([]string{"x:A", "x:a", "x:b", "x:c", "x:d", "x:e", "x:f", "x:g", "x:h", "x:i", "x:j"}, Hostile...) {
		if !slices.Contains(got, want) {
			t.Errorf("%.20q is not a seed", want)
		}
	}
	if !slices.IsSorted(got) {
		t.Error("the seeds are not sorted")
	}
}

// Benchmark measures nothing that either reader refuses.
func TestBenchmarkFaultsAreFound(t *testing.T) {
	lax := newHonest()
	lax.parse = func(string) (stele.ID, error) { return stele.NewID("x", "x:a") }
	for _, c := range []struct {
		fault, text string
		scheme      stele.Scheme
	}{
		{"the scheme refuses it", "y:", newHonest()},
		{"net/url refuses it", "x:\x7f", lax},
	} {
		failed := false
		testing.Benchmark(func(b *testing.B) {
			defer func() { failed = b.Failed() }()
			Benchmark(b, c.scheme, map[string]string{"text": c.text})
		})
		if !failed {
			t.Errorf("%s, but the benchmark did not fail", c.fault)
		}
	}
}

// anywhere makes a scheme cut names after every byte.
func anywhere(h *honest) {
	h.cuts = func(id stele.ID, n int) bool { return n > 1 && n < len(id.String()) }
}
