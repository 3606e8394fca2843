package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/servertest"
)

// TestDeskLinks has an owner switch the checks of links on at the desk of the demo in Chromium, see what a real web server
// answered, accept new addresses, and say what they saw; with scripts and without.
func TestDeskLinks(t *testing.T) {
	// The demo is at 127.0.0.1, and the sites are at other addresses of this machine: those of a host are asked one after the other.
	port := servertest.FreePort(t)
	servertest.Nginx(t, "127.0.0.2:"+port, t.TempDir(), strings.ReplaceAll(`
	server { listen 127.0.0.2:PORT; location / { return 301 http://127.0.0.3:PORT$request_uri; } location = /robots.txt { return 404; } }
	server { listen 127.0.0.3:PORT; location / { return 200 "<title>Mapas do Rio Negro</title><p>Folhas um a quarenta do levantamento de 1913, com notas."; } location = /robots.txt { return 404; } }
	server { listen 127.0.0.4:PORT; location / { return 403 "<title>Just a moment</title><script>window._cf_chl_opt={}</script>"; } location = /robots.txt { return 404; } }
	server { listen 127.0.0.5:PORT; location / { return 404 "<title>Nichts</title>"; } location = /robots.txt { return 404; } }
`, "PORT", port))
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			served := visitDemo(t, "STELE_LINK_ALLOW=127.0.0.0/8")
			newCurator(t, "http://"+served.http, scripts).mendLinks(port)
		})
	}
}

// await reads the page again until it shows a text.
func (c *curator) await(text string) {
	c.t.Helper()
	page := c.text("location.href")
	for range 600 {
		if strings.Contains(c.text("document.body.innerText"), text) {
			return
		}
		time.Sleep(200 * time.Millisecond)
		c.open(page)
	}
	c.t.Fatalf("%s never shows %q:\n%s", page, text, c.text("document.body.innerText"))
}

func (c *curator) mendLinks(port string) {
	page := c.site + "/.desk/links?namespace=ark:12345/b2"
	c.open(c.site + "/.desk/")
	c.click("form[action$=demo] button")
	for i, host := range []string{"127.0.0.2", "127.0.0.4", "127.0.0.5"} {
		c.open(c.site + "/.desk/new?namespace=ark:12345/b2")
		c.fill("#own", fmt.Sprint("ark:12345/b2link", i))
		c.fill("#target-0-url", "http://"+host+":"+port+"/folha/1")
		c.fill("#what", []string{"Mapas do Rio Negro", "Atlas do Amapá", "Carta perdida"}[i])
		c.click("button[value=save]")
		c.sees("The name is made.")
	}
	c.open(c.site + "/.desk/namespace?namespace=ark:12345/b2")
	c.click(`a[href^="/.desk/links"]`)
	c.sees("Find out when a name leads nowhere", "No false alarms")
	c.judge("links-off")
	c.click("button[value=on]")
	c.sees("The checks are on.")
	c.open(page)
	c.await("Mapas do Rio Negro")
	c.await("can't be checked")
	c.await("failed lately")
	c.sees("Take over the new address", "it leads to a new address for good", "Look and accept")
	c.judge("links")
	c.open(page + "&kind=blocked")
	c.sees("Atlas do Amapá", "the site keeps programs out", "I looked:")
	c.judge("links-blocked")
	c.click("button[value=works]")
	c.sees("That is remembered", "There are none")
	c.open(page + "&kind=failing")
	c.click("button[value=gone]")
	c.open(page)
	c.sees("a person looked, and it was gone", "Withdraw")
	c.open(c.site + "/.desk/")
	c.sees("A name of Books leads nowhere.")

	// The form has the new address; the page of the host accepts all of them.
	c.open(page)
	c.click(`a[href*="take=0"]`)
	c.sees("The new address is filled in.")
	if got := c.text(`document.querySelector("#target-0-url").value`); got != "http://127.0.0.3:"+port+"/folha/1" {
		c.t.Errorf("the form has %s", got)
	}
	c.judge("links-taken")
	c.open(page)
	c.click(`a[href*="/links/accept"]`)
	c.sees("One name has a new address", "http://127.0.0.3:"+port+"/folha/1")
	c.judge("links-accept")
	c.click("form[action$=accept] button.go")
	c.awaitJob()
	c.sees("1 of 1", "Accept the new addresses of 127.0.0.2")
	c.open(page)
	if strings.Contains(c.text("document.body.innerText"), "127.0.0.2") {
		c.t.Error("an address that was changed is still told")
	}

	// The settings, with a mistake first.
	c.fill("#quota", "many")
	c.fill("#own-0-host", "127.0.0.3")
	c.fill("#own-0-gap", "0.2")
	c.click("#settings .acts button[value=save]")
	c.sees("There is one problem", "is not a number")
	c.judge("links-settings")
	c.fill("#quota", "5000")
	c.click("#settings .acts button[value=save]")
	c.sees("Saved.")
	c.click("footer button[lang=pt-BR]")
	c.sees("Aonde os nomes levam")
	c.judge("links-pt")
	c.open(c.site + "/.desk/links/accept?namespace=ark:12345/b2&host=127.0.0.2")
	c.judge("links-accept-pt")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			c.t.Error(problem)
		}
	}
}
