package desk

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

// mayTSIG makes sure that the user may see the TSIG keys: a key is valid for every zone that names it.
func (c *call) mayTSIG() error {
	if c.h.o.Zones == nil {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	return c.administrate()
}

// showTSIG lists the TSIG keys of secondaries.
func (c *call) showTSIG() error {
	if err := c.mayTSIG(); err != nil {
		return err
	}
	v, err := c.tsigPage("", "")
	if err != nil {
		return err
	}
	return c.show(http.StatusOK, "tsig", v)
}

// tsigPage returns the page of keys, with what was typed into the form.
func (c *call) tsigPage(name, algorithm string) (*deskpage.TSIGKeys, error) {
	list, err := c.h.o.Zones.TSIGKeys(c.ctx)
	if err != nil {
		return nil, err
	}
	v := &deskpage.TSIGKeys{Frame: c.frame("tsig.title", "namespaces"), Name: deskpage.Field{ID: "name", Name: "name", Value: name}}
	for _, k := range list {
		one := deskpage.TSIGKey{Name: k.Name, Algorithm: k.Algorithm, Since: k.Created}
		if one.Retired = !k.Retired.IsZero(); one.Retired {
			one.Since = k.Retired
		} else if one.Zones, err = c.zonesWith(k.Name); err != nil {
			return nil, err
		}
		v.List = append(v.List, one)
	}
	slices.SortStableFunc(v.List, func(a, b deskpage.TSIGKey) int { // those in use first
		switch {
		case a.Retired == b.Retired:
			return 0
		case b.Retired:
			return -1
		}
		return 1
	})
	for _, a := range zonekey.TSIGAlgorithms() {
		v.Algorithms = append(v.Algorithms, deskpage.Option{Value: a, Text: a, Chosen: a == algorithm})
	}
	example := cmp.Or(name, "secondary1.example.org")
	words := []string{"zone", "tsig", "add", example}
	if algorithm != "" {
		words = append(words, "--algorithm", algorithm)
	}
	v.Same = []deskpage.Same{c.sameCommand(words...), c.sameRequest(http.MethodPost, "tsig", apijson.JSON, apijson.NewTSIGKey{Name: example, Algorithm: algorithm})}
	return v, nil
}

// zonesWith returns zones whose secondaries use a key.
func (c *call) zonesWith(key string) (zones []deskpage.ZoneLink, err error) {
	list, _, err := c.h.o.Registrar.FindNamespaces(c.ctx, registrar.NamespaceQuery{Limit: maxNeeds, Match: func(ns *stele.Namespace) bool {
		return slices.ContainsFunc(ns.Publication.Secondaries, func(s stele.Secondary) bool { return s.Key == key })
	}})
	for _, ns := range list {
		zones = append(zones, deskpage.ZoneLink{Zone: ns.Publication.Zone, URL: spaceURL("zone", ns.Key())})
	}
	return zones, err
}

// makeTSIG makes a key, and shows it once.
func (c *call) makeTSIG() error {
	if err := c.mayTSIG(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	name, algorithm := strings.TrimSpace(c.r.PostForm.Get("name")), c.r.PostForm.Get("algorithm")
	k, err := c.h.o.Zones.AddTSIGKey(c.ctx, name, algorithm)
	if err == nil {
		v := &deskpage.MadeTSIGKey{Frame: c.frame("tsig.made-title", "namespaces"), Name: k.Name}
		for _, s := range k.Settings() {
			v.Settings = append(v.Settings, deskpage.Same{Label: s.Server, Text: strings.TrimSuffix(s.Text, "\n")})
		}
		return c.show(http.StatusOK, "tsigmade", v)
	}
	wrong, err := problemsIn(err, "name")
	if err != nil {
		return err
	}
	v, err := c.tsigPage(name, algorithm)
	if err != nil {
		return err
	}
	c.fault(&v.Frame, wrong, map[string]*deskpage.Field{"name": &v.Name})
	return c.show(http.StatusUnprocessableEntity, "tsig", v)
}

// retireTSIG ends the use of a key.
func (c *call) retireTSIG() error {
	if err := c.mayTSIG(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.readForm(); err != nil {
		return err
	}
	if _, err := c.h.o.Zones.RetireTSIGKey(c.ctx, c.r.PostForm.Get("name")); err != nil {
		return err
	}
	c.redirect(Root + "tsig?done=tsig-retired")
	return nil
}
