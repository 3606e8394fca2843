package desk

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mail"
)

// post is the mail of a site.
type post struct {
	queue *mail.Queue
	sent  []mail.Letter
	fail  error
}

// newPost returns a site that sends mail, and what it sent.
func newPost(t *testing.T) (*site, *post) {
	t.Helper()
	p := new(post)
	s := newSite(t, func(o *Options) {
		p.queue = mail.NewQueue(mail.Options{Registrar: o.Registrar, From: "ids@example.org", Now: o.Now, Send: func(_ context.Context, l *mail.Letter) error {
			if p.fail != nil {
				return p.fail
			}
			p.sent = append(p.sent, *l)
			return nil
		}})
		o.Mail = &Mail{Queue: p.queue, Writer: must(mail.NewWriter("Mapas", "https://id.example.org"))(t), Digests: true}
	})
	return s, p
}

// last sends what is due, and returns the last letter and the path of its link.
func (p *post) last(t *testing.T) (mail.Letter, string) {
	t.Helper()
	if err := p.queue.SendDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.sent) == 0 {
		t.Fatal("no mail was sent")
	}
	l := p.sent[len(p.sent)-1]
	link := must(url.Parse(regexp.MustCompile(`http\S+/\.desk/(link|confirm)/\S+`).FindString(l.Text)))(t)
	return l, link.Path
}

func (s *site) mailbox(user string) auth.Mailbox {
	s.t.Helper()
	return must(s.r.Mailbox(s.admin, user))(s.t)
}

// TestMailInvitation: an invitation goes to an address in the chosen language, and its link proves the address.
func TestMailInvitation(t *testing.T) {
	s, post := newPost(t)
	b := s.as("admin")
	b.get("/.desk/invite").has(200, "Mail address", "Language of the mail")
	form := url.Values{"do": {"invite"}, "name": {"zoe"}, "namespace": {"ark:12345/x5"}, "role": {"editor"}, "life": {"week"}, "address": {"zoe@example.org\r\nBcc: eve@example.org"}, "language": {"pt-BR"}}
	b.post("/.desk/invite", form).has(422, "can&#39;t be used as a mail address", "zoe@example.org", `value="zoe"`)
	form.Set("address", " zoe@example.org ")
	p := b.post("/.desk/invite", form).has(200, "on its way to zoe@example.org")
	if strings.Contains(p.text, "stele-link_") {
		t.Error("the page shows a link that was sent")
	}
	l, path := post.last(t)
	if l.To != "zoe@example.org" || l.Language != "pt-BR" || l.Subject != "Convite para Mapas" || !strings.Contains(l.Text, "admin convida você") {
		t.Errorf("sent %+v", l)
	}
	if m := s.mailbox("zoe"); m.Address != "" || m.Asked == nil {
		t.Errorf("before the link is used: %+v", m)
	}
	zoe := s.browser()
	zoe.get(path).has(200)
	zoe.post(path, nil).leads("/.desk/")
	if m := s.mailbox("zoe"); m.Address != "zoe@example.org" || m.Asked != nil || m.Language != "pt-BR" {
		t.Errorf("after that: %+v", m)
	}
	zoe.get("/.desk/settings").has(200, "zoe@example.org")

	// A link for a lost device goes to the confirmed address only.
	b.get("/.desk/person?name=zoe").has(200, "Send it to zoe@example.org")
	b.post("/.desk/person/link", url.Values{"name": {"zoe"}, "address": {"eve@example.org"}}).has(409, "has confirmed another address")
	b.post("/.desk/person/link", url.Values{"name": {"zoe"}, "address": {"zoe@example.org"}, "language": {"en"}}).has(200, "on its way to zoe@example.org")
	if l, path = post.last(t); l.Subject != "Your sign-in link for Mapas" {
		t.Errorf("sent %+v", l)
	}
	s.browser().post(path, nil).leads("/.desk/")
	b.post("/.desk/person/link", url.Values{"name": {"zoe"}}).has(200, "/.desk/link/stele-link_")
	if len(post.sent) != 2 {
		t.Errorf("%d letters were sent", len(post.sent))
	}
	// A user of an administrator's choice never gets a link by a refused invitation.
	b.post("/.desk/invite", form).has(422, "already")
	if err := post.queue.SendDue(t.Context()); err != nil || len(post.sent) != 2 {
		t.Errorf("%d letters were sent, %v", len(post.sent), err)
	}
}

// TestMailAddress: an address is used after its owner has confirmed it, once, in time.
func TestMailAddress(t *testing.T) {
	s, post := newPost(t)
	b := s.as("ed")
	b.lang = "pt-BR"
	b.get("/.desk/settings").has(200, "não recebe e-mails")
	b.post("/.desk/settings/address", url.Values{"address": {"ed"}}).has(422, "não pode ser usado como endereço", `value="ed"`)
	b.post("/.desk/settings/address", url.Values{"address": {"ed@example.org"}}).leads("/.desk/settings?done=address-asked")
	b.get("/.desk/settings").has(200, "foi enviado a ed@example.org")
	l, path := post.last(t)
	if l.Subject != "Confirme seu endereço em Mapas" || s.mailbox("ed").Address != "" {
		t.Errorf("sent %+v, and the mailbox is %+v", l, s.mailbox("ed"))
	}
	out := s.browser() // another device, where ed is not signed in
	out.get(path).has(200, "ed@example.org", "Confirm this address")
	if s.mailbox("ed").Address != "" {
		t.Error("a GET has confirmed the address")
	}
	for _, wrong := range []string{strings.Replace(path, "/ed/", "/ruth/", 1), path[:len(path)-3] + "AAA", "/.desk/confirm/ed/x", "/.desk/confirm/%2e%2e/x"} {
		if p := out.post(wrong, nil); p.StatusCode == 200 {
			t.Errorf("%s: %s", wrong, p.Status)
		}
	}
	out.post(path, nil).has(200, "goes to ed@example.org")
	out.post(path, nil).has(401, "was used already")
	if s.mailbox("ed").Address != "ed@example.org" {
		t.Errorf("the mailbox is %+v", s.mailbox("ed"))
	}

	// Another one is asked for: the first one stays until it is confirmed, which is too late after three days.
	b.post("/.desk/settings/address", url.Values{"address": {"new@example.org"}}).leads("/.desk/settings")
	_, path = post.last(t)
	s.now = s.now.Add(auth.ConfirmLife)
	out.post(path, nil).has(401)
	if s.mailbox("ed").Address != "ed@example.org" {
		t.Errorf("the mailbox is %+v", s.mailbox("ed"))
	}
	b = s.as("ed")
	b.post("/.desk/settings/address/remove", nil).leads("/.desk/settings?done=address-removed")
	if s.mailbox("ed").Address != "" {
		t.Errorf("the mailbox is %+v", s.mailbox("ed"))
	}
	// It needs a fresh proof, because links go there.
	s.now = s.now.Add(11 * time.Minute)
	b.post("/.desk/settings/address", url.Values{"address": {"ed@example.org"}}).has(403)

	for user, may := range map[string]bool{"admin": true, "olga": false, "ed": false, "ruth": false, "sam": false} {
		if _, err := s.r.Mailbox(auth.With(t.Context(), must(s.users.Principal(t.Context(), user))(t)), "olga"); (err == nil) != (may || user == "olga") {
			t.Errorf("%s asks for olga's address: %v", user, err)
		}
		p := s.as(user).get("/.desk/mail")
		if (p.StatusCode == 200) != may {
			t.Errorf("%s: %s", user, p.Status)
		}
	}
	plain := newSite(t)
	b = plain.as("admin")
	b.get("/.desk/mail").has(404)
	b.post("/.desk/settings/address", url.Values{"address": {"a@example.org"}}).has(404)
	if p := b.get("/.desk/settings").has(200); strings.Contains(p.main(), "address") {
		t.Error("a site without mail asks for an address")
	}
	b.post("/.desk/invite", url.Values{"do": {"invite"}, "name": {"zoe"}, "address": {"zoe@example.org"}}).has(200, "stele-link_")
}

// TestMailGivenUp: administrators see what could not be delivered.
func TestMailGivenUp(t *testing.T) {
	s, post := newPost(t)
	b := s.as("admin")
	b.get("/.desk/people").has(200, `href="/.desk/mail"`)
	b.get("/.desk/mail").has(200, "No mail waits.")
	b.post("/.desk/settings/address", url.Values{"address": {"admin@example.org"}}).leads("/.desk/settings")
	post.fail = stele.Errorf("send mail", stele.ID{}, stele.Unavailable, "mail.server-refused", "the mail server {server} did not take the mail: {reason}", "x:25", "<b>later</b>")
	if err := post.queue.SendDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.get("/.desk/mail").has(200, "admin@example.org", "waiting", "1 attempt.", "&lt;b&gt;later")
	s.now = s.now.Add(mail.GiveUpAfter)
	if err := post.queue.SendDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = s.as("admin")
	b.get("/.desk/mail").has(200, "given up")
	b.get("/.desk/").has(200, "A mail could not be delivered.")
	b.lang = "pt-BR"
	b.get("/.desk/mail").has(200, "não entregue", "o link expirou")
	if p := s.as("ed").get("/.desk/"); strings.Contains(p.text, "delivered") {
		t.Error("an editor sees the mail of others")
	}
}
