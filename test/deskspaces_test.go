package test

import (
	"fmt"
	"testing"
)

// TestDeskNamespaces has an owner make a namespace at the desk of the demo in Chromium, with scripts
// and without.
func TestDeskNamespaces(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			c := newCurator(t, "http://"+served.http, scripts)
			c.open(c.site + "/.desk/")
			c.click("form[action$=demo] button")
			c.makeNamespace(fmt.Sprintf("ark:54321/q%t", scripts)[:14])
		})
	}
}

// makeNamespace makes a namespace, with a mistake first.
func (c *curator) makeNamespace(prefix string) {
	c.open(c.site + "/.desk/namespaces")
	c.click(`a[href="/.desk/namespace/new"]`)
	c.sees("Kind of names", "How new names are made")
	c.fill("#prefix", prefix)
	c.fill("#title", "Letters from Belém")
	c.fill("#hosts", "https://wrong")
	c.click("button[value=save]")
	c.sees("There is one problem", "is not a host")
	c.judge("namespace-mistake")
	c.fill("#hosts", ".example.org")
	if !c.mute { // the names are shown while the template is typed
		c.fill("#minter-template", ".zd")
		c.until(`document.getElementById("live-samples").innerText.includes("` + prefix + `0")`)
		c.fill("#minter-template", ".zeedk")
		c.until(`document.getElementById("live-samples").innerText.includes("` + prefix + `00")`)
	} else {
		c.fill("#minter-template", ".zeedk")
		c.click("button[value=look]")
	}
	c.sees("Names will look like these", prefix+"00")
	c.judge("namespace-new")
	c.click("button[value=save]")
	c.sees("The namespace is made.", "Letters from Belém", "Addresses are at these hosts only: .example.org.", "Names end in a check character")
	c.judge("namespace")
	c.click(`a[href^="/.desk/namespace/edit"]`)
	c.fill("#title", "Letters from Belém and Macapá")
	c.click("button[value=save]")
	c.sees("Saved.", "Letters from Belém and Macapá")
	c.click("footer button[lang=pt-BR]")
	c.sees("O que vale aqui")
	c.judge("namespace-pt")
	c.open(c.site + "/.desk/namespace/new")
	c.judge("namespace-new-pt")
}

// until waits until an expression of JavaScript is true.
func (c *curator) until(condition string) {
	c.t.Helper()
	c.do("Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": "new Promise(done => { const look = () => (" + condition + ") ? done() : setTimeout(look, 20); look() })"}, nil)
}
