package desk

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

func personURL(name string) string { return Root + "person?name=" + url.QueryEscape(name) }

// administrate makes sure that an administrator is signed in. The registrar judges each step by
// itself; pages that begin with a list for administrators say so at once.
func (c *call) administrate() error {
	if !c.who.Admin {
		return stele.Errorf("show people", stele.ID{}, stele.Forbidden, "desk.administrators-only", "this page is for administrators; ask one of them")
	}
	return nil
}

// kinds of users by which the list is filtered.
var userKinds = []string{"admin", "enabled", "disabled"}

// people lists users.
func (c *call) people() error {
	values := c.r.URL.Query()
	words, kind, after := strings.ToLower(strings.TrimSpace(values.Get("q"))), values.Get("kind"), values.Get("after")
	v := &deskpage.People{Frame: c.frame("people.title", "people"), Words: values.Get("q"), Asked: words != "" || kind != "", Mail: c.h.o.Mail != nil}
	for _, k := range userKinds {
		v.Kinds = append(v.Kinds, deskpage.Option{Value: k, Text: c.language.Text("userkind." + k), Chosen: k == kind})
	}
	last := ""
	for u, err := range c.h.o.Registrar.Users(c.ctx) {
		if err != nil {
			return err
		}
		if u.Name <= after || !isKind(&u, kind) || !strings.Contains(u.Name, words) && !slices.ContainsFunc(u.Groups, func(g string) bool { return strings.Contains(g, words) }) {
			continue
		}
		if len(v.Users) == pageRows {
			next := copied(values)
			next.Set("after", last)
			v.Next = Root + "people?" + next.Encode()
			break
		}
		v.Users, last = append(v.Users, person(&u)), u.Name
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele user ls --json"},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" ` + c.base() + "/api/v1/users"}}
	return c.show(http.StatusOK, "people", v)
}

func isKind(u *auth.User, kind string) bool {
	switch kind {
	case "admin":
		return u.Admin
	case "enabled":
		return !u.Disabled
	case "disabled":
		return u.Disabled
	}
	return true
}

func person(u *auth.User) deskpage.Person {
	return deskpage.Person{Name: u.Name, URL: personURL(u.Name), Groups: u.Groups, Admin: u.Admin, Disabled: u.Disabled, Created: u.Created}
}

// lives are how long one-time links may last.
var lives = []struct {
	name string
	life time.Duration
}{{"hour", time.Hour}, {"day", auth.LinkLife}, {"week", auth.MaxLinkLife}}

func (c *call) lifeOptions(chosen string) (list []deskpage.Option) {
	if chosen == "" {
		chosen = "day"
	}
	for _, l := range lives {
		list = append(list, deskpage.Option{Value: l.name, Text: c.language.Text("life." + l.name), Chosen: l.name == chosen})
	}
	return list
}

// life returns how long a link lasts by the choice in a form.
func life(choice string) time.Duration {
	for _, l := range lives {
		if l.name == choice {
			return l.life
		}
	}
	return auth.LinkLife
}

var roles = []stele.Role{stele.RoleReader, stele.RoleEditor, stele.RoleOwner}

func (c *call) roleOptions(chosen stele.Role) (list []deskpage.Option) {
	for _, r := range roles {
		list = append(list, deskpage.Option{Value: string(r), Text: c.language.Text("role."+string(r)) + ": " + c.language.Text("may."+string(r)), Chosen: r == chosen})
	}
	return list
}

// showInvite shows the form that adds a user.
func (c *call) showInvite() error {
	if err := c.administrate(); err != nil {
		return err
	}
	return c.invitePage(http.StatusOK, url.Values{"namespace": {c.r.URL.Query().Get("namespace")}}, nil)
}

// invitePage shows the form that adds a user as it is filled in. Wrong has what is wrong by field.
func (c *call) invitePage(status int, form url.Values, wrong stele.Problems) error {
	choice, err := c.choices(form.Get("namespace"), false)
	if err != nil {
		return err
	}
	v := &deskpage.Invite{Frame: c.frame("invite.title", "people"), Admin: form.Get("admin") != "",
		Mail: c.h.o.Mail != nil, Tongues: c.tongueOptions(cmp.Or(form.Get("language"), c.language.Tag)),
		Choice: choice, Roles: c.roleOptions(stele.Role(form.Get("role"))), Lives: c.lifeOptions(form.Get("life"))}
	fields := map[string]*deskpage.Field{"name": &v.Name, "groups": &v.Groups, "namespace": &v.Namespace, "address": &v.Address}
	for name, f := range fields {
		*f = deskpage.Field{ID: name, Name: name, Value: form.Get(name)}
	}
	c.fault(&v.Frame, wrong, fields)
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele user invite ann --group staff --namespace ark:12345/x5 --role editor --base " + shellWord(c.base())},
		{Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" -H 'Content-Type: application/json' -d '{"name":"ann","namespace":"ark:12345/x5","role":"editor"}' ` + c.base() + "/api/v1/invitations"}}
	return c.show(status, "invite", v)
}

// fault writes problems beside their fields and into the list on top.
func (c *call) fault(f *deskpage.Frame, wrong stele.Problems, fields map[string]*deskpage.Field) {
	for _, p := range wrong {
		path, _, _ := strings.Cut(p.Path, "[")
		text := c.language.Problem(p.Err)
		field := fields[path]
		if field == nil {
			f.Problems = append(f.Problems, deskpage.Problem{Text: text})
			continue
		}
		if field.Problem == "" {
			field.Problem = text
		}
		f.Problems = append(f.Problems, deskpage.Problem{Field: field.ID, Text: text})
	}
}

// problemsIn returns what is wrong with a form by an error of the registrar; other errors are
// returned as they are. What is not about a field of its own is about the one named here.
func problemsIn(err error, field string) (stele.Problems, error) {
	switch kind := stele.KindOf(err); kind {
	case stele.Invalid, stele.Conflict, stele.NotFound, stele.Exhausted:
		e := reason(err)
		if list, ok := e.(stele.Problems); ok {
			return list, nil
		}
		return stele.Problems{{Path: field, Err: e}}, nil
	}
	return nil, err
}

// words splits a list that a user has typed.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// invite adds a user, with a role in a namespace and a one-time link, in one step.
func (c *call) invite() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form := c.r.PostForm
	in := registrar.Invitation{User: auth.User{Name: strings.TrimSpace(form.Get("name")), Groups: words(form.Get("groups")), Admin: form.Get("admin") != ""}}
	var wrong stele.Problems
	if prefix := form.Get("namespace"); prefix != "" {
		key, err := c.h.o.Registrar.ParsePrefix(prefix)
		if err != nil {
			wrong = append(wrong, stele.Problem{Path: "namespace", Err: reason(err)})
		}
		in.Namespace, in.Role = key, stele.Role(form.Get("role"))
	}
	if form.Get("do") == "invite" {
		in.Life = life(form.Get("life"))
		if c.h.o.Mail != nil {
			in.Mail = c.mailedLink(form, in.User.Name, c.h.o.Mail.Writer.Invitation, mail.InvitationKind)
		}
	}
	if len(wrong) == 0 {
		made, err := c.h.o.Registrar.Invite(c.ctx, in)
		if err == nil {
			v := &deskpage.Invited{Frame: c.frame("invited.title", "people"), Invited: made.User.Name, URL: personURL(made.User.Name)}
			if made.Credential != "" {
				v.Link, v.Expires = c.linkURL(made.Credential), made.Link.Expires
			}
			c.mailed(v, in.Mail)
			return c.show(http.StatusOK, "invited", v)
		}
		if wrong, err = problemsIn(err, "name"); err != nil {
			return err
		}
	}
	return c.invitePage(http.StatusUnprocessableEntity, form, wrong)
}

// mailed says on the page that a link was sent, and does not show it then.
func (c *call) mailed(v *deskpage.Invited, to *registrar.MailedLink) {
	if to == nil {
		return
	}
	c.h.o.Mail.Queue.Wake()
	v.Link, v.Mailed = "", to.Address
}

// linkURL returns the address of a one-time link.
func (c *call) linkURL(credential string) string { return c.base() + Root + "link/" + credential }

// showPerson shows a user to an administrator.
func (c *call) showPerson() error {
	if err := c.administrate(); err != nil {
		return err
	}
	u, err := c.h.o.Registrar.User(c.ctx, c.r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	return c.personPage(http.StatusOK, u, deskpage.PersonForm{Groups: deskpage.Field{Value: strings.Join(u.Groups, ", ")}, Admin: u.Admin, Disabled: u.Disabled}, nil)
}

// personPage shows a user, and the form as it is filled in.
func (c *call) personPage(status int, u auth.User, form deskpage.PersonForm, wrong stele.Problems) error {
	v := &deskpage.PersonPage{Frame: c.frame(u.Name, "people"), Of: person(&u), By: u.By, Modified: u.Modified, Form: form,
		Lives: c.lifeOptions(""), AuditURL: Root + "audit?by=" + url.QueryEscape(u.Name), Self: u.Name == c.who.Name}
	v.Form.Groups.ID, v.Form.Groups.Name = "groups", "groups"
	if c.h.o.Mail != nil {
		m, err := c.h.o.Registrar.Mailbox(c.ctx, u.Name)
		if err != nil {
			return err
		}
		v.Mail, v.Address, v.Tongues = true, m.Address, c.tongueOptions(cmp.Or(m.Language, c.language.Tag))
	}
	c.fault(&v.Frame, wrong, map[string]*deskpage.Field{"groups": &v.Form.Groups})
	held, err := c.h.o.Registrar.RolesOf(c.ctx, u)
	if err != nil {
		return err
	}
	for _, r := range held {
		v.Roles = append(v.Roles, deskpage.PersonRole{Namespace: r.Namespace.String(), Title: r.Title, URL: membersURL(r.Namespace), Role: r.Role, Group: r.Group})
	}
	for s, err := range c.h.o.Registrar.Sessions(c.ctx, u.Name) {
		if err != nil {
			return err
		}
		v.Sessions = append(v.Sessions, c.sessionView(s))
	}
	now := c.h.o.Now()
	for t, err := range c.h.o.Registrar.Tokens(c.ctx, u.Name) {
		if err != nil {
			return err
		}
		v.Tokens = append(v.Tokens, deskpage.Token{ID: t.ID, Label: t.Label, Created: t.Created, Expires: t.Expires, LastUse: t.LastUse, Ended: t.Ended(now)})
	}
	for p, err := range c.h.o.Registrar.Passkeys(c.ctx, u.Name) {
		if err != nil {
			return err
		}
		v.Passkeys = append(v.Passkeys, deskpage.Passkey{ID: p.ID, Name: p.Name, Created: p.Created, Used: p.Used, Copied: !p.Copied.IsZero()})
	}
	for l, err := range c.h.o.Registrar.Links(c.ctx, u.Name) {
		if err != nil {
			return err
		}
		v.Links = append(v.Links, deskpage.OpenLink{ID: l.ID, By: l.By, Created: l.Created, Expires: l.Expires})
	}
	if v.Password, err = c.passwordView(u.Name); err != nil {
		return err
	}
	if v.Identities, err = c.identities(u.Name); err != nil {
		return err
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele user show " + u.Name + "\nstele user set " + u.Name + " --group staff,press --admin\nstele user link " + u.Name + " --base " + shellWord(c.base()) + "\nstele user link ls " + u.Name + "\nstele user passkey ls " + u.Name + "\nstele user account ls " + u.Name + passwordCommand(v.Password != nil, u.Name)},
		{Label: c.language.Text("same.api"), Text: `curl -X PATCH -H "Authorization: Bearer $STELE_TOKEN" -H 'Content-Type: application/merge-patch+json' -d '{"groups":["staff"]}' ` + c.base() + "/api/v1/users/" + url.PathEscape(u.Name)}}
	return c.show(status, "person", v)
}

// sessionView returns a session as pages show it.
func (c *call) sessionView(s auth.Session) deskpage.Session {
	how := c.howText(s.How)
	return deskpage.Session{ID: s.ID, Agent: s.Agent, How: how, Created: s.Created, Seen: s.Seen, This: s.ID == c.session.ID}
}

// savePerson changes a user.
func (c *call) savePerson() error {
	if err := c.readForm(); err != nil {
		return err
	}
	form, name := c.r.PostForm, c.r.PostForm.Get("name")
	admin, disabled := form.Get("admin") != "", form.Get("disabled") != ""
	_, err := c.h.o.Registrar.SetUser(c.ctx, name, func(u *auth.User) error {
		u.Groups, u.Admin, u.Disabled = words(form.Get("groups")), admin, disabled
		return nil
	})
	if err == nil {
		c.redirect(personURL(name) + "&done=person-saved")
		return nil
	}
	wrong, err := problemsIn(err, "")
	if err != nil {
		return err
	}
	u, err := c.h.o.Registrar.User(c.ctx, name)
	if err != nil {
		return err
	}
	return c.personPage(http.StatusUnprocessableEntity, u, deskpage.PersonForm{Groups: deskpage.Field{Value: form.Get("groups")}, Admin: admin, Disabled: disabled}, wrong)
}

// makeLink makes a one-time link of a user, and shows it once.
func (c *call) makeLink() error {
	if err := c.readForm(); err != nil {
		return err
	}
	name := c.r.PostForm.Get("name")
	var to *registrar.MailedLink
	if c.h.o.Mail != nil {
		to = c.mailedLink(c.r.PostForm, name, c.h.o.Mail.Writer.LostDevice, mail.LinkKind)
	}
	credential, l, err := c.h.o.Registrar.CreateMailedLink(c.ctx, name, life(c.r.PostForm.Get("life")), to)
	if err != nil {
		return err
	}
	v := &deskpage.Invited{Frame: c.frame("invited.link-title", "people"), Invited: name, URL: personURL(name), Link: c.linkURL(credential), Expires: l.Expires}
	c.mailed(v, to)
	return c.show(http.StatusOK, "invited", v)
}

// endPersonSession ends a session of a user.
func (c *call) endPersonSession() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.EndSession(c.ctx, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(personURL(c.r.PostForm.Get("name")) + "&done=session-ended")
	return nil
}

// revokePersonToken revokes a token of a user.
func (c *call) revokePersonToken() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if _, err := c.h.o.Registrar.RevokeToken(c.ctx, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(personURL(c.r.PostForm.Get("name")) + "&done=token-revoked")
	return nil
}

// removePersonPasskey removes a passkey of a user, such as one on a device that was lost.
func (c *call) removePersonPasskey() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.RemovePasskey(c.ctx, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(personURL(c.r.PostForm.Get("name")) + "&done=passkey-removed")
	return nil
}

// endPersonLink ends a one-time link of a user that was not used.
func (c *call) endPersonLink() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.EndLink(c.ctx, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(personURL(c.r.PostForm.Get("name")) + "&done=link-ended")
	return nil
}

// unlinkPerson takes an account at a provider from a user.
func (c *call) unlinkPerson() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.fresh(); err != nil {
		return err
	}
	name := c.r.PostForm.Get("name")
	if err := c.h.o.Registrar.EndIdentity(c.ctx, name, c.r.PostForm.Get("id")); err != nil {
		return err
	}
	c.redirect(personURL(name) + "&done=issuer-left")
	return nil
}
