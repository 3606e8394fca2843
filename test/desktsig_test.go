package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeskTSIG has an administrator make a TSIG key at the desk in Chromium, copy it, and retire it, with scripts and without.
func TestDeskTSIG(t *testing.T) {
	served := visitDemo(t)
	for i, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			c, key := newCurator(t, "http://"+served.http, scripts), fmt.Sprintf("ns%d.example.net", i)
			c.open(c.site + "/.desk/sign-in")
			c.click("form[action$=demo] button")
			c.open(c.site + "/.desk/tsig")
			c.fill("#name", "no name!")
			c.click("form[action='/.desk/tsig'] button")
			c.sees("There is one problem", "is not a name for a key")
			c.judge("tsig")
			c.fill("#name", key)
			c.click("form[action='/.desk/tsig'] button")
			c.sees("The key is made", "BIND", "Knot", "NSD", key+".")
			c.judge("tsig-made")
			secret := c.text(`document.querySelector("pre code").textContent.match(/secret "(.*)"/)[1]`)
			c.click("a[href='/.desk/tsig']")
			c.sees(key+".", "in use")
			if text := c.text("document.body.textContent"); len(secret) < 40 || strings.Contains(text, secret) {
				t.Errorf("the secret %q is shown again", secret)
			}
			c.judge("tsig-list")
			c.click("footer button[lang=pt-BR]")
			c.sees("Chaves TSIG")
			c.judge("tsig-pt")
			c.click("footer button[lang=en]")
			c.text(`String(document.querySelector("form[action$=retire]").closest("details").open = true)`)
			c.click("form[action$=retire] button")
			c.sees("The key is retired", key+".", "retired")
		})
	}
}
