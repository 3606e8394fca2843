package test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authenticator is an app that computes codes, written apart from the server's.
type authenticator struct {
	key  []byte
	last int64 // step of the last code
}

// code returns a code that was not used. It waits if the server would not take the next one yet.
func (a *authenticator) code() string {
	for {
		now := time.Now().Unix() / 30
		if a.last = max(a.last, now-2); a.last+1 <= now+1 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	a.last++
	m := hmac.New(sha1.New, a.key)
	m.Write(binary.BigEndian.AppendUint64(nil, uint64(a.last)))
	sum := m.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1000000)
}

// TestDeskPasswords has curators set a password after a one-time link, sign in with it and the code of an app, and prove with it
// who they are, in Chromium, with scripts and without.
func TestDeskPasswords(t *testing.T) {
	folder := t.TempDir()
	port := freePort(t)
	site := fmt.Sprintf("http://localhost:%d", port)
	data, config := filepath.Join(folder, "data"), filepath.Join(folder, "stele.toml")
	writeFile(t, config, fmt.Sprintf("data = %q\nhttp = '127.0.0.1:%d'\nbase = %q\npasswords = true\nsite-name = 'Museu Goeldi'\ntrusted-proxies = ['127.0.0.1']\nproxy-user-header = 'Remote-User'\n", data, port, site), 0o600)
	links := make(map[string]string)
	for _, user := range []string{"ann", "bob"} {
		if out, err := runStele(t, "user", "add", user, "--admin", "--data", data); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := runStele(t, "user", "link", user, "--base", site, "--data", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		links[user], _, _ = strings.Cut(out, "\n")
	}
	serveConfig(t, folder, config, site)
	for user, scripts := range map[string]bool{"ann": true, "bob": false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			c := newCurator(t, site, scripts)
			c.usePassword(user, links[user])
		})
	}
}

// usePassword sets a password after a link, and uses it.
func (c *curator) usePassword(user, link string) {
	const text = "mint tractor violet cello"
	c.open(link)
	c.click("main form button")
	c.sees("Set a password instead")
	c.click("a[href^='/.desk/account/password']")
	c.sees("Set a password", "Your link can't be used again", "Authenticator app")
	c.judge("password-set")

	// A mistake first: the key of the app stays.
	key := c.text(`document.querySelector("main pre code").textContent`)
	secret, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(key, " ", ""))
	if err != nil {
		c.t.Fatalf("%q: %v", key, err)
	}
	app := &authenticator{key: secret}
	c.fill("#password", "museu goeldi 2026 "+user)
	c.fill("#again", "museu goeldi 2026")
	c.fill("#code", "123456")
	c.click("main form button.go")
	c.sees("There are 3 problems", "is easy to guess", "is not the same password")
	c.judge("password-mistake")
	if got := c.text(`document.querySelector("main pre code").textContent`); got != key {
		c.t.Errorf("the key changed from %s to %s", key, got)
	}
	c.fill("#password", text)
	c.fill("#again", text)
	c.fill("#code", app.code())
	c.click("main form button.go")
	c.sees("The password is set.", "Change the password")
	c.judge("password-account")
	c.click("main > form[action$=sign-out] button")

	c.sees("With a password")
	c.judge("password-sign-in")
	c.fill("#user", user)
	c.fill("#password", text)
	c.fill("#code", "000000")
	c.click("form[action$='sign-in/password'] button")
	c.sees("There is one problem", "the user name, the password or the code is wrong")
	c.judge("password-refused")
	if got := c.text(`document.querySelector("#user").value + document.querySelector("#password").value`); got != user {
		c.t.Errorf("the form has %q", got)
	}
	c.fill("#password", text)
	c.fill("#code", app.code())
	c.click("form[action$='sign-in/password'] button")
	c.sees("Welcome, " + user)
	c.open(c.site + "/.desk/person?name=" + user)
	c.sees("Password", "stele user password rm "+user)
	c.judge("password-person")
	c.open(c.site + "/.desk/account")
	c.click("main > form[action$=sign-out] button")

	// A proxy does not say when its user has proved who they are: a dangerous step asks for a proof.
	c.do("Network.enable", nil, nil)
	c.do("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{"Remote-User": user}}, nil)
	c.open(c.site + "/.desk/sign-in")
	c.click("form[action$='sign-in/proxy'] button")
	c.open(c.site + "/.desk/invite")
	c.fill("#name", "zoe-"+user)
	c.click("button[value=invite]")
	c.sees("With a password", "Use the password")
	c.judge("password-prove")
	c.fill("#password", text)
	c.fill("#code", app.code())
	c.click("form[action*='prove/password'] button")
	c.sees("zoe-" + user)

	c.open(c.site + "/.desk/account/password")
	c.sees("The app that you have stays.")
	c.judge("password-change")
	c.click("footer button[lang=pt-BR]")
	c.sees("Trocar a senha", "O aplicativo que você já usa continua valendo.")
	c.judge("password-change-pt")
	c.open(c.site + "/.desk/account/password?app=new")
	c.judge("password-set-pt")
	c.open(c.site + "/.desk/account")
	c.judge("password-account-pt")
	c.click("form[action$='password/remove'] button")
	c.sees("Remover a senha")
	c.judge("password-remove-pt")
	c.click("button.danger")
	c.sees("A senha foi removida.")
	c.click("main > form[action$=sign-out] button")
	c.sees("Com senha")
	c.judge("password-sign-in-pt")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			c.t.Error(problem)
		}
	}
}
