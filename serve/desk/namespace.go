package desk

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

// shortSamples is how many names a form shows that its minter would make.
const shortSamples = 3

// namespaceOf returns the namespace that a page is about, if the user has a role there.
func (c *call) namespaceOf(values url.Values) (*stele.Namespace, stele.Role, error) {
	key, err := c.h.o.Registrar.ParsePrefix(values.Get("namespace"))
	if err != nil {
		return nil, "", err
	}
	ns, err := c.h.o.Registrar.Namespace(c.ctx, key)
	if err != nil {
		return nil, "", err
	}
	role, err := c.h.o.Registrar.RoleIn(c.ctx, key)
	return ns, role, err
}

// showNamespace shows what a namespace is.
func (c *call) showNamespace() error {
	ns, role, err := c.namespaceOf(c.r.URL.Query())
	if err != nil {
		return err
	}
	found := registrar.FoundNamespace{Namespace: ns, Role: role}
	v := &deskpage.Namespace{Frame: c.frame(cmp.Or(ns.Title, ns.Key().String()), "namespaces"), Version: ns.Version, By: ns.By, Changed: ns.Modified}
	if v.Space, err = c.space(found); err != nil {
		return err
	}
	if role.Includes(stele.RoleOwner) {
		v.EditURL = spaceURL("namespace/edit", ns.Key())
		if ns.Prefix != "" {
			v.BelowURL = Root + "namespace/new?prefix=" + url.QueryEscape(ns.Prefix)
		}
	}
	if parent, err := c.h.o.Registrar.ParentNamespace(c.ctx, ns.Key()); err == nil && parent.Prefix != "" {
		v.Above, v.AboveURL = parent.Key().String(), spaceURL("namespace", parent.Key())
	}
	if c.h.o.Links != nil && role.Includes(stele.RoleReader) {
		checks, _, err := c.h.o.Registrar.LinkChecksHere(c.ctx, ns.Key())
		if err != nil {
			return err
		}
		v.LinksURL, v.Checked = linksPath(ns.Key(), "links"), checks.On
	}
	if ns.Prefix != "" {
		v.KeepingURL = keepingURL(ns.Key())
	}
	v.Samples = c.h.o.Registrar.SampleNames(c.ctx, ns, shortSamples)
	v.Rules, v.Patterns, v.PatternsURL = c.policies(ns), len(ns.Rules), rulesURL(ns.Key())
	if c.h.o.Zones != nil && ns.Prefix != "" {
		v.ZoneURL, v.Zone, v.Signed = spaceURL("zone", ns.Key()), ns.Publication.Zone, ns.Publication.Signing != stele.NotSigned
		if len(ns.Publication.Elsewhere) > 0 {
			v.Zone = ns.Publication.Elsewhere[0].At
		}
	}
	for _, g := range ns.Grants {
		v.Grants = append(v.Grants, deskpage.Grant{To: g.To, Role: g.Role})
	}
	v.Owner, v.Quota = ns.Owner, ns.Quota
	if v.History, err = c.spaceHistory(ns.Key()); err != nil {
		return err
	}
	if ns.Prefix != "" { // which holds a whole scheme
		if v.Use, err = c.useCard(ofNamespace, ns.Prefix, spaceURL("usage", ns.Key())); err != nil {
			return err
		}
	}
	v.Same = []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: "stele ns show " + shellWord(ns.Key().String())},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" ` + c.base() + "/api/v1/namespaces/" + pathOf(ns.Key().String())},
	}
	return c.show(http.StatusOK, "namespace", v)
}

// policies says in words what holds in a namespace.
func (c *call) policies(ns *stele.Namespace) (list []string) {
	say := func(key string, args ...any) { list = append(list, c.language.Text(key, args...)) }
	say("makes." + cmp.Or(string(ns.Minter.Kind), "none"))
	if ns.Checked {
		say("space.is-checked")
	}
	if len(ns.Hosts) > 0 {
		say("space.hosts-only", "hosts", strings.Join(ns.Hosts, ", "))
	} else {
		say("space.hosts-any")
	}
	if len(ns.Protocols) > 0 {
		say("space.protocols-only", "protocols", strings.Join(ns.Protocols, ", "))
	}
	list = append(list, c.promises(ns)...)
	if ns.TTL > 0 {
		say("space.has-ttl", "count", int64(ns.TTL))
	}
	if ns.Status > 0 {
		say("space.has-status", "status", strconv.Itoa(ns.Status))
	}
	if ns.Delegate != "" {
		say("space.is-delegated", "resolver", ns.Delegate)
	}
	if ns.Passthrough {
		say("space.passes")
	}
	if ns.Reviewed {
		say("space.is-reviewed")
	}
	if ns.Listed {
		say("space.is-listed")
	}
	for _, h := range ns.Heirs {
		say("space.has-heir", "heir", h.Registry, "address", h.Address, "count", int64(h.Days))
	}
	return append(list, c.handOvers(ns)...)
}

// spaceHistory returns the last versions of a namespace, and what each changed.
func (c *call) spaceHistory(key stele.NamespaceKey) (list []deskpage.Version, err error) {
	var later *stele.Namespace
	add := func(ns, before *stele.Namespace) {
		list = append(list, deskpage.Version{Number: ns.Version, At: ns.Modified, By: ns.By, What: c.spaceChanges(before, ns)})
	}
	for ns, err := range c.h.o.Registrar.NamespaceHistory(c.ctx, key) {
		if err != nil {
			return nil, err
		}
		if later != nil {
			add(later, ns)
		}
		if later = ns; len(list) == shortHistory {
			return list, nil
		}
	}
	if later != nil {
		add(later, nil)
	}
	return list, nil
}

// spaceChanges names the settings in which two versions of a namespace differ.
func (c *call) spaceChanges(a, b *stele.Namespace) (words []string) {
	if a == nil {
		return []string{c.language.Text("space.made")}
	}
	for _, one := range []struct {
		key  string
		same bool
	}{
		{"space.title", a.Title == b.Title}, {"space.owner", a.Owner == b.Owner}, {"space.quota", a.Quota == b.Quota}, {"space.minter", a.Minter == b.Minter}, {"space.checked", a.Checked == b.Checked},
		{"space.hosts", slices.Equal(a.Hosts, b.Hosts)}, {"space.protocols", slices.Equal(a.Protocols, b.Protocols)}, {"edit.promise", a.Persistence == b.Persistence}, {"field.ttl", a.TTL == b.TTL},
		{"field.status", a.Status == b.Status}, {"space.delegate", a.Delegate == b.Delegate}, {"space.passthrough", a.Passthrough == b.Passthrough}, {"rules.title", slices.EqualFunc(a.Rules, b.Rules, stele.Rule.Equal)}, {"space.reviewed", a.Reviewed == b.Reviewed}, {"space.listed", a.Listed == b.Listed}, {"space.hand-over", a.SameHandOver(b)}, {"space.heirs", a.SameHeirs(b)}, {"space.roles", slices.Equal(a.Grants, b.Grants)},
	} {
		if !one.same {
			words = append(words, c.language.Text(one.key))
		}
	}
	if len(words) == 0 {
		words = append(words, c.language.Text("space.dns"))
	}
	return words
}

// showNewNamespace shows the form for a new namespace.
func (c *call) showNewNamespace() error {
	return c.spacePage(http.StatusOK, nil, &spaceForm{prefix: c.r.URL.Query().Get("prefix"), owner: c.who.Name, kind: string(stele.MinterNOID), template: usualTemplates[1], checked: true}, nil)
}

// spacePage shows the form of a namespace, which is nil for a new one. Theirs is what another user
// changed meanwhile.
func (c *call) spacePage(status int, ns *stele.Namespace, f *spaceForm, theirs []string) error {
	title, action := "space.new", Root+"namespace/new"
	if ns != nil {
		title, action = "space.edit", Root+"namespace/edit"
	}
	v := &deskpage.NamespaceForm{Frame: c.frame(title, "namespaces"), New: ns == nil, Action: action, Version: f.version, Theirs: theirs, MayTop: c.who.Admin}
	shown := &stele.Namespace{Scheme: f.scheme}
	if ns != nil {
		v.Key, v.Back = ns.Key().String(), spaceURL("namespace", ns.Key())
		v.By, v.TheirVersion = ns.By, ns.Version
		*shown = *ns
		if theirs != nil {
			v.Version = ns.Version
		}
	} else {
		v.Back = Root + "namespaces"
		if key, err := c.h.o.Registrar.ParsePrefix(f.prefix); err == nil {
			shown.Scheme, shown.Prefix = key.Scheme, key.Prefix
			if key.Prefix != f.prefix {
				v.Canonical = key.Prefix
			}
		}
		own, more, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Role: stele.RoleOwner, Limit: shortHistory})
		if err != nil {
			return err
		}
		for _, one := range own {
			v.Own = append(v.Own, one.Prefix)
		}
		v.MoreOwn = more
	}
	kept := f.faults // what apply notes here was noted before
	f.apply(c, shown)
	f.faults = kept
	v.Samples = c.h.o.Registrar.SampleNames(c.ctx, shown, shortSamples)
	f.fill(c, v)
	v.Problems = f.problems()
	v.Same = c.sameNamespace(shown, v.New, f.version)
	return c.show(status, "namespaceform", v)
}

// fill writes the form into the view of the page.
func (f *spaceForm) fill(c *call, v *deskpage.NamespaceForm) {
	v.Prefix, v.Called, v.Owner, v.Quota = f.input("prefix", f.prefix), f.input("title", f.title), f.input("owner", f.owner), f.input("quota", f.quota)
	v.Scheme = f.input("scheme", f.scheme)
	for _, name := range c.h.o.Schemes.Names() {
		if c.language.Has("scheme." + name) {
			v.Schemes = append(v.Schemes, deskpage.Option{Value: name, Text: c.language.Text("scheme." + name), Chosen: f.scheme == name})
		}
	}
	v.Kind = f.input("minter-kind", f.kind)
	for _, kind := range []stele.MinterKind{stele.MinterNOID, stele.MinterUUID, stele.MinterIBI, stele.MinterPILIN, stele.NoMinter} {
		v.Kinds = append(v.Kinds, deskpage.Option{Value: string(kind), Text: c.language.Text("minter." + cmp.Or(string(kind), "none")), Chosen: f.kind == string(kind)})
	}
	v.Template, v.Templates, v.Order = f.input("minter-template", f.template), usualTemplates, f.input("minter-order", f.order)
	v.Host, v.Port, v.IP, v.IPPort, v.Granularity = f.input("minter-host", f.host), f.input("minter-port", f.port), f.input("minter-ip", f.ip), f.input("minter-ipPort", f.ipPort), f.input("minter-granularity", f.grain)
	v.Checked, v.Passthrough, v.Reviewed = f.input("checked", word(f.checked)), f.input("passthrough", word(f.passthrough)), f.input("reviewed", word(f.reviewed))
	v.Listed = f.input("listed", word(f.listed))
	v.Hosts, v.Protocols = f.input("hosts", f.hosts), f.input("protocols", f.protocols)
	for _, level := range []stele.Level{stele.Unstated, stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed} {
		v.Levels = append(v.Levels, deskpage.Option{Value: string(level), Text: c.language.Text("level." + cmp.Or(string(level), "unstated")), Chosen: f.level == string(level)})
	}
	v.Until, v.Statement = f.input("until", f.until), f.input("statement", f.statement)
	v.TTL, v.Status, v.Delegate = f.input("ttl", f.ttl), f.input("status", f.status), f.input("delegate", f.delegate)
}

// word returns the value of a box that is ticked.
func word(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

// makeNamespace makes a namespace, or tells what is wrong with the form.
func (c *call) makeNamespace() error {
	if err := c.readForm(); err != nil {
		return err
	}
	f := parseSpaceForm(c.r.PostForm)
	ns := &stele.Namespace{Scheme: f.scheme}
	key, err := c.h.o.Registrar.ParsePrefix(f.prefix)
	if err != nil {
		f.note("prefix", c.language.Problem(reason(err)))
	} else {
		ns.Scheme, ns.Prefix = cmp.Or(f.scheme, key.Scheme), key.Prefix
	}
	f.apply(c, ns)
	do := c.r.PostForm.Get("do")
	switch {
	case f.any(): // the registrar is not asked; what else can be told is told at once
		ns.Scheme = cmp.Or(ns.Scheme, c.h.o.Schemes.Names()[0])
		err = ns.Validate()
	case do == "save":
		var made *stele.Namespace
		if made, err = c.h.o.Registrar.AddNamespace(c.ctx, ns); err == nil {
			c.redirect(spaceURL("namespace", made.Key()) + "&done=space-made")
			return nil
		}
	default:
		err = c.h.o.Registrar.TryNamespace(c.ctx, ns, true)
	}
	if err != nil {
		if err := f.judge(c, err, f.field); err != nil {
			return err
		}
	}
	return c.spacePage(formStatus(f.any(), do), nil, f, nil)
}

// formStatus returns the status of a page with a form. One that is only looked at is not an error.
func formStatus(wrong bool, do string) int {
	if wrong && do == "save" {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// showEditNamespace shows the form of a namespace.
func (c *call) showEditNamespace() error {
	ns, role, err := c.namespaceOf(c.r.URL.Query())
	if err != nil {
		return err
	}
	if !role.Includes(stele.RoleOwner) {
		return stele.Errorf("change namespace", stele.ID{}, stele.Forbidden, "desk.not-an-owner", "only owners of {namespace} and administrators may change its settings", ns.Key())
	}
	return c.spacePage(http.StatusOK, ns, spaceFormOf(ns), nil)
}

// saveNamespace changes a namespace, or tells what is wrong with the form.
func (c *call) saveNamespace() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, _, err := c.namespaceOf(c.r.PostForm)
	if err != nil {
		return err
	}
	f := parseSpaceForm(c.r.PostForm)
	f.scheme, f.prefix = ns.Scheme, ns.Prefix
	next := *ns
	f.apply(c, &next)
	do := c.r.PostForm.Get("do")
	switch {
	case f.any():
		err = next.Validate()
	case do == "save":
		var saved *stele.Namespace
		saved, err = c.h.o.Registrar.SetNamespace(c.ctx, ns.Key(), max(f.version, 1), func(ns *stele.Namespace) error {
			f.apply(c, ns)
			return nil
		})
		if code, _ := stele.CodeOf(err); code == "namespace.version-differs" {
			return c.overtakenSpace(ns, f)
		}
		if err == nil {
			done := "saved"
			if saved.Version == ns.Version {
				done = "unchanged"
			}
			c.redirect(spaceURL("namespace", ns.Key()) + "&done=" + done)
			return nil
		}
	default:
		err = c.h.o.Registrar.TryNamespace(c.ctx, &next, false)
	}
	if err != nil {
		if err := f.judge(c, err, f.field); err != nil {
			return err
		}
	}
	return c.spacePage(formStatus(f.any(), do), ns, f, nil)
}

// overtakenSpace shows what another user changed, and the form as it was filled in.
func (c *call) overtakenSpace(ns *stele.Namespace, f *spaceForm) error {
	var seen *stele.Namespace
	for old, err := range c.h.o.Registrar.NamespaceHistory(c.ctx, ns.Key()) {
		if err != nil {
			return err
		}
		if old.Version <= f.version {
			seen = old
			break
		}
	}
	return c.spacePage(http.StatusConflict, ns, f, c.spaceChanges(seen, ns))
}

// sameNamespace returns the command and the request that do what the form does.
func (c *call) sameNamespace(ns *stele.Namespace, isNew bool, version uint64) []deskpage.Same {
	prefix := cmp.Or(ns.Prefix, "PREFIX")
	command, request := "stele ns add "+shellWord(prefix), "curl -X PUT"
	if !isNew {
		command, request = "stele ns set "+shellWord(ns.Key().String()), `curl -X PATCH`
	}
	flag := func(name, value string) {
		if value != "" {
			command += " --" + name + " " + shellWord(value)
		}
	}
	flag("title", ns.Title)
	flag("owner", ns.Owner)
	flag("minter", string(ns.Minter.Kind))
	flag("template", ns.Minter.Template)
	flag("order", string(ns.Minter.Order))
	flag("host", ns.Minter.Host)
	flag("ip", ns.Minter.IP)
	flag("granularity", ns.Minter.Granularity)
	if ns.Checked {
		command += " --check"
	}
	for _, host := range ns.Hosts {
		flag("host-allowed", host)
	}
	for _, protocol := range ns.Protocols {
		flag("protocol", protocol)
	}
	flag("level", string(ns.Persistence.Level))
	flag("delegate", ns.Delegate)
	media := "application/json"
	if !isNew {
		command += " --if-version " + strconv.FormatUint(version, 10)
		media = "application/merge-patch+json"
	}
	return []deskpage.Same{
		{Label: c.language.Text("same.command"), Text: command},
		{Label: c.language.Text("same.api"), Text: request + ` -H "Authorization: Bearer $STELE_TOKEN" -H 'Content-Type: ` + media + `' -d '{"title":"..."}' ` + c.base() + "/api/v1/namespaces/" + pathOf(prefix)},
	}
}

// pathOf returns a prefix as a path.
func pathOf(prefix string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(prefix), "%2F", "/"), "%3A", ":")
}
