package test

import (
	"fmt"
	"testing"
)

// TestDeskKeeping has an owner look at what is promised for names and name an heir in Chromium, with scripts and without.
func TestDeskKeeping(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			newCurator(t, "http://"+served.http, scripts).keep()
		})
	}
}

// keep does what owners do so that names outlive the registry.
func (c *curator) keep() {
	c.open(c.site + "/.desk/")
	c.click("form[action$=demo] button")
	c.open(c.site + "/.desk/namespace?namespace=ark:12345/x5")
	c.click(`main a[href^="/.desk/keeping"]`)
	c.sees("Promises and heirs", "No heir is named", "The public log has", "Take everything with you")
	c.fill("#registry", "two words")
	c.fill("#address", "https://heir.example.org/")
	c.click("form[action$=add] button")
	c.sees("There is one problem", "is not the name of a registry")
	c.judge("keeping-mistake")
	c.fill("#registry", "heir.example.org/.log")
	c.click("form[action$=add] button")
	c.sees("The heir is named.", "heir.example.org/.log", "180 days")
	c.judge("keeping")
	c.click("footer button[lang=pt-BR]")
	c.open(c.site + "/.desk/keeping?namespace=ark:12345/x5")
	c.sees("Promessas e herdeiros", "180 dias")
	c.judge("keeping-pt")
	c.click("footer button[lang=en]")
	c.click("form[action$=remove] button")
	c.sees("The heir is removed.", "No heir is named")
}
