package desk

import (
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/web/deskpage"
)

// showZoneKeys shows the keys of a zone, and what comes next.
func (c *call) showZoneKeys() error {
	ns, _, err := c.zoned(c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.keysPage(http.StatusOK, ns, nil)
}

// keysPage shows the keys of a zone.
func (c *call) keysPage(status int, ns *stele.Namespace, problems []deskpage.Problem) error {
	keys, err := c.h.o.Zones.ZoneKeys(c.ctx, ns.Key(), 0)
	if err != nil {
		return err
	}
	v := &deskpage.ZoneKeys{Frame: c.frame("keys.title", "namespaces"), Key: ns.Key().String(), Zone: keys.Zone, URL: spaceURL("zone", ns.Key()),
		Signed: ns.Publication.Signing != stele.NotSigned, Unsigning: keys.IsUnsigning(), Unsigned: keys.Unsigned, DS: dsOf(keys)}
	v.Problems = problems
	for _, k := range keys.Keys {
		v.List = append(v.List, deskpage.ZoneKey{Tag: k.Tag, Role: c.language.Text("keyrole." + string(k.Role)), Algorithm: k.Algorithm, State: c.language.Text("keystate." + string(k.State)), Since: k.Since()})
	}
	rolling := len(keys.Steps) > 0
	for i := range keys.Steps {
		v.Steps = append(v.Steps, c.keyStep(&keys.Steps[i]))
	}
	for _, k := range keys.Keys {
		if k.State == zonekey.Active && !rolling && !v.Unsigning {
			v.Rolls = append(v.Rolls, deskpage.Option{Value: string(k.Role), Text: c.language.Text("keyrole." + string(k.Role))})
		}
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele zone keys " + keys.Zone},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" ` + c.base() + "/api/v1/zonekeys/" + pathOf(ns.Key().String())}}
	return c.show(status, "zonekeys", v)
}

// keyStep says what the next step of a roll is, and what it waits for.
func (c *call) keyStep(s *zonekey.Step) deskpage.KeyStep {
	step := deskpage.KeyStep{Role: string(s.Role), From: s.From, Due: !c.h.o.Now().Before(s.From), Parent: s.Parent, Leaving: s.To == zonekey.Leaving}
	switch {
	case s.Role == "":
		step.Text = c.language.Text("keystep.algorithm", "state", c.language.Text("keystate."+string(s.To)))
	case s.To == zonekey.Active:
		step.Text = c.language.Text("keystep.active", "key", s.Key)
	default:
		step.Text = c.language.Text("keystep.removed", "key", s.Key)
	}
	return step
}

// changeZoneKeys signs a zone, or does a step of a roll.
func (c *call) changeZoneKeys() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, _, err := c.zoned(c.r.PostForm)
	if err != nil {
		return err
	}
	form := c.r.PostForm
	change := zonekey.Change{Do: form.Get("do"), Role: zonekey.Role(form.Get("role")), DSPublished: form.Get("said") == "yes"}
	if change.Do == "sign" {
		change.Mode, change.Role = form.Get("mode"), ""
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err = c.sayParent(ns, change); err == nil {
		_, err = c.h.o.Zones.ChangeZoneKeys(c.ctx, ns.Key(), change)
	}
	if err == nil {
		to := "zone/keys"
		if change.Do == "sign" {
			to = "zone"
		}
		c.redirect(spaceURL(to, ns.Key()) + "&done=keys-changed")
		return nil
	}
	if kind := stele.KindOf(err); kind != stele.Conflict && kind != stele.Invalid && kind != stele.Unavailable {
		return err
	}
	if ns.Publication.Zone == "" {
		return err
	}
	return c.keysPage(http.StatusUnprocessableEntity, ns, []deskpage.Problem{{Text: c.language.Problem(reason(err))}})
}

// sayParent makes sure that what the user says of the zone above is so, by asking it.
func (c *call) sayParent(ns *stele.Namespace, change zonekey.Change) error {
	if !change.DSPublished {
		return nil
	}
	status, err := c.h.o.Zones.ZoneKeys(c.ctx, ns.Key(), 0)
	if err != nil {
		return err
	}
	parent := &zonekey.Parent{Find: c.h.o.Zones.DS}
	if change.Do == "unsign" {
		return parent.HasNoOthers(c.ctx, &zonekey.Status{Zone: status.Zone})
	}
	said := zonekey.Said{Published: true}
	for _, s := range status.Steps {
		if s.To == zonekey.Leaving {
			said = zonekey.Said{Removed: true}
		}
	}
	return parent.CheckNext(c.ctx, status, said, c.h.o.Now())
}

// keyNeeds returns the zones of the user whose keys or delegation need a step.
func (c *call) keyNeeds(ns *stele.Namespace) (list []deskpage.Need, err error) {
	zone := ns.Publication.Zone
	status, err := c.h.o.Zones.ZoneKeys(c.ctx, ns.Key(), time.Duration(0))
	if err != nil {
		return nil, err
	}
	for _, s := range status.Steps {
		if !c.h.o.Now().Before(s.From) {
			list = append(list, deskpage.Need{Text: c.language.Text("need.key-step", "zone", zone), Action: c.language.Text("need.look-at-it"), URL: spaceURL("zone/keys", ns.Key())})
			break
		}
	}
	if one, ok := c.h.checks.get(zone); ok && one.err == nil && one.found != nil {
		switch {
		case len(one.found.Names) == 0:
			list = append(list, deskpage.Need{Text: c.language.Text("need.delegation", "zone", zone), Action: c.language.Text("need.look-at-it"), URL: spaceURL("zone", ns.Key())})
		case ns.Publication.Signing != stele.NotSigned && len(one.found.Trust.DS) == 0 && one.found.Trust.Err == nil:
			list = append(list, deskpage.Need{Text: c.language.Text("need.ds", "zone", zone), Action: c.language.Text("need.look-at-it"), URL: spaceURL("zone", ns.Key())})
		}
	}
	if len(ns.Publication.Servers) == 0 {
		list = append(list, deskpage.Need{Text: c.language.Text("need.servers", "zone", zone), Action: c.language.Text("need.look-at-it"), URL: spaceURL("zone", ns.Key())})
	}
	return list, nil
}
