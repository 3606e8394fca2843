package registrar

import (
	"errors"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/rules"
)

// JudgeRules returns all that is wrong with the rules of a namespace, with examples that do
// not hold: that for which SetNamespace would refuse it. It reads nothing.
func (r *Registrar) JudgeRules(ns *stele.Namespace) stele.Problems {
	err := r.judgeNamespace("test rules", ns)
	problems, _ := errors.AsType[stele.Problems](err)
	return slices.DeleteFunc(slices.Clone(problems), func(p stele.Problem) bool { return !strings.HasPrefix(p.Path, "rules") })
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
	if clean {
		r.judgeLoops(ns, add)
	}
}

// maxSteps is how many rules of one namespace an example may lead through.
const maxSteps = 8

// judgeLoops refuses rules that lead to themselves: an example whose URL is a name of the
// same namespace on a host that this registry answers for, and so on for ever. The resolver
// stops after a few names, whatever the rules say; here their owner learns of it.
func (r *Registrar) judgeLoops(ns *stele.Namespace, add func(path string, err error)) {
	set, _ := rules.Compile(ns)
	for i := range ns.Rules {
		for k, x := range ns.Rules[i].Examples {
			at := x.Want
			for step := 0; at != "" && r.isOwnHost(destination.Host(at)); step++ {
				if step == maxSteps {
					add(stele.ItemPath(stele.ItemPath("rules", i)+".examples", k), stele.Messagef("rule.leads-to-itself",
						"\"{name}\" leads to a name of the same namespace, for which a rule answers again, and so on; give a URL on another host, or one that no rule matches", x.Name))
					break
				}
				o, err := set.Try(r.schemes, ns, at, x.Type)
				if err != nil || o.Err != nil || !strings.Contains(o.URL, "://") {
					break
				}
				at = o.URL
			}
		}
	}
}

// isOwnHost reports whether names on a host belong to this registry.
func (r *Registrar) isOwnHost(host string) bool {
	return slices.Contains(r.Hosts(), host)
}
