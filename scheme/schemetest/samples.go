package schemetest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// maxAllocations is how many allocations no Parse may exceed, whatever its text.
const maxAllocations = 3

// Samples are texts of one scheme, as its specification and its users give them.
type Samples struct {
	// Canonical maps texts to the canonical form they must give.
	Canonical map[string]string
	// Same are groups of texts that name one thing.
	Same [][]string
	// Distinct are texts of which no two name the same thing.
	Distinct []string
	// Invalid are texts that the scheme claims and refuses; the value is a part
	// of the reason that must be given.
	Invalid map[string]string
	// Foreign are texts that the scheme must leave to others.
	Foreign []string
	// Parents maps texts to their parents, longest first.
	Parents map[string][]string
	// Cuts maps texts to all prefixes at which they may be cut, longest first. A scheme
	// without such samples cuts names where their parents end, and nowhere else.
	Cuts map[string][]string
	// Warnings maps texts to a part of their warnings joined by newlines, a line
	// for each warning in its order; "" if there must be none.
	Warnings map[string]string
	// Positions maps texts that the scheme claims and refuses to what stands at
	// the error's position in them; "" if that is the end. What stands in a text
	// more than once means the last place.
	Positions map[string]string
	// Allocations maps texts, which are valid or among Foreign, to the most
	// allocations that Parse may make on them; more than 3 are never allowed.
	Allocations map[string]int
}

// texts returns all sample texts and Hostile, sorted: a failing random test must
// be repeatable.
func (s Samples) texts() (all []string) {
	for in, out := range s.Canonical {
		all = append(all, in, out)
	}
	for _, group := range s.Same {
		all = append(all, group...)
	}
	all = append(all, s.Distinct...)
	all = append(all, s.Foreign...)
	for _, m := range []map[string]string{s.Invalid, s.Warnings, s.Positions} {
		all = slices.AppendSeq(all, maps.Keys(m))
	}
	all = slices.AppendSeq(all, maps.Keys(s.Parents))
	all = slices.AppendSeq(all, maps.Keys(s.Cuts))
	all = slices.AppendSeq(all, maps.Keys(s.Allocations))
	all = append(all, Hostile...)
	slices.Sort(all)
	return slices.Compact(all)
}

// sampleCheck is what Run checks in one subtest.
type sampleCheck struct {
	name  string
	check func(t TB, scheme stele.Scheme)
}

// checks returns a check for each kind of samples, and one for the zero ID, which
// is a sample that all schemes share.
func (s Samples) checks() []sampleCheck {
	return []sampleCheck{
		{"canonical", s.checkCanonical},
		{"same", s.checkSame},
		{"distinct", s.checkDistinct},
		{"invalid", s.checkInvalid},
		{"foreign", s.checkForeign},
		{"parents", s.checkParents},
		{"warnings", s.checkWarnings},
		{"positions", s.checkPositions},
		{"allocations", s.checkAllocations},
		{"zero", checkZero},
	}
}

func (s Samples) checkCanonical(t TB, scheme stele.Scheme) {
	for in, want := range s.Canonical {
		id, err := scheme.Parse(in)
		if err != nil || id.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", in, id, err, want)
		}
		Check(t, scheme, in)
	}
}

func (s Samples) checkSame(t TB, scheme stele.Scheme) {
	for _, group := range s.Same {
		first, err := scheme.Parse(group[0])
		if err != nil {
			t.Errorf("Parse(%q): %v", group[0], err)
			continue
		}
		for _, in := range group {
			if id, err := scheme.Parse(in); err != nil || id != first {
				t.Errorf("%q and %q must name one thing, but are %q and %q, %v", group[0], in, first, id, err)
			}
			Check(t, scheme, in)
		}
	}
}

func (s Samples) checkDistinct(t TB, scheme stele.Scheme) {
	seen := make(map[stele.ID]string)
	for _, in := range s.Distinct {
		id, err := scheme.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q must be two names, but both are %q", other, in, id)
		}
		seen[id] = in
		Check(t, scheme, in)
	}
}

// refusal returns the error of a text that scheme must claim and refuse.
func refusal(t TB, scheme stele.Scheme, text string) (*stele.SyntaxError, bool) {
	id, err := scheme.Parse(text)
	syntax, ok := errors.AsType[*stele.SyntaxError](err)
	if !ok || err == stele.ErrForeign {
		t.Errorf("Parse(%q) = %q, %v; want a refusal", text, id, err)
		return nil, false
	}
	return syntax, true
}

func (s Samples) checkInvalid(t TB, scheme stele.Scheme) {
	for in, reason := range s.Invalid {
		if syntax, ok := refusal(t, scheme, in); ok && !strings.Contains(syntax.Reason.Error(), reason) {
			t.Errorf("Parse(%q): reason %q does not hold %q", in, syntax.Reason, reason)
		}
		Check(t, scheme, in)
	}
}

func (s Samples) checkForeign(t TB, scheme stele.Scheme) {
	for _, in := range s.Foreign {
		if _, err := scheme.Parse(in); err != stele.ErrForeign {
			t.Errorf("Parse(%q): %v, want ErrForeign", in, err)
		}
		Check(t, scheme, in)
	}
}

func (s Samples) checkParents(t TB, scheme stele.Scheme) {
	for in, want := range s.Parents {
		id, err := scheme.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		var got []string
		for p := range scheme.Parents(id) {
			got = append(got, p.String())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("parents of %q:\n got %q\nwant %q", in, got, want)
		}
		if s.Cuts == nil && !reflect.DeepEqual(cuts(scheme, id), want) {
			t.Errorf("cuts of %q:\n got %q\nwant its parents, %q", in, cuts(scheme, id), want)
		}
	}
	for in, want := range s.Cuts {
		id, err := scheme.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if got := cuts(scheme, id); !reflect.DeepEqual(got, want) {
			t.Errorf("cuts of %q:\n got %q\nwant %q", in, got, want)
		}
		Check(t, scheme, in)
	}
}

// cuts returns the prefixes at which a name may be cut, longest first.
func cuts(scheme stele.Scheme, id stele.ID) (list []string) {
	for n := len(id.String()) - 1; n > 0; n-- {
		if scheme.Cuts(id, n) {
			list = append(list, id.String()[:n])
		}
	}
	return list
}

func (s Samples) checkWarnings(t TB, scheme stele.Scheme) {
	for in, want := range s.Warnings {
		x, err := scheme.Explain(in)
		if err != nil {
			t.Errorf("Explain(%q): %v", in, err)
			continue
		}
		var lines []string
		if want != "" {
			lines = strings.Split(want, "\n")
		}
		if !slices.EqualFunc(x.Warnings, lines, strings.Contains) {
			t.Errorf("Explain(%q): warnings %q, want %q", in, x.Warnings, lines)
		}
		Check(t, scheme, in)
	}
}

func (s Samples) checkPositions(t TB, scheme stele.Scheme) {
	for in, want := range s.Positions {
		at := strings.LastIndex(in, want)
		if syntax, ok := refusal(t, scheme, in); ok && syntax.Pos != at {
			t.Errorf("Parse(%q): the error is at %d, want %d, %q: %v", in, syntax.Pos, at, want, syntax)
		}
		Check(t, scheme, in)
	}
}

func (s Samples) checkAllocations(t TB, scheme stele.Scheme) {
	for in, most := range s.Allocations {
		if most > maxAllocations {
			t.Errorf("the sample grants Parse(%q) %d allocations, more than %d", in, most, maxAllocations)
		}
		if _, err := scheme.Parse(in); err != nil && !slices.Contains(s.Foreign, in) {
			t.Errorf("Parse(%q): %v; what is measured must be valid or a sample of Foreign", in, err)
		}
		got := int(testing.AllocsPerRun(100, func() { _, _ = scheme.Parse(in) }))
		if got > most {
			t.Errorf("Parse(%q): %d allocations, want at most %d", in, got, most)
		}
	}
}

// checkZero checks that the zero ID, which is of no scheme, does no harm.
func checkZero(t TB, scheme stele.Scheme) {
	if got := scheme.Spellings(stele.ID{}); len(got) > 0 {
		t.Errorf("the zero ID is also spelled %q", got)
	}
	for p := range scheme.Parents(stele.ID{}) {
		t.Errorf("the zero ID has the parent %q", p)
	}
	for _, n := range []int{-1, 0, 1} {
		if scheme.Cuts(stele.ID{}, n) {
			t.Errorf("the zero ID may be cut after %d bytes", n)
		}
	}
}
