package digest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
)

// desk is the path below which the pages are to which items lead.
const desk = "/.desk/"

// Proposals tells of proposals that wait for the user's decision.
func Proposals(r *registrar.Registrar) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.proposals"), More: desk + "proposals"}
		for p, err := range r.Proposals(ctx) {
			if err != nil {
				return s, err
			}
			if p.By != to.User && p.IsOpen() {
				s.Items = append(s.Items, Item{Text: title(p), Note: to.Language.Text("digest.proposed", "user", p.By, "namespace", p.Namespace.String(), "day", p.At),
					Path: proposalPath(p.ID), Key: "proposal " + p.ID})
			}
		}
		return s, nil
	}
}

func proposalPath(id string) string { return desk + "proposal?id=" + url.QueryEscape(id) }

// title returns what a proposal is about.
func title(p *registrar.Proposal) string {
	what := p.Record.Metadata[stele.What]
	switch {
	case !p.Record.ID.IsValid():
		return cmp.Or(what, p.Namespace.String())
	case what == "":
		return p.Record.ID.String()
	}
	return fmt.Sprintf("%s (%s)", what, p.Record.ID)
}

// Decisions tells of the user's own proposals that were approved or declined.
func Decisions(r *registrar.Registrar, schemes *stele.Schemes) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.decisions"), More: desk + "proposals"}
		for p, err := range r.Proposals(ctx) {
			if err != nil {
				return s, err
			}
			if p.By == to.User && !p.IsOpen() && to.isIn(p.Declined) {
				s.Items = append(s.Items, Item{Text: title(p), Note: to.Language.Text("digest.declined", "user", p.Decliner, "reason", p.Reason), Path: proposalPath(p.ID)})
			}
		}
		a, err := to.activity()
		if err != nil {
			return s, err
		}
		for _, one := range a.Approvals {
			id, err := schemes.Parse(one.Record)
			if one.Of != to.User || one.Record == "" || err != nil {
				continue
			}
			rec, err := r.Get(ctx, id)
			switch kind := stele.KindOf(err); {
			case err == nil:
			case kind == stele.NotFound || kind == stele.Forbidden || kind == stele.Gone: // the user may not see it any more
				continue
			default:
				return s, err
			}
			text := rec.ID.String()
			if what := rec.Metadata[stele.What]; what != "" {
				text = fmt.Sprintf("%s (%s)", what, text)
			}
			s.Items = append(s.Items, Item{Text: text, Note: to.Language.Text("digest.approved", "user", one.By), Path: desk + "record?id=" + url.QueryEscape(rec.ID.String())})
		}
		return s, nil
	}
}

// Jobs tells of the user's bulk changes that failed or refused rows.
func Jobs(b *job.Board) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.jobs"), More: desk + "jobs"}
		list, err := b.Jobs(ctx, false)
		for _, j := range list {
			if j.IsOpen() || !to.isIn(j.Ended) || j.State != job.Failed && j.Counts.Refused == 0 {
				continue
			}
			item := Item{Text: cmp.Or(j.Label, to.Language.Text("digest.job")), Path: desk + "jobs/" + j.ID, Note: to.Language.Text("digest.refused", "count", j.Counts.Refused)}
			if j.State == job.Failed {
				item.Note = to.Language.Text("digest.failed")
			}
			s.Items = append(s.Items, item)
		}
		return s, err
	}
}

// maxZones is how many zones of a user are looked at.
const maxZones = 100

// Zones tells of zones of the user's namespaces whose keys or name servers need a step. Keys returns those of a namespace's zone.
func Zones(r *registrar.Registrar, keys func(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error), now func() time.Time) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.zones"), More: desk + "namespaces"}
		list, _, err := r.FindNamespaces(ctx, registrar.NamespaceQuery{Role: stele.RoleOwner, Limit: maxZones, Match: func(ns *stele.Namespace) bool { return ns.Publication.Zone != "" }})
		if err != nil {
			return s, err
		}
		for _, ns := range list {
			zone, query := ns.Publication.Zone, "?namespace="+url.QueryEscape(ns.Key().String())
			if len(ns.Publication.Servers) == 0 {
				s.Items = append(s.Items, Item{Text: to.Language.Text("need.servers", "zone", zone), Path: desk + "zone" + query, Key: "servers of " + zone})
			}
			status, err := keys(ctx, ns.Key(), 0)
			if err != nil {
				return s, err
			}
			for i := range status.Steps {
				if step := &status.Steps[i]; !now().Before(step.From) {
					s.Items = append(s.Items, Item{Text: to.Language.Text("need.key-step", "zone", zone), Path: desk + "zone/keys" + query, Key: fmt.Sprintf("keys of %s: %s %s", zone, step.Key, step.To)})
					break
				}
			}
		}
		return s, nil
	}
}

// Changes tells how many records other users changed in namespaces that the user owns or edits.
func Changes(r *registrar.Registrar) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.changes"), More: desk + "names?since=" + to.From.UTC().Format(time.DateOnly)}
		a, err := to.activity()
		if err != nil {
			return s, err
		}
		for _, c := range a.Changes {
			role, err := r.RoleIn(ctx, c.Namespace)
			if err != nil {
				return s, err
			}
			if !role.Includes(stele.RoleEditor) {
				continue
			}
			count, names := others(c.By, to.User)
			if count == 0 {
				continue
			}
			s.Items = append(s.Items, Item{Text: to.Language.Text("digest.changed", "count", count, "namespace", c.Namespace.String()), Note: to.Language.Text("digest.by", "users", names),
				Path: desk + "names?" + url.Values{"namespace": {c.Namespace.String()}, "since": {to.From.UTC().Format(time.DateOnly)}}.Encode()})
		}
		return s, nil
	}
}

// shownUsers is how many users an item names.
const shownUsers = 5

// others returns how many records users except one changed, and who changed the most of them.
func others(by map[string]uint64, user string) (count uint64, names string) {
	users := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	users = slices.DeleteFunc(users, func(name string) bool { return name == user })
	for _, name := range users {
		count += by[name]
	}
	names = strings.Join(users[:min(len(users), shownUsers)], ", ")
	if len(users) > shownUsers {
		names += ", …"
	}
	return count, names
}

// isGone reports whether a user gets no mail any more: there is no such user, or the user is disabled.
func isGone(err error) bool { return errors.Is(err, stele.Unauthenticated) }

// actAs returns a context in which a user acts.
func actAs(ctx context.Context, d *auth.Directory, user string) (context.Context, error) {
	who, err := d.Principal(ctx, user)
	return auth.With(ctx, who), err
}
