package resolver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
)

// ByRule returns the answer of the rules of a name's namespace, as if no record had the name;
// ok is false if none answers. Names that the answer leads to are not followed.
func (r *Resolver) ByRule(ctx context.Context, q Request) (res Resolution, ok bool, err error) {
	q.Service = cmp.Or(q.Service, stele.N2L)
	w := walk{Resolver: r, q: q}
	res, ok, err = w.fromRules(ctx)
	res.ID = q.ID
	return res, ok, err
}

// fromRules answers by the first rule of the name's namespace whose pattern the name has.
// ok is false if there is none. Rules of namespaces above do not count: a namespace answers
// for all names with its prefix.
func (w *walk) fromRules(ctx context.Context) (res Resolution, ok bool, err error) {
	ns, err := w.namespaces.node(ctx, w.q.ID)
	if err != nil || ns == nil || ns.Rules() == nil {
		return res, false, err
	}
	text := w.q.ID.String()
	m, ok := ns.Rules().Match(text)
	if !ok {
		if w.q.Trace {
			w.step("rule", "trace.rule-none", "none of the {count} rules of {namespace} has a pattern that fits", len(ns.Namespace.Rules), ns.Key())
		}
		return res, false, nil
	}
	rule := &ns.Namespace.Rules[m.Number]
	if w.q.Trace {
		w.step("rule", "trace.rule", "rule {number} of {namespace}, {pattern}; {captures}", m.Number+1, ns.Key(), rule.Pattern, strings.Join(m.Captures(), ", "))
	}
	res = Resolution{Matched: ns.Prefix, Namespace: ns.Namespace, Rule: rule, Number: m.Number + 1}
	var few [4]candidate // enough for most rules
	ranked := rank(few[:0], rule.Targets, &w.q, false, w.random)
	if len(ranked) > 1 && !rules.Fits(ranked[0].media.Fit, ranked[0].target.Type) { // a target without a type is for all other clients
		for i := range ranked {
			ranked[i].media = rules.Demote(ranked[i].media, ranked[i].target.Type)
		}
		slices.SortStableFunc(ranked, func(a, b candidate) int { return a.compare(&b) })
	}
	literal := w.isLiteral()
	var refused error
	for i := range ranked {
		c := &ranked[i]
		t := w.fill(c.target, ns.Namespace)
		if t.URL, err = m.URL(c.number, text, w.q.Query, literal); err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		if res.Targets == nil {
			res.Targets = make([]stele.Target, 0, len(ranked))
			res.Fit = c.media.Fit
		}
		res.Targets = append(res.Targets, t)
		if w.q.Trace {
			w.step("choice", "trace.choice", "{number}. {url}: {type}; {language}; order {order}, preference {preference}", len(res.Targets), t.URL, c.mediaSaid(), c.languageSaid(), c.target.Order, c.target.Preference)
		}
		if w.q.Brief {
			break // only where to go is wanted
		}
	}
	switch {
	case len(res.Targets) > 0:
		best := &res.Targets[0]
		res.Kind, res.URL, res.Status, res.TTL = Redirect, best.URL, best.Status, best.TTL
		if best.URL == "" || isGone(best.Status) {
			res.Kind, res.URL = Gone, ""
		}
		return res, true, nil
	case refused != nil:
		return Resolution{}, true, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.Invalid, Err: refused}
	}
	return Resolution{}, true, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.NotFound, Err: stele.Messagef(
		"resolve.rule-without-target", "rule {number} of {namespace}, {pattern}, answers for it, but has no target for {service}{restriction}",
		m.Number+1, ns.Key(), rule.Pattern, w.q.Service, w.restriction())}
}
