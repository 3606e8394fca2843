package test

import (
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/mail/mailtest"
)

// TestDeskMail invites a user by mail through Exim, and the user opens the link, sets another address and confirms
// it, in Chromium with scripts and without. The test mail and doctor use the same settings.
func TestDeskMail(t *testing.T) {
	folder := t.TempDir()
	ca := certtest.New(t, time.Now)
	cert, key := ca.Issue(t, folder, 24*time.Hour, 9, "localhost")
	exim := mailtest.Start(t, cert, key)
	site := fmt.Sprintf("http://localhost:%d", freePort(t))
	data, config := filepath.Join(folder, "data"), filepath.Join(folder, "stele.toml")
	writeFile(t, filepath.Join(folder, "secret"), mailtest.Password+"\n", 0o600)
	writeFile(t, filepath.Join(folder, "root.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw})), 0o600)
	writeFile(t, config, fmt.Sprintf("data = %q\nhttp = %q\nbase = %q\nmail-server = %q\nmail-user = %q\nmail-password-file = %q\nmail-root = %q\nmail-from = 'Archive <ids@example.org>'\n",
		data, strings.Replace(site, "http://localhost", "127.0.0.1", 1), site, exim.Addr, mailtest.User, filepath.Join(folder, "secret"), filepath.Join(folder, "root.pem")), 0o600)
	if out, err := runStele(t, "user", "add", "root", "--admin", "--data", data); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	links := map[bool]string{}
	for _, scripts := range []bool{true, false} {
		out, err := runStele(t, "user", "link", "root", "--base", site, "--data", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		links[scripts], _, _ = strings.Cut(out, "\n")
	}
	if out, err := runStele(t, "mail", "test", "ann@example.org", "--config", config); err != nil || !strings.Contains(out, "has accepted the mail to ann@example.org") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := exim.Await(t, 1)[0]; got.Subject() != "Test mail from Stele" {
		t.Errorf("got %q", got.Subject())
	}
	said := serveConfig(t, folder, config, site)
	if out, _ := runStele(t, "doctor", "--config", config); !strings.Contains(out, "takes mail") {
		t.Errorf("doctor says\n%s", out)
	}
	for i, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			user, before := fmt.Sprint("zoe", i), len(exim.Mails(t))
			c := newCurator(t, site, scripts)
			c.open(links[scripts])
			c.click("main form button")
			c.open(site + "/.desk/invite")
			c.fill("#name", user)
			c.fill("#address", user+"@example.org")
			c.text(`document.querySelector("#language").value = "pt-BR"`)
			c.judge("mail-invite")
			c.click("button[value=invite]")
			c.sees("on its way to " + user + "@example.org")
			c.judge("mail-invited")
			c.open(site + "/.desk/mail")
			c.judge("mail-queue")
			got := exim.Await(t, before+1)[before]
			if got.Subject() != "Convite para Stele" {
				t.Errorf("got %q", got.Subject())
			}

			z := newCurator(t, site, scripts)
			z.open(got.Link(t, site+"/.desk/link/"))
			z.click("main form button")
			z.open(site + "/.desk/settings")
			z.sees("Mail goes to " + user + "@example.org")
			z.fill("#address", user+"@example.com")
			z.click("form[action$='/address'] button")
			z.sees("A mail was sent to " + user + "@example.com")
			z.judge("mail-settings")
			z.open(exim.Await(t, before+2)[before+1].Link(t, site+"/.desk/confirm/"))
			z.sees("Is " + user + "@example.com the address")
			z.judge("mail-confirm")
			z.click("main form button")
			z.sees("goes to " + user + "@example.com from now on")
			z.judge("mail-confirmed")
			z.open(site + "/.desk/settings")
			z.text(`String(document.querySelector("input[name=digest][value=daily]").checked = true)`)
			z.click("form[action$='/digest'] button")
			z.sees("Saved.")
			z.judge("mail-digest")
			if got := z.text(`document.querySelector("input[name=digest]:checked").value`); got != "daily" {
				t.Errorf("the digest is %q", got)
			}
			z.open(site + "/.desk/digest/" + user + "/stele-digest_x")
			z.sees("this link is not valid")
			z.judge("mail-digest-wrong")

			c.open(site + "/.desk/person?name=" + user)
			c.sees("Send it to " + user + "@example.com")
			c.judge("mail-person")
			c.click("form[action='/.desk/language'] button")
			c.open(site + "/.desk/settings")
			c.sees("Você não tem endereço aqui")
			c.judge("mail-settings-pt")
			c.open(site + "/.desk/mail")
			c.sees("E-mails que aguardam")
			c.judge("mail-queue-pt")
			c.open(site + "/.desk/invite")
			c.judge("mail-invite-pt")
		})
	}
	if strings.Contains(said.String(), mailtest.Password) || strings.Contains(said.String(), "stele-link_") {
		t.Error("the log has a secret")
	}
}
