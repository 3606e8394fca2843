package ddds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// judged is a rule that can be used.
type judged struct {
	candidate Candidate
	grade     Grade
	protocol  int // place among the protocols asked for, or after them
	place     int // in the trace
}

// leaves reports whether a rule leads out of the DNS to a resolver.
func (j *judged) leaves() bool {
	return j.candidate.Flag.IsTerminal() && !j.candidate.Flag.IsResolved()
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
		j, matched, err := v.judgeRule(r, byFit, step)
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

// sort returns the places of the rules by order, then preference, then at random (RFC 3403,
// section 4.1). Chance shares the load among rules that can be chosen; those for another
// service come after them, so that chance does not shuffle what a reader of the trace sees.
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
		x, y := v.serves(a), v.serves(b)
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(x&likely, y&likely),
			cmp.Compare(a.Preference, b.Preference), cmp.Compare(x, y))
	})
	return order
}

// serving says whether a rule offers the service that is asked for.
type serving uint8

const (
	surely serving = 0
	likely serving = 1 // it offers what will do as well, or does not say what it offers
	never  serving = 2
)

// serves tells whether the rule offers the service that is asked for. A rule that only
// rewrites the name leads to every service. Of RFC 3404's terminal rules, one that names
// a protocol alone, or nothing, says nothing of services (section 4.4 there); with the
// EDDDS's flags the service must be there (thesis, 6.2.2).
func (v *walk) serves(r *Rule) serving {
	service := v.request.Service
	if service == "" || r.Services.Has(service) {
		return surely
	}
	if len(r.Services.Offers) == 0 {
		switch {
		case !r.Flag.IsTerminal():
			return surely
		case !r.Flag.isExtended():
			return likely
		}
		return never
	}
	if slices.ContainsFunc(instead(service), r.Services.Has) {
		return likely
	}
	return never
}

// token returns how the resolver that a rule leads to is asked for the service, in the
// rule's own words. Where protocols are preferred, a list of locations says more.
func (v *walk) token(r *Rule) stele.Service {
	service := v.request.Service
	list := append([]stele.Service{service}, instead(service)...)
	if service == stele.N2L && len(v.request.Protocols) > 0 {
		list = append([]stele.Service{"N2Ls"}, list...)
	}
	for _, one := range list {
		if o, ok := r.Services.find(one); ok {
			return cmp.Or(o.Token, o.Service)
		}
	}
	return ""
}

// compareFit is the order of choice in the EDDDS (thesis 6.2.2 and A.4): by type, then by
// protocol if the user prefers some; the stable sort keeps order and preference after that.
// Rules that rewrite the name compete, since they lead on inside the DNS; those that lead
// out of it come last.
func compareFit(a, b judged) int {
	if x, y := a.leaves(), b.leaves(); x != y {
		if y {
			return -1
		}
		return 1
	} else if x {
		return 0
	}
	return cmp.Or(a.grade.Compare(b.grade), cmp.Compare(a.protocol, b.protocol))
}

// judgeRule applies one rule. The judgement is nil if the rule can't be used;
// matched tells whether it closes its order nevertheless.
func (v *walk) judgeRule(r *Rule, byFit bool, step int) (j *judged, matched bool, err error) {
	if err := r.Err(); err != nil {
		verdict := Unusable
		if _, ok := errors.AsType[unknownFlag](err); ok {
			verdict = Ignored
		}
		v.note(step, r, verdict, "", "%v", err)
		if stele.KindOf(err) == stele.Exhausted {
			return nil, false, err // the walk cannot tell whether the rule would have matched
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
	return v.accept(r, key, byFit, step), true, nil
}

// apply makes of the name what the rule says. A rule without an expression matches
// every name.
func (v *walk) apply(r *Rule) (output string, matched bool, err error) {
	if r.Expression == nil {
		return r.Replacement, true, nil
	}
	if err := v.ctx.Err(); err != nil {
		return "", false, v.fail(stele.Unavailable, "unavailable.try-again", "{cause}; try again", err)
	}
	if v.work += r.Expression.work(v.request.Name); v.work > maxWork {
		return "", false, v.fail(stele.Exhausted, "ddds.too-many-steps", "{cause}: it would be more than {most} steps", ErrTooMuchWork, maxWork)
	}
	return r.Expression.Apply(v.request.Name)
}

// accept asks whether the rule offers what is wanted, and how well.
func (v *walk) accept(r *Rule, key string, byFit bool, step int) *judged {
	q := v.request
	c := Candidate{Key: key, Flag: r.Flag, Service: q.Service, Order: r.Order, Preference: r.Preference}
	if c.Protocol = r.Services.Protocol; r.Flag.IsResolved() {
		c.Protocol = r.Flag.Protocol()
	} else {
		c.Ask = v.token(r)
	}
	if !v.hasFlag(r.Flag) {
		v.note(step, r, NotFlag, key, "its flag is not among those asked for")
		return nil
	}
	if v.serves(r) == never {
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
	if (r.Flag.IsResolved() || byFit && !j.leaves()) && len(q.Accept) > 0 {
		j.place = v.note(step, r, Spare, key, "its type is %s", g.Fit)
	} else {
		j.place = v.note(step, r, Spare, key, "")
	}
	return j
}

// hasFlag reports whether the user takes a rule with this flag (thesis 6.2.2, discovery,
// step 4). A rule that rewrites the name is taken in any case; DIS:NAPTR too, if the user
// wants the resource to which it leads.
func (v *walk) hasFlag(flag Flag) bool {
	if len(v.request.Flags) == 0 || flag == FlagNone {
		return true
	}
	for _, want := range v.request.Flags {
		switch {
		case want == flag,
			strings.HasSuffix(string(want), ":") && strings.HasPrefix(string(flag), string(want)),
			flag == FlagDisNAPTR && strings.HasPrefix(string(want), resolvedPrefix):
			return true
		}
	}
	return false
}

// isEnd reports whether the walk ends at a rule that was chosen: it is terminal, or it
// leads to a resolver in the DNS and that is what the user wants.
func (v *walk) isEnd(flag Flag) bool {
	return flag.IsTerminal() || flag == FlagDisNAPTR && len(v.request.Flags) > 0 &&
		!slices.ContainsFunc(v.request.Flags, func(want Flag) bool { return strings.HasPrefix(string(want), resolvedPrefix) })
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
