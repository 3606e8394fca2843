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

// TestDeskPasskeys has a curator use passkeys at the desk in Chromium, with an authenticator of the
// browser's developer tools: make one, rename it, sign in with it by autofill and by the button, and
// remove it after a warning.
func TestDeskPasskeys(t *testing.T) {
	served := visitDemo(t)
	_, port, _ := strings.Cut(served.http, ":")
	c := newCurator(t, "http://localhost:"+port, true)
	c.do("WebAuthn.enable", nil, nil)
	var device struct{ AuthenticatorID string }
	c.do("WebAuthn.addVirtualAuthenticator", map[string]any{"options": map[string]any{"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true, "automaticPresenceSimulation": true}}, &device)
	present := func(yes bool) {
		c.do("WebAuthn.setAutomaticPresenceSimulation", map[string]any{"authenticatorId": device.AuthenticatorID, "enabled": yes}, nil)
	}

	present(false)
	c.open(c.site + "/.desk/sign-in")
	c.judge("passkey-sign-in")
	c.click("form[action$=demo] button")
	c.open(c.site + "/.desk/account")
	c.sees("Passkeys", "Add a passkey")
	present(true)
	c.click("a[href$='passkeys/new']")
	c.judge("passkey-new")
	c.fill("#name", "Telephone of Ana")
	c.click("form[data-passkey] button")
	c.sees("The passkey is added.", "Telephone of Ana")
	c.judge("passkey-account")
	var kept struct {
		Credentials []struct{ IsResidentCredential bool }
	}
	c.do("WebAuthn.getCredentials", map[string]any{"authenticatorId": device.AuthenticatorID}, &kept)
	if len(kept.Credentials) != 1 || !kept.Credentials[0].IsResidentCredential {
		t.Errorf("the authenticator has %+v", kept)
	}
	// A second one on the same device is refused by the browser, and the page says so.
	c.open(c.site + "/.desk/account/passkeys/new")
	c.text(`document.querySelector("form[data-passkey] button").click()`)
	c.until(`document.querySelector(".wrong").textContent.includes("already")`)

	c.open(c.site + "/.desk/account")
	c.fill("input[name=name]", "Old telephone")
	c.click("form[action$=rename] button")
	c.sees("The passkey has another name.", "Old telephone")

	// A token for a program, with a mistake first.
	c.open(c.site + "/.desk/account/tokens/new")
	c.click("main form button")
	c.sees("There is one problem", "Say what the token is for")
	c.judge("token")
	c.fill("#label", "nightly import")
	c.click("main form button")
	c.sees("The token is made", "nightly import", "stele_")
	c.judge("token-made")
	c.open(c.site + "/.desk/account")

	// Sign in with the button.
	present(false)
	c.click("main > form[action$=sign-out] button")
	c.sees("With a passkey")
	present(true)
	c.click("form[data-passkey] button")
	c.sees("Welcome, admin")

	// The browser offers the passkey by itself in the field, and the user takes it.
	present(false)
	c.open(c.site + "/.desk/account")
	present(true)
	c.click("main > form[action$=sign-out] button")
	c.wait() // the page signs in without a click
	c.sees("Welcome, admin")

	// The last passkey is removed after a warning.
	c.open(c.site + "/.desk/account")
	c.click("form[action$=remove] button")
	c.sees("is your last passkey")
	c.judge("passkey-remove")
	c.click("button.danger")
	c.sees("The passkey is removed.")
	c.click("footer button[lang=pt-BR]")
	c.sees("Chaves de acesso")
	c.open(c.site + "/.desk/account/passkeys/new")
	c.judge("passkey-new-pt")
	c.open(c.site + "/.desk/account/tokens/new")
	c.judge("token-pt")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}

// serveConfig runs a server with a configuration and further flags until the test ends, and returns what it logs when it answers at
// the site.
func serveConfig(t *testing.T, folder, config, site string, flags ...string) fmt.Stringer {
	t.Helper()
	server := exec.Command(stele(t), append([]string{"serve", "--config", config}, flags...)...)
	server.Env = []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
	said, _, err := runBeside(t, server)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		a, err := http.Get(site + "/readyz")
		if err == nil {
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer: %v\n%s", err, said)
		}
	}
	return said
}

// TestDeskPasskeyProof has a curator prove by a passkey who they are before a dangerous step, in Chromium: nothing typed is lost, and a
// passkey that the device refuses leads back to the page.
func TestDeskPasskeyProof(t *testing.T) {
	folder, port := t.TempDir(), freePort(t)
	site := fmt.Sprintf("http://localhost:%d", port)
	data, config := filepath.Join(folder, "data"), filepath.Join(folder, "stele.toml")
	writeFile(t, config, fmt.Sprintf("data = %q\nhttp = '127.0.0.1:%d'\nbase = %q\ntrusted-proxies = ['127.0.0.1']\nproxy-user-header = 'Remote-User'\n", data, port, site), 0o600)
	if out, err := runStele(t, "user", "add", "ann", "--admin", "--data", data); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	link, err := runStele(t, "user", "link", "ann", "--base", site, "--data", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, link)
	}
	link, _, _ = strings.Cut(link, "\n")
	serveConfig(t, folder, config, site)
	c := newCurator(t, site, true)
	c.do("WebAuthn.enable", nil, nil)
	var device struct{ AuthenticatorID string }
	c.do("WebAuthn.addVirtualAuthenticator", map[string]any{"options": map[string]any{"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true, "automaticPresenceSimulation": true}}, &device)
	verified := func(yes bool) {
		c.do("WebAuthn.setUserVerified", map[string]any{"authenticatorId": device.AuthenticatorID, "isUserVerified": yes}, nil)
	}
	c.open(link)
	c.click("main form button")
	c.open(site + "/.desk/account/passkeys/new")
	c.fill("#name", "Telephone of Ann")
	c.click("form[data-passkey] button")
	c.sees("The passkey is added.")
	c.do("WebAuthn.setAutomaticPresenceSimulation", map[string]any{"authenticatorId": device.AuthenticatorID, "enabled": false}, nil) // no sign-in by autofill
	c.click("main > form[action$=sign-out] button")

	// A proxy does not say when its user has proved who they are.
	c.do("Network.enable", nil, nil)
	c.do("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{"Remote-User": "ann"}}, nil)
	c.open(site + "/.desk/sign-in")
	c.click("form[action$='sign-in/proxy'] button")
	c.do("WebAuthn.setAutomaticPresenceSimulation", map[string]any{"authenticatorId": device.AuthenticatorID, "enabled": true}, nil)
	c.open(site + "/.desk/invite")
	c.fill("#name", "zoe")
	c.fill("#groups", "mapas, <b>rios</b>")
	c.click("button[value=invite]")
	c.sees("Use a passkey", "With a passkey")
	c.judge("passkey-prove")

	// The device does not know its user: the page says so, and nothing is done.
	verified(false)
	c.text(`document.querySelector("form[action*='prove/passkey'] button").click()`)
	c.until(`document.querySelector("form[action*='prove/passkey'] .wrong")?.textContent`)
	verified(true)
	c.click("form[action*='prove/passkey'] button")
	c.sees("There is one problem") // the group can't have that name, and all that was typed is there
	if got := c.text(`document.querySelector("#name").value + " " + document.querySelector("#groups").value`); got != "zoe mapas, <b>rios</b>" {
		t.Errorf("the form has %q", got)
	}
	c.fill("#groups", "mapas")
	c.click("button[value=invite]")
	c.sees("zoe", "/.desk/link/stele-link_") // the proof is fresh now
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}
