package desk

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/web/deskpage"
)

// Zones is what the desk needs of the zones of the DNS. The registrar judges what the caller in the
// context may change. Delegation, DS and Secondaries ask other servers, within a bounded time.
type Zones interface {
	Survey(ctx context.Context, key stele.NamespaceKey, separator string) (sep string, parts int, err error)
	Judge(ctx context.Context, ns *stele.Namespace) error
	Preview(ctx context.Context, ns *stele.Namespace, rec *stele.Record) (*publish.Previewed, error)
	Parent(ctx context.Context, key stele.NamespaceKey) (string, error)
	ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error)
	ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, change zonekey.Change) (*zonekey.Status, error)
	Delegation(ctx context.Context, zone string, servers []stele.NameServer) (*client.Delegation, error)
	DS(ctx context.Context, zone string) (parent string, list []string, err error)
	Secondaries(ctx context.Context, zone string) ([]stele.SecondaryAnswer, error)

	TSIGKeys(ctx context.Context) ([]zonekey.TSIGKey, error)
	AddTSIGKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error)
	RetireTSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error)
}

// checked is what other servers said of a zone.
type checked struct {
	at          time.Time
	found       *client.Delegation // nil if nothing could be asked
	err         error
	secondaries []stele.SecondaryAnswer
}

// checks keeps the last checks of zones. A restart forgets them.
type checks struct {
	mu   sync.Mutex
	list map[string]checked
}

// maxChecks is how many checks are kept.
const maxChecks = 1000

func (c *checks) put(zone string, one checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil || len(c.list) >= maxChecks {
		c.list = make(map[string]checked)
	}
	c.list[zone] = one
}

func (c *checks) get(zone string) (checked, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.list[zone]
	return one, ok
}

// zoneForm is how a namespace is published, as an owner fills it in.
type zoneForm struct {
	faults
	version                                 uint64
	zone, layout, separator, parts          string
	exact                                   bool
	servers, mailbox, resolver, secondaries string
}

func parseZoneForm(values url.Values) *zoneForm {
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	f := &zoneForm{zone: get("zone"), layout: get("layout"), separator: get("separator"), parts: get("parts"), exact: get("exact") == "yes",
		servers: get("servers"), mailbox: get("mailbox"), resolver: get("resolver"), secondaries: get("secondaries")}
	f.version, _ = strconv.ParseUint(values.Get("version"), 10, 64)
	return f
}

func zoneFormOf(ns *stele.Namespace) *zoneForm {
	p := &ns.Publication
	f := &zoneForm{version: ns.Version, zone: p.Zone, layout: string(p.Layout), separator: p.Separator, parts: number(uint64(p.Parts)), exact: p.Exact, mailbox: p.Mailbox, resolver: p.Resolver}
	if f.layout == "" {
		f.layout = string(stele.LayoutNames)
	}
	var lines []string
	for _, s := range p.Servers {
		lines = append(lines, strings.Join(append([]string{s.Name}, s.Addresses...), " "))
	}
	f.servers, lines = strings.Join(lines, "\n"), nil
	for _, s := range p.Secondaries {
		lines = append(lines, strings.Join(append([]string{dash(s.Network), dash(s.Key)}, s.Notify...), " "))
	}
	f.secondaries = strings.Join(lines, "\n")
	return f
}

// dash returns a text, or a dash if it is empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// absolute returns a domain name as zones have it.
func absolute(text string) string {
	if text = strings.ToLower(text); text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// apply writes the form into a publication, and notes what can't be read.
func (f *zoneForm) apply(c *call, ns *stele.Namespace) error {
	p := &ns.Publication
	if f.zone == "" {
		f.note("zone", c.language.Problem(stele.Messagef("domain.missing", "is missing; write one such as paradisec.example.")))
	}
	if len(p.Elsewhere) > 0 {
		*p = stele.Publication{}
	}
	p.Zone, p.Layout, p.Mailbox, p.Resolver = absolute(f.zone), stele.Layout(f.layout), f.mailbox, strings.ToLower(f.resolver)
	p.Servers, p.Secondaries = nil, nil
	for line := range strings.Lines(f.servers) {
		if words := strings.Fields(line); len(words) > 0 {
			p.Servers = append(p.Servers, stele.NameServer{Name: absolute(words[0]), Addresses: words[1:]})
		}
	}
	for line := range strings.Lines(f.secondaries) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s := stele.Secondary{Network: strings.TrimPrefix(words[0], "-")}
		if len(words) > 1 {
			s.Key, s.Notify = absolute(strings.TrimPrefix(words[1], "-")), withPorts(words[2:])
		}
		p.Secondaries = append(p.Secondaries, s)
	}
	if p.Layout != stele.LayoutNames {
		p.Separator, p.Parts, p.Exact = "", 0, false
		return nil
	}
	p.Separator, p.Exact = f.separator, f.exact
	p.Parts = 0
	if f.parts != "" {
		n, err := strconv.ParseUint(f.parts, 10, 16)
		if err != nil {
			f.note("parts", c.language.Problem(stele.Messagef("desk.not-a-number", `"{text}" is not a number from 0 to {most}`, f.parts, stele.MaxParts)))
		}
		p.Parts = int(n)
	}
	if p.Separator != "" && p.Parts > 0 {
		return nil
	}
	sep, parts, err := c.h.o.Zones.Survey(c.ctx, ns.Key(), p.Separator)
	p.Separator = sep
	if p.Parts == 0 {
		p.Parts = parts
	}
	if err != nil && p.Parts == 0 {
		if kind := stele.KindOf(err); kind != stele.NotFound && kind != stele.Conflict {
			return err
		}
		f.note("parts", c.language.Problem(reason(err)))
	}
	return nil
}

// withPorts returns addresses with the port of the DNS where they have none.
func withPorts(list []string) (out []string) {
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err == nil {
			text = netip.AddrPortFrom(addr, 53).String()
		}
		out = append(out, text)
	}
	return out
}

// field returns the ID of the input that a problem of a publication is about.
func (f *zoneForm) field(path, code string) string {
	switch code {
	case "zone.parts-unknown", "zone.parts-ambiguous", "zone.no-room-for-parts", "zone.parts-too-many", "minter.number-of-parts-differs":
		return "parts"
	case "zone.not-granted", "zone.of-other-namespace", "zone.keys-from-before", "zone.name-taken", "zone.overlaps-catalog", "zone.namespace-without-dns-key":
		return "zone"
	case "zone.notify-address-not-public", "zone.transfer-network-not-public":
		return "secondaries"
	}
	rest, ok := strings.CutPrefix(path, "publication.")
	if !ok {
		return ""
	}
	rest = item.ReplaceAllString(rest, "")
	rest, _, _ = strings.Cut(rest, ".")
	if slices.Contains([]string{"zone", "layout", "separator", "parts", "exact", "servers", "mailbox", "resolver", "secondaries"}, rest) {
		return rest
	}
	return ""
}

// zoned returns the namespace that a page about zones is about.
func (c *call) zoned(values url.Values) (*stele.Namespace, stele.Role, error) {
	if c.h.o.Zones == nil {
		return nil, "", stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	return c.namespaceOf(values)
}

// showZone shows how a namespace is published, step by step.
func (c *call) showZone() error {
	ns, role, err := c.zoned(c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.zonePage(http.StatusOK, ns, role, zoneFormOf(ns), ns)
}

// zonePage shows the form of a zone and its steps. Shown is the namespace as the form would make it.
func (c *call) zonePage(status int, ns *stele.Namespace, role stele.Role, f *zoneForm, shown *stele.Namespace) error {
	p := &ns.Publication
	v := &deskpage.Zone{Frame: c.frame("zone.title", "namespaces"), Key: ns.Key().String(), Called: ns.Title, URL: spaceURL("namespace", ns.Key()), KeysURL: spaceURL("zone/keys", ns.Key()),
		Version: f.version, MayWrite: role.Includes(stele.RoleOwner), MayGrant: c.who.Admin, Published: p.Zone != ""}
	f.fill(c, v)
	v.Problems = f.problems()
	if shown.Publication.Zone != "" && len(f.wrong) == 0 {
		v.Preview = c.previewZone(shown)
	}
	if v.Published {
		if err := c.zoneSteps(ns, v); err != nil {
			return err
		}
	}
	command := "stele zone add " + shellWord(ns.Key().String()) + " --zone " + shellWord(stringOr(shown.Publication.Zone, "paradisec.example.")) + " --layout " + stringOr(string(shown.Publication.Layout), "names")
	for _, s := range shown.Publication.Servers {
		command += " --ns " + shellWord(strings.TrimSuffix(s.Name+"="+strings.Join(s.Addresses, ","), "="))
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: command}}
	if v.Published {
		v.Same = append(v.Same, deskpage.Same{Label: c.language.Text("same.command"), Text: "stele zone check " + p.Zone + "\nstele doctor"})
	}
	return c.show(status, "zone", v)
}

func stringOr(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (f *zoneForm) fill(c *call, v *deskpage.Zone) {
	v.Zone, v.Separator, v.Parts = f.input("zone", f.zone), f.input("separator", f.separator), f.input("parts", f.parts)
	v.Exact, v.Layout = f.input("exact", word(f.exact)), f.input("layout", f.layout)
	for _, layout := range []stele.Layout{stele.LayoutNames, stele.LayoutRules} {
		v.Layouts = append(v.Layouts, deskpage.Option{Value: string(layout), Text: c.language.Text("layout." + string(layout)), Chosen: f.layout == string(layout)})
	}
	v.Servers, v.Mailbox, v.Resolver, v.Secondaries = f.input("servers", f.servers), f.input("mailbox", f.mailbox), f.input("resolver", f.resolver), f.input("secondaries", f.secondaries)
}

// previewZone shows how a name is found with the settings of a namespace; nil if it can't.
func (c *call) previewZone(ns *stele.Namespace) *deskpage.ZonePreview {
	rec := c.exampleOf(ns)
	if rec == nil {
		return nil
	}
	made, err := c.h.o.Zones.Preview(c.ctx, ns, rec)
	if err != nil {
		return nil
	}
	p := &deskpage.ZonePreview{Name: rec.ID.String(), Owner: made.Owner}
	if made.Rule.Text != "" {
		p.Rule = made.Rule.Owner + " " + made.Rule.Text
	}
	if made.Reason != nil {
		p.Reason = c.language.Problem(made.Reason)
	}
	for _, e := range made.Records {
		p.Records = append(p.Records, e.Owner+" "+e.Text)
	}
	return p
}

// exampleOf returns a record of a namespace to show: one that is registered, or else one that its
// minter could make; nil if there is none.
func (c *call) exampleOf(ns *stele.Namespace) *stele.Record {
	if c.h.o.Find != nil {
		if page, err := c.h.o.Find(c.ctx, search.Query{Namespace: ns.Key(), State: stele.Active, Limit: 10}); err == nil {
			for _, rec := range page.Records {
				if rec.IsPublic() && len(rec.Targets) > 0 && rec.ID.Scheme() == ns.Scheme && strings.HasPrefix(rec.ID.String(), ns.Prefix) {
					return rec
				}
			}
		}
	}
	for _, name := range c.h.o.Registrar.SampleNames(c.ctx, ns, 1) {
		if id, err := c.h.o.Schemes.Parse(name); err == nil {
			return &stele.Record{ID: id, State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}}}
		}
	}
	return nil
}

// saveZone publishes a namespace, or tells what is wrong with the form.
func (c *call) saveZone() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, role, err := c.zoned(c.r.PostForm)
	if err != nil {
		return err
	}
	f := parseZoneForm(c.r.PostForm)
	do := c.r.PostForm.Get("do")
	next := *ns
	err = f.apply(c, &next)
	if err == nil {
		if f.any() {
			next.Publication.Parts = max(next.Publication.Parts, 1) // what is wrong with it is noted
		}
		err = next.Validate()
	}
	if err == nil && !f.any() {
		err = c.h.o.Zones.Judge(c.ctx, &next)
	}
	if err == nil && !f.any() {
		err = c.h.o.Registrar.TryNamespace(c.ctx, &next, false)
	}
	if err == nil && !f.any() && do == "save" {
		if err := c.fresh(); err != nil {
			return err
		}
		_, err = c.h.o.Registrar.SetNamespace(c.ctx, ns.Key(), max(f.version, 1), func(ns *stele.Namespace) error {
			ns.Publication = next.Publication
			return nil
		})
		if err == nil {
			c.redirect(spaceURL("zone", ns.Key()) + "&done=zone-saved")
			return nil
		}
		if code, _ := stele.CodeOf(err); code == "namespace.version-differs" { // sent again, the form replaces what others changed
			f.version = ns.Version
			f.general = append(f.general, c.language.Text("edit.theirs", "user", ns.By, "number", ns.Version)+". "+c.language.Text("edit.theirs-hint"))
			return c.zonePage(http.StatusConflict, ns, role, f, &next)
		}
	}
	if err != nil {
		if err := f.judge(c, err, f.field); err != nil {
			return err
		}
	}
	return c.zonePage(formStatus(f.any(), do), ns, role, f, &next)
}

// checkZone asks other servers about a zone.
func (c *call) checkZone() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, role, err := c.zoned(c.r.PostForm)
	if err != nil {
		return err
	}
	zone := ns.Publication.Zone
	switch {
	case !role.Includes(stele.RoleOwner):
		return stele.Errorf("check zone", stele.ID{}, stele.Forbidden, "desk.not-an-owner", "only owners of {namespace} and administrators may change its settings", ns.Key())
	case zone == "":
		return stele.Errorf("check zone", stele.ID{}, stele.Conflict, "zone.none-of-namespace", "{namespace} is published in no zone; 'stele zone add' does that", ns.Key())
	}
	if err := c.h.tries.Take(limit.Client(c.h.o.ClientAddr(c.r)), 1, c.h.o.Now()); err != nil { // other servers are asked
		return &stele.Error{Op: "check zone", Kind: stele.Exhausted, Err: err}
	}
	one := checked{at: c.h.o.Now()}
	one.found, one.err = c.h.o.Zones.Delegation(c.ctx, zone, ns.Publication.Servers)
	if one.secondaries, err = c.h.o.Zones.Secondaries(c.ctx, zone); err != nil {
		return err
	}
	c.h.checks.put(zone, one)
	c.redirect(spaceURL("zone", ns.Key()) + "&done=zone-checked#steps")
	return nil
}
