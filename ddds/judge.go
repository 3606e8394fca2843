package ddds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stele-id/stele"
)

// judged is a rule that can be used.
type judged struct {
	candidate Candidate
	grade     Grade
	protocol  int // place among the protocols asked for, or behind them
	place     int // in the trace
}

// resolves reports whether any of the rules says where the resource is.
func resolves(rules []Rule) bool {
	for i := range rules {
		if rules[i].Flag.IsResolved() {
			return true
		}
	}
	return false
}

// judge applies the rules to the name and returns those that can be used, the best
// first: by fit over all orders, or in the lowest order that matches.
func (v *walk) judge(rules []Rule, byFit bool, step int) ([]judged, error) {
	if v.trace != nil {
		v.trace.Steps[step].Rules = make([]Judgement, 0, len(rules))
	}
	var list []judged
	closed := -1 // the order of the first rule that matched
	for _, i := range v.sort(rules) {
		r := &rules[i]
		if !byFit && closed >= 0 && int(r.Order) > closed {
			v.note(step, r, Closed, "", "a rule of order %d matched", closed)
			continue
		}
		j, matched, err := v.judgeRule(r, step)
		if err != nil {
			return nil, err
		}
		if matched && closed < 0 {
			closed = int(r.Order)
		}
		if j != nil {
			list = append(list, *j)
		}
	}
	if byFit {
		slices.SortStableFunc(list, compareFit)
	}
	return list, nil
}

// sort returns the places of the rules by order, then preference, then as chance
// will have it (RFC 3403, section 4.1). Chance shares the load among rules that can
// be chosen; those for another service stand behind them, so that it does not shuffle
// what a reader of the trace sees.
func (v *walk) sort(rules []Rule) []int {
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	if random := v.walker.Random; random != nil {
		for i := len(order) - 1; i > 0; i-- {
			if k := random(i + 1); k >= 0 && k <= i {
				order[i], order[k] = order[k], order[i]
			}
		}
	}
	slices.SortStableFunc(order, func(i, k int) int {
		a, b := &rules[i], &rules[k]
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference),
			cmp.Compare(v.misses(a), v.misses(b)))
	})
	return order
}

// misses is 1 if the rule does not offer the service that is asked for, or else 0. A
// rule that only rewrites the name leads to every service.
func (v *walk) misses(r *Rule) int {
	rewrites := !r.Flag.IsTerminal() && len(r.Services.Offers) == 0
	if v.request.Service == "" || rewrites || r.Services.Has(v.request.Service) {
		return 0
	}
	return 1
}

// compareFit is the order of choice in the EDDDS (thesis 6.2.2 and A.4): by type,
// then by protocol if the user prefers some; sorted stably, by order and preference
// behind that. Rules that lead elsewhere stand behind those that resolve here.
func compareFit(a, b judged) int {
	if x, y := a.candidate.Flag.IsResolved(), b.candidate.Flag.IsResolved(); x != y {
		if x {
			return -1
		}
		return 1
	} else if !x {
		return 0
	}
	return cmp.Or(a.grade.Compare(b.grade), cmp.Compare(a.protocol, b.protocol))
}

// judgeRule applies one rule. The judgement is nil if the rule can't be used;
// matched tells whether it closes its order nevertheless.
func (v *walk) judgeRule(r *Rule, step int) (j *judged, matched bool, err error) {
	if err := r.Err(); err != nil {
		verdict := Unusable
		if _, ok := errors.AsType[unknownFlag](err); ok {
			verdict = Ignored
		}
		v.note(step, r, verdict, "", "%v", err)
		if stele.KindOf(err) == stele.Exhausted {
			return nil, false, err // nobody knows whether it would have matched
		}
		return nil, false, nil
	}
	output, matched, err := v.apply(r)
	switch {
	case err != nil && !matched:
		v.note(step, r, Unusable, "", "%v", err)
		return nil, false, err
	case !matched:
		v.note(step, r, NoMatch, "", "")
		return nil, false, nil
	case err == nil && output == "":
		v.note(step, r, NoMatch, "", "it gives an empty text")
		return nil, false, nil
	}
	key := ""
	if err == nil {
		key, err = checkOutput(r.Flag, output)
	}
	if err != nil {
		v.note(step, r, NoOutput, output, "%v", err)
		return nil, true, nil
	}
	return v.accept(r, key, step), true, nil
}

// apply makes of the name what the rule says. A rule without an expression matches
// every name.
func (v *walk) apply(r *Rule) (output string, matched bool, err error) {
	if r.Expression == nil {
		return r.Replacement, true, nil
	}
	if err := v.ctx.Err(); err != nil {
		return "", false, v.fail(stele.Unavailable, "%w; try again", err)
	}
	if v.work += r.Expression.work(v.request.Name); v.work > maxWork {
		return "", false, v.fail(stele.Exhausted, "%w: it would be more than %d steps", ErrTooMuchWork, maxWork)
	}
	return r.Expression.Apply(v.request.Name)
}

// accept asks whether the rule offers what is wanted, and how well.
func (v *walk) accept(r *Rule, key string, step int) *judged {
	q := v.request
	c := Candidate{Key: key, Flag: r.Flag, Service: q.Service, Order: r.Order, Preference: r.Preference}
	if c.Protocol = r.Services.Protocol; r.Flag.IsResolved() {
		c.Protocol = r.Flag.Protocol()
	}
	if v.misses(r) > 0 {
		v.note(step, r, NotHere, key, "it does not offer %s", brief(string(q.Service)))
		return nil
	}
	protocol := 0
	if r.Flag.IsResolved() && len(q.Protocols) > 0 {
		if protocol = slices.Index(q.Protocols, c.Protocol); protocol < 0 {
			protocol = len(q.Protocols)
		}
		if q.OnlyProtocols && protocol == len(q.Protocols) {
			v.note(step, r, NotThus, key, "%s is not among the protocols asked for", c.Protocol)
			return nil
		}
	}
	var g Grade
	c.Type, g = bestOffer(r.Services.Offers, q)
	c.Fit = g.Fit
	j := &judged{candidate: c, grade: g, protocol: protocol}
	if r.Flag.IsResolved() && len(q.Accept) > 0 {
		j.place = v.note(step, r, Spare, key, "its type is %s", g.Fit)
	} else {
		j.place = v.note(step, r, Spare, key, "")
	}
	return j
}

// bestOffer returns the type, among those that the rule offers the service in,
// that fits best.
func bestOffer(offers []Offer, q *Request) (kind string, best Grade) {
	best = GradeType("", q.Accept)
	found := false
	for _, o := range offers {
		if o.Service != q.Service && q.Service != "" {
			continue
		}
		if g := GradeType(o.Type, q.Accept); !found || g.Compare(best) < 0 {
			kind, best, found = o.Type, g, true
		}
	}
	return kind, best
}

// note writes a judgement into the trace and returns its place there.
func (v *walk) note(step int, r *Rule, verdict Verdict, output, reason string, args ...any) int {
	if v.trace == nil {
		return 0
	}
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	rules := &v.trace.Steps[step].Rules
	*rules = append(*rules, Judgement{r.asRead(), verdict, reason, output})
	return len(*rules) - 1
}
