package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeskPeople has an administrator invite a person in Chromium, who then signs in by the link,
// and look at the audit trail, with scripts and without.
func TestDeskPeople(t *testing.T) {
	served := visitDemo(t)
	for i, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			newCurator(t, "http://"+served.http, scripts).keepPeople(fmt.Sprint("nora", i))
		})
	}
}

// keepPeople does what administrators do with people.
func (c *curator) keepPeople(name string) {
	c.open(c.site + "/.desk/")
	c.click("form[action$=demo] button")
	c.click(`nav a[href="/.desk/people"]`)
	c.sees("People", "admin", "administrator")
	c.judge("people")
	c.click(`main a[href="/.desk/invite"]`)
	c.fill("#name", "Not a name")
	c.click("button[value=invite]")
	c.sees("There is one problem", "begins with a letter or a digit")
	c.judge("invite-mistake")
	c.fill("#name", name)
	c.fill("#groups", "staff, press")
	c.choose("#namespace", "ark:12345/x5")
	c.choose("#role", "editor")
	c.click("button[value=invite]")
	c.sees("Give this link to " + name)
	c.judge("invited")
	link := c.text(`document.querySelector(".copy code").textContent`)
	c.click(`main a[href^="/.desk/person"]`)
	c.sees(name, "staff", "press", "editor", "Maps of Pará")
	c.judge("person")
	c.click(`main a[href^="/.desk/members"]`)
	c.sees("Who may do what here", name, "editor")
	c.fill("#name", "nothing-like-it")
	c.click("form[action$=give] button")
	c.sees("there is no user")
	c.choose("#kind", "group")
	c.fill("#name", "press")
	c.text(`document.querySelector("form[action$=give] input[value=reader]").click()`)
	c.click("form[action$=give] button")
	c.sees("The role is given.", "press")
	c.fill("#user", name)
	c.click("form[action$=members] button")
	c.sees("What "+name+" may do here", "the group press")
	c.judge("members")
	c.click("form[action$=take] button")
	c.sees("The role is removed.")
	c.fill("#to", name)
	c.click("form[action$=hand-over] button")
	c.sees("The namespace has a new owner.", "named as the owner")
	c.open(c.site + "/.desk/audit")
	c.sees("as an administrator, named another owner of", "with an invitation:", "the user "+name, "the desk")
	c.judge("audit")
	c.choose("#operation", "invite user")
	c.click("form.filters button")
	c.sees("the link", "--operation 'invite user'")

	c.click("footer button[lang=pt-BR]")
	for page, path := range map[string]string{"people": "people", "invite": "invite", "person": "person?name=" + name, "members": "members?namespace=ark:12345/x5&user=" + name, "audit": "audit"} {
		c.open(c.site + "/.desk/" + path)
		if got := c.text("document.documentElement.lang"); got != "pt-BR" {
			c.t.Errorf("%s is in %q", path, got)
		}
		c.judge(page + "-pt")
	}
	c.click("footer button[lang=en]")

	// The invited person comes by the link.
	c.open(link)
	c.click("main button.go")
	c.sees("Welcome, "+name, "Maps of Pará")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			c.t.Error(problem)
		}
	}
}

// choose chooses an option of a select.
func (c *curator) choose(selector, value string) {
	c.t.Helper()
	if got := c.text(fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (!e) return "no"; e.value = %q; return e.value })()`, selector, value)); got != value {
		c.t.Fatalf("%s of %s can't be %q, it is %q", selector, c.text("location.href"), value, got)
	}
}
