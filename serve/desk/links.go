package desk

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"iter"
	"math"
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

	// Numbers is Overview without the first findings and without counting what waits for its first check, which costs less.
	Numbers(ctx context.Context, prefix stele.NamespaceKey, most int) (*apijson.LinkOverview, error)

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
	homeFound  = 20_000
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
		v.Waiting, v.WaitingMore = o.Waiting, o.WaitingMore
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
			row, err := c.listedLink(v, &o.First[kind][i])
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
		row, err := c.listedLink(v, &f)
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

// listedLink returns a finding as a list shows it.
func (c *call) listedLink(v *deskpage.Links, f *apijson.LinkFinding) (row deskpage.LinkRow, err error) {
	id, err := stele.NewID(f.Scheme, f.ID)
	if err != nil {
		return row, err
	}
	rec, err := c.h.o.Registrar.Get(c.ctx, id)
	if err != nil {
		return row, err
	}
	row = c.linkRow(rec, f, v.Frame, v.MayEdit)
	row.Title, row.URL = rec.Metadata[stele.What], recordURL(id)
	return row, nil
}

// linkRow returns a finding about a target of a record. A user who may edit the record is offered what can be done.
func (c *call) linkRow(rec *stele.Record, f *apijson.LinkFinding, on deskpage.Frame, mayEdit bool) deskpage.LinkRow {
	row := deskpage.LinkRow{ID: f.ID, Target: f.URL, Number: f.Target, Seen: linkwords.Seen(c.language, f), Facts: linkwords.Facts(c.language, f), Checked: f.Checked, Now: on.Now, Back: on.Here, Copy: f.Copy, Answer: f.Answer}
	if f.State == "moved" {
		row.New = f.Final
	}
	if !mayEdit {
		return row
	}
	row.Look, row.Says = true, row.New == ""
	row.Edit = linkwords.Form(f)
	if kind := f.Kind(); kind == "broken" || kind == "gone" {
		row.Add = f.Copy != ""
		if len(rec.Targets) == 1 {
			row.Withdraw = Root + "withdraw?id=" + url.QueryEscape(f.ID)
		}
	}
	return row
}

// knownLinks returns what is known of the targets of a record; nothing to a user who may not see that.
func (c *call) knownLinks(id stele.ID) ([]apijson.LinkFinding, error) {
	if c.h.o.Links == nil {
		return nil, nil
	}
	list, err := c.h.o.Links.Show(c.ctx, id)
	if kind := stele.KindOf(err); err != nil && (kind == stele.Forbidden || kind == stele.Unauthenticated) {
		return nil, nil
	}
	return list, err
}

// linkCard says on the page of a record whether its targets work. A page whose form has what is not saved yet has no buttons there: they
// lead to the page anew, and what was typed would be lost.
func (c *call) linkCard(rec *stele.Record, v *deskpage.Edit, unsaved bool) error {
	list, err := c.knownLinks(rec.ID)
	if err != nil {
		return err
	}
	if len(list) < webTargets(rec) {
		v.OnlyFirst = len(list)
	}
	for i := range list {
		f := &list[i]
		row := c.linkRow(rec, f, v.Frame, v.MayWrite && !unsaved)
		row.Back, row.KindText, row.Edit = recordURL(rec.ID), linkwords.Kind(c.language, f.Kind()), "" // the form is on the page
		switch f.State {
		case "unchecked":
			row.Seen, row.Says = "", false
		case "ok":
			row.Says = f.Drift != ""
		}
		if row.Look && (row.New != "" || row.Add) {
			row.Edit = linkwords.Form(f)
		}
		v.Links = append(v.Links, row)
	}
	return nil
}

// webTargets returns how many targets of a record are of a protocol that can be checked.
func webTargets(rec *stele.Record) (n int) {
	for _, t := range rec.Targets {
		switch t.Protocol() {
		case "http", "https", "ftp":
			n++
		}
	}
	return n
}

// fillIn writes into the form of a record what was found out about a target, if the address of the page takes the number of the target: the address to which it
// has moved, or its archived copy as a further target after all others. It returns the key of what the page says of that; "" if nothing was filled in.
func (c *call) fillIn(rec *stele.Record, f *form) (said string, err error) {
	values := c.r.URL.Query()
	moved, copied := values.Get("take"), values.Get("copy")
	n, err := strconv.Atoi(cmp.Or(moved, copied))
	if err != nil {
		return "", nil
	}
	list, err := c.knownLinks(rec.ID)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(list, func(found apijson.LinkFinding) bool { return found.Target == n })
	if at < 0 || n >= len(f.targets) || f.targets[n].url != list[at].URL {
		return "", nil
	}
	found := &list[at]
	switch {
	case moved != "" && found.State == "moved" && found.Final != "":
		f.targets[n].url = found.Final
		return "links.taken", nil
	case moved == "" && found.IsBroken() && found.Copy != "" && f.addCopy(found.Copy):
		return "links.copy-added", nil
	}
	return "", nil
}

// copyStep is how much higher the order of an archived copy is than that of all other targets.
const copyStep = 100

// addCopy adds an archived copy as the last target of a form. It reports whether it did: not if it is there, or there is no room.
func (f *form) addCopy(archived string) bool {
	last := 0
	for _, t := range f.targets {
		if t.url == archived {
			return false
		}
		if order, err := strconv.Atoi(t.order); err == nil {
			last = max(last, order)
		}
	}
	if len(f.targets) >= stele.MaxTargets {
		return false
	}
	f.targets = append(f.targets, targetForm{url: archived, service: string(stele.N2L), order: strconv.Itoa(min(last+copyStep, math.MaxUint16)), preference: strconv.Itoa(stele.DefaultPreference)})
	return true
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
		c.h.linkCounts.forget(c.who.Name)
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
		n, err := c.countBroken(ns.Key())
		if err != nil {
			return nil, err
		}
		name := ns.Title
		if name == "" {
			name = ns.Key().String()
		}
		add := func(key, least string, count int) {
			if n.partial {
				key = least
			}
			if count > 0 {
				list = append(list, deskpage.Need{Text: c.language.Text(key, "count", count, "namespace", name), Action: c.language.Text("need.look"), URL: linksPath(ns.Key(), "links")})
			}
		}
		add("need.dead-hosts", "need.dead-hosts-least", n.hosts)
		add("need.broken", "need.broken-least", n.names)
	}
	return list, nil
}
