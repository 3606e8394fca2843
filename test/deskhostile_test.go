package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeskHostile has a curator work in two tabs, lose the session in the middle of a form, and go back after sending a form, in
// Chromium, with scripts and without: nothing that was typed is lost, and nothing that was saved is overwritten unseen.
func TestDeskHostile(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			c := newCurator(t, "http://"+served.http, scripts)
			c.open(c.site + "/.desk/")
			c.click("form[action$=demo] button")
			c.useTwoTabs()
			c.loseSession()
			c.endedElsewhere()
			c.goBack()
			for _, problem := range c.complaints() {
				if !strings.Contains(problem, "the server responded with a status of 4") {
					t.Error(problem)
				}
			}
		})
	}
}

// in returns the same curator in another tab.
func (c *curator) in(tab *browser) *curator {
	c.t.Helper()
	other := &curator{browser: tab, t: c.t, site: c.site, mute: c.mute}
	other.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": c.mute}, nil)
	other.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	other.width(1280, "light")
	return other
}

// has fails unless fields of the form have values.
func (c *curator) has(values map[string]string) {
	c.t.Helper()
	for selector, want := range values {
		if got := c.text(fmt.Sprintf("document.querySelector(%q)?.value", selector)); got != want {
			c.t.Errorf("%s of %s is %q, want %q", selector, c.text("location.href"), got, want)
		}
	}
}

// answered fails unless the page has a status.
func (c *curator) answered(status int) {
	c.t.Helper()
	if got := c.text(`performance.getEntriesByType("navigation")[0].responseStatus`); got != fmt.Sprint(status) {
		c.t.Errorf("%s is answered with %s, want %d:\n%s", c.text("location.href"), got, status, c.text("document.body.innerText"))
	}
}

// name makes a name, whose page is open then, and returns the address of that.
func (c *curator) name(title string) string {
	c.t.Helper()
	c.open(c.site + "/.desk/new?namespace=ark:12345/x5")
	c.fill("#target-0-url", "https://maps.example.org/1")
	c.fill("#what", title)
	c.click("button.go[value=save]")
	c.sees("The name is made.")
	return c.site + "/.desk/record?id=" + c.text(`new URL(location.href).searchParams.get("id")`)
}

func (c *curator) useTwoTabs() {
	record := c.name("A map of the Xingu")
	second := c.in(c.anotherTab())
	second.open(record)
	c.open(record)
	c.fill("#what", "A map of the Xingu, first tab")
	c.click("button.go[value=save]")
	c.sees("Saved.")

	second.fill("#what", "A map of the Xingu, second tab")
	second.fill("#who", "Steinen, K.")
	second.click("button.go[value=save]")
	second.answered(409)
	second.sees("admin saved version 2 meanwhile", "Save as version 3")
	if got := second.text(`document.querySelector(".alert del").innerText + " became " + document.querySelector(".alert ins").innerText`); got != "A map of the Xingu became A map of the Xingu, first tab" {
		c.t.Errorf("the second tab is told that %s", got)
	}
	mine := map[string]string{"#what": "A map of the Xingu, second tab", "#who": "Steinen, K."}
	second.has(mine)
	second.judge("two-tabs")
	c.open(record)
	c.has(map[string]string{"#what": "A map of the Xingu, first tab", "#who": ""}) // nothing was written
	second.click("button.go[value=save]")
	second.sees("Saved.", "Save as version 4")
	second.has(mine)
}

// loseSession signs out in another tab while a form is filled in, and sends the form again after signing in there.
func (c *curator) loseSession() {
	title := `"Rivers" & <lakes>`
	other := c.in(c.anotherTab())
	c.open(c.site + "/.desk/new?namespace=ark:12345/x5")
	c.fill("#target-0-url", "https://maps.example.org/1")
	c.click("button[value=add-target]")
	c.fill("#target-1-url", "https://maps.example.org/1.pdf")
	c.fill("#target-1-type", "application/pdf")
	c.fill("#what", title)
	c.fill("#who", "Costa, R.")
	c.fill("#statement", "We keep it.\n\n  For long.")
	other.signOut()
	c.click("button.go[value=save]")
	c.answered(401)
	c.sees("Your session has ended")
	c.judge("ended")
	c.click("main form button.go") // before the user has signed in
	c.answered(401)
	other.open(c.text(`document.querySelector("main a[target=_blank]").href`))
	other.click("form[action$=demo] button")
	c.click("main form button.go")
	c.sees("The name is made.")
	c.has(map[string]string{"#target-0-url": "https://maps.example.org/1", "#target-1-url": "https://maps.example.org/1.pdf", "#target-1-type": "application/pdf", "#what": title, "#who": "Costa, R.", "#statement": "We keep it.\n\n  For long."})

	// What is pasted is kept, although that form could have had a file.
	c.open(c.site + "/.desk/many")
	c.fill("#text", "Link;Title\nhttps://maps.example.org/2;Mapa do Pará\n")
	c.choose("#namespace", "ark:12345/x5")
	other.signOut()
	c.click("form[enctype] button.go")
	c.answered(401)
	other.click("form[action$=demo] button")
	c.click("main form button.go")
	c.sees("1 row", "Mapa do Pará", "A name will be made in ark:12345/x5")
}

// signOut signs out on the page of the account.
func (c *curator) signOut() {
	c.t.Helper()
	c.open(c.site + "/.desk/account")
	c.click("main > form[action$=sign-out] button")
	c.sees("Sign in")
}

// endedElsewhere changes a name while another browser of the user ends all other sessions.
func (c *curator) endedElsewhere() {
	record := c.name("A map of the Madeira")
	c.fill("#what", "A map of the Madeira and the Mamoré")
	elsewhere := c.in(c.anotherUser())
	elsewhere.open(c.site + "/.desk/")
	elsewhere.click("form[action$=demo] button")
	elsewhere.open(c.site + "/.desk/account")
	elsewhere.click("form[action$=end-others] button")
	c.click("button.go[value=save]")
	c.answered(401)
	c.sees("Your session has ended")
	elsewhere.open(record)
	elsewhere.has(map[string]string{"#what": "A map of the Madeira"}) // nothing was written
	tab := c.in(c.anotherTab())
	tab.open(c.site + "/.desk/sign-in")
	tab.click("form[action$=demo] button")
	c.click("main form button.go")
	c.sees("Saved.", "Save as version 3")
	c.has(map[string]string{"#what": "A map of the Madeira and the Mamoré"})
}

// goBack sends forms again after the Back button: no second name is made of one form, and a version that was saved is not overwritten
// unseen.
func (c *curator) goBack() {
	for try := 1; ; try++ {
		first := c.name(fmt.Sprint("A map of the Tapajós, ", try))
		if c.back() { // otherwise the browser has asked for a new form
			c.has(map[string]string{"#what": fmt.Sprint("A map of the Tapajós, ", try)})
			c.click("button.go[value=save]")
			if got := c.text(`"/.desk/record?id=" + new URL(location.href).searchParams.get("id")`); c.site+got != first {
				c.t.Errorf("a form that was sent twice made %s and %s", first, got)
			}
			break
		} else if try == 5 {
			c.t.Fatal("the browser keeps no page for the Back button")
		}
	}
	c.back()
	c.fill("#what", "Another map of the Tapajós")
	c.click("button.go[value=save]")
	c.answered(422)
	c.sees("this form has made a name already")
	c.judge("sent-before")
	c.has(map[string]string{"#what": "Another map of the Tapajós", "#target-0-url": "https://maps.example.org/1"})
	c.click("button.go[value=save]")
	c.sees("The name is made.")

	// The form of version 1 can't be saved over version 2.
	record := c.name("A map of the Purus")
	c.open(record)
	c.fill("#who", "Chandless, W.")
	c.click("button.go[value=save]")
	c.sees("Saved.", "Save as version 3")
	if c.back() {
		c.fill("#what", "A map of the river Purus")
		c.click("button.go[value=save]")
		c.answered(409)
		c.sees("admin saved version 2 meanwhile", "Save as version 3")
		c.has(map[string]string{"#what": "A map of the river Purus", "#who": "Chandless, W."})
	}
}
