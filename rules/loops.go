package rules

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// maxSteps is how many rules an example may lead through.
const maxSteps = 8

// Loop is an example of a rule that never arrives.
type Loop struct {
	Rule    int // the number of the rule, from 0
	Example int // that of the example

	Through stele.NamespaceKey // the first other namespace that it leads through; zero if there is none
}

// Err says what is wrong with the example of a loop.
func (l Loop) Err(ns *stele.Namespace) error {
	name := ns.Rules[l.Rule].Examples[l.Example].Name
	if l.Through != (stele.NamespaceKey{}) {
		return stele.Messagef("rule.leads-through-others",
			"\"{name}\" leads to a name of {namespace}, for which a rule answers again, and so on, without an end; give a URL on another host, or one that no rule matches", name, l.Through)
	}
	return stele.Messagef("rule.leads-to-itself",
		"\"{name}\" leads to a name of the same namespace, for which a rule answers again, and so on; give a URL on another host, or one that no rule matches", name)
}

// Loops returns the examples that lead to themselves: each to a name of the same namespace on a host that the schemes have
// names of, for which a rule answers again, and so on for ever. The resolver stops after a few names, whatever the rules
// say. The set is that of the namespace's rules, and nothing is wrong with them ([Check]).
func (s *Set) Loops(schemes *stele.Schemes, ns *stele.Namespace) []Loop {
	return s.LoopsAmong(schemes, ns, func(id stele.ID) (*Set, *stele.Namespace) { return s, ns })
}

// LoopsAmong is Loops for rules that may lead to names of other namespaces: of returns the rules that answer for a name, and their
// namespace; nil if there are none. It does not know which names are registered, for which no rule answers.
func (s *Set) LoopsAmong(schemes *stele.Schemes, ns *stele.Namespace, of func(id stele.ID) (*Set, *stele.Namespace)) (list []Loop) {
	if s == nil {
		return nil
	}
	hosts := schemes.Hosts()
	for i := range ns.Rules {
		for k, x := range ns.Rules[i].Examples {
			if through, ok := loops(schemes, ns.Key(), hosts, x, of); ok {
				list = append(list, Loop{i, k, through})
			}
		}
	}
	return list
}

func loops(schemes *stele.Schemes, own stele.NamespaceKey, hosts []string, x stele.RuleExample, of func(id stele.ID) (*Set, *stele.Namespace)) (through stele.NamespaceKey, ok bool) {
	at := x.Want
	for range maxSteps {
		to := stele.Target{URL: at}
		if !strings.Contains(at, "://") || !slices.Contains(hosts, to.Host()) {
			return through, false
		}
		id, err := schemes.Parse(at)
		if err != nil {
			return through, false
		}
		s, ns := of(id)
		if s == nil {
			return through, false
		}
		o, err := s.Try(schemes, ns, at, x.Type)
		if err != nil || o.Err != nil || o.URL == "" {
			return through, false
		}
		if key := ns.Key(); key != own && through == (stele.NamespaceKey{}) {
			through = key
		}
		at = o.URL
	}
	return through, true
}
