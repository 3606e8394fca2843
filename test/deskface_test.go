package test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// TestFace looks at the public pages in both languages, on a telephone and a large screen, in light
// and dark, and has axe-core judge them (WCAG 2.2 AA). A reader switches the language by a link.
func TestFace(t *testing.T) {
	served := visitDemo(t)
	c := newCurator(t, "http://"+served.http, true)
	for _, tongue := range []struct{ tag, motto string }{{"en", "Names that outlive their addresses."}, {"pt-BR", "Nomes que sobrevivem aos seus endereços."}} {
		for _, page := range []struct{ name, path string }{
			{"public-home", "/"},
			{"public-protocol", "/.urn"},
			{"public-record", "/.info/urn:paradisec:AB1:001:A"},
			{"public-withdrawn", "/doi:10.5072/rivers-draft"},
			{"public-mistyped", "/ark:12345/x5mx4dd26"},
			{"public-invalid", "/ark:/12/x"},
			{"public-explain", "/urn:paradisec:AB1:001:A?explain"},
			{"public-version", "/.info/urn:paradisec:AB1:001:A?version=1"},
			{"public-nothing", "/.nothing"},
			{"public-about", "/.about"},
			{"public-docs", "/.docs/"},
			{"public-docs-tour", "/.docs/tour"},
			{"public-docs-tables", "/.docs/comparison"},
			{"public-api", "/api/v1"},
			{"public-api-group", "/api/v1?group=names"},
			{"public-api-search", "/api/v1?q=mint"},
		} {
			c.open(c.site + page.path)
			if tongue.tag == "pt-BR" && page.name == "public-home" {
				c.click(`footer a[hreflang="pt-BR"]`)
			}
			if got := c.text("document.documentElement.lang"); got != tongue.tag {
				t.Errorf("%s is in %q, want %q", page.path, got, tongue.tag)
			}
			c.sees(tongue.motto)
			c.judge(page.name + "-" + tongue.tag)
		}
	}
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}

// TestProtocolHandler registers the site in Chromium as the handler of links, as far as a test can:
// the function of the browser that asks its user is replaced by one that writes down how it is called.
func TestProtocolHandler(t *testing.T) {
	served := visitDemo(t)
	c := newCurator(t, "http://"+served.http, true)
	c.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `window.asked = []; navigator.registerProtocolHandler = (...args) => asked.push(args.join(" "))`}, nil)
	c.open(c.site + "/")
	c.click(`a[href="/.urn"]`)
	for i, protocol := range []string{"urn", "web+urn"} {
		c.text(`document.querySelector("button[data-protocol='` + protocol + `']").click()`)
		if got, want := c.text(fmt.Sprintf("asked[%d]", i)), protocol+" "+c.site+"/.urn?uri=%s"; got != want {
			t.Errorf("the browser is asked for %q, want %q", got, want)
		}
	}
	c.sees("The browser was asked.")
	c.judge("public-protocol-asked")

	// What a browser does then with a link.
	for _, link := range []string{"urn:paradisec:AB1:005:A", "web+urn:paradisec:AB1:005:A"} {
		c.open(c.site + "/.urn?uri=" + url.QueryEscape(link))
		if got := c.text("location.host"); got != served.site {
			t.Errorf("%s leads to %s, want %s", link, c.text("location.href"), served.site)
		}
	}
	c.open(c.site + "/.urn?uri=" + url.QueryEscape("javascript:alert(1)"))
	c.sees("This address opens links that begin with urn: or web+urn:")

	// The real function takes the arguments: it would throw otherwise.
	real := newCurator(t, "http://"+served.http, true)
	real.open(real.site + "/.urn")
	for _, protocol := range []string{"urn", "web+urn"} {
		real.text(`document.querySelector("button[data-protocol='` + protocol + `']").click()`)
		real.sees("The browser was asked.")
	}

	// Without scripts the page says what else can be done.
	mute := newCurator(t, "http://"+served.http, false)
	mute.open(mute.site + "/.urn")
	mute.sees("This browser can't be asked", mute.site+"/.urn?uri=%s")
	if mute.text(`document.querySelector("#offer").checkVisibility()`) != "false" {
		t.Error("there are buttons that do nothing")
	}
	for _, problem := range append(c.complaints(), real.complaints()...) {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}

// TestDeskReview judges the pages that need two users or a choice of one: a proposal as its owner sees it,
// and the settings, in both languages.
func TestDeskReview(t *testing.T) {
	served := visitDemo(t)
	owner, editor := newCurator(t, "http://"+served.http, true), newCurator(t, "http://"+served.http, true)
	owner.open(owner.site + "/.desk/")
	owner.click("form[action$=demo] button")
	owner.open(owner.site + "/.desk/invite?namespace=ark:12345/x5")
	owner.fill("#name", "rita")
	owner.choose("#namespace", "ark:12345/x5")
	owner.choose("#role", "editor")
	owner.click("button[value=invite]")
	editor.open(owner.text(`document.querySelector(".copy code").textContent`))
	editor.click("main button.go")
	editor.open(editor.site + "/.desk/names?namespace=ark:12345/x5")
	editor.click("main td a")
	editor.fill("#what", "An atlas of rivers and lakes")
	editor.text(`document.querySelector("button[value=save]").value = "propose"`)
	editor.click("button[value=propose]")
	editor.sees("Proposed. An owner decides about it.")

	for _, tongue := range []string{"en", "pt-BR"} {
		if tongue != "en" {
			owner.click(`footer button[lang="` + tongue + `"]`)
		}
		owner.open(owner.site + "/.desk/proposals")
		owner.click("main ul a")
		owner.sees("An atlas of rivers and lakes", "rita")
		if owner.text(`document.querySelector(".changes del").textContent`) == "" {
			t.Error("what was there before is not shown")
		}
		owner.judge("proposal-owner-" + tongue)
		owner.open(owner.site + "/.desk/settings")
		owner.judge("settings-" + tongue)
	}
	owner.open(owner.site + "/.desk/proposals")
	owner.click("main ul a")
	owner.click("form[action$=approve] button")
	owner.sees("An atlas of rivers and lakes")
	for _, problem := range append(owner.complaints(), editor.complaints()...) {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}
