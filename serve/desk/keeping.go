package desk

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/deskpage"
)

// Keeping is what the desk knows of how a registry is kept.
type Keeping struct {
	// Log returns how the transparency log is.
	Log func(ctx context.Context) (apijson.Log, error)
}

// usualDays is how many days of silence the form proposes.
const usualDays = 180

func keepingURL(key stele.NamespaceKey) string { return spaceURL("keeping", key) }

// showKeeping shows what is promised for the names of a namespace, and who takes them over.
func (c *call) showKeeping() error {
	return c.keepingPage(http.StatusOK, c.r.URL.Query(), nil)
}

// keepingPage shows the page, and the form of a new heir as it is filled in.
func (c *call) keepingPage(status int, values url.Values, wrong stele.Problems) error {
	ns, role, err := c.namespaceOf(values)
	if err != nil {
		return err
	}
	key := ns.Key()
	if key.Prefix == "" {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	v := &deskpage.Keeping{Frame: c.frame("keeping.title", "namespaces"), Key: key.String(), Title: ns.Title, SpaceURL: spaceURL("namespace", key), Role: role,
		MayChange: role.Includes(stele.RoleOwner) && !ns.IsSealed() && !ns.IsRead(), Version: ns.Version, Promises: c.promises(ns), States: c.handOvers(ns), LeastDays: stele.MinHeirDays}
	if err := c.heirs(v, ns); err != nil {
		return err
	}
	if err := c.keptLog(v); err != nil {
		return err
	}
	if err := c.deposits(v, key); err != nil {
		return err
	}
	if err := c.taken(v, key); err != nil {
		return err
	}
	if c.h.o.Bundle != nil && role.Includes(stele.RoleOwner) {
		v.BundleURL = Root + "bundle.tgz?prefix=" + url.QueryEscape(key.Prefix)
	}
	fields := map[string]*deskpage.Field{"registry": &v.Registry, "address": &v.Address, "days": &v.Days}
	for name, f := range fields {
		*f = deskpage.Field{ID: name, Name: name, Value: values.Get(name)}
	}
	v.Days.Value = cmp.Or(v.Days.Value, strconv.Itoa(usualDays))
	if c.fault(&v.Frame, wrong, fields); len(wrong) > 0 && status == http.StatusOK {
		status = http.StatusUnprocessableEntity
	}
	prefix := shellWord(key.String())
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele escrow heir ls " + prefix + "\nstele handover status " + prefix + "\nstele bundle " + prefix + " -o names.tgz"},
		{Label: c.language.Text("same.api"), Text: "curl " + c.base() + "/api/v1/handover/" + pathOf(key.String())}}
	return c.show(status, "keeping", v)
}

// heirs adds the heirs of a namespace: its own, or else those of the namespace above it.
func (c *call) heirs(v *deskpage.Keeping, ns *stele.Namespace) error {
	for at := ns; ; {
		if len(at.Heirs) > 0 {
			for _, h := range at.Heirs {
				v.Heirs = append(v.Heirs, deskpage.HeirView{Registry: h.Registry, Address: h.Address, Days: h.Days})
			}
			if at != ns {
				v.HeirsOf, v.HeirsURL = at.Key().String(), keepingURL(at.Key())
			}
			return nil
		}
		above, err := c.h.o.Registrar.ParentNamespace(c.ctx, at.Key())
		if errors.Is(err, stele.NotFound) || err == nil && above.Prefix == "" {
			return nil
		}
		if err != nil {
			return err
		}
		at = above
	}
}

// keptLog adds how far the log is.
func (c *call) keptLog(v *deskpage.Keeping) error {
	if c.h.o.Keeping.Log == nil {
		return nil
	}
	s, err := c.h.o.Keeping.Log(c.ctx)
	if err != nil {
		return err
	}
	v.Log = &deskpage.KeptLog{Origin: s.Origin, URL: c.base() + "/.log/", Size: s.Size, Behind: s.Behind}
	if p := s.Checkpoint; p != nil {
		v.Log.Signed, v.Log.Witnesses = p.At, len(p.Cosignatures)
	}
	return nil
}

// deposits adds the copies elsewhere that have the names of a namespace, to those who own it. It does not say where they are.
func (c *call) deposits(v *deskpage.Keeping, key stele.NamespaceKey) error {
	if !v.Role.Includes(stele.RoleOwner) {
		return nil
	}
	list, err := c.h.o.Registrar.DepositsOf(c.ctx, key)
	if err != nil {
		return err
	}
	v.Deposits = new(deskpage.Deposits)
	for _, d := range list {
		one := deskpage.DepositView{Name: d.Name, Made: d.Deposited, Change: d.Change, Checked: d.Checked}
		if d.Failures > 0 {
			one.Trouble = c.language.Text("keeping.deposit-failed")
		}
		v.Deposits.List = append(v.Deposits.List, one)
	}
	return nil
}

// taken adds the last bundle that a person took of the names of a namespace, to those who own it.
func (c *call) taken(v *deskpage.Keeping, key stele.NamespaceKey) error {
	t, err := c.h.o.Registrar.TakenOf(c.ctx, key)
	if err != nil || t == nil {
		return err
	}
	v.Taken = &deskpage.TakenView{Made: t.Made, By: t.By, Change: t.Change, Records: t.Records, Wider: t.Wider, Checked: t.Checked, CheckedBy: t.CheckedBy, CheckedChange: t.CheckedChange}
	return nil
}

// promises says in words what a namespace promises for its names.
func (c *call) promises(ns *stele.Namespace) (list []string) {
	p := ns.Persistence
	if p == (stele.Persistence{}) {
		return nil
	}
	list = append(list, c.language.Text("space.promises", "level", c.language.Text("level."+cmp.Or(string(p.Level), "unstated"))))
	if p.Until != "" {
		list = append(list, c.language.Text("space.promises-until", "day", p.Until))
	}
	if p.Statement != "" {
		list = append(list, p.Statement)
	}
	return list
}

// handOvers says in words how far a namespace is handed over, and from whom it came.
func (c *call) handOvers(ns *stele.Namespace) (list []string) {
	say := func(key string, args ...any) { list = append(list, c.language.Text(key, args...)) }
	switch h := &ns.HandOver; h.State {
	case stele.Offered:
		say("space.is-offered", "heir", h.Heir, "address", h.Address)
	case stele.Sealed:
		say("space.is-sealed", "heir", h.Heir, "address", h.Address)
	case stele.Forwarded:
		say("space.is-forwarded", "heir", h.Heir, "address", h.Address)
	}
	for _, a := range ns.Adoptions {
		if a.Reading {
			say("space.is-adopted-for-reading", "giver", a.From)
		} else if a.Silent && a.Ended.IsZero() {
			say("space.is-adopted-in-silence", "giver", a.From)
		} else {
			say("space.is-adopted", "giver", a.From)
		}
	}
	return list
}

// errHeirsChanged says that the list on the page may be another one by now.
var errHeirsChanged = stele.Messagef("heir.changed-meanwhile", "the namespace was changed meanwhile; look at its heirs again")

// addHeir names an heir of a namespace.
func (c *call) addHeir() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	days, err := strconv.Atoi(get("days"))
	if err != nil {
		return c.keepingPage(http.StatusUnprocessableEntity, form, stele.Problems{{Path: "days", Err: stele.Messagef("heir.days-not-a-number", `"{text}" is not a number of days`, get("days"))}})
	}
	return c.changeHeirs(form, "heir-added", func(ns *stele.Namespace) error {
		ns.Heirs = append(slices.Clone(ns.Heirs), stele.Heir{Registry: get("registry"), Address: get("address"), Days: days})
		return nil
	})
}

// removeHeir takes an heir from a namespace.
func (c *call) removeHeir() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	return c.changeHeirs(form, "heir-removed", func(ns *stele.Namespace) error {
		heir := form.Get("heir")
		left := slices.DeleteFunc(slices.Clone(ns.Heirs), func(h stele.Heir) bool { return h.Registry == heir })
		if len(left) == len(ns.Heirs) {
			return stele.Errorf("remove heir", stele.ID{}, stele.NotFound, "heir.missing", "{namespace} does not name {heir} as an heir; 'stele escrow heir ls' lists the heirs", ns.Key(), heir)
		}
		ns.Heirs = left
		return nil
	})
}

// changeHeirs changes the heirs of a namespace, if it is as the page showed it.
func (c *call) changeHeirs(form url.Values, done string, change func(*stele.Namespace) error) error {
	ns, _, err := c.namespaceOf(form)
	if err != nil {
		return err
	}
	if version, _ := strconv.ParseUint(form.Get("version"), 10, 64); version != ns.Version {
		return c.keepingPage(http.StatusConflict, form, stele.Problems{{Err: errHeirsChanged}})
	}
	_, err = c.h.o.Registrar.SetNamespace(c.ctx, ns.Key(), ns.Version, change)
	if err == nil {
		c.redirect(keepingURL(ns.Key()) + "&done=" + done)
		return nil
	}
	wrong, err := problemsIn(err, "")
	if err != nil {
		return err
	}
	for i, p := range wrong {
		wrong[i].Path = p.Path[strings.LastIndexByte(p.Path, '.')+1:]
	}
	return c.keepingPage(http.StatusUnprocessableEntity, form, wrong)
}
