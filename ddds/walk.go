package ddds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// Limits of a walk. The author of the rules may be malicious, and the client that walks
// them should lose little by it.
const (
	MaxHops  = 16  // rewrites, one after the other
	MaxRules = 512 // at one key

	maxLookups = 64      // in all, with those of keys that did not answer
	maxWork    = 1 << 25 // steps of matching in all; about a second at worst
)

// Walker finds where names lead. It is used by many goroutines at once.
type Walker struct {
	Database Database
	First    FirstKey // the First Well Known Rule

	// Now is the clock by which rules expire. Without one they do not, while a walk lasts.
	Now func() time.Time

	// Random returns a number from 0 to n-1. It shares the load among rules of equal
	// order and preference; without it they stay in the order they came in.
	Random func(n int) int
}

// Request says what is wanted.
type Request struct {
	// Name is the application unique string, such as a URN. All rules are applied to
	// it as it is given here.
	Name string

	// Start is the first key, instead of the one the Walker makes of Name.
	Start string

	Service stele.Service // such as N2L; "" takes any rule whatever it offers
	Accept  []Preference  // media types, or algorithms for N2S; none: any

	// Protocols of the resource's URL (RES: flags) in order of preference, such as
	// https. Others are good enough too, unless OnlyProtocols is set.
	Protocols     []string
	OnlyProtocols bool

	// Flags are those that a rule may have at which the walk ends, see [ParseWantedFlag];
	// none: any. With DIS: flags the walk ends when a resolver is discovered, even if
	// that is in the DNS (DIS:NAPTR).
	Flags []Flag

	Trace bool // tell every step
}

// Walk follows the rules from the name's first key to a terminal rule.
//
// Of the rules at a key those of the lowest order that match count (RFC 3402,
// section 3.3), the first by preference that offers the service. If any rule there
// has a RES: flag, or a resolver in the DNS was discovered before, all that match and
// offer the service count, the best fit first.
//
// That a rewritten key does not exist, or has no rule that fits, is reported and ends the
// walk (RFC 3403, section 8). Where no server answers for it, the next rule of the same order
// is tried, as long as no rule on the way to it has expired; if one has, the walk begins
// again, once (RFC 3402, section 3.3; RFC 3403, section 3).
//
// Errors are of Kind NotFound, if the database says so or no rule fits
// ([ErrNoRule]); Unavailable, if the database does not know or the context is
// done; Invalid, if the request can't be right; Exhausted, if the rules lead in a
// circle or pass a limit; and those of the database. With an error, the Result has
// the trace so far and nothing else.
func (w *Walker) Walk(ctx context.Context, q Request) (Result, error) {
	v := &walk{ctx: ctx, walker: w, request: &q}
	if q.Trace {
		v.trace = &Trace{Name: q.Name, Service: q.Service, Accept: q.Accept, Protocols: q.Protocols, Steps: []Step{}}
	}
	res, err := v.begin()
	if errors.Is(err, errExpired) {
		v.renewed = true
		res, err = v.begin()
	}
	if err != nil {
		res = Result{}
	}
	if v.trace != nil {
		if err != nil {
			v.trace.Error = err.Error()
		} else {
			v.trace.Outcome = res.String()
		}
	}
	res.Trace = v.trace
	return res, err
}

// walk is one walk.
type walk struct {
	ctx     context.Context
	walker  *Walker
	request *Request
	path    []string // keys from the first to the present one
	lookups int
	work    int
	renewed bool   // rules expired, and the walk began again
	trace   *Trace // nil: not wanted
}

func (v *walk) begin() (Result, error) {
	q := v.request
	if err := stele.CheckText("", q.Name); err != nil {
		return Result{}, err
	}
	key := q.Start
	if key == "" {
		if v.walker.First == nil {
			return Result{}, stele.Invalidf("", 0, "ddds.first-key-missing", "there is no first key; give one, or a rule that makes it")
		}
		var err error
		if key, err = v.walker.First(q.Name); err != nil {
			return Result{}, err
		}
	}
	key, err := CanonicalName(key)
	if err != nil {
		return Result{}, err
	}
	return v.visit(key, Discovery, time.Time{})
}

// errExpired says that a rule on the way has expired.
var errExpired = stele.Messagef("ddds.rule-expired", "a rule expired before the walk ended")

// expiry returns when the first of the rules on the way expires; the zero time if there
// is no clock.
func (v *walk) expiry(before time.Time, ttl uint32) time.Time {
	if v.walker.Now == nil {
		return time.Time{}
	}
	at := v.walker.Now().Add(time.Duration(ttl) * time.Second)
	if !before.IsZero() && before.Before(at) {
		return before
	}
	return at
}

// visit looks at the rules at a key and goes on from there. expires is when the first of
// the rules that led there does.
func (v *walk) visit(key string, phase Phase, expires time.Time) (Result, error) {
	set, step, err := v.lookUp(key, phase)
	if err != nil {
		return Result{}, err
	}
	expires = v.expiry(expires, set.TTL)
	byFit := phase == Resolution || resolves(set.Rules)
	if byFit {
		phase = Resolution // however it was reached
	}
	if v.trace != nil {
		v.trace.Steps[step].Phase, v.trace.Steps[step].ByFit = phase, byFit
	}
	list, err := v.judge(set.Rules, byFit, step)
	if err == nil && len(list) == 0 {
		err = v.fail(stele.NotFound, "ddds.no-rule-matches", "{cause}: none of the {count} at {key} matches and offers {wanted}", ErrNoRule, len(set.Rules), key, v.wanted())
	}
	if err != nil {
		v.stumble(step, err)
		return Result{}, err
	}
	v.path = append(v.path, key)
	defer func() { v.path = v.path[:len(v.path)-1] }()
	return v.follow(list, set.TTL, phase, expires, step)
}

// lookUp asks the database for the rules at a key. step is the place in the trace.
func (v *walk) lookUp(key string, phase Phase) (set RuleSet, step int, err error) {
	switch {
	case slices.Contains(v.path, key):
		err = v.fail(stele.Exhausted, "ddds.key-asked-before", "{cause}: {key} was asked before", ErrLoop, key)
	case len(v.path) > MaxHops:
		err = v.fail(stele.Exhausted, "ddds.rewrites-without-end", "{cause}: {most}, and {key} is not the end", ErrTooManyHops, MaxHops, key)
	case v.lookups == maxLookups:
		err = v.fail(stele.Exhausted, "ddds.lookups-without-end", "{cause}: {most} keys were asked, and {key} is not the end", ErrTooManyHops, maxLookups, key)
	case v.ctx.Err() != nil:
		err = TryAgain(key, v.ctx.Err())
	}
	if err != nil {
		return RuleSet{}, 0, err
	}
	v.lookups++
	set, err = v.walker.Database.NAPTR(v.ctx, key)
	switch {
	case err != nil:
		err = v.wrap(err)
	case len(set.Rules) == 0:
		err = NoData(key)
	case len(set.Rules) > MaxRules:
		err = v.fail(stele.Exhausted, "ddds.too-many-rules-at-key", "{cause}: {count} at {key}; {most} are the most", ErrTooManyRules, len(set.Rules), key, MaxRules)
	}
	if v.trace != nil {
		step = len(v.trace.Steps)
		v.trace.Steps = append(v.trace.Steps, Step{Key: key, Phase: phase, TTL: set.TTL, Note: set.Note})
		if err != nil {
			v.stumble(step, err)
		}
	}
	return set, step, err
}

// follow ends the walk at the first rule if it is terminal, or else goes on with
// its key. Where that does not answer it goes on with the next; that something does
// not exist is an answer.
func (v *walk) follow(list []judged, ttl uint32, phase Phase, expires time.Time, step int) (Result, error) {
	var unanswered error
	for i := range list {
		j := &list[i]
		if unanswered != nil && !expires.IsZero() && v.walker.Now().After(expires) {
			if v.renewed {
				return Result{}, unanswered
			}
			return Result{}, v.fail(stele.Unavailable, "unavailable.try-again", "{cause}; try again", errExpired)
		}
		if v.isEnd(j.candidate.Flag) {
			v.mark(step, j, Chosen)
			return v.finish(list[i:], ttl), nil
		}
		next := phase
		if j.candidate.Flag == FlagDisNAPTR {
			next = Resolution
		}
		v.mark(step, j, Chosen)
		res, err := v.visit(j.candidate.Key, next, expires)
		if err == nil {
			for k := range res.Candidates {
				res.Candidates[k].TTL = min(res.Candidates[k].TTL, ttl)
			}
			res.Candidate = res.Candidates[0]
			return res, nil
		}
		if stele.KindOf(err) != stele.Unavailable || errors.Is(err, errExpired) || v.ctx.Err() != nil {
			return Result{}, err
		}
		v.mark(step, j, Failed)
		unanswered = err
	}
	return Result{}, unanswered
}

// finish makes the result of the terminal rules in a list.
func (v *walk) finish(list []judged, ttl uint32) (res Result) {
	for i := range list {
		if c := list[i].candidate; v.isEnd(c.Flag) {
			c.TTL = ttl
			res.Candidates = append(res.Candidates, c)
		}
	}
	res.Candidate = res.Candidates[0]
	return res
}

// wanted says what was asked for.
func (v *walk) wanted() string {
	if v.request.Service == "" {
		return "anything that can be used"
	}
	if len(v.request.Flags) > 0 {
		return fmt.Sprintf("%s with a flag of %s", Escape(string(v.request.Service)), brief(fmt.Sprint(v.request.Flags)))
	}
	if v.request.OnlyProtocols {
		return fmt.Sprintf("%s by %s", v.request.Service, brief(fmt.Sprint(v.request.Protocols)))
	}
	return Escape(string(v.request.Service))
}

func (v *walk) fail(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "resolve", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// wrap gives an error of the database a Kind if it has none: a database that does
// not say what went wrong does not know the answer.
func (v *walk) wrap(err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return v.fail(stele.Unavailable, "", "{cause}", err)
}

// stumble notes an error in the trace.
func (v *walk) stumble(step int, err error) {
	if v.trace != nil {
		v.trace.Steps[step].Error = err.Error()
	}
}

// mark notes what became of a rule that was found good.
func (v *walk) mark(step int, j *judged, verdict Verdict) {
	if v.trace != nil {
		v.trace.Steps[step].Rules[j.place].Verdict = verdict
	}
}
