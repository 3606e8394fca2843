package main

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/mail/mailtest"
)

// TestInviteByMail: an invitation reaches the user through a real mail server, with a link that is not printed.
func TestInviteByMail(t *testing.T) {
	dir := t.TempDir()
	ca := certtest.New(t, time.Now)
	cert, key := ca.Issue(t, t.TempDir(), 24*time.Hour, 7, "localhost", "127.0.0.1")
	exim := mailtest.Start(t, cert, key)
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(mailtest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root.pem")
	if err := os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "stele.toml")
	text := fmt.Sprintf("base = \"https://id.example.org\"\nmail-server = %q\nmail-security = \"starttls\"\nmail-user = %q\nmail-password-file = %q\nmail-root = %q\nmail-from = \"ids@example.org\"\n",
		exim.Addr, mailtest.User, password, root)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	runStele(t, "user", "add", "root", "--admin", "--data", data)
	code, out, errs := runProgram(t, "user", "invite", "ann", "--mail", "ann@example.org", "--config", settings, "--data", data)
	if code != 0 || !strings.Contains(out, "has accepted the mail to ann@example.org") || strings.Contains(out+errs, "/link/") {
		t.Fatalf("%d %s %s\n%s", code, out, errs, exim.Log())
	}
	got := exim.Await(t, 1)[0]
	if link := got.Link(t, "https://id.example.org/.desk/link/"); got.Header.Get("To") != "<ann@example.org>" || link == "" || got.Header.Get("Message-Id") == "" {
		t.Errorf("the mail is\n%s", got.Raw)
	}
}
