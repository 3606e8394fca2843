package remote

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar"
)

// Propose keeps a record, or a change of one, for an owner to approve.
func (r *Registry) Propose(ctx context.Context, p registrar.Proposal) (*registrar.Proposal, error) {
	const op = "propose"
	body := apijson.NewProposal{Record: document.AppendRecord(nil, p.Record), Base: p.Base, Note: p.Note}
	// It is not retried: if the answer is lost, a retry makes a second proposal.
	kept, _, err := r.proposal(ctx, op, &ask{method: http.MethodPost, path: "proposals", document: body})
	return kept, err
}

// Proposals yields the proposals that concern the caller.
func (r *Registry) Proposals(ctx context.Context) iter.Seq2[*registrar.Proposal, error] {
	const op = "list proposals"
	return func(yield func(*registrar.Proposal, error) bool) {
		q := &ask{method: http.MethodGet, path: "proposals", again: true, query: url.Values{"limit": {strconv.Itoa(pageSize)}}}
		for item, err := range r.items(ctx, q) {
			var p *registrar.Proposal
			if err != nil {
				err = under(op, stele.ID{}, err)
			} else {
				p, _, err = r.readProposal(item)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// Proposal returns a proposal that concerns the caller, and whether the caller may decide about it.
func (r *Registry) Proposal(ctx context.Context, id string) (*registrar.Proposal, bool, error) {
	return r.proposal(ctx, "read proposal", &ask{method: http.MethodGet, path: pathOf("proposals", id), again: true})
}

// Approve writes what a proposal says. It is not retried: a proposal is written once, and a second
// request would not find it.
func (r *Registry) Approve(ctx context.Context, id string) (*stele.Record, error) {
	rec, err := r.record(ctx, &ask{method: http.MethodPost, path: pathOf("approve", id)})
	if err != nil {
		return nil, under("approve proposal", stele.ID{}, err)
	}
	return rec, nil
}

// Decline ends a proposal without writing it.
func (r *Registry) Decline(ctx context.Context, id, reason string) error {
	const op = "decline proposal"
	return r.fetch(ctx, op, &ask{method: http.MethodPost, path: pathOf("decline", id), document: apijson.Declining{Reason: reason}}, nil)
}

// proposal sends a request that is answered with a proposal.
func (r *Registry) proposal(ctx context.Context, op string, q *ask) (*registrar.Proposal, bool, error) {
	a, err := r.call(ctx, q)
	if err != nil {
		return nil, false, under(op, stele.ID{}, err)
	}
	return r.readProposal(a.body)
}

func (r *Registry) readProposal(text []byte) (*registrar.Proposal, bool, error) {
	var d apijson.Proposal
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, false, unread(err)
	}
	key, err := namespaces.ParsePrefix(r.o.Schemes, d.Namespace)
	if err != nil {
		return nil, false, unread(stele.Reason(err))
	}
	rec, err := r.readRecord(d.Record)
	if err != nil {
		return nil, false, err
	}
	if d.Mint {
		rec.ID = stele.ID{}
	}
	return &registrar.Proposal{ID: d.ID, Namespace: key, Record: rec, Base: d.Base, By: d.By, At: d.At, Note: d.Note,
		Declined: d.Declined, Decliner: d.Decliner, Reason: d.Reason}, d.MayDecide, nil
}
