package naptr

import (
	"cmp"
	"math"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/rules"
)

// ByForm returns the rules of a namespace for names that are not registered as NAPTR rules of
// the orders from one on, each of its own order, and notes on what can't be published. A rule
// that can't be published ends the list: those after it would answer for its names.
//
// Every NAPTR rule is applied to examples and samples of names by package ddds, and is
// published only if it leads where the namespace's rule leads.
func (c *Compiler) ByForm(ns *stele.Namespace, first uint16) (list []ddds.Fields, notes []*stele.Message) {
	set, problems := rules.Compile(ns)
	if set == nil || len(problems) > 0 {
		return nil, nil // the registrar reports them
	}
	casing := NewMapping(c.Schemes, ns).Casing
	for i := range ns.Rules {
		order := int(first) + i
		some, reason := c.byForm(ns, set, i, uint16(min(order, math.MaxUint16)), casing)
		if reason == nil && order >= FurtherOrder {
			reason = stele.Messagef("zone-note.rule-orders-used-up", "there are more rules than orders for them")
		}
		if reason != nil {
			notes = append(notes, stele.Messagef("zone-note.rule-by-form-unpublished", "{namespace}: rule {number}, {pattern}, and those after it are for HTTP only: {reason}", ns.Key(), i+1, ns.Rules[i].Pattern, reason))
			break
		}
		list = append(list, some...)
	}
	return list, notes
}

// byForm makes the NAPTR rules of one rule, one for each target.
func (c *Compiler) byForm(ns *stele.Namespace, set *rules.Set, i int, order uint16, casing Casing) (list []ddds.Fields, reason *stele.Message) {
	rule := &ns.Rules[i]
	if casing != CaseCounts && !rule.Fold && set.HasLetters(i) {
		return nil, stele.Messagef("rule.dns-case", "case does not count in these names, and rules in the DNS see them as they are written")
	}
	head, groups := c.prefixPattern(ns)
	fold := rule.Fold || casing != CaseCounts
	places := make([]int, len(rule.Targets))
	for k := range places {
		places[k] = k
	}
	slices.SortStableFunc(places, func(a, b int) int {
		x, y := &rule.Targets[a], &rule.Targets[b]
		return cmp.Or(cmp.Compare(x.Order, y.Order), cmp.Compare(x.Preference, y.Preference))
	})
	for rank, k := range places {
		t := &rule.Targets[k]
		ere, to, reason := set.Expression(i, k, groups, ddds.Quote, ddds.QuoteReplacement)
		if reason != nil {
			return nil, reason
		}
		e, err := ddds.NewExpression("^"+head+ere+"$", to, fold)
		if err != nil {
			return nil, stele.Messagef("", "{cause}", stele.Reason(err))
		}
		if !c.agrees(ns, set, i, k, e) {
			return nil, stele.Messagef("rule.dns-differs", "an expression of the DNS would lead elsewhere")
		}
		h := c.head(t.Protocol(), t)
		if h.flags == "" {
			return nil, stele.Messagef("rule.dns-protocol", "there is no flag for its protocol")
		}
		list = append(list, ddds.Fields{Order: order, Preference: uint16(Preference + 10*rank), Flags: h.flags, Service: h.service, Regexp: e.String(), Replacement: "."})
	}
	return list, nil
}

// prefixPattern is an expression for the prefix of a namespace as clients apply rules to it,
// and how many groups it has. Its head is written in any case.
func (c *Compiler) prefixPattern(ns *stele.Namespace) (ere string, groups int) {
	if words, rest, ok := c.Schemes.URI(ns.Scheme, ns.Prefix); ok {
		ere, groups = alternatives(words)
		return ere + ":" + ddds.Quote(rest), groups
	}
	n := zonemap.Head(ns.Prefix)
	return anyBytes(n) + ddds.Quote(ns.Prefix[n:]), 0
}

// agrees reports whether an expression leads examples and samples of a rule where the rule
// leads them.
func (c *Compiler) agrees(ns *stele.Namespace, set *rules.Set, i, target int, e *ddds.Expression) bool {
	var names []string
	for _, rest := range set.Samples(i) {
		names = append(names, ns.Prefix+rest)
	}
	for _, x := range ns.Rules[i].Examples {
		if id, err := c.Schemes.Parse(x.Name); err == nil {
			names = append(names, id.String())
		}
	}
	for _, name := range names {
		want := ""
		if m, ok := set.MatchOne(i, name); ok {
			var err error
			if want, err = m.URL(target, name, "", false); err != nil {
				return false
			}
		}
		text := name
		if words, rest, ok := c.Schemes.URI(ns.Scheme, name); ok {
			text = words[0] + ":" + rest
		}
		got, ok, err := e.Apply(text)
		if err != nil || ok != (want != "") || ok && got != want {
			return false
		}
	}
	return len(names) > 0
}
