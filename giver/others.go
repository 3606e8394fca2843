package giver

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// Others asks the other heirs of a giver that fell silent: one of them may have taken the names over by the same silence, and two heirs would make the same names.
type Others struct {
	// Ask returns what the registry at an address says of a namespace and of those below it, by its public interface. Nil: no heir can be asked.
	Ask  func(ctx context.Context, address string, key stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error)
	Sure bool // an heir that can't be asked, or that has a namespace for reading only, has not taken it over and will not: the caller knows that
}

// Confirm returns an error if another heir of one of the namespaces says that it has taken it over from the giver, also if the caller is sure: Conflict. If it is not sure, it
// also returns an error if an heir can't be asked: Unavailable; or if an heir may be about to take a namespace over: Conflict.
func (o *Others) Confirm(ctx context.Context, from string, spaces []registrar.AdoptedSpace) error {
	asking, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	for i := range spaces {
		for _, h := range spaces[i].Others {
			if err := o.confirm(asking, from, spaces[i].Key, &h); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return unsealed(stele.Unavailable, ctx.Err())
			}
		}
	}
	return nil
}

// errNoWay says that there is no way to ask.
var errNoWay = stele.Messagef("adopt.heirs-unknown", "this program can't ask other registries")

// confirm asks one heir of a namespace.
func (o *Others) confirm(ctx context.Context, from string, key stele.NamespaceKey, h *stele.Heir) error {
	var said map[stele.NamespaceKey]*apijson.NamespaceHandOver
	var err error = errNoWay
	if o.Ask != nil {
		said, err = o.Ask(ctx, h.Address, key)
	}
	d := said[key]
	if err == nil && d != nil && !transparency.IsOfLog(d.Registry, h.Registry) {
		err = stele.Messagef("adopt.other-registry", `the registry there calls itself "{name}"`, d.Registry)
	}
	switch {
	case err != nil && o.Sure:
		return nil
	case err != nil:
		return unsealed(stele.Unavailable, stele.Messagef("adopt.heir-unasked", "{heir}, which is an heir of {namespace}, too, can't be asked at {address} whether it has taken it over: {cause}; if its operator tells you that it has not and will not, give --i-know", h.Registry, key, h.Address, err))
	case d == nil || d.Adoption == nil || !transparency.IsOfLog(d.Adoption.From, from):
		return nil
	case !d.Adoption.Reading:
		return unsealed(stele.Conflict, stele.Messagef("adopt.heir-took-over", "{heir} says that it has taken {namespace} over from {giver}: two heirs would make the same names; nothing is taken over here", h.Registry, key, from))
	case transparency.IsOfLog(d.Adoption.To, h.Registry) && !o.Sure:
		return unsealed(stele.Conflict, stele.Messagef("adopt.heir-takes-over", "{heir} has a bundle of {namespace} by which it may take it over at any moment; agree with its operator on which of the two registries does, and give --i-know if it is this one", h.Registry, key))
	}
	return nil
}

// ConfirmEnd asks a giver that is said to have ended once more, and the other heirs of namespaces that were taken over from it. It returns an error if the giver is not silent, or if one of
// them has taken a namespace over, too. An heir that can't be asked is the caller's to know of, as the end of the giver is.
func (w *Watcher) ConfirmEnd(ctx context.Context, origin string, spaces []registrar.AdoptedSpace) error {
	if _, err := w.ConfirmSilence(ctx, origin); err != nil {
		return err
	}
	return (&Others{Ask: w.AskHeir, Sure: true}).Confirm(ctx, origin, spaces)
}
