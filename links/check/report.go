package check

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
)

// urgent is the value of the cell of a target that a user waits for.
const urgent = "now"

// Findings yields what is told about the targets of names that begin with a prefix, in the order of the names, to a caller who may
// list them. After is where to go on: the text of an identifier, a tab, and the number of a target.
func (c *Checker) Findings(ctx context.Context, prefix stele.NamespaceKey, after string) iter.Seq2[Finding, error] {
	return c.FindingsOf(ctx, prefix, apijson.LinkFilter{}, after)
}

// isSeen reports whether the caller may list the name of a finding and read its record, and the record still has the target.
func (c *Checker) isSeen(ctx context.Context, sight *registrar.Sight, f *Finding) bool {
	id, err := stele.NewID(f.Scheme, f.ID)
	if err != nil || !sight.Lists(id) {
		return false
	}
	rec, err := c.o.Registrar.Get(ctx, id)
	return err == nil && rec.ID == id && isOf(rec, f)
}

// isOf reports whether a finding is about a target that a record has now.
func isOf(rec *stele.Record, f *Finding) bool {
	return slices.ContainsFunc(targets(rec), func(t target) bool { return t.key == keyOf(rec.ID, f.Target) && t.url == f.URL })
}

// mayRead makes sure that the caller has a role where the names are.
func (c *Checker) mayRead(ctx context.Context, prefix stele.NamespaceKey) error {
	return c.may(ctx, prefix, stele.RoleReader)
}

func (c *Checker) may(ctx context.Context, prefix stele.NamespaceKey, least stele.Role) error {
	const op = "check links"
	if !auth.From(ctx).IsKnown() {
		return stele.Errorf(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	role, err := c.o.Registrar.RoleIn(ctx, prefix)
	if err != nil {
		return err
	}
	if !role.Includes(least) {
		return stele.Errorf(op, stele.ID{}, stele.Forbidden, "links.not-allowed", "you may not do that with the checks of {namespace}; ask one of its owners", prefix)
	}
	return nil
}

// Hosts returns the hosts that do not answer, and those of which only a sample is asked, as far as findings of names that begin
// with a prefix, or settings of a namespace, name them.
func (c *Checker) Hosts(ctx context.Context, prefix stele.NamespaceKey) (list []apijson.LinkHost, err error) {
	o, err := c.Overview(ctx, prefix, 0, 0)
	if err != nil {
		return nil, err
	}
	for _, h := range o.Hosts {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b apijson.LinkHost) int { return strings.Compare(a.Host, b.Host) })
	return list, nil
}

// Show returns what is known of the targets of a name, to a caller who may see it.
func (c *Checker) Show(ctx context.Context, id stele.ID) (list []Finding, err error) {
	rec, err := c.o.Registrar.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := c.mayRead(ctx, stele.NamespaceKey{Scheme: rec.ID.Scheme(), Prefix: rec.ID.String()}); err != nil {
		return nil, err
	}
	for _, t := range targets(rec) {
		s, _, err := c.status(ctx, t.key)
		if err != nil {
			return nil, err
		}
		if s.URL != links.Hash(t.url) {
			s = links.Status{}
		}
		value, err := c.o.Registrar.CheckCell(asServer(ctx), t.key.found())
		if err != nil {
			return nil, err
		}
		list = append(list, c.known(&t, &s, value))
	}
	return list, nil
}

// known returns what is known of a target; told is the value of the cell of its finding.
func (c *Checker) known(t *target, s *links.Status, told []byte) Finding {
	f := finding(t.key, t.url, s, nil)
	scheme := f.Scheme
	if isTold(s) && decode(c, t.key.found(), told, &f) {
		f.Scheme, f.Next = scheme, s.Next
	}
	c.complete(&f)
	return f
}

// complete adds to a finding what is not kept.
func (c *Checker) complete(f *Finding) {
	f.Look, f.Answer = c.isToLook(f), f.Sight()
}

// Ask has the targets of names checked now. An editor of each may; the names must exist.
func (c *Checker) Ask(ctx context.Context, ids ...stele.ID) error {
	var keys []key
	for _, id := range ids {
		rec, err := c.o.Registrar.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := c.may(ctx, stele.NamespaceKey{Scheme: rec.ID.Scheme(), Prefix: rec.ID.String()}, stele.RoleEditor); err != nil {
			return err
		}
		for _, t := range targets(rec) {
			keys = append(keys, t.key)
		}
	}
	for len(keys) > 0 {
		some := keys[:min(len(keys), atOnce)]
		keys = keys[len(some):]
		err := c.keep(ctx, nil, func(b *batch) error {
			for _, k := range some {
				if err := b.set(ctx, k.due(askedNow), []byte(urgent)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// clockSlack is how far the clock of a client may be ahead.
const clockSlack = 5 * time.Minute

// Check returns what is known of the targets of names, and has those checked that were checked before a time, or never if the
// time is zero. Waiting is how many these are.
func (c *Checker) Check(ctx context.Context, ids []stele.ID, since time.Time) (list []Finding, waiting int, err error) {
	var ask []stele.ID
	if since.Sub(c.now()) > clockSlack {
		return nil, 0, &stele.Error{Op: "check links", Kind: stele.Invalid, Err: stele.Problems{{Path: "since", Err: stele.Messagef("links.since-in-future", "{since} is in the future; give the time when you began to ask", since.UTC().Format(time.RFC3339))}}}
	}
	since = since.Truncate(time.Minute) // as times are kept
	for _, id := range ids {
		found, err := c.Show(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		old := 0
		for _, f := range found {
			if f.Checked.IsZero() || f.Checked.Before(since) {
				old++
			}
		}
		if old > 0 {
			waiting += old
			ask = append(ask, id)
		}
		list = append(list, found...)
	}
	return list, waiting, c.Ask(ctx, ask...)
}

// Look keeps what a person saw who looked at a target: that it works, or that it is gone. Answer is that of the finding at which the person looked: it is a
// Conflict if the target or what its server answers is another one by now. An editor may.
func (c *Checker) Look(ctx context.Context, id stele.ID, number int, works bool, answer string) error {
	rec, err := c.o.Registrar.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := c.may(ctx, stele.NamespaceKey{Scheme: rec.ID.Scheme(), Prefix: rec.ID.String()}, stele.RoleEditor); err != nil {
		return err
	}
	k := keyOf(rec.ID, number)
	t, ok, err := c.target(ctx, k)
	if err != nil {
		return err
	}
	missing := stele.Errorf("look at link", id, stele.NotFound, "links.target-unknown", "nothing is known of the target {number} of this name; it was changed, or not checked yet", number+1)
	if !ok {
		return missing
	}
	err = c.keepBy(ctx, nil, func(b *batch) error {
		s, value, err := b.status(ctx, k)
		if err != nil {
			return err
		}
		if value == nil || s.URL != links.Hash(t.url) {
			return errUnknown
		}
		before := s
		told, err := b.read(ctx, k.found())
		if err != nil {
			return err
		}
		f := c.known(&t, &s, told)
		switch { // who sends it again means the same
		case works && s.State == links.OK && s.Cause == links.LookedFine, !works && s.State == links.Gone && s.Cause == links.LookedGone:
			return nil
		case f.Answer != answer:
			return errAnother
		}
		final := f.Final
		if final == "" {
			final = t.url
		}
		if works {
			s.AcceptDrift()
			s.LookedFine(s.Cause, int(s.Code), final, k.hash(), c.now())
		} else {
			s.LookedGone(k.hash(), c.now())
		}
		s.Next = round(s.Next.Add(time.Minute - 1))
		return b.setStatus(ctx, &t, &before, &s, nil)
	}, func(changes []stele.CellChange) error { return c.o.Registrar.KeepLook(ctx, rec.ID, changes...) })
	switch {
	case errors.Is(err, errUnknown):
		return missing
	case errors.Is(err, errAnother):
		return &stele.Error{Op: "look at link", ID: id, Kind: stele.Conflict, Err: errAnother}
	}
	return err
}

var errAnother = stele.Messagef("links.answer-differs", "the target, or what its server answers, is not what you have seen; look again")

var errUnknown = stele.Messagef("links.target-not-checked", "the target was not checked yet")
