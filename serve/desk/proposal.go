package desk

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

// rightsAt returns the user's role where a name is, and whether the user may only propose there.
func (c *call) rightsAt(id stele.ID) (role stele.Role, propose bool, err error) {
	if role, err = c.roleFor(id); err != nil || role != stele.RoleEditor {
		return role, false, err
	}
	ns, err := c.h.o.Registrar.FindNamespace(c.ctx, id)
	if err != nil {
		return role, false, err
	}
	propose, err = c.h.o.Registrar.IsReviewed(c.ctx, ns.Key())
	return role, propose, err
}

// mayOnlyPropose reports whether the user may only propose records in a namespace.
func (c *call) mayOnlyPropose(key stele.NamespaceKey) (bool, error) {
	role, err := c.h.o.Registrar.RoleIn(c.ctx, key)
	if err != nil || role != stele.RoleEditor {
		return false, err
	}
	return c.h.o.Registrar.IsReviewed(c.ctx, key)
}

func proposalURL(id string) string { return Root + "proposal?id=" + url.QueryEscape(id) }

// propose keeps a proposal and leads to it; what is wrong with it goes to refused.
func (c *call) propose(p registrar.Proposal, refused func(text string) error) error {
	kept, err := c.h.o.Registrar.Propose(c.ctx, p)
	switch {
	case err == nil:
		c.redirect(proposalURL(kept.ID) + "&done=proposed")
		return nil
	case stele.KindOf(err) == stele.Invalid, stele.KindOf(err) == stele.Conflict:
		return refused(c.language.Problem(reason(err)))
	}
	return err
}

// proposeChange proposes what a form makes of a record.
func (c *call) proposeChange(rec *stele.Record, f *form) error {
	next := *rec
	next.Aliases = slices.Clone(rec.Aliases)
	err := asInvalid(f.apply(c, &next))
	if err == nil {
		var p *registrar.Proposal
		if p, err = c.h.o.Registrar.Propose(c.ctx, registrar.Proposal{Record: &next, Base: max(f.version, 1), Note: f.remark}); err == nil {
			c.redirect(proposalURL(p.ID) + "&done=proposed")
			return nil
		}
	}
	if code, _ := stele.CodeOf(err); code == "record.version-not-expected" {
		return c.overtaken(rec.ID, f)
	}
	if err := f.judge(c, err); err != nil {
		return err
	}
	return c.recordPage(http.StatusUnprocessableEntity, rec, f, nil)
}

// proposeNew proposes a new record, under the name that the user gave or under the next one.
func (c *call) proposeNew(f *form, rec *stele.Record) (*registrar.Proposal, error) {
	p := registrar.Proposal{Record: rec, Note: f.remark}
	if f.own != "" {
		id, err := c.h.o.Schemes.Parse(f.own)
		if err != nil {
			f.note("own", c.language.Problem(reason(err)))
			return nil, errWrongForm
		}
		if rec.ID = id; f.own != id.String() {
			rec.Spelling = f.own
		}
	} else {
		key, err := c.h.o.Registrar.ParsePrefix(f.namespace)
		if err != nil {
			f.note("namespace", c.language.Problem(reason(err)))
			return nil, errWrongForm
		}
		p.Namespace = key
	}
	return c.h.o.Registrar.Propose(c.ctx, p)
}

// proposals lists what the user may decide about, and what the user has proposed.
func (c *call) proposals() error {
	v := &deskpage.Proposals{Frame: c.frame("proposals.title", "proposals")}
	for p, err := range c.h.o.Registrar.Proposals(c.ctx) {
		if err != nil {
			return err
		}
		if p.By == c.who.Name {
			v.Mine = append(v.Mine, c.proposalRow(p))
		} else {
			v.Open = append(v.Open, c.proposalRow(p))
		}
	}
	v.Same = []deskpage.Same{c.sameCommand("proposal", "ls"), c.sameRead("proposals", nil)}
	return c.show(http.StatusOK, "proposals", v)
}

// needsDecision adds how many proposals the user may decide about, and which of the user's own
// were declined.
func (c *call) needsDecision(list []deskpage.Need) ([]deskpage.Need, error) {
	open, declined := 0, 0
	for p, err := range c.h.o.Registrar.Proposals(c.ctx) {
		if err != nil {
			return nil, err
		}
		switch {
		case p.By != c.who.Name:
			open++
		case !p.IsOpen():
			declined++
		}
	}
	add := func(key string, n int) {
		if n > 0 {
			list = append(list, deskpage.Need{Text: c.language.Text(key, "count", n), Action: c.language.Text("need.look"), URL: Root + "proposals"})
		}
	}
	add("need.proposals", open)
	add("need.declined", declined)
	return list, nil
}

// proposalRow returns a proposal as a list shows it.
func (c *call) proposalRow(p *registrar.Proposal) deskpage.ProposalRow {
	row := deskpage.ProposalRow{URL: proposalURL(p.ID), What: p.Record.Metadata[stele.What], Namespace: p.Namespace.String(), By: p.By, At: p.At,
		Declined: p.Declined, Decliner: p.Decliner, Reason: p.Reason}
	if p.Record.ID.IsValid() {
		row.ID = p.Record.ID.String()
	}
	switch {
	case p.Base == 0:
		row.Kind = c.language.Text("proposals.new")
	case p.Record.State == stele.Withdrawn:
		row.Kind = c.language.Text("proposals.withdrawal")
	default:
		row.Kind = c.language.Text("proposals.change")
	}
	return row
}

// showProposal shows what a proposal changes.
func (c *call) showProposal() error {
	return c.proposalPage(http.StatusOK, c.r.URL.Query().Get("id"), "", "")
}

// proposalPage shows a proposal, with the reason that was typed and what is wrong with it.
func (c *call) proposalPage(status int, id, typed, wrong string) error {
	p, decide, err := c.h.o.Registrar.Proposal(c.ctx, id)
	if err != nil {
		return err
	}
	row := c.proposalRow(p)
	v := &deskpage.Proposal{Frame: c.frame(row.What, "proposals"), ProposalRow: row, Number: p.ID, Note: p.Note,
		MayDecide: decide && p.By != c.who.Name, MayTakeBack: p.By == c.who.Name, Answer: deskpage.Field{ID: "reason", Name: "reason", Value: typed, Problem: wrong}}
	if v.Frame.Title == "" {
		v.Frame.Title = row.Kind
	}
	if wrong != "" {
		v.Problems = []deskpage.Problem{{Field: "reason", Text: wrong}}
	}
	var before *stele.Record
	if p.Base != 0 {
		v.Record = recordURL(p.Record.ID)
		now, err := c.h.o.Registrar.Get(c.ctx, p.Record.ID)
		if err != nil {
			return err
		}
		if before, err = c.h.o.Registrar.Version(c.ctx, p.Record.ID, p.Base); err != nil && !errors.Is(err, stele.NotFound) {
			return err
		}
		if v.Overtaken = now.Version != p.Base && p.IsOpen(); v.Overtaken {
			v.Later = c.changes(before, now)
		}
	}
	v.Changes = c.changes(before, p.Record)
	v.Fields = c.fieldChanges(before, p.Record)
	v.Same = c.sameProposal(v)
	return c.show(status, "proposal", v)
}

// fieldChanges returns what a record would say in place of what it says, so that an owner sees what they
// approve. Before is nil for a new record.
func (c *call) fieldChanges(before, after *stele.Record) (list []deskpage.FieldChange) {
	if before != nil {
		list = c.contentOf(before)
	}
	for i := range list {
		list[i].Old, list[i].New = list[i].New, ""
	}
	for _, f := range c.contentOf(after) {
		if i := slices.IndexFunc(list, func(l deskpage.FieldChange) bool { return l.Field == f.Field }); i >= 0 {
			list[i].New = f.New
		} else {
			list = append(list, f)
		}
	}
	return slices.DeleteFunc(list, func(f deskpage.FieldChange) bool { return f.Old == f.New })
}

// contentOf returns all that a record says, a line for each value of a field.
func (c *call) contentOf(rec *stele.Record) (list []deskpage.FieldChange) {
	say := func(label, value string) {
		switch last := len(list) - 1; {
		case value == "":
		case last >= 0 && list[last].Field == label:
			list[last].New += "\n" + value
		default:
			list = append(list, deskpage.FieldChange{Field: label, New: value})
		}
	}
	for _, t := range rec.Targets {
		say(string(t.Service), strings.Join(slices.DeleteFunc([]string{t.URL, t.Type, t.Language}, func(s string) bool { return s == "" }), ", "))
	}
	for _, alias := range rec.Aliases {
		say(c.language.Text("field.alias"), alias.String())
	}
	for _, key := range rec.Metadata.Keys() {
		label := key
		if c.language.Has("field." + key) {
			label = c.language.Text("field." + key)
		}
		say(label, rec.Metadata[key])
	}
	say(c.language.Text("field.level"), string(rec.Persistence.Level))
	say(c.language.Text("field.until"), rec.Persistence.Until)
	say(c.language.Text("field.statement"), rec.Persistence.Statement)
	say(c.language.Text("field.readers"), strings.Join(rec.Readers, ", "))
	return list
}

// approve writes what a proposal says.
func (c *call) approve() error {
	if err := c.readForm(); err != nil {
		return err
	}
	id := c.r.PostForm.Get("id")
	rec, err := c.h.o.Registrar.Approve(c.ctx, id)
	if err != nil {
		if stele.KindOf(err) == stele.Conflict {
			return c.proposalPage(http.StatusConflict, id, "", "")
		}
		return err
	}
	c.redirect(recordURL(rec.ID) + "&done=approved")
	return nil
}

// decline ends a proposal without writing it.
func (c *call) decline() error {
	if err := c.readForm(); err != nil {
		return err
	}
	id, text := c.r.PostForm.Get("id"), c.r.PostForm.Get("reason")
	if err := c.h.o.Registrar.Decline(c.ctx, id, text); err != nil {
		if stele.KindOf(err) == stele.Invalid {
			return c.proposalPage(http.StatusUnprocessableEntity, id, text, c.language.Problem(reason(err)))
		}
		return err
	}
	c.redirect(Root + "proposals?done=declined")
	return nil
}
