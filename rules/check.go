package rules

import (
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// Statuses of HTTP, whose package knows sockets.
const (
	statusNotFound      = 404
	statusNotAcceptable = 406
)

// Outcome is what the rules of a namespace answer for a name that is not registered.
type Outcome struct {
	Rule   int    // the number of the rule, from 0; -1 if none answers
	URL    string // where the name leads; "" if nowhere
	Status int    // of the target: 0 if it does not say. 404, 406 and 410 say that there is nothing
	Type   string // of the target; "" if it is not known
	Err    error  // why the rule can't answer for this name; nil if it can
}

// String returns the outcome as an example states it.
func (o *Outcome) String() string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Rule < 0:
		return ""
	case o.URL == "":
		return strconv.Itoa(o.Status)
	}
	return o.URL
}

// Try returns what the rules of a namespace answer for a name in any spelling, to a client
// that asks for the location and accepts a media type, or any if it is empty. The error says
// why the name has no answer at all: it is not one, or not one of the namespace.
func (s *Set) Try(schemes *stele.Schemes, ns *stele.Namespace, name, mediaType string) (o Outcome, err error) {
	o.Rule = -1
	id, err := schemes.Parse(name)
	if err != nil {
		return o, err
	}
	text := id.String()
	if id.Scheme() != ns.Scheme || ns.Prefix != "" && !schemes.IsWithin(id, ns.Prefix) {
		return o, stele.Errorf("test", id, stele.Invalid, "rule.name-elsewhere", "the name does not belong to {namespace}, so no rule of that namespace answers for it", ns.Key())
	}
	m, ok := s.Match(text)
	if !ok {
		return o, nil
	}
	o.Rule = m.Number
	targets := ns.Rules[m.Number].Targets
	best, fit := choose(targets, mediaType)
	switch {
	case best < 0:
		o.Status = statusNotFound
	case !Fits(fit, targets[best].Type):
		o.Status = statusNotAcceptable
	default:
		o.Status, o.Type = targets[best].Status, targets[best].Type
		o.URL, o.Err = m.URL(best, text, "", urltext.IsLiteral(schemes, id))
	}
	return o, nil
}

// Check judges the rules of a namespace: it reads their patterns and templates, tries to
// make templates lead to other hosts, and runs the examples. add is called with each
// problem.
func Check(schemes *stele.Schemes, ns *stele.Namespace, add func(path string, err error)) {
	set, problems := Compile(ns)
	for _, p := range problems {
		add(p.Path, p.Err)
	}
	if set == nil || len(problems) > 0 {
		return
	}
	for i := range ns.Rules {
		path := stele.ItemPath("rules", i)
		for k, t := range set.list[i].templates {
			if t == nil {
				continue
			}
			if err := t.verify(); err != nil {
				add(stele.FieldPath(stele.ItemPath(stele.FieldPath(path, "targets"), k), "url"), err)
			}
		}
		for k, x := range ns.Rules[i].Examples {
			if err := set.run(schemes, ns, i, x); err != nil {
				add(stele.ItemPath(stele.FieldPath(path, "examples"), k), err)
			}
		}
	}
}

// run runs an example of a rule, and says how what comes differs from what is wanted.
func (s *Set) run(schemes *stele.Schemes, ns *stele.Namespace, rule int, x stele.RuleExample) error {
	got, err := s.Try(schemes, ns, x.Name, x.Type)
	switch {
	case err != nil:
		return stele.Messagef("rule.example-unreadable", `"{name}": {cause}`, x.Name, stele.Reason(err))
	case x.Want == "" && got.Rule == rule:
		return stele.Messagef("rule.example-answers", `"{name}": the rule must not answer for this name, but it does, with {got}`, x.Name, got.String())
	case x.Want == "":
		return nil
	case got.Rule < 0:
		return stele.Messagef("rule.example-without-match", `"{name}": the wanted answer is {want}, but the pattern {pattern} does not match`, x.Name, x.Want, ns.Rules[rule].Pattern)
	case got.Rule != rule:
		return stele.Messagef("rule.example-taken", `"{name}": rule {other}, {pattern}, comes first and answers for this name with {got}; put the more exact rule first`, x.Name, got.Rule+1, ns.Rules[got.Rule].Pattern, got.String())
	case got.String() != x.Want:
		return stele.Messagef("rule.example-differs", `"{name}": the wanted answer is {want}, but {got} came`, x.Name, x.Want, got.String())
	}
	return nil
}

// Overlap is two rules that match the same names. The earlier one answers.
type Overlap struct {
	Earlier, Later int    // numbers of rules, from 0
	Name           string // a name that both match
}

// maxOverlaps is how many overlaps are told, and maxCompared how many bytes of names are held against patterns to find them: 200 rules with
// long names would take seconds.
const (
	maxOverlaps = 20
	maxCompared = 32 << 20
)

// Overlaps returns pairs of rules that match the same names, as far as samples of their
// names and their examples show, and whether all pairs were compared. It is meant for a warning: a rule for all other names after
// more exact ones is right.
func (s *Set) Overlaps(schemes *stele.Schemes, ns *stele.Namespace) (list []Overlap, all bool) {
	if s == nil {
		return nil, true
	}
	compared := 0
	rests := make([][]string, len(s.list))
	for i := range s.list {
		if s.list[i].pattern == nil {
			continue
		}
		rests[i] = s.list[i].pattern.samples()
		for _, x := range ns.Rules[i].Examples {
			if id, err := schemes.Parse(x.Name); err == nil && x.Want != "" && strings.HasPrefix(id.String(), ns.Prefix) {
				rests[i] = append(rests[i], id.String()[len(ns.Prefix):])
			}
		}
	}
	for later := range s.list {
		for earlier := range later {
			if rest, ok := s.common(rests, earlier, later, &compared); ok {
				if list = append(list, Overlap{earlier, later, ns.Prefix + rest}); len(list) == maxOverlaps {
					return list, false
				}
			}
			if compared > maxCompared {
				return list, false
			}
		}
	}
	return list, true
}

// common returns a text that two rules match.
func (s *Set) common(rests [][]string, a, b int, compared *int) (string, bool) {
	var at spans
	for _, pair := range [2][2]int{{a, b}, {b, a}} {
		other := s.list[pair[1]].pattern
		if other == nil {
			continue
		}
		for _, rest := range rests[pair[0]] {
			if *compared += len(rest); other.match(rest, &at) {
				return rest, true
			}
		}
	}
	return "", false
}

// samples returns some texts that the pattern matches.
func (p *Pattern) samples() (list []string) {
	for _, likes := range []string{"0a", "a0", "Aa0"} {
		for _, more := range []int{0, 1} {
			var b strings.Builder
			for i := range p.elements {
				p.elements[i].sample(&b, likes, more)
			}
			var at spans
			if text := b.String(); p.match(text, &at) {
				list = append(list, text)
			}
		}
	}
	return list
}

// sample writes a text that an element matches: with a character that is liked, if the
// class has it, and so many characters more than the least.
func (e *element) sample(b *strings.Builder, likes string, more int) {
	switch e.kind {
	case literalText:
		b.WriteString(e.text)
	case oneWord:
		b.WriteString(e.words[min(more, len(e.words)-1)])
	case classRun:
		c := likes[0]
		for i := range len(likes) {
			if e.set[likes[i]] {
				c = likes[i]
				break
			}
		}
		b.WriteString(strings.Repeat(string(rune(c)), min(e.max, max(1, e.min)+more)))
	}
}
