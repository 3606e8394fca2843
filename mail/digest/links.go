package digest

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/linkwords"
)

// Limits of what is told of links.
const (
	maxLinkSpaces = 50  // namespaces of a user
	maxLinkItems  = 100 // findings of each kind in a namespace
	maxBlocked    = 3   // lines about what can't be checked
)

// LinkChecker tells what was found out about where names lead, as far as the user in the context may see it.
type LinkChecker interface {
	Overview(ctx context.Context, prefix stele.NamespaceKey, first, most int) (*apijson.LinkOverview, error)
}

// Links tells owners of names that lead nowhere or elsewhere: whole hosts first, then what is broken, gone, moved or has other content. What
// can't be checked is a number, which is never news.
func Links(r *registrar.Registrar, checker LinkChecker) Source {
	return func(ctx context.Context, to *Reader) (s Section, err error) {
		s = Section{Title: to.Language.Text("digest.links"), More: desk + "namespaces"}
		spaces, err := r.CheckedNamespaces(ctx, stele.RoleOwner, maxLinkSpaces)
		if err != nil {
			return s, err
		}
		var hosts, broken, gone, moved, drifted datedItems
		var blocked []countedItem
		beyond := 0 // findings that the overviews count and do not have
		for _, ns := range spaces {
			o, err := checker.Overview(ctx, ns.Key(), maxLinkItems, 0)
			if err != nil {
				return s, err
			}
			l := &linkItems{to: to, key: ns.Key().String()}
			for _, kind := range []string{"broken", "gone", apijson.LinkDrifted} {
				beyond += max(o.Counts[kind]-len(o.First[kind]), 0)
			}
			hosts, moved = append(hosts, l.hosts(o.Hosts)...), append(moved, l.moved(o.Moved)...)
			broken, gone = append(broken, l.findings("broken", o)...), append(gone, l.findings("gone", o)...)
			drifted = append(drifted, l.findings(apijson.LinkDrifted, o)...)
			if n := o.Counts["blocked"]; n > 0 {
				blocked = append(blocked, countedItem{n, Item{Text: to.Language.Text("digest.blocked", "count", n, "namespace", l.key), Path: l.path("kind", "blocked"), Quiet: true}})
			}
		}
		if len(spaces) == 1 {
			s.More = desk + "links?namespace=" + url.QueryEscape(spaces[0].Key().String())
		}
		for _, list := range []datedItems{hosts, broken, gone, moved, drifted} {
			s.Items = append(s.Items, list.newestFirst()...)
		}
		if len(s.Items) == 0 {
			return s, nil
		}
		slices.SortStableFunc(blocked, func(a, b countedItem) int { return b.count - a.count })
		blocked = blocked[:min(len(blocked), maxBlocked)]
		s.Total = len(s.Items) + len(blocked) + beyond
		for i, one := range blocked { // the numbers are always shown
			s.Items = slices.Insert(s.Items, min(maxItems-len(blocked)+i, len(s.Items)), one.Item)
		}
		return s, nil
	}
}

// countedItem is an item about a number of targets.
type countedItem struct {
	count int
	Item
}

// datedItems are items about what is so since a time.
type datedItems []datedItem

// datedItem is one of them.
type datedItem struct {
	at time.Time
	Item
}

func (d *datedItems) add(at time.Time, item Item) {
	*d = append(*d, datedItem{at, item})
}

// newestFirst returns the items in the order in which they are told.
func (d datedItems) newestFirst() (items []Item) {
	slices.SortStableFunc(d, func(a, b datedItem) int { return b.at.Compare(a.at) })
	for _, one := range d {
		items = append(items, one.Item)
	}
	return items
}

// linkItems makes items of findings in a namespace.
type linkItems struct {
	to  *Reader
	key string
}

func (l *linkItems) path(pairs ...string) string {
	values := url.Values{"namespace": {l.key}}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return desk + "links?" + values.Encode()
}

func (l *linkItems) hosts(list []*apijson.LinkHost) (items datedItems) {
	for _, h := range list {
		if !h.Down.IsZero() {
			items.add(h.Down, Item{Text: l.to.Language.Text("digest.dead-host", "host", h.Host, "count", h.Count),
				Note: linkwords.Cause(l.to.Language, h.Cause) + " · " + l.to.Language.Text("linkfact.since", "day", h.First), Path: l.path("host", h.Host), Key: "links host " + l.key + " " + h.Host + " " + stamp(h.Down)})
		}
	}
	return items
}

// moved has an item for each host. Its key is that of the host and the month in which a name of it was found last: where names of a host move day after day it is
// new once a month, until all are accepted.
func (l *linkItems) moved(list []apijson.LinkMoved) (items datedItems) {
	for _, m := range list {
		items.add(m.Last, Item{Text: l.to.Language.Text("digest.moved", "count", m.Count, "host", m.Host), Path: l.path("kind", "moved", "host", m.Host), Key: "links moved " + l.key + " " + m.Host + " " + m.Last.UTC().Format("2006-01")})
	}
	return items
}

func (l *linkItems) findings(kind string, o *apijson.LinkOverview) (items datedItems) {
	for i := range o.First[kind] {
		f := &o.First[kind][i]
		number := strconv.Itoa(f.Target)
		items.add(f.Told(), Item{Text: l.to.Language.Text("digest.link", "name", f.ID, "kind", linkwords.Kind(l.to.Language, kind)), Note: linkwords.Sentence(l.to.Language, f) + " · " + f.URL,
			Path: linkwords.Form(f), Key: "links " + kind + " " + f.ID + " " + number + " " + f.URL + " " + stamp(f.Told())})
	}
	return items
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
