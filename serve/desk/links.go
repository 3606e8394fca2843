package desk

import (
	"context"
	"encoding/csv"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/linkwords"
)

// Links checks where names lead. It judges what the user in the context may do.
type Links interface {
	// Overview counts findings about names that begin with a prefix, at most so many, 0 for the usual limit, and has the first ones of each kind.
	Overview(ctx context.Context, prefix stele.NamespaceKey, first, most int) (*apijson.LinkOverview, error)

	// FindingsOf yields findings that a filter describes, after a place: a name, a tab, and the number of a target.
	FindingsOf(ctx context.Context, prefix stele.NamespaceKey, only apijson.LinkFilter, after string) iter.Seq2[apijson.LinkFinding, error]

	// Show returns what is known of the targets of a name.
	Show(ctx context.Context, id stele.ID) ([]apijson.LinkFinding, error)

	// Ask has names checked before all others.
	Ask(ctx context.Context, ids ...stele.ID) error

	// Look keeps what a person saw who looked at a target; answer is that of the finding.
	Look(ctx context.Context, id stele.ID, target int, works bool, answer string) error
}

// How many findings the page of a namespace shows of each kind, and how many the first page counts.
const (
	groupRows  = 5
	movedHosts = 20
	homeFound  = 200
	listFound  = 20_000 // findings that a page of a list reads
	homeLinks  = 10     // namespaces
)

// linksPath returns the address of the page, with filters.
func linksPath(key stele.NamespaceKey, page string, pairs ...string) string {
	values := url.Values{"namespace": {key.String()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return Root + page + "?" + values.Encode()
}

// haveLinks fails if this desk has nothing that checks links.
func (c *call) haveLinks() error {
	if c.h.o.Links == nil {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	return nil
}

// linkSpace returns the namespace of a page about links, if the user has a role there.
func (c *call) linkSpace(values url.Values) (*stele.Namespace, stele.Role, error) {
	if err := c.haveLinks(); err != nil {
		return nil, "", err
	}
	ns, role, err := c.namespaceOf(values)
	if err == nil && !role.Includes(stele.RoleReader) {
		err = stele.Errorf("show links", stele.ID{}, stele.Forbidden, "links.not-allowed", "you may not do that with the checks of {namespace}; ask one of its owners", ns.Key())
	}
	return ns, role, err
}

// showLinks tells where the names of a namespace lead.
func (c *call) showLinks() error {
	ns, role, err := c.linkSpace(c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.linksPage(http.StatusOK, ns, role, nil)
}

// linksPage shows the page of a namespace, with the form of the settings as it was filled in; nil: as they are.
func (c *call) linksPage(status int, ns *stele.Namespace, role stele.Role, f *linkForm) error {
	key := ns.Key()
	settings, own, err := c.h.o.Registrar.LinkChecksHere(c.ctx, key)
	damaged := registrar.AreChecksDamaged(err)
	if err != nil && !damaged {
		return err
	}
	v := &deskpage.Links{Frame: c.frame("links.title", "namespaces"), Key: key.String(), Called: ns.Title, URL: spaceURL("namespace", key), Mine: linksPath(key, "links"),
		On: settings.On, MaySet: role.Includes(stele.RoleOwner), MayEdit: role.Includes(stele.RoleEditor)}
	if c.r.Method != http.MethodGet {
		v.Here = v.Mine
	}
	if !own && settings.Key() != key {
		v.From, v.FromURL = settings.Key().String(), linksPath(settings.Key(), "links")
	}
	if f == nil {
		f = linkFormOf(&settings)
		if !own {
			f = &linkForm{}
		}
	}
	f.fill(&v.Settings)
	v.Problems, v.Settings.Open = f.problems(), f.any() || damaged
	if damaged {
		v.Damaged = c.language.Text("links.damaged")
	}
	values := c.r.URL.Query()
	if c.r.Method == http.MethodGet {
		v.Kind, v.Host = values.Get("kind"), strings.ToLower(strings.TrimSpace(values.Get("host")))
	}
	v.Filtered = v.Kind != "" || v.Host != ""
	after := values.Get("after")
	if !v.Filtered || after == "" { // the pages after the first one have the list only
		if err := c.countLinks(v, key); err != nil {
			return err
		}
	}
	if v.Filtered {
		if err := c.listLinks(v, key, after); err != nil {
			return err
		}
	}
	v.Same = c.sameLinks(v, key)
	return c.show(status, "links", v)
}

// sameLinks returns the commands and the requests that do what the page does.
func (c *call) sameLinks(v *deskpage.Links, key stele.NamespaceKey) []deskpage.Same {
	command := "stele links report " + shellWord(key.String())
	if v.MaySet && !v.On {
		command = "stele links set " + shellWord(key.String()) + " --on"
	}
	return []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: command},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" ` + shellWord(c.base()+"/api/v1/linkfindings?prefix="+url.QueryEscape(key.String()))},
	}
}

// countLinks shows the numbers, whole hosts, and the first findings of each kind.
func (c *call) countLinks(v *deskpage.Links, key stele.NamespaceKey) error {
	o, err := c.h.o.Links.Overview(c.ctx, key, groupRows, 0)
	if err != nil {
		return err
	}
	if v.Names, err = c.h.o.Store.Count(c.ctx, key); err != nil {
		return err
	}
	if v.On {
		v.Waiting = o.Waiting
	}
	v.Partial = o.Partial
	if v.Names > 0 {
		v.Done = int(100 * (v.Names - min(v.Names, uint64(v.Waiting))) / v.Names)
	}
	for _, kind := range append(linkwords.Kinds(), apijson.LinkLookYourself) {
		n := o.Counts[kind]
		if n == 0 {
			continue
		}
		v.Kinds = append(v.Kinds, deskpage.LinkKind{Kind: kind, Text: linkwords.Kind(c.language, kind), Count: n, URL: linksPath(key, "links", "kind", kind), Shown: v.Kind == kind})
		if v.Filtered || kind == "blocked" || kind == "failing" || kind == "excluded" || kind == apijson.LinkLookYourself {
			continue // these are a number with a link
		}
		g := c.linkGroup(kind)
		if g.Count = n; n > len(o.First[kind]) {
			g.All = linksPath(key, "links", "kind", kind)
		}
		for i := range o.First[kind] {
			row, err := c.linkRow(v, &o.First[kind][i])
			if err != nil {
				return err
			}
			g.Rows = append(g.Rows, row)
		}
		v.Groups = append(v.Groups, g)
	}
	if v.Filtered {
		return nil
	}
	for _, m := range o.Moved {
		row := deskpage.LinkHost{Host: m.Host, Count: m.Count, URL: linksPath(key, "links", "kind", "moved", "host", m.Host)}
		if v.MayEdit {
			row.Accept = linksPath(key, "links/accept", "host", m.Host)
		}
		v.Moved = append(v.Moved, row)
	}
	slices.SortStableFunc(v.Moved, func(a, b deskpage.LinkHost) int { return b.Count - a.Count })
	v.Moved = v.Moved[:min(len(v.Moved), movedHosts)]
	for _, h := range o.Hosts {
		row := deskpage.LinkHost{Host: h.Host, Count: h.Count, Names: h.Names, URL: linksPath(key, "links", "host", h.Host)}
		if h.Names > 0 {
			row.Share = c.language.Number(float64(h.Share)/10) + "%"
			v.Sampled = append(v.Sampled, row)
		}
		if !h.Down.IsZero() {
			row.Since, row.Seen = h.First, linkwords.Cause(c.language, h.Cause)
			v.Dead = append(v.Dead, row)
		}
	}
	return nil
}

// linkGroup returns the heading of findings of a kind.
func (c *call) linkGroup(kind string) deskpage.LinkGroup {
	g := deskpage.LinkGroup{Kind: kind, Title: c.language.Text("linktitle." + kind)}
	if about := "linkabout." + kind; c.language.Has(about) {
		g.Text = c.language.Text(about)
	}
	return g
}

// listLinks shows the findings of a filter, a page of them.
func (c *call) listLinks(v *deskpage.Links, key stele.NamespaceKey, after string) error {
	g := deskpage.LinkGroup{Kind: "found", Title: v.Host}
	if c.isLinkKind(v.Kind) {
		g = c.linkGroup(v.Kind)
		if v.Host != "" {
			g.Title += ": " + v.Host
		}
	} else if v.Kind != "" {
		return stele.Errorf("show links", stele.ID{}, stele.Invalid, "desk.link-kind-unknown", `"{kind}" is not a kind of findings`, v.Kind)
	}
	filter := apijson.LinkFilter{Kind: v.Kind, Host: v.Host, Most: listFound}
	last := ""
	next := func() { v.Next = linksPath(key, "links", "kind", v.Kind, "host", v.Host, "after", last) }
	for f, err := range c.h.o.Links.FindingsOf(c.ctx, key, filter, after) {
		if err != nil && !errors.Is(err, apijson.ErrLinksCut) {
			return err
		}
		if len(g.Rows) == pageRows {
			next()
			break
		}
		last = f.ID + "\t" + strconv.Itoa(f.Target)
		if err != nil { // the rest is on the next page
			next()
			break
		}
		row, err := c.linkRow(v, &f)
		if err != nil {
			return err
		}
		if v.Kind == "" {
			row.KindText = linkwords.Kind(c.language, f.Kind())
		}
		g.Rows = append(g.Rows, row)
	}
	if len(g.Rows) > 0 {
		v.CSV = linksPath(key, "links.csv", "kind", v.Kind, "host", v.Host)
	}
	v.Groups = append(v.Groups, g)
	return nil
}

func (c *call) isLinkKind(kind string) bool {
	return kind == apijson.LinkLookYourself || slices.Contains(linkwords.Kinds(), kind)
}

// linkRow returns a finding as a list shows it.
func (c *call) linkRow(v *deskpage.Links, f *apijson.LinkFinding) (row deskpage.LinkRow, err error) {
	row = deskpage.LinkRow{ID: f.ID, Target: f.URL, Number: f.Target, Seen: linkwords.Seen(c.language, f), Facts: linkwords.Facts(c.language, f), Checked: f.Checked, Now: v.Now, Back: v.Here, Copy: f.Copy, Answer: f.Answer}
	id, err := stele.NewID(f.Scheme, f.ID)
	if err != nil {
		return row, err
	}
	rec, err := c.h.o.Registrar.Get(c.ctx, id)
	if err != nil {
		return row, err
	}
	row.Title, row.URL = rec.Metadata[stele.What], recordURL(id)
	if f.State == "moved" {
		row.New = f.Final
	}
	if !v.MayEdit {
		return row, nil
	}
	row.Look = true
	row.Edit = row.URL
	if row.New != "" {
		row.Edit += "&take=" + strconv.Itoa(f.Target)
	}
	row.Edit += "#target-" + strconv.Itoa(f.Target) + "-url"
	if kind := f.Kind(); (kind == "broken" || kind == "gone") && len(rec.Targets) == 1 {
		row.Withdraw = Root + "withdraw?id=" + url.QueryEscape(f.ID)
	}
	return row, nil
}

// takeMoved writes the address to which a target has moved into the form of its record, if the address takes a number of a target. It
// reports whether it did.
func (c *call) takeMoved(rec *stele.Record, f *form) (bool, error) {
	n, err := strconv.Atoi(c.r.URL.Query().Get("take"))
	if err != nil || c.h.o.Links == nil {
		return false, nil
	}
	list, err := c.h.o.Links.Show(c.ctx, rec.ID)
	if kind := stele.KindOf(err); err != nil && (kind == stele.Forbidden || kind == stele.Unauthenticated) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for i := range list {
		if at := list[i].Target; at == n && list[i].State == "moved" && list[i].Final != "" && at < len(f.targets) && f.targets[at].url == list[i].URL {
			f.targets[at].url = list[i].Final
			return true, nil
		}
	}
	return false, nil
}

// lookAtLink keeps what the user saw at a target, or has it checked before others.
func (c *call) lookAtLink() error {
	if err := c.haveLinks(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	id, err := c.identifier(c.r.PostForm)
	if err != nil {
		return err
	}
	done := "link-looked"
	switch do := c.r.PostForm.Get("do"); do {
	case "works", "gone":
		number, err := strconv.Atoi(c.r.PostForm.Get("target"))
		if err != nil {
			number = -1 // which no record has
		}
		if err := c.h.o.Links.Look(c.ctx, id, number, do == "works", c.r.PostForm.Get("answer")); err != nil {
			return err
		}
	default:
		if err := c.h.o.Links.Ask(c.ctx, id); err != nil {
			return err
		}
		done = "link-asked"
	}
	back, err := url.Parse(inside(c.r.PostForm.Get("back")))
	if err != nil {
		back = &url.URL{Path: Root}
	}
	values := back.Query()
	values.Set("done", done)
	c.redirect(back.Path + "?" + values.Encode())
	return nil
}

// linksCSV sends findings as a file. If it fails on its way, the connection is cut off.
func (c *call) linksCSV() error {
	values := c.r.URL.Query()
	ns, _, err := c.linkSpace(values)
	if err != nil {
		return err
	}
	filter := apijson.LinkFilter{Kind: values.Get("kind"), Host: strings.ToLower(strings.TrimSpace(values.Get("host")))}
	next, stop := iter.Pull2(c.h.o.Links.FindingsOf(c.ctx, ns.Key(), filter, ""))
	defer stop()
	f, err, more := next()
	if err != nil {
		return err
	}
	head := c.w.Header()
	head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	head.Set("Content-Disposition", `attachment; filename="links.csv"`)
	rc := http.NewResponseController(c.w)
	w := csv.NewWriter(c.w)
	_ = w.Write([]string{"id", "target", "url", "kind", "state", "cause", "status", "seen", "final", "since", "fails", "checked", "good"}) // Error tells
	for n := 0; more; n++ {
		if n%pageRows == 0 && c.h.o.Patience > 0 {
			_ = rc.SetWriteDeadline(c.h.o.Now().Add(c.h.o.Patience))
		}
		cells := []string{f.ID, strconv.Itoa(f.Target + 1), f.URL, f.Kind(), f.State, f.Cause, strconv.Itoa(f.Status), linkwords.Seen(c.language, &f), f.Final, stamp(f.Since), strconv.Itoa(f.Fails), stamp(f.Checked), stamp(f.Good)}
		for i := range cells {
			cells[i] = bulk.Neutralise(cells[i])
		}
		_ = w.Write(cells)
		if n%pageRows == 0 {
			if w.Flush(); w.Error() != nil {
				return nil // the client has left
			}
		}
		if f, err, more = next(); err != nil {
			if c.r.Context().Err() == nil {
				c.h.o.Log.ErrorContext(c.ctx, "a file of links could not be sent whole", "error", err.Error())
			}
			_ = rc.SetWriteDeadline(time.Unix(1, 0)) // the end of the body can't be written then
			return nil
		}
	}
	w.Flush()
	return nil
}

// stamp returns a time for a program; "" if there is none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// linkNeeds tells of names and hosts of the user's namespaces that lead nowhere.
func (c *call) linkNeeds() (list []deskpage.Need, err error) {
	if c.h.o.Links == nil {
		return nil, nil
	}
	spaces, err := c.h.o.Registrar.CheckedNamespaces(c.ctx, stele.RoleEditor, homeLinks)
	if err != nil {
		return nil, err
	}
	for _, ns := range spaces {
		o, err := c.h.o.Links.Overview(c.ctx, ns.Key(), 0, homeFound)
		if err != nil {
			return nil, err
		}
		name := ns.Title
		if name == "" {
			name = ns.Key().String()
		}
		add := func(key string, n int, url string) {
			if n > 0 {
				list = append(list, deskpage.Need{Text: c.language.Text(key, "count", n, "namespace", name), Action: c.language.Text("need.look"), URL: url})
			}
		}
		dead := 0
		for _, h := range o.Hosts {
			if !h.Down.IsZero() {
				dead++
			}
		}
		add("need.dead-hosts", dead, linksPath(ns.Key(), "links"))
		add("need.broken", o.Counts["broken"]+o.Counts["gone"], linksPath(ns.Key(), "links"))
	}
	return list, nil
}
