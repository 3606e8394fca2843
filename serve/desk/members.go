package desk

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

func membersURL(key stele.NamespaceKey) string { return spaceURL("members", key) }

// showMembers shows who may do what in a namespace.
func (c *call) showMembers() error {
	return c.membersPage(http.StatusOK, c.r.URL.Query(), nil)
}

// membersPage shows the people of a namespace, and the forms as they are filled in.
func (c *call) membersPage(status int, values url.Values, wrong stele.Problems) error {
	r := c.h.o.Registrar
	key, err := r.ParsePrefix(values.Get("namespace"))
	if err != nil {
		return err
	}
	ns, err := r.Namespace(c.ctx, key)
	if err != nil {
		return err
	}
	role, err := r.RoleIn(c.ctx, key)
	if err != nil {
		return err
	}
	list, err := r.Members(c.ctx, key)
	if err != nil {
		return err
	}
	me := "user:" + c.who.Name
	v := &deskpage.Members{Frame: c.frame("members.title", "namespaces"), Key: key.String(), Title: ns.Title, NamesURL: spaceURL("namespace", key), Role: role,
		MayGrant: role == stele.RoleOwner, MayHandOver: c.who.Admin || ns.Owner == c.who.Name, Owner: ns.Owner, Named: ns.Owner == c.who.Name,
		MayLeave: slices.ContainsFunc(ns.Grants, func(g stele.Grant) bool { return g.To == me })}
	if role == stele.RoleOwner {
		v.AuditURL = spaceURL("audit", key)
	}
	for _, m := range list {
		v.List = append(v.List, c.memberView(m, key))
	}
	fields := map[string]*deskpage.Field{"name": &v.Name, "to": &v.To, "user": &v.Asked}
	for name, f := range fields {
		*f = deskpage.Field{ID: name, Name: name, Value: values.Get(name)}
	}
	v.Roles = c.roleOptions(stele.Role(cmp.Or(values.Get("role"), string(stele.RoleReader))))
	v.IsGroup = values.Get("kind") == "group"
	if v.Asked.Value != "" && v.MayGrant {
		found, err := c.effective(key, v.Asked.Value)
		if wrong, err = orProblems(wrong, err, "user"); err != nil {
			return err
		}
		v.Effective = found
	}
	if c.fault(&v.Frame, wrong, fields); len(wrong) > 0 && status == http.StatusOK {
		status = http.StatusUnprocessableEntity
	}
	prefix := shellWord(key.String())
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele ns show " + prefix + "\nstele ns grant " + prefix + " user:ann editor\nstele ns ungrant " + prefix + " user:ann\nstele ns set " + prefix + " --owner ann"},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" '` + c.base() + "/api/v1/namespaces/" + key.String() + `'`}}
	return c.show(status, "members", v)
}

// orProblems adds what is wrong with a field by an error; other errors are returned.
func orProblems(wrong stele.Problems, err error, field string) (stele.Problems, error) {
	if err == nil {
		return wrong, nil
	}
	list, err := problemsIn(err, field)
	return append(wrong, list...), err
}

func (c *call) memberView(m registrar.Member, key stele.NamespaceKey) deskpage.Member {
	kind, name, _ := strings.Cut(m.To, ":")
	v := deskpage.Member{To: m.To, Name: name, Group: kind == "group", Role: m.Role, Named: m.Named, Here: m.From == key, From: m.From.String(), FromTitle: m.Title, FromURL: membersURL(m.From)}
	if c.who.Admin {
		if v.URL = personURL(name); v.Group {
			v.URL = Root + "people?q=" + url.QueryEscape(name)
		}
	}
	return v
}

// effective says which role a user has in a namespace, and why.
func (c *call) effective(key stele.NamespaceKey, name string) (*deskpage.Effective, error) {
	role, by, u, err := c.h.o.Registrar.RoleOfUser(c.ctx, key, name)
	if err != nil {
		return nil, err
	}
	v := &deskpage.Effective{Name: u.Name, Role: role, Admin: u.Admin && !u.Disabled, Disabled: u.Disabled}
	for _, m := range by {
		v.By = append(v.By, c.memberView(m, key))
	}
	return v, nil
}

// changeMembers reads a form about a namespace, has it changed, and leads back to its people. What is
// wrong with the form is about the field named here.
func (c *call) changeMembers(field, done string, change func(key stele.NamespaceKey, form url.Values) error) error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	key, err := c.h.o.Registrar.ParsePrefix(form.Get("namespace"))
	if err != nil {
		return err
	}
	if err = change(key, form); err == nil {
		next := membersURL(key) + "&done=" + done
		if _, err := c.h.o.Registrar.Namespace(c.ctx, key); err != nil { // the user has left
			next = Root + "namespaces?done=" + done
		}
		c.redirect(next)
		return nil
	}
	if _, gone := c.h.o.Registrar.Namespace(c.ctx, key); gone != nil {
		return err
	}
	wrong, err := problemsIn(err, field)
	if err != nil {
		return err
	}
	return c.membersPage(http.StatusUnprocessableEntity, form, wrong)
}

// grant gives a role in a namespace.
func (c *call) grant() error {
	return c.changeMembers("name", "role-given", func(key stele.NamespaceKey, form url.Values) error {
		kind := "user:"
		if form.Get("kind") == "group" {
			kind = "group:"
		}
		_, err := c.h.o.Registrar.Grant(c.ctx, key, kind+strings.TrimSpace(form.Get("name")), stele.Role(form.Get("role")))
		return err
	})
}

// ungrant removes a role in a namespace.
func (c *call) ungrant() error {
	return c.changeMembers("", "role-removed", func(key stele.NamespaceKey, form url.Values) error {
		_, err := c.h.o.Registrar.Ungrant(c.ctx, key, form.Get("grantee"))
		return err
	})
}

// handOver names another owner of a namespace.
func (c *call) handOver() error {
	return c.changeMembers("to", "handed-over", func(key stele.NamespaceKey, form url.Values) error {
		_, err := c.h.o.Registrar.HandOver(c.ctx, key, strings.TrimSpace(form.Get("to")), form.Get("keep") != "")
		return err
	})
}

// leave removes the user's own role in a namespace.
func (c *call) leave() error {
	return c.changeMembers("", "left", func(key stele.NamespaceKey, _ url.Values) error {
		_, err := c.h.o.Registrar.Leave(c.ctx, key)
		return err
	})
}
