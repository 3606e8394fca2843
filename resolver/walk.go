package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// walk is the way to one answer.
type walk struct {
	*Resolver
	q     Request
	trace []Step
	whole *stele.Record // of which the name would be a part, if it passed that on
	brief bool          // the record lacks its description
}

// step adds a line to the trace. Callers check first whether the trace is wanted, since
// the arguments alone cost time.
func (w *walk) step(name, code, text string, args ...any) {
	w.trace = append(w.trace, Step{name, stele.Messagef(code, text, args...)})
}

// name adds the line about the name itself.
func (w *walk) name() {
	q := &w.q
	if q.Given == "" || q.Given == q.ID.String() {
		w.step("name", "trace.name", "{name}, scheme {scheme}", q.ID, q.ID.Scheme())
		return
	}
	w.step("name", "trace.name-written", "{name}, scheme {scheme}, written {given}", q.ID, q.ID.Scheme(), fmt.Sprintf("%.200q", q.Given))
}

// space adds the line about the namespace.
func (w *walk) space(ns *stele.Namespace) {
	if ns == nil {
		w.step("namespace", "trace.namespace-none", "none")
		return
	}
	w.step("namespace", "trace.namespace", "{namespace}", ns.Key())
}

func (w *walk) answer(ctx context.Context) (Resolution, error) {
	record, err := w.record(ctx)
	if err != nil {
		return Resolution{}, err
	}
	if ns, err := w.namespaces.heirOf(ctx, w.q.ID); err != nil {
		return Resolution{}, err
	} else if ns != nil {
		if here, err := w.staysHere(ctx, record); err != nil {
			return Resolution{}, err
		} else if !here {
			return w.delegate(ns)
		}
	}
	visible, err := w.MaySee(ctx, w.q.Who, record)
	if err != nil {
		return Resolution{}, err
	}
	if visible {
		return w.fromRecord(ctx, record, w.q.ID.String())
	}
	// A record that the client may not see is reported as absent, here and below.
	if w.q.Trace {
		w.step("record", "trace.record-none", "none has this name")
	}
	if res, ok, err := w.fromRules(ctx); ok || err != nil {
		return res, err
	}
	record, matched, err := w.longest(ctx)
	if err != nil {
		return Resolution{}, err
	}
	if record != nil {
		return w.fromRecord(ctx, record, matched)
	}
	ns, err := w.namespaces.of(ctx, w.q.ID)
	if err != nil {
		return Resolution{}, err
	}
	if ns != nil && ns.Delegate != "" {
		return w.delegate(ns)
	}
	if w.q.Trace {
		if ns == nil {
			w.step("namespace", "trace.namespace-none-delegates", "none; it does not delegate")
		} else {
			w.step("namespace", "trace.namespace-own", "{namespace}; it does not delegate", ns.Key())
		}
	}
	if res, ok := w.origin(ns); ok {
		return res, nil
	}
	return Resolution{}, w.unknown(ctx, ns)
}

// record returns the record that has the name, nil if there is none.
func (w *walk) record(ctx context.Context) (*stele.Record, error) {
	if w.q.Brief && w.q.Service == stele.N2L && w.q.Query == "" {
		if record := w.records.redirect(w.q.ID); record != nil {
			w.brief = true
			return record, nil
		}
	}
	return w.records.get(ctx, w.q.ID)
}

// longest returns the record of the longest beginning of the name that passes on
// what follows it, and that beginning; nil if there is none. A withdrawn record
// that did so is found as well: what was below it is gone with it.
func (w *walk) longest(ctx context.Context) (*stele.Record, string, error) {
	for name := w.q.ID; ; {
		record, at, err := w.records.longest(ctx, w.schemes, name)
		if err != nil {
			return nil, "", err
		}
		if record == nil {
			break
		}
		rest := w.q.ID.String()[len(at.String()):]
		always, err := w.passesOn(ctx, record, nameOf(at))
		if err != nil {
			return nil, "", err
		}
		visible, err := w.MaySee(ctx, w.q.Who, record)
		if err != nil {
			return nil, "", err
		}
		if visible && slices.ContainsFunc(record.Targets, func(t stele.Target) bool {
			return (t.Partial || always) && (t.Service == w.q.Service || record.State == stele.Withdrawn)
		}) {
			return record, at.String(), nil
		}
		// Of x12 the whole is not x1.
		if visible && w.whole == nil && !isAlphanumeric(rest[0]) {
			w.whole = record
		}
		name = nameOf(at)
	}
	if w.q.Trace {
		w.step("prefix", "trace.prefix-none", "no beginning of the name passes on what follows it")
	}
	return nil, "", nil
}

// fromRecord answers from the record that has the name, or whose name matched is
// the name's beginning.
func (w *walk) fromRecord(ctx context.Context, record *stele.Record, matched string) (Resolution, error) {
	rest := w.q.ID.String()[len(matched):]
	if w.q.Trace {
		what := "record"
		if rest != "" {
			what = "prefix"
		}
		switch record.State {
		case stele.Active:
			w.step(what, "trace.record-active", "{name}, as {id}, version {number}, active", matched, record.ID, record.Version)
		case stele.Withdrawn:
			w.step(what, "trace.record-withdrawn", "{name}, as {id}, version {number}, withdrawn", matched, record.ID, record.Version)
		default:
			w.step(what, "trace.record", "{name}, as {id}, version {number}, {state}", matched, record.ID, record.Version, record.State)
		}
	}
	ns, err := w.namespaces.of(ctx, record.ID)
	if err != nil {
		return Resolution{}, err
	}
	res := Resolution{Matched: matched, Record: record, Namespace: ns, TTL: w.ttl, Private: !isOpen(record), Brief: w.brief}
	if ns != nil {
		res.TTL = cmp.Or(ns.TTL, w.ttl)
	}
	if w.q.Trace {
		w.space(ns)
	}
	if record.State == stele.Withdrawn {
		res.Kind, res.Status = Tombstone, http.StatusGone
		if record.Tombstone != nil {
			res.Tombstone = *record.Tombstone
		}
		return res, nil
	}
	return w.choose(ctx, res)
}

// passesOn reports whether all targets of a record get what follows its name at, and the
// query, although none says so. Of an ARK they get a part of the thing, and not the end of
// a longer name: ARK's suffix passthrough. A namespace can ask that they get all that
// follows; then both names must be in it, so that no other namespace is answered for.
func (w *walk) passesOn(ctx context.Context, record *stele.Record, at stele.ID) (bool, error) {
	rest := w.q.ID.String()[len(at.String()):]
	if rest == "" && w.q.Query == "" || slices.ContainsFunc(record.Targets, func(t stele.Target) bool { return t.Partial }) {
		return false, nil
	}
	if s, ok := w.schemes.Lookup(w.q.ID.Scheme()).(stele.PassingScheme); ok && s.PassesOn(rest) {
		return true, nil
	}
	return w.namespaces.passesOn(ctx, w.q.ID, at)
}

// matched returns the name of a record that is the name that was asked for, or its
// beginning.
func (w *walk) matched(text string) stele.ID {
	if len(text) == len(w.q.ID.String()) {
		return w.q.ID
	}
	return nameOf(w.q.ID.Prefix(len(text)))
}

// choose ranks the record's targets and makes the first one the answer.
func (w *walk) choose(ctx context.Context, res Resolution) (Resolution, error) {
	rest := w.q.ID.String()[len(res.Matched):]
	if w.q.Service == stele.N2S && rest == "" && len(res.Record.Signatures) > 0 {
		if w.q.Trace {
			w.step("choice", "trace.signatures", "the record itself has {count} of the signatures that are asked for", len(res.Record.Signatures))
		}
		res.Kind, res.Status = Description, http.StatusOK
		return res, nil
	}
	var few [4]candidate // enough for most records
	always, err := w.passesOn(ctx, res.Record, w.matched(res.Matched))
	if err != nil {
		return Resolution{}, err
	}
	copied := w.q.Component && w.q.Query != ""
	ranked := rank(few[:0], res.Record.Targets, &w.q, rest != "" && !always, w.random)
	literal := rest != "" && w.isLiteral()
	var refused error
	for i := range ranked {
		c := &ranked[i]
		t := w.fill(c.target, res.Namespace)
		if (t.Partial || always || copied) && !isGone(t.Status) {
			var err error
			if t.URL, err = join(t.URL, rest, w.q.Query, literal); err != nil {
				if refused == nil {
					refused = err
				}
				continue
			}
		}
		if res.Targets == nil {
			res.Targets = make([]stele.Target, 0, len(ranked))
			res.Fit = c.media.Fit
		}
		res.Targets = append(res.Targets, t)
		if w.q.Trace {
			w.step("choice", "trace.choice", "{number}. {url}: {type}; {language}; order {order}, preference {preference}", len(res.Targets), t.URL, c.mediaSaid(), c.languageSaid(), c.target.Order, c.target.Preference)
		}
	}
	switch {
	case len(res.Targets) > 0:
		best := &res.Targets[0]
		res.Kind, res.URL, res.Status, res.TTL = Redirect, best.URL, best.Status, best.TTL
		if isGone(best.Status) {
			res.Kind = Gone
		}
		return res, nil
	case refused != nil:
		return Resolution{}, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.Invalid, Err: refused}
	case w.q.Service != stele.N2L && w.q.Service != stele.N2C && w.q.Service != stele.N2P, w.q.OnlyProtocols && hasService(res.Record, w.q.Service):
		return Resolution{}, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.NotFound, Err: stele.Messagef(
			"resolve.target-missing", "it is registered, but has no target for {service}{restriction}", w.q.Service, w.restriction())}
	}
	if w.q.Trace {
		w.step("choice", "trace.target-none", "there is no target for {service}", w.q.Service)
	}
	res.Kind, res.Status = Description, http.StatusOK
	return res, nil
}

// fill returns the target with what the namespace or the program says where it
// says nothing itself.
func (w *walk) fill(t stele.Target, ns *stele.Namespace) stele.Target {
	if ns != nil {
		t.TTL, t.Status = cmp.Or(t.TTL, ns.TTL), cmp.Or(t.Status, ns.Status)
	}
	t.TTL, t.Status = cmp.Or(t.TTL, w.ttl), cmp.Or(t.Status, w.status)
	return t
}

// staysHere reports whether the name that was asked for is an alias of a record in a namespace that was not handed over, so that
// the heir does not have it.
func (w *walk) staysHere(ctx context.Context, record *stele.Record) (bool, error) {
	if record == nil || record.ID == w.q.ID {
		return false, nil
	}
	ns, err := w.namespaces.heirOf(ctx, record.ID)
	return ns == nil, err
}

// delegate answers with the resolver that the namespace names.
func (w *walk) delegate(ns *stele.Namespace) (Resolution, error) {
	text, query := w.q.ID.String(), w.q.Query
	if w.q.Component && query != "" {
		query = "=" + query // it is a component of the name there too
	}
	to := ns.AnsweredAt()
	url, err := expand(to, text, text[len(ns.Prefix):], query, w.isLiteral())
	if err != nil {
		// If the template is valid, a name is invalid only because of dot segments.
		return Resolution{}, &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.Invalid, Err: stele.Messagef(
			"resolve.delegation-failed", "the namespace {namespace} delegates to another resolver: {cause}", ns.Key(), err)}
	}
	if w.q.Trace && ns.HandOver.State == stele.Forwarded {
		w.step("namespace", "trace.namespace-handed-over", "{namespace}; it was handed over to {heir}, which answers at {address}", ns.Key(), ns.HandOver.Heir, ns.HandOver.Address)
	} else if w.q.Trace {
		w.step("namespace", "trace.namespace-delegates", "{namespace}; it delegates to {resolver}", ns.Key(), to)
	}
	res := Resolution{Kind: Delegation, Matched: ns.Prefix, Namespace: ns, URL: url,
		Status: cmp.Or(ns.Status, w.status), TTL: cmp.Or(ns.TTL, w.ttl)}
	if ns.HandOver.State == stele.Forwarded {
		res.Status = http.StatusMovedPermanently // RFC 9110, section 15.4.2: for all times
	}
	return res, nil
}

// isLiteral reports whether a percent sign in the name is just that.
func (w *walk) isLiteral() bool { return urltext.IsLiteral(w.schemes, w.q.ID) }

func (w *walk) restriction() string {
	if !w.q.OnlyProtocols {
		return ""
	}
	return fmt.Sprintf(" by %.100q", strings.Join(w.q.Protocols, ", "))
}

// isGone reports whether a target's status says that it is not there.
func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

func hasService(record *stele.Record, s stele.Service) bool {
	return slices.ContainsFunc(record.Targets, func(t stele.Target) bool { return t.Service == s })
}

func invalid(id stele.ID, code, text string, args ...any) error {
	return &stele.Error{Op: "resolve", ID: id, Kind: stele.Invalid, Err: stele.Messagef(code, text, args...)}
}

// isNotFound reports whether a store's error says that there is no such thing.
func isNotFound(err error) bool { return errors.Is(err, stele.NotFound) }
