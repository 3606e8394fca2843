package desk

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/web/deskpage"
)

// How many namespaces the pages show. A user may have a role in thousands of them: no page reads
// more than it shows, and counts names only of what it shows.
const (
	homeSpaces = 10
	maxChoices = 50 // of a select; where there are more, the prefix is typed
	maxNeeds   = 20 // namespaces of each kind that the first page looks into
)

// spaceURL returns the address of a page about a namespace.
func spaceURL(page string, key stele.NamespaceKey) string {
	return Root + page + "?namespace=" + url.QueryEscape(key.String())
}

// space returns a namespace as a list shows it, with the number of its names.
func (c *call) space(ns registrar.FoundNamespace) (deskpage.Space, error) {
	count, err := c.h.o.Store.Count(c.ctx, ns.Key())
	s := deskpage.Space{Key: ns.Key().String(), Title: ns.Title, Scheme: ns.Scheme, Role: ns.Role, Names: count,
		URL: spaceURL("namespace", ns.Key()), NamesURL: spaceURL("names", ns.Key())}
	if ns.Role.Includes(stele.RoleEditor) && ns.Delegate == "" && !ns.IsSealed() && !ns.IsRead() && !ns.IsSilent() {
		s.NewURL = spaceURL("new", ns.Key())
	}
	if c.h.o.Usage != nil && ns.Role.Includes(stele.RoleReader) {
		s.UsageURL = spaceURL("usage", ns.Key())
	}
	return s, err
}

// choices returns the namespaces of the user as choices of a form, if they are few enough for a
// list; with write, those in which the user may make names.
func (c *call) choices(chosen string, write bool) (v deskpage.Choice, err error) {
	q := registrar.NamespaceQuery{Limit: maxChoices}
	if write {
		q.Role, q.Match = stele.RoleEditor, func(ns *stele.Namespace) bool {
			return ns.Delegate == "" && !ns.IsSealed() && !ns.IsRead() && !ns.IsSilent()
		}
	}
	list, more, err := c.h.o.Registrar.FindNamespaces(c.ctx, q)
	v.Many, v.Chosen = more, chosen
	for _, ns := range list {
		text := ns.Key().String()
		if ns.Title != "" {
			text = ns.Title + " (" + text + ")"
		}
		v.Options = append(v.Options, deskpage.Option{Value: ns.Key().String(), Text: text, Chosen: ns.Key().String() == chosen})
	}
	return v, err
}

// home shows the first page.
func (c *call) home() error {
	v := &deskpage.Home{Frame: c.frame("nav.home", "home")}
	list, more, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Limit: homeSpaces})
	if err != nil {
		return err
	}
	v.More = more
	for _, ns := range list {
		s, err := c.space(ns)
		if err != nil {
			return err
		}
		v.Names += s.Names
		v.Namespaces = append(v.Namespaces, s)
	}
	writable, err := c.choices("", true)
	if err != nil {
		return err
	}
	if len(writable.Options) > 0 {
		v.Form = &writable
	}
	if v.Needs, err = c.needs(); err != nil {
		return err
	}
	if c.h.o.Find != nil {
		page, err := c.h.o.Find(c.ctx, search.Query{Limit: homeRows})
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			row := c.row(rec)
			if row.What, err = c.lastChange(rec); err != nil {
				return err
			}
			v.Changes = append(v.Changes, row)
		}
	}
	return c.show(http.StatusOK, "home", v)
}

// longReserved is how long a name may be reserved before a curator should look at it.
const longReserved = 90 * 24 * time.Hour

// needs returns what the user should look at. It reads little: no other server is asked.
func (c *call) needs() (list []deskpage.Need, err error) {
	if c.h.o.Find != nil {
		reserved, err := c.h.o.Find(c.ctx, search.Query{State: stele.Reserved, ModifiedBefore: c.h.o.Now().Add(-longReserved), Limit: homeRows})
		if err != nil {
			return nil, err
		}
		if n := len(reserved.Records); n > 0 {
			key := "need.reserved"
			if reserved.Next != 0 {
				key = "need.reserved-least"
			}
			list = append(list, deskpage.Need{Text: c.language.Text(key, "count", n), Action: c.language.Text("need.look"),
				URL: Root + "names?state=reserved&until=" + c.h.o.Now().Add(-longReserved).UTC().Format(time.DateOnly)})
		}
	}
	if list, err = c.needsDecision(list); err != nil {
		return nil, err
	}
	given, err := c.mailNeeds()
	if err != nil {
		return nil, err
	}
	list = append(list, given...)
	broken, err := c.linkNeeds()
	if err != nil {
		return nil, err
	}
	list = append(list, broken...)
	if c.h.o.Zones != nil {
		zoned, _, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Role: stele.RoleOwner, Limit: maxNeeds,
			Match: func(ns *stele.Namespace) bool { return ns.Publication.Zone != "" }})
		if err != nil {
			return nil, err
		}
		for _, ns := range zoned {
			more, err := c.keyNeeds(ns.Namespace)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	bounded, _, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Role: stele.RoleEditor, Limit: maxNeeds,
		Match: func(ns *stele.Namespace) bool { return ns.Quota > 0 }})
	if err != nil {
		return nil, err
	}
	for _, ns := range bounded {
		count, err := c.h.o.Store.Count(c.ctx, ns.Key())
		if err != nil {
			return nil, err
		}
		if count >= ns.Quota-ns.Quota/10 {
			list = append(list, deskpage.Need{Text: c.language.Text("need.quota", "namespace", ns.Key().String(), "names", count, "quota", ns.Quota),
				Action: c.language.Text("need.look-at-it"), URL: spaceURL("namespace", ns.Key())})
		}
	}
	return list, nil
}

// namespaces lists the namespaces of the user, a page at a time.
func (c *call) namespaces() error {
	values := c.r.URL.Query()
	text := strings.TrimSpace(values.Get("text"))
	q := registrar.NamespaceQuery{Text: text, Limit: pageRows}
	q.After.Scheme, q.After.Prefix, _ = strings.Cut(values.Get("after"), " ")
	list, more, err := c.h.o.Registrar.FindNamespaces(c.ctx, q)
	if err != nil {
		return err
	}
	v := &deskpage.Namespaces{Frame: c.frame("nav.namespaces", "namespaces"), Text: text, Asked: len(values) > 0, MayAdd: c.who.Admin}
	if !v.MayAdd {
		own, _, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Role: stele.RoleOwner, Limit: 1})
		if err != nil {
			return err
		}
		v.MayAdd = len(own) > 0
	}
	for _, ns := range list {
		s, err := c.space(ns)
		if err != nil {
			return err
		}
		v.List = append(v.List, s)
	}
	if more {
		last := list[len(list)-1].Key()
		v.Next = Root + "namespaces?" + url.Values{"text": {text}, "after": {last.Scheme + " " + last.Prefix}}.Encode()
	}
	v.Same = []deskpage.Same{c.sameCommand("ns", "ls"), c.sameRead("namespaces", nil)}
	return c.show(http.StatusOK, "namespaces", v)
}
