package rules

import (
	"cmp"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// Set is the rules of a namespace, compiled. It does not change, and is used by many
// goroutines at once.
type Set struct {
	list   []compiled
	prefix string
}

// compiled is a rule. Its pattern is nil if it could not be read; then it never answers.
type compiled struct {
	pattern   *Pattern
	templates []*Template // by target; nil for one without URL
}

// Compile compiles the rules of a namespace; nil if it has none. A rule that can't be read
// never answers; the problems say why.
func Compile(ns *stele.Namespace) (*Set, stele.Problems) {
	if len(ns.Rules) == 0 {
		return nil, nil
	}
	s := &Set{list: make([]compiled, len(ns.Rules)), prefix: ns.Prefix}
	var problems stele.Problems
	for i := range ns.Rules {
		c, wrong := compile(&ns.Rules[i], stele.ItemPath("rules", i))
		if len(wrong) == 0 {
			s.list[i] = c
		}
		problems = append(problems, wrong...)
	}
	return s, problems
}

func compile(r *stele.Rule, path string) (c compiled, problems stele.Problems) {
	add := func(path string, err error) {
		problems = append(problems, stele.Problem{Path: path, Err: stele.Reason(err)})
	}
	p, err := ParsePattern(r.Pattern, r.Fold)
	if err != nil {
		add(stele.FieldPath(path, "pattern"), err)
		return c, problems
	}
	c = compiled{pattern: p, templates: make([]*Template, len(r.Targets))}
	for i := range r.Targets {
		if r.Targets[i].URL == "" {
			continue
		}
		if c.templates[i], err = p.ParseTemplate(r.Targets[i].URL); err != nil {
			add(stele.FieldPath(stele.ItemPath(stele.FieldPath(path, "targets"), i), "url"), err)
		}
	}
	return c, problems
}

// Match is a rule that answers for a name.
type Match struct {
	Number int // of the rule, from 0

	rule *compiled
	rest string
	at   spans
}

// Match returns the first rule that answers for a name, given by its canonical text; false
// if none does. Names that do not begin with the namespace's prefix, but belong to it by the
// settings of its minter, have no rules.
func (s *Set) Match(name string) (m Match, ok bool) {
	if s == nil || !strings.HasPrefix(name, s.prefix) {
		return m, false
	}
	m.rest = name[len(s.prefix):]
	for i := range s.list {
		if c := &s.list[i]; c.pattern != nil && c.pattern.match(m.rest, &m.at) {
			m.Number, m.rule = i, c
			return m, true
		}
	}
	return m, false
}

// MatchOne holds a name against one rule, by its number, whatever the rules before it match.
func (s *Set) MatchOne(rule int, name string) (m Match, ok bool) {
	c := &s.list[rule]
	if c.pattern == nil || !strings.HasPrefix(name, s.prefix) {
		return m, false
	}
	m.Number, m.rule, m.rest = rule, c, name[len(s.prefix):]
	return m, c.pattern.match(m.rest, &m.at)
}

// URL returns the URL of a target of the rule, by its number, for a name, with a query after
// it; "" if the target has no URL. With literal set a percent sign in the name is one (see
// [urltext.IsLiteral]). An error says why what the name has in its captures can't stand in
// the URL.
func (m *Match) URL(target int, name, query string, literal bool) (string, error) {
	t := m.rule.templates[target]
	if t == nil {
		return "", nil
	}
	return t.url(&values{id: name, rest: m.rest, at: &m.at, literal: literal}, query)
}

// Captures returns what the captures of the rule matched, in order, each as name=text.
func (m *Match) Captures() (list []string) {
	for i, name := range m.rule.pattern.names {
		list = append(list, name+"="+m.rest[m.at[i].from:m.at[i].to])
	}
	return list
}

// Fits reports whether a client gets a target whose type fits in this way what it accepts:
// if it is what it asks for, as far as is known, or a recording or picture in another
// encoding. Two texts, or two files of applications, have nothing in common.
func Fits(fit ddds.Fit, mediaType string) bool {
	switch fit {
	case ddds.Asked, ddds.Unstated:
		return true
	case ddds.Similar:
		return !strings.HasPrefix(mediaType, "text/") && !strings.HasPrefix(mediaType, "application/")
	}
	return false
}

// Demote returns the grade of a target's type among those of a rule: one that does not fit what a client accepts comes
// after a target without a type, which is for all other clients.
func Demote(g ddds.Grade, mediaType string) ddds.Grade {
	if g.Fit == ddds.Similar && !Fits(g.Fit, mediaType) {
		g.Fit = ddds.Different
	}
	return g
}

// choose returns the number of the target that a client gets which asks for the location
// and accepts a media type, or any if it is empty; -1 if there is none.
func choose(targets []stele.Target, mediaType string) (best int, fit ddds.Fit) {
	var accept []ddds.Preference
	if mediaType != "" {
		accept = []ddds.Preference{{Range: mediaType, Q: 1000}}
	}
	best = -1
	var first ddds.Grade
	for i := range targets {
		t := &targets[i]
		if t.Service != stele.N2L {
			continue
		}
		g := Demote(ddds.GradeType(t.Type, accept), t.Type)
		if best < 0 || cmp.Or(g.Compare(first), cmp.Compare(t.Order, targets[best].Order), cmp.Compare(t.Preference, targets[best].Preference)) < 0 {
			best, first = i, g
		}
	}
	return best, first.Fit
}
