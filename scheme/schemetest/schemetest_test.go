package schemetest

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// honest is a scheme of texts "x:letters" that keeps all obligations. Each test
// breaks one of them.
type honest struct {
	parse     func(text string) (stele.ID, error)
	explain   func(text string) (stele.Explanation, error)
	spellings func(id stele.ID) []stele.Spelling
	parents   func(id stele.ID) iter.Seq[stele.Prefix]
	cuts      func(id stele.ID, n int) bool
	prefix    func(text string) (stele.Prefix, stele.ID, error)
}

func newHonest() *honest {
	h := &honest{}
	h.parse = func(text string) (stele.ID, error) {
		if !strings.HasPrefix(text, "x:") {
			return stele.ID{}, stele.ErrForeign
		}
		if err := stele.CheckText("x", text); err != nil {
			return stele.ID{}, err
		}
		if len(text) == 2 {
			return stele.ID{}, stele.Invalidf("x", 2, "x.y", "nothing follows")
		}
		return stele.NewID("x", strings.ToLower(text))
	}
	h.explain = func(text string) (stele.Explanation, error) {
		id, err := h.parse(text)
		if err != nil {
			return stele.Explanation{}, err
		}
		x := stele.Explanation{ID: id, Form: "x", Spellings: h.spellings(id)}
		if text != id.String() {
			x.Warnings = append(x.Warnings, "Capital letters became small.")
		}
		if len(text) > 10 {
			x.Warnings = append(x.Warnings, "This is long.")
		}
		return x, nil
	}
	h.spellings = func(stele.ID) []stele.Spelling { return nil }
	h.parents = func(id stele.ID) iter.Seq[stele.Prefix] {
		return func(yield func(stele.Prefix) bool) {
			if id.IsValid() {
				yield(id.Prefix(2))
			}
		}
	}
	h.cuts = func(id stele.ID, n int) bool { return n == 2 && len(id.String()) > n }
	h.prefix = func(text string) (p stele.Prefix, below stele.ID, err error) {
		if text != "x:" {
			return p, below, stele.ErrForeign
		}
		below, err = stele.NewID("x", "x:a")
		return below.Prefix(2), below, err
	}
	return h
}

func (h *honest) Name() string                                   { return "x" }
func (h *honest) Parse(text string) (stele.ID, error)            { return h.parse(text) }
func (h *honest) Explain(text string) (stele.Explanation, error) { return h.explain(text) }
func (h *honest) Spellings(id stele.ID) []stele.Spelling         { return h.spellings(id) }
func (h *honest) Parents(id stele.ID) iter.Seq[stele.Prefix]     { return h.parents(id) }
func (h *honest) Cuts(id stele.ID, n int) bool                   { return h.cuts(id, n) }
func (h *honest) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	return h.prefix(text)
}

// recorder keeps what a check complains of.
type recorder struct{ complaints []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

func TestHonestPasses(t *testing.T) {
	Run(t, newHonest(), Samples{
		Canonical: map[string]string{"x:A": "x:a"},
		Same:      [][]string{{"x:A", "x:a"}},
		Distinct:  []string{"x:a", "x:b"},
		Invalid:   map[string]string{"x:": "nothing"},
		Foreign:   []string{"y:"},
		Parents:   map[string][]string{"x:abc": {"x:"}},
		Warnings: map[string]string{
			"x:a": "", "x:A": "letters", "x:ABCDEFGHIJ": "letters\nlong", "x:LETTERSABC": "became small.\nThis is",
		},
		Positions:   map[string]string{"x:": "", "x:\x00\x00": "\x00\x00"},
		Allocations: map[string]int{"x:a": 0, "x:A": 1, "y:": 0},
	})
}

// The suite must find each of these faults: a suite that can't fail proves nothing.
func TestFaultsAreFound(t *testing.T) {
	id := func(text string) stele.ID {
		id, err := stele.NewID("x", text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, c := range []struct {
		fault, text, complaint string
		spoil                  func(h *honest)
	}{
		{"not idempotent", "x:a", "its canonical form", func(h *honest) {
			h.parse = func(text string) (stele.ID, error) { return stele.NewID("x", text+"a") }
		}},
		{"another scheme's ID", "x:a", "an ID of scheme", func(h *honest) {
			h.parse = func(text string) (stele.ID, error) { return stele.NewID("y", text) }
		}},
		{"a prefix and an error", "x:", "both a prefix", func(h *honest) {
			h.prefix = func(string) (stele.Prefix, stele.ID, error) { return id("x:a").Prefix(2), stele.ID{}, stele.ErrForeign }
		}},
		{"a prefix of another scheme", "x:", "a prefix of scheme", func(h *honest) {
			h.prefix = func(string) (stele.Prefix, stele.ID, error) {
				y, err := stele.NewID("y", "x:a")
				return y.Prefix(2), y, err
			}
		}},
		{"a prefix where names can't be cut", "x:", "may not be cut", func(h *honest) {
			h.prefix = func(string) (stele.Prefix, stele.ID, error) { return id("x:ab").Prefix(3), id("x:ab"), nil }
		}},
		{"a prefix of another name", "x:", "does not begin", func(h *honest) {
			h.prefix = func(string) (stele.Prefix, stele.ID, error) { return id("y:ab").Prefix(2), id("x:ab"), nil }
		}},
		{"a prefix of what is not a name", "x:", "below the prefix", func(h *honest) {
			h.prefix = func(string) (stele.Prefix, stele.ID, error) { return id("x:A").Prefix(2), id("x:A"), nil }
		}},
		{"a prefix that is not read again", "x:b", "is read as", func(h *honest) {
			before := h.prefix
			h.prefix = func(text string) (p stele.Prefix, below stele.ID, err error) {
				if text == "x:b" {
					return before("x:")
				}
				return p, below, stele.ErrForeign
			}
		}},
		{"a parent that is not a prefix", "x:a", "its parent", func(h *honest) {
			h.prefix = func(text string) (p stele.Prefix, below stele.ID, err error) { return p, below, stele.ErrForeign }
		}},
		{"Explain is laxer", "x:", "Parse says", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) { return stele.Explanation{ID: id("x:a"), Form: "x"}, nil }
		}},
		{"Explain sees another ID", "x:a", "Explain gives", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) { return stele.Explanation{ID: id("x:b"), Form: "x"}, nil }
		}},
		{"wrong kind", "x:", "want invalid", func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.ID{}, &stele.Error{Kind: stele.Gone} }
		}},
		{"no position", "x:", "no SyntaxError", func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.ID{}, &stele.Error{Kind: stele.Invalid} }
		}},
		{"position outside", "x:", "is outside", func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.ID{}, stele.Invalidf("x", 3, "x.y", "no") }
		}},
		{"no reason", "x:", "without a reason", func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return stele.ID{}, stele.Invalidf("x", 0, "x.y", "") }
		}},
		{"raw input in the message", "x:\n", "carries control", func(h *honest) {
			h.parse = func(text string) (stele.ID, error) { return stele.ID{}, stele.Invalidf("x", 0, "x.y", text) }
		}},
		{"ID beside an error", "x:", "both an ID", func(h *honest) {
			h.parse = func(string) (stele.ID, error) { return id("x:a"), stele.Invalidf("x", 0, "x.y", "no") }
		}},
		{"parent is not a cut", "x:a", "is not a cut", func(h *honest) {
			h.cuts = func(stele.ID, int) bool { return false }
		}},
		{"nothing is cut off", "x:a", "nothing out", func(h *honest) {
			h.cuts = func(stele.ID, int) bool { return true }
		}},
		{"parent is not a prefix", "x:a", "is not a prefix", func(h *honest) {
			h.parents = func(stele.ID) iter.Seq[stele.Prefix] {
				return func(yield func(stele.Prefix) bool) { yield(id("y:a").Prefix(2)) }
			}
		}},
		{"parents do not shrink", "x:abc", "not shorter", func(h *honest) {
			h.parents = func(id stele.ID) iter.Seq[stele.Prefix] {
				return func(yield func(stele.Prefix) bool) {
					for yield(id.Prefix(3)) {
					}
				}
			}
		}},
		{"spelling is not read back", "x:a", "its spelling", func(h *honest) {
			h.spellings = func(stele.ID) []stele.Spelling { return []stele.Spelling{{Name: "n", Text: "y:a"}} }
		}},
		{"spelling is the canonical text", "x:a", "another text", func(h *honest) {
			h.spellings = func(stele.ID) []stele.Spelling { return []stele.Spelling{{Name: "n", Text: "x:a"}} }
		}},
		{"no form", "x:a", "without a form", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) { return stele.Explanation{ID: id("x:a")}, nil }
		}},
		{"part of a wrong type", "x:a", "is a float64", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) {
				return stele.Explanation{ID: id("x:a"), Form: "x", Parts: stele.Parts{{Name: "p", Value: 1.5}}}, nil
			}
		}},
		{"warning is not a sentence", "x:a", "not a sentence", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) {
				return stele.Explanation{ID: id("x:a"), Form: "x", Warnings: []string{"odd"}}, nil
			}
		}},
		{"warning of two lines", "x:a", "on one line", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) {
				return stele.Explanation{ID: id("x:a"), Form: "x", Warnings: []string{"This is\nodd."}}, nil
			}
		}},
		{"part twice", "x:a", "two parts", func(h *honest) {
			h.explain = func(string) (stele.Explanation, error) {
				return stele.Explanation{ID: id("x:a"), Form: "x", Parts: stele.Parts{{Name: "p", Value: 1}, {Name: "p", Value: 2}}}, nil
			}
		}},
	} {
		h := newHonest()
		c.spoil(h)
		var r recorder
		Check(&r, h, c.text)
		if !strings.Contains(strings.Join(r.complaints, "\n"), c.complaint) {
			t.Errorf("%s: complaints %q, want %q", c.fault, r.complaints, c.complaint)
		}
	}
}

// located is the honest scheme with URIs.
type located struct {
	*honest
	uri func(text string) ([]string, string)
}

func (l located) URI(text string) ([]string, string) { return l.uri(text) }

func TestFaultsOfURIsAreFound(t *testing.T) {
	for complaint, uri := range map[string]func(string) ([]string, string){
		"":                              func(text string) ([]string, string) { return []string{"y", "z"}, text[2:] },
		"no URI":                        func(text string) ([]string, string) { return nil, text },
		"not a URI in canonical form":   func(text string) ([]string, string) { return []string{"y"}, text[2:] + "?b" },
		"and that of its parent":        func(text string) ([]string, string) { return []string{"y"}, "a" + text[len(text)-1:] },
		"y:é is not a URI in canonical": func(text string) ([]string, string) { return []string{"y"}, "é"[:min(len(text)-2, 1)*2] },
	} {
		var r recorder
		Check(&r, located{newHonest(), uri}, "x:a")
		if got := strings.Join(r.complaints, "\n"); complaint == "" && got != "" || !strings.Contains(got, complaint) {
			t.Errorf("want %q, got %q", complaint, got)
		}
	}
}
