package registrar

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// JudgeRules returns all that is wrong with the rules of a namespace, with examples that do
// not hold: that for which SetNamespace would refuse it. It writes nothing.
func (r *Registrar) JudgeRules(ctx context.Context, ns *stele.Namespace) (stele.Problems, error) {
	err := r.judgeNamespace(opTestRules, ns)
	if err == nil {
		s, failed := r.view(ctx)
		if failed != nil {
			return nil, failed
		}
		changed, failed := s.with(ns)
		if failed != nil {
			return nil, failed
		}
		err = r.judgeLoops(opTestRules, changed, ns)
	}
	problems, _ := errors.AsType[stele.Problems](err)
	return slices.DeleteFunc(slices.Clone(problems), func(p stele.Problem) bool { return !strings.HasPrefix(p.Path, "rules") }), nil
}

const opTestRules = "test rules"

// judgeLoops makes sure that no rule of a namespace leads to itself through the rules of others, as the namespaces are in s. It is not a part
// of what makes a namespace valid: that of another one does not change it.
func (r *Registrar) judgeLoops(op string, s *namespaceTree, ns *stele.Namespace) error {
	n := s.Get(ns.Key())
	if n == nil || n.Rules() == nil {
		return nil
	}
	var problems stele.Problems
	for _, l := range n.Rules().LoopsAmong(r.schemes, ns, func(id stele.ID) (*rules.Set, *stele.Namespace) {
		of := s.Of(id)
		if of == nil || of.Rules() == nil {
			return nil, nil
		}
		return of.Rules(), of.Namespace
	}) {
		problems = append(problems, stele.Problem{Path: stele.ItemPath(stele.ItemPath("rules", l.Rule)+".examples", l.Example), Err: stele.Reason(l.Err(ns))})
	}
	if len(problems) > 0 {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// judgeRules judges the rules of a namespace, and runs their examples. What records may not
// lead to, rules may not either.
func (r *Registrar) judgeRules(ns *stele.Namespace, add func(path string, err error)) {
	if len(ns.Rules) == 0 {
		return
	}
	clean := true
	rules.Check(r.schemes, ns, func(path string, err error) {
		clean = false
		add(path, err)
	})
	for i := range ns.Rules {
		for k := range ns.Rules[i].Targets {
			t := &ns.Rules[i].Targets[k]
			path := stele.ItemPath(stele.ItemPath("rules", i)+".targets", k) + ".url"
			switch {
			case t.URL == "":
			case !allowsProtocol(ns, t.Protocol()):
				add(path, stele.Messagef("destination.protocol-not-allowed", "the protocol \"{protocol}\" is not allowed in {namespace}", t.Protocol(), ns.Key()))
			case !allowsHost(ns, t.Host()):
				add(path, stele.Messagef("destination.host-not-allowed", "\"{host}\": targets of {namespace} don't point there; ask its owner to allow the host", t.Host(), ns.Key()))
			}
		}
	}
	if !clean {
		return
	}
	set, _ := rules.Compile(ns)
	for _, l := range set.Loops(r.schemes, ns) { // the resolver stops after a few names; here their owner learns of it
		add(stele.ItemPath(stele.ItemPath("rules", l.Rule)+".examples", l.Example), l.Err(ns))
	}
}
