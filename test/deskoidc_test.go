package test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDeskIssuer signs a user in at a real OpenID provider, in Chromium, with scripts and without: with
// a one-time link at first, and then without one.
func TestDeskIssuer(t *testing.T) {
	folder := t.TempDir()
	ours, theirs := freePort(t), freePort(t)
	site := fmt.Sprintf("http://localhost:%d", ours)
	program := filepath.Join(folder, "provider")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "provider"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, _, err := runBeside(t, exec.Command(program, fmt.Sprint(theirs), site+"/.desk/issuer/campus/back")); err != nil {
		t.Fatal(err)
	}
	data, config := filepath.Join(folder, "data"), filepath.Join(folder, "stele.toml")
	const secret = "known-to-the-client-alone"
	writeFile(t, filepath.Join(folder, "secret"), secret+"\n", 0o600)
	writeFile(t, config, fmt.Sprintf("data = %q\nhttp = '127.0.0.1:%d'\nbase = %q\nissuer.campus = 'http://localhost:%d/'\nissuer-label.campus = 'Campus'\nissuer-client.campus = 'web'\nissuer-secret-file.campus = %q\nissuer-scopes.campus = 'profile'\nissuer-allow = ['127.0.0.1', '::1']\n",
		data, ours, site, theirs, filepath.Join(folder, "secret")), 0o600)
	link := func(user string) string {
		t.Helper()
		if out, err := runStele(t, "user", "add", user, "--data", data); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := runStele(t, "user", "link", user, "--base", site, "--data", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		first, _, _ := strings.Cut(out, "\n")
		return first
	}
	links := map[bool]string{true: link("ann"), false: link("bob")}
	server := exec.Command(stele(t), "serve", "--config", config)
	server.Env = []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
	said, _, err := runBeside(t, server)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{site + "/readyz", fmt.Sprintf("http://localhost:%d/.well-known/openid-configuration", theirs)} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			a, err := http.Get(address)
			if err == nil {
				a.Body.Close()
				if a.StatusCode == http.StatusOK {
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no answer: %v\n%s", address, err, said)
			}
		}
	}
	for scripts, link := range links {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			user, name := "ann", "test-user2"
			if !scripts {
				user, name = "bob", "test-user@localhost"
			}
			c := newCurator(t, site, scripts)
			// An account that is linked to no user does not enter.
			c.open(site + "/.desk/sign-in")
			c.sees("Sign in with Campus")
			c.judge("issuer-sign-in")
			c.click(`a[href^="/.desk/issuer/campus"]`)
			c.login(name)
			c.sees("There is one problem", "this account is linked to no user here")
			c.judge("issuer-refused")
			// The one-time link and the account together.
			c.open(link)
			c.sees("Sign in with Campus")
			c.judge("issuer-link")
			c.click("button[name=issuer]")
			c.sees("Continue at Campus")
			c.judge("issuer-continue")
			c.click("a.go")
			c.login(name)
			c.sees("Welcome, " + user)
			c.open(site + "/.desk/account")
			c.sees("Accounts elsewhere", "through Campus", name, "Unlink")
			c.judge("issuer-account")
			c.click("form[action$=sign-out] button")
			// The account alone.
			c.click(`a[href^="/.desk/issuer/campus"]`)
			c.login(name)
			c.sees("Welcome, " + user)
		})
	}
	if strings.Contains(said.String(), secret) {
		t.Error("the log has the client secret")
	}
}

// login signs in on the page of the provider.
func (c *curator) login(name string) {
	c.t.Helper()
	c.fill("#username", name)
	c.fill("#password", "verysecure")
	c.click("button[type=submit]")
}
