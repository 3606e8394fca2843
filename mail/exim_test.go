package mail

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/mail/mailtest"
	"github.com/stele-id/stele/web/language"
)

// server starts a real mail server, and returns the settings that fit it.
func server(t *testing.T) (*mailtest.Server, Settings) {
	t.Helper()
	ca := certtest.New(t, time.Now)
	cert, key := ca.Issue(t, t.TempDir(), 24*time.Hour, 7, "localhost", "127.0.0.1")
	s := mailtest.Start(t, cert, key)
	return s, Settings{Server: s.Addr, Security: StartTLS, User: mailtest.User, Password: mailtest.Password, From: `"Árquivo, do \"Norte\"" <ids@example.org>`, ReplyTo: "help@example.org", Roots: ca.Pool}
}

func send(t *testing.T, s Settings, l Letter) error {
	t.Helper()
	transport, err := NewTransport(s)
	if err != nil {
		t.Fatal(err)
	}
	if l.ID == "" {
		l.ID = "1@example.org"
	}
	return transport.Send(t.Context(), &l)
}

// TestServer sends mail through a real server, with STARTTLS and a password.
func TestServer(t *testing.T) {
	at, settings := server(t)
	w, err := NewWriter("Site", "https://id.example.org")
	if err != nil {
		t.Fatal(err)
	}
	languages, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.Invitation(languages.Get("pt-BR"), "ann@example.org", OneTimeLink{User: "ann", By: "root", URL: "https://id.example.org/.desk/link/stele-link_x?a=b&c=d", Expires: time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	l.ID, l.Date, l.Unsubscribe = "abc@example.org", time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC), "https://id.example.org/.desk/unsubscribe/x"
	l.Subject += "\r\nBcc: eve@example.org\u2028\x00, ação"
	if err := send(t, settings, *l); err != nil {
		t.Fatal(err, at.Log())
	}
	got := at.Await(t, 1)[0]
	for name, want := range map[string]string{
		"Message-Id": "<abc@example.org>", "To": "<ann@example.org>", "Reply-To": "<help@example.org>", "Auto-Submitted": "auto-generated", "Content-Language": "pt-BR",
		"List-Unsubscribe": "<https://id.example.org/.desk/unsubscribe/x>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Bcc": "", "Date": "Tue, 17 Nov 2026 09:00:00 +0000",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	from, err := got.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != `Árquivo, do "Norte"` || from[0].Address != "ids@example.org" {
		t.Errorf("From is %v, %v", from, err)
	}
	if got.Subject() != "Convite para Site Bcc: eve@example.org , ação" {
		t.Errorf("the subject is %q", got.Subject())
	}
	for _, text := range []string{"root convida você", "Seu nome de usuário é ann", "\nhttps://id.example.org/.desk/link/stele-link_x?a=b&c=d\n", "18/11/2026, 09:00 UTC"} {
		if !strings.Contains(got.Text, text) {
			t.Errorf("the text has no %q\n%s", text, got.Text)
		}
	}
	if !strings.Contains(got.HTML, `<a href="https://id.example.org/.desk/link/stele-link_x?a=b&amp;c=d">Entrar</a>`) {
		t.Errorf("the HTML is\n%s", got.HTML)
	}
	transport, err := NewTransport(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestServerRefuses: what a real server refuses for good is not tried again, and what our settings are to blame for is.
func TestServerRefuses(t *testing.T) {
	at, settings := server(t)
	letter := Letter{To: "ann@example.org", Subject: "s", Text: "t", HTML: "<p>t</p>"}
	for name, tt := range map[string]struct {
		settings func(*Settings)
		letter   func(*Letter)
		says     string
		final    bool
	}{
		"unknown recipient": {nil, func(l *Letter) { l.To = "nobody@example.org" }, "there is no such person", true},
		"wrong password":    {func(s *Settings) { s.Password = "wrong" }, nil, "535", false},
		"no password":       {func(s *Settings) { s.User = "" }, nil, "sign in first", true},
		"unknown CA":        {func(s *Settings) { s.Roots = nil }, nil, "certificate", false},
		"another port":      {func(s *Settings) { s.Server = "127.0.0.1:1" }, nil, "refused", false},
		"not encrypted":     {func(s *Settings) { s.Security = NoTLS }, nil, "AUTH", false},
		"TLS at once":       {func(s *Settings) { s.Security = TLS }, nil, "", false},
		"line end in To":    {nil, func(l *Letter) { l.To = "ann@example.org\r\nBcc: eve@example.org" }, "can't be used", true},
		"line end in ID":    {nil, func(l *Letter) { l.ID = "a@b\r\nBcc: eve@example.org" }, "can't have", true},
		"unsubscribe":       {nil, func(l *Letter) { l.Unsubscribe = "https://x>\r\nBcc: eve@example.org" }, "can't have", true},
		"language":          {nil, func(l *Letter) { l.Language = "en\nX: y" }, "can't have", true},
		"too large":         {nil, func(l *Letter) { l.Text = strings.Repeat("x", MaxLetter) }, "are the most", true},
	} {
		s, l := settings, letter
		if tt.settings != nil {
			tt.settings(&s)
		}
		if tt.letter != nil {
			tt.letter(&l)
		}
		err := send(t, s, l)
		if err == nil || !strings.Contains(err.Error(), tt.says) || IsFinal(err) != tt.final {
			t.Errorf("%s: %v, final %t", name, err, IsFinal(err))
		}
		if err != nil && strings.Contains(err.Error(), mailtest.Password) {
			t.Errorf("%s: the password is in the error", name)
		}
	}
	if list := at.Mails(t); len(list) != 0 {
		t.Errorf("%d mails were delivered", len(list))
	}
}
