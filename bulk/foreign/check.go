package foreign

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/rules"
)

// Check is a test that a file brings along: where a name must lead.
type Check struct {
	File   string
	Line   int
	Name   string
	Want   string // URL
	Status int    // of the redirect; 0 if the file does not say it
}

// Answer is where a name leads. The zero Answer is that it leads nowhere.
type Answer struct {
	URL    string
	Status int // 0 for the usual one
}

// Checks returns the tests of the files.
func (s *Source) Checks() ([]Check, error) {
	for _, p := range s.parts {
		if p, ok := p.(*rowsPart); ok {
			if err := p.ready(); err != nil {
				return nil, err
			}
		}
	}
	return s.checks, nil
}

// Foresee returns where a name leads after an import of all that can be imported into an empty registry.
func (s *Source) Foresee(name string) Answer { return s.future.answer(name) }

// Failed returns why a test fails; nil if it does not. Percent-encoding does not count, as in the tool that OBO files come
// from: it knows where an encoded character means something else as little.
func (c *Check) Failed(got Answer) error {
	same := decodedURL(c.Want) == decodedURL(got.URL)
	switch {
	case got.URL == "":
		return stele.Messagef("import.check-nowhere", "{file}, line {line}: {name} should lead to {want}, and leads nowhere", c.File, c.Line, c.Name, c.Want)
	case !same:
		return stele.Messagef("import.check-failed", "{file}, line {line}: {name} should lead to {want}, and leads to {got}", c.File, c.Line, c.Name, c.Want, got.URL)
	case c.Status != 0 && got.Status != 0 && c.Status != got.Status:
		return stele.Messagef("import.check-status", "{file}, line {line}: {name} should lead to {want} with the status {status}, and has {got}", c.File, c.Line, c.Name, c.Want, strconv.Itoa(c.Status), strconv.Itoa(got.Status))
	}
	return nil
}

func decodedURL(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// oboChecks takes the tests of all files, and what answers after the import.
func (s *Source) oboChecks(base string, files []*oboFile, rows []bulk.Row) {
	s.future = newFuture(rows)
	for _, f := range files {
		for _, c := range f.checks {
			name := base + strings.TrimPrefix(c.from, "/")
			if id, err := s.o.Schemes.Parse(name); err == nil {
				name = id.String()
			}
			s.checks = append(s.checks, Check{File: f.name, Line: c.line, Name: name, Want: c.to, Status: c.status})
		}
	}
}

// future is what rows of an import say, together.
type future struct {
	records map[string]*stele.Record
	partial []string     // names of records that answer for longer ones, the longest first
	spaces  []spaceRules // those with the longest prefixes first
}

type spaceRules struct {
	ns  *stele.Namespace
	set *rules.Set
}

func newFuture(rows []bulk.Row) *future {
	f := &future{records: make(map[string]*stele.Record)}
	for i := range rows {
		switch row := &rows[i]; {
		case row.Namespace != nil:
			set, _ := rules.Compile(row.Namespace)
			f.spaces = append(f.spaces, spaceRules{row.Namespace, set})
		case row.Record != nil && row.Err == nil:
			name := row.Record.ID.String()
			f.records[name] = row.Record
			if slices.ContainsFunc(row.Record.Targets, func(t stele.Target) bool { return t.Partial }) {
				f.partial = append(f.partial, name)
			}
		}
	}
	slices.SortFunc(f.spaces, func(a, b spaceRules) int { return cmp.Compare(len(b.ns.Prefix), len(a.ns.Prefix)) })
	slices.SortFunc(f.partial, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return f
}

// answer returns where a name leads: its record comes first, then a rule, then a record that it begins with.
func (f *future) answer(name string) Answer {
	if f == nil {
		return Answer{}
	}
	if rec := f.records[name]; rec != nil {
		if len(rec.Targets) == 0 {
			return Answer{}
		}
		return Answer{rec.Targets[0].URL, rec.Targets[0].Status}
	}
	for _, s := range f.spaces {
		if !strings.HasPrefix(name, s.ns.Prefix) {
			continue
		}
		if m, ok := s.set.Match(name); ok {
			to, err := m.URL(0, name, "", false)
			if err != nil {
				return Answer{}
			}
			return Answer{to, s.ns.Rules[m.Number].Targets[0].Status}
		}
		break
	}
	for _, start := range f.partial {
		if rest, ok := strings.CutPrefix(name, start); ok {
			t := f.records[start].Targets[0]
			return Answer{t.URL + rest, t.Status}
		}
	}
	return Answer{}
}
