package test

import (
	"strings"
	"testing"
)

// TestDeskPasskeys has a curator use passkeys at the desk in Chromium, with an authenticator of the
// browser's developer tools: make one, rename it, sign in with it by autofill and by the button, prove with it, and
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
