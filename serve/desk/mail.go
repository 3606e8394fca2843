package desk

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/language"
)

// Mail is how the desk sends mail.
type Mail struct {
	Queue  *mail.Queue
	Writer *mail.Writer

	Digests bool // are sent to users who want them
}

// needMail refuses what needs mail where none is sent.
func (c *call) needMail() error {
	if c.h.o.Mail == nil {
		return stele.Errorf("send mail", stele.ID{}, stele.NotFound, "desk.no-mail", "this server sends no mail; ask an administrator")
	}
	return nil
}

// tongueOptions returns the languages as choices of a form.
func (c *call) tongueOptions(chosen string) (list []deskpage.Option) {
	for _, l := range c.h.o.Languages.Languages() {
		list = append(list, deskpage.Option{Value: l.Tag, Text: l.Name, Chosen: l.Tag == chosen})
	}
	return list
}

// mailedLink returns how a one-time link is sent to the address in a form; nil if it is not to be sent.
func (c *call) mailedLink(form url.Values, user string, draw func(*language.Language, string, mail.OneTimeLink) (*mail.Letter, error), kind mail.Kind) *registrar.MailedLink {
	address := strings.TrimSpace(form.Get("address"))
	if c.h.o.Mail == nil || address == "" {
		return nil
	}
	lang := c.h.o.Languages.Get(form.Get("language"))
	if lang == nil {
		lang = c.language
	}
	return &registrar.MailedLink{Address: address, Language: lang.Tag, Letter: func(credential string, expires time.Time) ([]stele.CellChange, error) {
		l, err := draw(lang, address, mail.OneTimeLink{User: user, By: c.who.Name, URL: c.linkURL(credential), Expires: expires})
		if err != nil {
			return nil, err
		}
		return c.h.o.Mail.Queue.Prepare(c.ctx, kind, c.who.Name, l)
	}}
}

// mailSettings adds the address of the user to the page of settings.
func (c *call) mailSettings(v *deskpage.Settings) error {
	if c.h.o.Mail == nil {
		return nil
	}
	m, err := c.h.o.Registrar.Mailbox(c.ctx, c.who.Name)
	if err != nil {
		return err
	}
	v.Mail = &deskpage.MailSettings{Address: m.Address, Field: deskpage.Field{ID: "address", Name: "address"}}
	if c.h.o.Mail.Digests && m.Address != "" {
		if v.Mail.Digests, err = c.digestOptions(); err != nil {
			return err
		}
	}
	if m.Asked != nil && c.h.o.Now().Before(m.Asked.Expires) {
		v.Mail.Asked, v.Mail.Expires = m.Asked.Address, m.Asked.Expires
	}
	return nil
}

// setAddress asks the user to confirm an address.
func (c *call) setAddress() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.needMail(); err != nil {
		return err
	}
	address := strings.TrimSpace(c.r.PostForm.Get("address"))
	_, err := c.h.o.Registrar.AskAddress(c.ctx, address, c.language.Tag, func(credential string, expires time.Time) ([]stele.CellChange, error) {
		l, err := c.h.o.Mail.Writer.Confirm(c.language, address, c.who.Name, c.base()+Root+"confirm/"+c.who.Name+"/"+credential, expires)
		if err != nil {
			return nil, err
		}
		return c.h.o.Mail.Queue.Prepare(c.ctx, mail.ConfirmKind, c.who.Name, l)
	})
	if err == nil {
		c.h.o.Mail.Queue.Wake()
		c.redirect(Root + "settings?done=address-asked")
		return nil
	}
	wrong, err := problemsIn(err, "address")
	if err != nil {
		return err
	}
	v := c.settingsPage()
	if err := c.mailSettings(v); err != nil {
		return err
	}
	v.Mail.Field.Value = address
	c.fault(&v.Frame, wrong, map[string]*deskpage.Field{"address": &v.Mail.Field})
	return c.show(http.StatusUnprocessableEntity, "settings", v)
}

// removeAddress removes the address of the user.
func (c *call) removeAddress() error {
	if err := c.readForm(); err != nil {
		return err
	}
	if err := c.h.o.Registrar.RemoveAddress(c.ctx); err != nil {
		return err
	}
	c.redirect(Root + "settings?done=address-removed")
	return nil
}

// showConfirm asks whether to confirm an address: a program that looks at links in mail must not.
func (c *call) showConfirm() error { return c.confirmAddress(false) }

// confirm confirms an address.
func (c *call) confirm() error { return c.confirmAddress(true) }

func (c *call) confirmAddress(do bool) error {
	if err := c.try(); err != nil {
		return err
	}
	user, credential, server := c.r.PathValue("user"), c.r.PathValue("credential"), auth.With(c.ctx, auth.Local())
	v := &deskpage.ConfirmAddress{Frame: c.frame("confirm.title", ""), Action: c.r.URL.Path, For: user}
	address, err := c.h.o.Registrar.AskedAddress(server, user, credential)
	if err == nil && do {
		_, err = c.h.o.Registrar.ConfirmAddress(server, user, credential)
		v.Done = err == nil
	}
	switch kind := stele.KindOf(err); {
	case err == nil:
		v.Address = address
		return c.show(http.StatusOK, "confirmaddress", v)
	case kind == stele.Unauthenticated || kind == stele.Conflict:
		v.Problems = append(v.Problems, deskpage.Problem{Text: c.language.Problem(reason(err))})
		return c.show(http.StatusUnauthorized, "confirmaddress", v)
	}
	return err
}

// mailQueue shows an administrator the mail that waits and that was given up.
func (c *call) mailQueue() error {
	if err := c.administrate(); err != nil {
		return err
	}
	if err := c.needMail(); err != nil {
		return err
	}
	list, err := c.h.o.Mail.Queue.List(c.ctx)
	if err != nil {
		return err
	}
	v := &deskpage.MailQueue{Frame: c.frame("queue.title", "people")}
	for _, n := range list {
		m := deskpage.QueuedMail{To: n.To, Kind: c.language.Text("mailkind." + string(n.Kind)), By: n.By, Created: n.Created, Next: n.Next, Tries: n.Tries, GivenUp: n.State == mail.GivenUp}
		if n.Problem != nil {
			m.Problem = c.language.Problem(n.Problem.Err())
		}
		v.Mails = append(v.Mails, m)
	}
	v.Same = []deskpage.Same{{Label: c.language.Text("same.command"), Text: "stele mail test ann@example.org --config /etc/stele/stele.toml"}}
	return c.show(http.StatusOK, "mail", v)
}

// mailNeeds tells administrators of mail that was given up.
func (c *call) mailNeeds() ([]deskpage.Need, error) {
	if c.h.o.Mail == nil || !c.who.Admin {
		return nil, nil
	}
	list, err := c.h.o.Mail.Queue.List(c.ctx)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, n := range list {
		if n.State == mail.GivenUp {
			count++
		}
	}
	if count == 0 {
		return nil, nil
	}
	return []deskpage.Need{{Text: c.language.Text("need.mail", "count", count), Action: c.language.Text("need.look"), URL: Root + "mail"}}, nil
}
