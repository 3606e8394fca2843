package mail

import (
	"bytes"
	"embed"
	htmltemplate "html/template"
	"strings"
	"text/template"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/web/language"
)

//go:embed letters/*
var files embed.FS

// Kind is what a letter is about.
type Kind string

const (
	InvitationKind Kind = "invitation" // of a new user
	LinkKind       Kind = "link"       // a one-time link for a user who has lost other ways to sign in
	ConfirmKind    Kind = "confirm"    // of an address
	DigestKind     Kind = "digest"     // what is new for a user; see package mail/digest
)

// Writer makes letters of templates, in two forms: plain text, and HTML without images. All words come from
// package language.
type Writer struct {
	site, base string
	text       *template.Template
	html       *htmltemplate.Template
}

// NewWriter makes a Writer. Site is the name of the site, and base its public address.
func NewWriter(site, base string) (*Writer, error) {
	if site == "" {
		site = "Stele"
	}
	w := &Writer{site: Line(site), base: base}
	var err error
	if w.text, err = template.ParseFS(files, "letters/letter.txt"); err != nil {
		return nil, err
	}
	w.html, err = htmltemplate.ParseFS(files, "letters/letter.html")
	return w, err
}

// content is what a letter says. All of it is text.
type content struct {
	Language, Subject, Greeting string
	Paragraphs                  []string
	Link                        *link
	After                       []string
	Sections                    []Section
	Footer                      []string
	Links                       []link // below the footer
	Unsubscribe                 *link
}

type link struct{ URL, Text string }

// Section is a list in a letter.
type Section struct {
	Title string
	Items []Item
}

// Item is a line of a list. Note and URL may be empty.
type Item struct{ Text, Note, URL string }

// letter draws a letter.
func (w *Writer) letter(to string, c *content) (*Letter, error) {
	for _, list := range [][]string{c.Paragraphs, c.After, c.Footer} {
		for i := range list {
			list[i] = Line(list[i])
		}
	}
	for i := range c.Sections {
		s := &c.Sections[i]
		s.Title = Line(s.Title)
		for i := range s.Items {
			s.Items[i].Text, s.Items[i].Note = Line(s.Items[i].Text), Line(s.Items[i].Note)
		}
	}
	l := &Letter{To: to, Subject: c.Subject, Language: c.Language}
	var b bytes.Buffer
	if err := w.text.Execute(&b, c); err != nil {
		return nil, err
	}
	l.Text = strings.TrimLeft(b.String(), "\n")
	b.Reset()
	if err := w.html.Execute(&b, c); err != nil {
		return nil, err
	}
	l.HTML = b.String()
	if c.Unsubscribe != nil {
		l.Unsubscribe = c.Unsubscribe.URL
	}
	return l, nil
}

// OneTimeLink is a link that signs a user in once.
type OneTimeLink struct {
	User, By string
	URL      string
	Expires  time.Time
}

// Invitation makes the letter that invites a new user.
func (w *Writer) Invitation(lang *language.Language, to string, o OneTimeLink) (*Letter, error) {
	return w.oneTime(lang, to, o, lang.Text("mail.invitation-subject", "site", w.site), lang.Text("mail.invitation", "by", o.By, "site", w.site, "user", o.User))
}

// LostDevice makes the letter with a one-time link for a user.
func (w *Writer) LostDevice(lang *language.Language, to string, o OneTimeLink) (*Letter, error) {
	return w.oneTime(lang, to, o, lang.Text("mail.link-subject", "site", w.site), lang.Text("mail.link", "by", o.By, "site", w.site, "user", o.User))
}

func (w *Writer) oneTime(lang *language.Language, to string, o OneTimeLink, subject, text string) (*Letter, error) {
	return expiring(o.Expires)(w.letter(to, &content{Language: lang.Tag, Subject: subject, Greeting: lang.Text("mail.greeting", "user", o.User),
		Paragraphs: []string{text, lang.Text("mail.once", "expires", lang.Moment(o.Expires))}, Link: &link{o.URL, lang.Text("mail.sign-in")},
		After: []string{lang.Text("mail.unexpected")}, Footer: w.footer()}))
}

// expiring notes when a letter is worth nothing.
func expiring(at time.Time) func(*Letter, error) (*Letter, error) {
	return func(l *Letter, err error) (*Letter, error) {
		if err == nil {
			l.Expires = at
		}
		return l, err
	}
}

func (w *Writer) footer() []string { return []string{w.site + ", " + w.base} }

// Confirm makes the letter that asks a user to confirm an address.
func (w *Writer) Confirm(lang *language.Language, to, user, url string, expires time.Time) (*Letter, error) {
	return expiring(expires)(w.letter(to, &content{Language: lang.Tag, Subject: lang.Text("mail.confirm-subject", "site", w.site), Greeting: lang.Text("mail.greeting", "user", user),
		Paragraphs: []string{lang.Text("mail.confirm", "user", user, "site", w.site), lang.Text("mail.confirm-until", "expires", lang.Moment(expires))},
		Link:       &link{url, lang.Text("mail.confirm-button")}, After: []string{lang.Text("mail.unexpected")}, Footer: w.footer()}))
}

// Digest is what a digest says.
type Digest struct {
	User     string
	From, To time.Time // of what is new
	Rate     auth.DigestRate
	Sections []Section

	Settings string // URL where the user chooses how often digests come
	End      string // URL that ends them
}

// Digest makes the letter that tells a user what is new.
func (w *Writer) Digest(lang *language.Language, to string, d Digest) (*Letter, error) {
	why := lang.Text("mail.digest-weekly", "site", w.site)
	if d.Rate == auth.DigestDaily {
		why = lang.Text("mail.digest-daily", "site", w.site)
	}
	return w.letter(to, &content{Language: lang.Tag, Subject: lang.Text("mail.digest-subject", "site", w.site, "day", d.To), Greeting: lang.Text("mail.greeting", "user", d.User),
		Paragraphs: []string{lang.Text("mail.digest", "from", lang.Moment(d.From), "to", lang.Moment(d.To))}, Sections: d.Sections, Footer: append(w.footer(), why),
		Links: []link{{d.Settings, lang.Text("mail.digest-settings")}}, Unsubscribe: &link{d.End, lang.Text("mail.digest-end")}})
}

// Test makes a letter that an administrator sends to try the settings.
func (w *Writer) Test(lang *language.Language, to string, now time.Time, id string) (*Letter, error) {
	l, err := w.letter(to, &content{Language: lang.Tag, Subject: lang.Text("mail.test-subject", "site", w.site),
		Paragraphs: []string{lang.Text("mail.test")}, Footer: w.footer()})
	if err == nil {
		l.Date, l.ID = now, id
	}
	return l, err
}
