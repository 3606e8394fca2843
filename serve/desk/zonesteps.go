package desk

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/web/deskpage"
)

// The states of a step until a zone is found in the DNS.
const (
	stepDone    = "done"
	stepToDo    = "todo"
	stepFailing = "failing"
	stepUnknown = "unknown"
)

// zoneSteps writes the steps until a zone is found, and what its owner hands to others, into the page.
func (c *call) zoneSteps(ns *stele.Namespace, v *deskpage.Zone) error {
	p := &ns.Publication
	add := func(name, state, key string, args ...any) {
		v.Steps = append(v.Steps, deskpage.ZoneStep{Title: c.language.Text("zonestep." + name), State: state, Word: c.language.Text("stepstate." + state), Text: c.language.Text(key, args...)})
	}
	add("zone", stepDone, "steptext.zone", "zone", p.Zone)
	switch n := len(p.Servers); n {
	case 0:
		add("servers", stepToDo, "steptext.no-servers")
	case 1:
		add("servers", stepDone, "steptext.one-server")
	default:
		add("servers", stepDone, "steptext.servers", "count", n)
	}
	var status *zonekey.Status
	var err error
	if v.MayWrite {
		if status, err = c.h.o.Zones.ZoneKeys(c.ctx, ns.Key(), 0); err != nil {
			return err
		}
		v.DS = dsOf(status)
		if v.ForParent, err = c.h.o.Zones.Parent(c.ctx, ns.Key()); err != nil {
			return err
		}
	}
	switch {
	case p.Signing == stele.NotSigned:
		add("keys", stepToDo, "steptext.not-signed")
	case p.HasUnsignedCopies():
		add("keys", stepFailing, "steptext.unsigned-copies")
	default:
		add("keys", stepDone, "steptext.signed", "mode", string(p.Signing))
	}
	if len(v.DS) > 0 {
		v.Sentence = c.language.Text("zone.sentence-ds", "zone", p.Zone)
	} else {
		v.Sentence = c.language.Text("zone.sentence", "zone", p.Zone)
	}
	one, ok := c.h.checks.get(p.Zone)
	if ok {
		v.CheckedAt = one.at
	}
	c.delegationStep(p, one, ok, add)
	c.answerStep(one, ok, add)
	if p.Signing != stele.NotSigned {
		c.trustStep(one, ok, add)
	}
	if len(p.Secondaries) > 0 {
		c.secondaryStep(one, ok, add)
	}
	return nil
}

type addStep func(name, state, key string, args ...any)

// delegationStep says whether the zone above leads to the zone.
func (c *call) delegationStep(p *stele.Publication, one checked, ok bool, add addStep) {
	var should []string
	for _, s := range p.Servers {
		should = append(should, strings.ToLower(s.Name))
	}
	slices.Sort(should)
	switch found := one.found; {
	case !ok:
		add("parent", stepUnknown, "steptext.not-checked")
	case found == nil || one.err != nil:
		add("parent", stepUnknown, "steptext.cannot-ask", "cause", c.language.Problem(reason(one.err)))
	case len(found.Names) == 0:
		add("parent", stepToDo, "steptext.not-delegated", "parent", found.Parent)
	case !slices.Equal(found.Names, should):
		add("parent", stepFailing, "steptext.other-servers", "parent", found.Parent, "servers", strings.Join(found.Names, ", "))
	default:
		add("parent", stepDone, "steptext.delegated", "parent", found.Parent)
	}
}

// answerStep says whether the servers of the zone answer.
func (c *call) answerStep(one checked, ok bool, add addStep) {
	switch {
	case !ok || one.found == nil:
		add("answers", stepUnknown, "steptext.not-checked")
		return
	case len(one.found.Servers) == 0:
		add("answers", stepToDo, "steptext.no-servers")
		return
	}
	for _, s := range one.found.Servers {
		at := s.Name
		if s.At.IsValid() {
			at += " (" + s.At.String() + ")"
		}
		if s.Err != nil {
			add("answers", stepFailing, "steptext.silent", "server", at, "cause", c.language.Problem(s.Err))
			return
		}
		if s.Late {
			add("answers", stepFailing, "steptext.late", "server", at)
			return
		}
	}
	add("answers", stepDone, "steptext.answers", "count", len(one.found.Servers))
}

// trustStep says whether the zone above vouches for the keys.
func (c *call) trustStep(one checked, ok bool, add addStep) {
	if !ok || one.found == nil || one.err != nil || len(one.found.Names) == 0 {
		add("ds", stepUnknown, "steptext.not-checked")
		return
	}
	switch t := &one.found.Trust; {
	case t.Err != nil:
		add("ds", stepUnknown, "steptext.cannot-ask", "cause", c.language.Problem(reason(t.Err)))
	case len(t.DS) == 0:
		add("ds", stepToDo, "steptext.no-ds", "parent", one.found.Parent)
	case !t.Fits:
		add("ds", stepFailing, "steptext.wrong-ds", "parent", one.found.Parent)
	case !t.IsWanted():
		add("ds", stepFailing, "steptext.other-ds", "parent", one.found.Parent)
	default:
		add("ds", stepDone, "steptext.ds", "parent", one.found.Parent)
	}
}

// secondaryStep says whether the secondaries have the zone as it is.
func (c *call) secondaryStep(one checked, ok bool, add addStep) {
	if !ok {
		add("secondaries", stepUnknown, "steptext.not-checked")
		return
	}
	for _, a := range one.secondaries {
		if a.State != stele.SecondarySame && a.State != stele.SecondaryUnasked {
			add("secondaries", stepFailing, "steptext.secondary", "server", a.At, "state", c.language.Text("secondary."+string(a.State)))
			return
		}
	}
	add("secondaries", stepDone, "steptext.secondaries", "count", len(one.secondaries))
}

// dsOf returns the DS records of a zone as registrars of domains ask for them.
func dsOf(status *zonekey.Status) (list []deskpage.DS) {
	for _, e := range status.DS {
		_, data, ok := strings.Cut(e.Record, " IN DS ")
		if f := strings.Fields(data); ok && len(f) == 4 {
			list = append(list, deskpage.DS{Line: e.Owner + " " + e.Record, Tag: f[0], Algorithm: f[1], Digest: f[2], Value: f[3]})
		}
	}
	return list
}
