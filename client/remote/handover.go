package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// HandOvers returns the namespaces at and below a key that are handed over or were adopted, in order; with the zero key all, for
// administrators. Of the adoptions of each it has the last one.
func (r *Registry) HandOvers(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error) {
	path := "handover"
	if key != (stele.NamespaceKey{}) {
		path = pathOf("handover", key.String())
	}
	return gather(ctx, r, "show hand-over", listOf(path, ""), func(d *apijson.NamespaceHandOver) (*stele.Namespace, error) { return d.Namespace(), nil })
}

// OfferNamespace names the registry that is to take over a namespace.
func (r *Registry) OfferNamespace(ctx context.Context, key stele.NamespaceKey, heir, address string) ([]*stele.Namespace, error) {
	return r.handOver(ctx, "offer namespace", key, apijson.HandOverStep{Do: "offer", Heir: heir, Address: address})
}

// SealNamespace ends minting and all changes in a namespace that was offered.
func (r *Registry) SealNamespace(ctx context.Context, key stele.NamespaceKey) ([]*stele.Namespace, error) {
	return r.handOver(ctx, "seal namespace", key, apijson.HandOverStep{Do: "seal"})
}

// Forward has the server redirect requests to the heir, if the server finds that the heir answers; with sure it does not ask.
func (r *Registry) Forward(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	return r.handOver(ctx, "forward namespace", key, apijson.HandOverStep{Do: "forward", IKnow: sure})
}

// CancelHandOver ends the hand-over of a namespace; sealed says that one which was sealed is meant, too.
func (r *Registry) CancelHandOver(ctx context.Context, key stele.NamespaceKey, sealed bool) ([]*stele.Namespace, error) {
	return r.handOver(ctx, "cancel hand-over", key, apijson.HandOverStep{Do: "cancel", IKnow: sealed})
}

// EndGiver says that the registry from which a namespace was taken over after a silence has ended.
func (r *Registry) EndGiver(ctx context.Context, key stele.NamespaceKey, sure bool) ([]*stele.Namespace, error) {
	return r.handOver(ctx, "end giver", key, apijson.HandOverStep{Do: "ended", IKnow: sure})
}

// heirTime is how long a server may ask an heir.
const heirTime = 3 * time.Minute

func (r *Registry) handOver(ctx context.Context, op string, key stele.NamespaceKey, step apijson.HandOverStep) (list []*stele.Namespace, err error) {
	// Each step is idempotent. A cancelled hand-over is not cancelled again, though: another administrator may have begun a new one.
	var d apijson.HandOverResult
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("handover", key.String()), document: step, again: step.Do != "cancel", timeout: heirTime}, &d); err != nil {
		return nil, err
	}
	for i := range d.Namespaces {
		list = append(list, d.Namespaces[i].Namespace())
	}
	return list, nil
}

// CheckHeir has the server ask the heir of a namespace how far it is.
func (r *Registry) CheckHeir(ctx context.Context, key stele.NamespaceKey) (c apijson.HeirCheck, err error) {
	return c, r.fetch(ctx, "check heir", &ask{method: http.MethodPost, path: pathOf("heir", key.String()), again: true, timeout: heirTime}, &c)
}

// PlanSeal returns what a seal would do, as [registrar.Registrar.PlanSeal] does.
func (r *Registry) PlanSeal(ctx context.Context, key stele.NamespaceKey, progress func(read int)) (*registrar.SealPlan, error) {
	const op = "seal namespace"
	s, err := r.open(ctx, &ask{method: http.MethodPost, path: pathOf("sealplan", key.String()), again: true}, nil, streamStill)
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return nil, err
		}
		var line apijson.SealPlan
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, unread(err)
		}
		if line.Read > 0 && progress != nil {
			progress(line.Read)
		}
		if line.Done {
			return r.readPlan(&line)
		}
	}
	return nil, refuse(op, stele.ID{}, stele.Unavailable, "record.listing-cut-off", "the answer was cut off, so not all records were read; try again")
}

// readPlan reads the plan of a seal.
func (r *Registry) readPlan(d *apijson.SealPlan) (*registrar.SealPlan, error) {
	p := &registrar.SealPlan{Heir: d.Heir, Address: d.Address, Registry: d.Registry, Reserved: d.Reserved, Read: d.Read}
	for _, ns := range d.Namespaces {
		p.Namespaces = append(p.Namespaces, registrar.PlannedNamespace{Key: stele.NamespaceKey{Scheme: ns.Scheme, Prefix: ns.Prefix}, State: stele.HandOverState(ns.State), Records: ns.Records, Minter: stele.MinterKind(ns.Minter), Given: ns.Given, Total: ns.Total})
	}
	if err := r.readCrossing(&p.Inward, d.Inward); err != nil {
		return nil, err
	}
	return p, r.readCrossing(&p.Outward, d.Outward)
}

func (r *Registry) readCrossing(c *registrar.Crossing, d *apijson.SealCrossing) error {
	if d == nil {
		return nil
	}
	c.Count = d.Count
	for _, a := range d.Some {
		alias, err := r.o.Schemes.Parse(a.Alias)
		if err != nil {
			return unread(err)
		}
		id, err := r.o.Schemes.Parse(a.ID)
		if err != nil {
			return unread(err)
		}
		c.Some = append(c.Some, registrar.CrossingAlias{Alias: alias, ID: id})
	}
	return nil
}
