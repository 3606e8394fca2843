// Package heir asks the registry that takes over a namespace, the heir, how far it is: whether it has adopted all of it for writing, and
// whether it answers for the names. The registry that gives, the giver, redirects requests there only then (docs/decisions/0076).
//
// It believes nothing of an answer that it did not check, reads no more than it has bounds for, and follows no redirect. It sends no
// credentials: all that it asks is public.
package heir

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// Doer makes requests: a client of package outbound, which follows no redirect.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Bounds of what a check asks.
const (
	Patience  = 10 * time.Second // for a request
	MaxAnswer = 8 << 20          // bytes of an answer
	samples   = 20               // names
	maxPages  = 100              // of the heir's list
	wholeTime = 2 * time.Minute  // for all requests
)

// Checker asks heirs.
type Checker struct {
	Registrar *registrar.Registrar // of the giver
	Schemes   *stele.Schemes
	HTTP      Doer
	Agent     string // the name under which it asks

	// Own reports whether a host is one of the giver's: an heir that redirects there does not answer. Nil: none is known.
	Own func(host string) bool
}

// Forward redirects requests for the names of a namespace, and of all below it, to the heir, if the heir answers for them. With sure the
// heir is not asked. Conflict if the heir does not answer yet, with what to do. Only an administrator may.
func (c *Checker) Forward(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	list, err := c.Registrar.HandOvers(ctx, key)
	if err != nil {
		return nil, err
	}
	waits := false
	for _, ns := range list {
		waits = waits || ns.HandOver.State == stele.Sealed
	}
	if waits && !sure {
		a, err := c.Check(ctx, key)
		if err != nil {
			return nil, err
		}
		if !a.Ready {
			return nil, &stele.Error{Op: "forward namespace", Kind: stele.Conflict, Err: a.Coded.Message(a.Reason)}
		}
	}
	return c.Registrar.ForwardNamespace(ctx, key)
}

// Cancel ends the hand-over of a namespace, and of all below it. Of one that was sealed it does so only if the caller is sure that the heir
// has not adopted it, and asks the heir all the same: Conflict if that says that it gives the names, or is about to. An heir that can't be asked is
// the caller's to know of. Only an administrator may.
func (c *Checker) Cancel(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	list, err := c.Registrar.CancelHandOver(ctx, key, false)
	if err == nil || !sure || stele.KindOf(err) != stele.Conflict {
		return list, err
	}
	if err := c.givesNone(ctx, key); err != nil {
		return nil, err
	}
	return c.Registrar.CancelHandOver(ctx, key, true)
}

// givesNone refuses if an heir of a namespace, or of one below it, says that it has adopted it for writing, or adopts it now: what it has for reading only is
// of a bundle that was made after the seal, and its next step may be to open it.
func (c *Checker) givesNone(ctx context.Context, key stele.NamespaceKey) error {
	list, err := c.Registrar.HandOvers(ctx, key)
	if err != nil {
		return err
	}
	own, err := c.Registrar.LogOrigin(ctx)
	if err != nil || own.Origin == "" { // without a name no bundle was made
		return err
	}
	asking, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	heard := make(map[string]map[stele.NamespaceKey]*apijson.NamespaceHandOver) // by address
	for _, ns := range list {
		h := &ns.HandOver
		if !ns.IsSealed() {
			continue
		}
		said, asked := heard[h.Address]
		if !asked {
			r := &run{Checker: c, key: key, giver: own.Origin, heir: h.Heir, base: baseOf(h.Address)}
			said, _ = r.handOvers(asking) // the caller is sure
			heard[h.Address] = said
		}
		d := said[ns.Key()]
		if d == nil || d.Adoption == nil || !transparency.IsOfLog(d.Registry, h.Heir) || !transparency.IsOfLog(d.Adoption.From, own.Origin) {
			continue
		}
		switch a := d.Adoption; {
		case !a.Reading:
			return uncancelled(stele.Messagef("hand-over.heir-gives-names",
				"{heir} says that it has adopted {namespace} and gives its names: if this registry did so, too, both would give the same names to different things; it stays sealed", h.Heir, ns.Key()))
		case transparency.IsOfLog(a.To, h.Heir) && !a.Until.Before(h.Since.Truncate(time.Second)):
			return uncancelled(stele.Messagef("hand-over.heir-adopts-now",
				"{heir} adopts a bundle of {namespace} that was made after the seal, and may give its names at any moment; it stays sealed: let the heir's operator finish, or, if it is not to be, stop the heir's server, and cancel then", h.Heir, ns.Key()))
		}
	}
	return ctx.Err()
}

func uncancelled(err error) error {
	return &stele.Error{Op: "cancel hand-over", Kind: stele.Conflict, Err: err}
}

// Check asks the heir of a namespace. Conflict if no heir was named. Only an administrator may.
func (c *Checker) Check(ctx context.Context, key stele.NamespaceKey) (a apijson.HeirCheck, err error) {
	const op = "check heir"
	sample, err := c.Registrar.SampleNamespace(ctx, key, samples)
	if err != nil {
		return a, err
	}
	list, err := c.Registrar.HandOvers(ctx, key)
	if err != nil {
		return a, err
	}
	given := list[:0]
	var top *stele.Namespace
	for _, ns := range list {
		if ns.HandOver.State == stele.NotHandedOver {
			continue
		}
		if given = append(given, ns); ns.Key() == key {
			top = ns
		}
	}
	if top == nil {
		return a, &stele.Error{Op: op, Kind: stele.Conflict, Err: stele.Messagef("hand-over.not-offered", "{namespace} is offered to no registry; use 'stele handover offer' first", key)}
	}
	own, err := c.Registrar.LogOrigin(ctx)
	if err != nil {
		return a, err
	}
	asking, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	r := &run{Checker: c, key: key, giver: own.Origin, heir: top.HandOver.Heir, base: baseOf(top.HandOver.Address)}
	a = apijson.HeirCheck{Heir: top.HandOver.Heir, Address: top.HandOver.Address}
	why := r.check(asking, &a, given, sample)
	if err := ctx.Err(); err != nil {
		return a, &stele.Error{Op: op, Kind: stele.Unavailable, Err: err}
	}
	if a.Ready = why == nil; why != nil {
		a.Reason, a.Coded = apijson.Legible(why.Error()), apijson.CodedOf(why)
	}
	return a, nil
}

// check asks for all that the heir must say, and returns what is missing; nil if nothing is.
func (r *run) check(ctx context.Context, a *apijson.HeirCheck, given []*stele.Namespace, sample []*stele.Record) error {
	if r.giver == "" {
		return stele.Messagef("hand-over.giver-unnamed", "the log of this registry has no name, so that no bundle of it can have been adopted; name it with 'stele log key --origin NAME', and make a bundle")
	}
	said, err := r.handOvers(ctx)
	if err != nil {
		return err
	}
	for _, ns := range given {
		if d := said[ns.Key()]; d != nil {
			a.Namespaces = append(a.Namespaces, *d)
		}
	}
	for _, ns := range given {
		if err := r.judge(ns, said[ns.Key()]); err != nil {
			return err
		}
	}
	a.Asked = len(sample)
	var first error
	for _, rec := range sample {
		if err := r.answers(ctx, rec); err == nil {
			a.Answered++
		} else if first == nil {
			first = stele.Messagef("hand-over.heir-lacks-name", "{heir} does not answer for {name} as for a name of its own: {cause}; have its operator look into it, and try again", r.heir, rec.ID, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return first
}

// judge returns why what the heir says of a namespace is not enough; nil if it is.
func (r *run) judge(ns *stele.Namespace, said *apijson.NamespaceHandOver) error {
	key := ns.Key()
	switch {
	case said == nil || said.Adoption == nil:
		return stele.Messagef("hand-over.not-adopted", "{heir} has not adopted {namespace} yet; make a bundle with 'stele bundle' after the seal, have it adopted there, and try again", r.heir, key)
	case !transparency.IsOfLog(said.Registry, r.heir):
		return stele.Messagef("hand-over.heir-differs", `the registry at {address} calls itself "{name}", and {namespace} is for {heir}; cancel the hand-over and offer it with the right address and name`, r.base, said.Registry, key, r.heir)
	case !transparency.IsOfLog(said.Adoption.From, r.giver):
		return stele.Messagef("hand-over.adopted-from-another", `{heir} has adopted {namespace} from "{from}", and not from this registry, {giver}; ask its operator`, r.heir, key, said.Adoption.From, r.giver)
	case said.Adoption.Reading || !transparency.IsOfLog(said.Adoption.To, r.heir):
		return stele.Messagef("hand-over.adopted-for-reading", "{heir} has adopted {namespace} for reading only: its bundle was made before the seal, or not all of it is adopted yet; have a bundle adopted there that was made since", r.heir, key)
	case said.Adoption.Silent:
		return stele.Messagef("hand-over.adopted-in-silence", "{heir} has adopted {namespace} since this registry was silent for long, and not from a bundle that was made after the seal; have one adopted there", r.heir, key)
	case ns.HandOver.State == stele.Sealed && said.Adoption.Until.Before(ns.HandOver.Since.Truncate(time.Second)):
		return stele.Messagef("hand-over.adopted-earlier", "{heir} has adopted a bundle of {namespace} that ends at {until}, before it was sealed, at {since}; have a bundle adopted there that was made since", r.heir, key, said.Adoption.Until.UTC().Format(time.RFC3339), ns.HandOver.Since.UTC().Format(time.RFC3339))
	case (said.State == string(stele.Sealed) || said.State == string(stele.Forwarded)) && transparency.IsOfLog(said.Heir, r.giver):
		return stele.Messagef("hand-over.heir-gives-back", "{heir} hands {namespace} over to this registry itself; requests would go round in a circle", r.heir, key)
	}
	return nil
}
