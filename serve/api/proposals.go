package api

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/serve/api/openapi"
)

func (h *Handler) proposalOperations() []operation {
	const group = "Proposals"
	id := parameter{name: "proposal", about: "The ID of the proposal", example: "00000000000000000000"}
	return []operation{{
		name: "listProposals", method: http.MethodGet, path: "proposals", group: group,
		summary: "List proposals",
		about:   "Those that you may decide about, and your own, which may be declined. A token needs the scope admin to see those that an owner decides about.",
		asks:    known, scope: auth.ScopeWrite,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.ProposalPage{}}},
		serve:   h.listProposals,
	}, {
		name: "propose", method: http.MethodPost, path: "proposals", group: group,
		summary: "Propose a record, or a change of one",
		about:   "It is judged as if it were written now, and an owner approves or declines it. Editors write this way where changes are reviewed.",
		asks:    editor, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.NewProposal{}, example: `{"record":{"id":"ark:12345/proposed","url":"https://example.org/1"},"note":"It is new"}`},
		answers: []answer{{status: 201, about: "The proposal is kept.", value: apijson.Proposal{}, headers: []parameter{location}}},
		fails:   []int{404, 409},
		serve:   h.propose,
	}, {
		name: "getProposal", method: http.MethodGet, path: "proposals/{proposal}", group: group, tail: id,
		summary: "Show a proposal",
		asks:    editor, scope: auth.ScopeWrite,
		answers: []answer{{status: 200, about: "The proposal.", value: apijson.Proposal{}}},
		fails:   []int{404},
		serve: func(c *call) error {
			p, decide, err := h.o.Registrar.Proposal(c.ctx, c.tail)
			if err != nil {
				return err
			}
			d, err := h.proposal(p)
			if err != nil {
				return err
			}
			d.MayDecide = decide
			return c.reply(http.StatusOK, d)
		},
	}, {
		name: "approveProposal", method: http.MethodPost, path: "approve/{proposal}", group: group, tail: id,
		summary: "Write what a proposal says",
		about:   "You are the author of the version, and must be an owner. A proposal is written once. It can't be approved if the record has changed since.",
		asks:    editor, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The record as it is now.", value: openapi.Record{}, headers: []parameter{entityTag}}},
		fails:   []int{404, 409},
		serve: func(c *call) error {
			rec, err := h.o.Registrar.Approve(c.ctx, c.tail)
			if err != nil {
				return err
			}
			return c.replyRecord(http.StatusOK, rec)
		},
	}, {
		name: "declineProposal", method: http.MethodPost, path: "decline/{proposal}", group: group, tail: id,
		summary: "Decline a proposal, or take your own back",
		about:   "An owner says why, with a token that has the scope admin. The editor who made it needs no reason: the proposal is removed then.",
		asks:    editor, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Declining{}, example: `{"reason":"The title is wrong"}`},
		answers: []answer{{status: 204, about: "It is declined, or removed."}},
		fails:   []int{404, 409},
		serve: func(c *call) error {
			var want apijson.Declining
			if err := c.decode(&want); err != nil {
				return err
			}
			if err := h.o.Registrar.Decline(c.ctx, c.tail, want.Reason); err != nil {
				return err
			}
			c.replyEmpty(http.StatusNoContent)
			return nil
		},
	}}
}

// proposal returns a proposal as it is shown.
func (h *Handler) proposal(p *registrar.Proposal) (apijson.Proposal, error) {
	d := apijson.Proposal{ID: p.ID, Namespace: p.Namespace.String(), Base: p.Base, By: p.By, At: p.At, Note: p.Note,
		Declined: p.Declined, Decliner: p.Decliner, Reason: p.Reason}
	rec := *p.Record
	if d.Mint = !rec.ID.IsValid(); d.Mint {
		var err error
		if rec.ID, err = minting.NameBelow(h.o.Schemes, p.Namespace); err != nil {
			return d, err
		}
	}
	d.Record = document.AppendRecord(nil, &rec)
	return d, nil
}

// listProposals lists the proposals that concern the caller.
func (h *Handler) listProposals(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	page := newPage(c)
	for p, err := range h.o.Registrar.ProposalsAfter(c.ctx, after) {
		if err != nil {
			return err
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(p.ID)
		d, err := h.proposal(p)
		if err == nil {
			err = page.addValue(d)
		}
		if err != nil {
			return err
		}
	}
	return page.end()
}

// propose keeps a proposal.
func (h *Handler) propose(c *call) error {
	var want apijson.NewProposal
	if err := c.decode(&want); err != nil {
		return err
	}
	p := registrar.Proposal{Base: want.Base, Note: want.Note}
	if want.Record == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: "record", Err: stele.Messagef("proposal.record-missing", "the record is missing; send it whole, as it should be")}}}
	}
	var err error
	if want.Namespace != "" {
		if p.Namespace, err = h.o.Registrar.ParsePrefix(want.Namespace); err != nil {
			return amiss(c, "namespace", err)
		}
		p.Record, err = h.nameless(c, want.Record, p.Namespace)
	} else {
		p.Record, err = document.DecodeRecord(h.o.Schemes, want.Record)
		err = under("record", err)
	}
	if err != nil {
		return err
	}
	kept, err := h.o.Registrar.Propose(c.ctx, p)
	if err != nil {
		return err
	}
	d, err := h.proposal(kept)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Root+"/proposals/"+escaped(d.ID))
	return c.reply(http.StatusCreated, d)
}
