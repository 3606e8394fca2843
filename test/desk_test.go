package test

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// axe is axe-core 4.14.0, which judges accessibility (MPL 2.0).
//
//go:embed testdata/axe/axe.min.js
var axe string

// TestDesk has a curator work at the desk of the demo in Chromium, with scripts and without, and
// judges every page: layout at 320 and 1280 points, light and dark, accessibility by axe-core
// (WCAG 2.2 AA), in both languages. With STELE_PICTURES it keeps pictures of the pages there.
func TestDesk(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			newCurator(t, "http://"+served.http, scripts).work(scripts)
		})
	}
	t.Run("keyboard", func(t *testing.T) { newCurator(t, "http://"+served.http, true).walk() })
}

// tabTo presses Tab until something has the focus, and sees where the focus is on the way.
func (c *curator) tabTo(selector string) {
	c.t.Helper()
	for range 100 {
		c.press("Tab", "Tab", 9, "")
		if hidden := c.text(`(() => { const e = document.activeElement; if (e === document.body) return ""; const s = getComputedStyle(e), r = e.getBoundingClientRect(); return s.outlineStyle === "none" && s.boxShadow === "none" || !r.width || !r.height ? e.outerHTML.slice(0, 200) : "" })()`); hidden != "" {
			c.t.Errorf("%s: the focus can't be seen on %s", c.text("location.href"), hidden)
		}
		if c.text(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == "true" {
			return
		}
	}
	c.t.Fatalf("the key Tab does not lead to %s on %s", selector, c.text("location.href"))
}

// enter presses Enter, which leads to another page.
func (c *curator) enter() {
	c.t.Helper()
	c.press("Enter", "Enter", 13, "\r")
	c.wait()
}

// typeInto writes a text into an input to which Tab leads.
func (c *curator) typeInto(selector, text string) {
	c.t.Helper()
	c.tabTo(selector)
	c.do("Input.insertText", map[string]any{"text": text}, nil)
}

// walk signs in, makes a name, changes it and looks at its history, by the keyboard alone.
func (c *curator) walk() {
	c.open(c.site + "/.desk/")
	c.tabTo("form[action$=demo] button")
	c.enter()
	c.sees("Welcome, admin")
	c.tabTo(`a[href^="/.desk/new?namespace=ark%3A12345%2Fx5"]`)
	c.enter()
	c.typeInto("#target-0-url", "https://maps.example.org/keys")
	c.typeInto("#what", "Made by keys")
	c.tabTo("button.go[value=save]")
	c.enter()
	c.sees("The name is made.", "Made by keys")
	c.typeInto("#who", "Costa, R.")
	c.tabTo("button.go[value=save]")
	c.enter()
	c.sees("Saved.")
	c.tabTo(`a[href^="/.desk/history"]`)
	c.enter()
	c.sees("registered")
	c.tabTo("form[action$=revert] button")
	c.enter()
	c.sees("version 3")
}

// curator is a user of the desk.
type curator struct {
	*browser
	t    *testing.T
	site string
	mute bool   // scripts do not run, nor does axe-core
	user string // whom a proxy says the browser's user to be; "" if none does
}

// newCurator starts a browser at a site, in which scripts of pages run or do not.
func newCurator(t *testing.T, site string, scripts bool) *curator {
	t.Helper()
	c := &curator{browser: startBrowser(t), t: t, site: site, mute: !scripts}
	c.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !scripts}, nil)
	c.width(1280, "light")
	return c
}

// text returns what an expression of JavaScript is.
func (c *curator) text(expression string) (text string) {
	c.t.Helper()
	c.eval("String("+expression+")", &text)
	return text
}

// fill writes a text into an input.
func (c *curator) fill(selector, text string) {
	c.t.Helper()
	if got := c.text(fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (!e) return "no"; for (let d = e.closest("details"); d; d = d.parentElement.closest("details")) d.open = true; e.focus(); if (e.select) e.select(); return "yes" })()`, selector)); got != "yes" {
		c.t.Fatalf("there is no %s on %s", selector, c.text("location.href"))
	}
	c.do("Input.insertText", map[string]any{"text": text}, nil)
}

// click clicks something that leads to another page.
func (c *curator) click(selector string) {
	c.t.Helper()
	if got := c.text(fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (!e) return "no"; e.click(); return "yes" })()`, selector)); got != "yes" {
		c.t.Fatalf("there is no %s on %s:\n%s", selector, c.text("location.href"), c.text("document.body.innerText"))
	}
	c.wait()
}

// sees fails unless the page shows texts.
func (c *curator) sees(texts ...string) {
	c.t.Helper()
	page := c.text("document.body.innerText")
	for _, text := range texts {
		if !strings.Contains(page, text) {
			c.t.Errorf("%s does not show %q:\n%s", c.text("location.href"), text, page)
		}
	}
}

// work does what curators do.
func (c *curator) work(scripts bool) {
	c.open(c.site + "/.desk/")
	c.judge("sign-in")
	c.click("form[action$=demo] button")
	c.sees("Welcome, admin", "Your namespaces", "Last changes", "Maps of Pará")
	c.judge("home")

	// Make a name, with a mistake first.
	c.open(c.site + "/.desk/new?namespace=ark:12345/x5")
	c.fill("#target-0-url", "nonsense")
	c.fill("#what", "An atlas of rivers, by hand")
	c.click("button[value=save]")
	c.sees("There is one problem")
	if scripts && c.text(`document.activeElement.id`) != "problems" {
		c.t.Error("the list of problems has not got the focus")
	}
	c.judge("mistake")
	c.fill("#target-0-url", "https://maps.example.org/atlas")
	c.click("button[value=add-target]")
	c.fill("#target-1-url", "https://maps.example.org/atlas.pdf")
	c.fill("#target-1-type", "application/pdf")
	c.fill("#who", "Costa, R.")
	c.fill("#when", "2015-05")
	c.click("button[value=save]")
	c.sees("The name is made.", "An atlas of rivers, by hand", "active")
	c.judge("record")
	record := c.text("location.href")
	c.open(strings.Replace(record, "/record?", "/labels?", 1))
	c.sees("Labels", "An atlas of rivers, by hand")
	c.judge("labels")
	c.open(record)

	// Enter saves, and takes nothing away.
	c.fill("#who", "Costa, Rita")
	c.press("Enter", "Enter", 13, "\r")
	c.wait()
	c.sees("Saved.", "Save as version 3")
	if c.text(`document.querySelector("#target-1-url").value`) != "https://maps.example.org/atlas.pdf" {
		c.t.Error("Enter in a field took a target away")
	}
	c.click(`a[href^="/.desk/history"]`)
	c.click("form[action$=revert] button")
	c.open(record)

	// A proposal; who may write may propose as well.
	c.fill("#what", "An atlas of rivers and lakes")
	c.text(`document.querySelector("button[value=save]").value = "propose"`)
	c.click("button[value=propose]")
	c.sees("Proposed. An owner decides about it.", "Take it back")
	c.judge("proposal")
	c.open(c.site + "/.desk/proposals")
	c.sees("An atlas of rivers and lakes")
	c.judge("proposals")
	c.click("main ul a")
	c.click("form[action$=decline] button")
	c.open(record)

	// Change it, look at its history, and go back.
	c.fill("#what", "An atlas of great rivers")
	c.click("button[value=save]")
	c.sees("Saved.", "Save as version 5")
	c.click(`a[href^="/.desk/history"]`)
	c.sees("Version 4", "Version 1", "title changed")
	c.judge("history")
	c.click("form[action$=revert] button")
	c.sees("Reverted", "An atlas of rivers, by hand")

	// Find it by a word without its diacritics, as a file too.
	c.fill("input[type=search]", "atlas rivers")
	c.press("Enter", "Enter", 13, "\r")
	c.wait()
	c.sees("An atlas of rivers, by hand")
	c.judge("names")

	// Withdraw it, and see the tombstone first.
	c.open(record)
	c.click(`a[href^="/.desk/withdraw"]`)
	c.fill("#reason", "Printed twice.")
	c.click("button[value=preview]")
	c.sees("What readers will see", "Printed twice.")
	c.judge("withdraw")
	c.click("button[value=withdraw]")
	c.sees("Withdrawn. Readers see the tombstone", "withdrawn")
	c.open(c.site + "/.desk/account")
	c.sees("this one")
	c.judge("account")
	c.open(c.site + "/.desk/namespaces")
	c.judge("namespaces")

	// The same in Portuguese.
	c.click("footer button[lang=pt-BR]")
	c.sees("Espaços de nomes")
	for name, path := range map[string]string{"home": "/.desk/", "names": "/.desk/names", "new": "/.desk/new", "record": strings.TrimPrefix(record, c.site), "account": "/.desk/account"} {
		c.open(c.site + path)
		if got := c.text("document.documentElement.lang"); got != "pt-BR" {
			c.t.Errorf("%s is in %q", path, got)
		}
		c.judge(name + "-pt")
	}
	c.open(c.site + "/.desk/account")
	c.click("main > form[action$=sign-out] button")
	c.sees("Entrar")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			c.t.Error(problem)
		}
	}
}

// judge judges the page as it is: its layout, and by axe-core.
func (c *curator) judge(name string) {
	c.t.Helper()
	for _, width := range []int{320, 1280} {
		for _, colours := range []string{"light", "dark"} {
			at := fmt.Sprintf("%s, %d wide, %s", name, width, colours)
			c.width(width, colours)
			var bad []string
			c.eval(badLayout, &bad)
			if len(bad) > 0 {
				c.t.Errorf("%s: %s", at, strings.Join(bad, "; "))
			}
			c.picture(fmt.Sprintf("%s-%d-%s", name, width, colours))
			if (width == 320) == (colours == "dark") { // once narrow and once wide, once light and once dark
				for _, v := range c.violations() {
					c.t.Errorf("%s: %s", at, v)
				}
			}
		}
	}
	// With text twice as large (WCAG 2.2, 1.4.4).
	c.width(1280, "light")
	c.textSize(200)
	var bad []string
	c.eval(badLayout, &bad)
	if len(bad) > 0 {
		c.t.Errorf("%s, text of 200 %%: %s", name, strings.Join(bad, "; "))
	}
	c.picture(name + "-200")
	c.textSize(100)
}

// textSize sets the size of the text that a user has chosen in the browser, in per cent of the usual one.
func (c *curator) textSize(size int) {
	c.t.Helper()
	c.do("Page.setFontSizes", map[string]any{"fontSizes": map[string]int{"standard": 16 * size / 100, "fixed": 13 * size / 100}}, nil)
	if got, want := c.text("getComputedStyle(document.documentElement).fontSize"), fmt.Sprint(16*size/100, "px"); got != want {
		c.t.Fatalf("text is %s, not %s", got, want)
	}
}

// violations returns what axe-core finds.
func (c *curator) violations() (list []string) {
	c.t.Helper()
	if c.mute {
		return nil // the pages are the same as with scripts
	}
	var r struct {
		Result           struct{ Value []string }
		ExceptionDetails any
	}
	c.do("Runtime.evaluate", map[string]any{"expression": "window.axe ? 0 : (" + "() => {" + axe + "})()"}, nil)
	c.do("Runtime.evaluate", map[string]any{"awaitPromise": true, "returnByValue": true, "expression": `axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 200)).join(" | ")))`}, &r)
	if r.ExceptionDetails != nil {
		c.t.Fatalf("axe: %v", r.ExceptionDetails)
	}
	return r.Result.Value
}

// picture keeps a picture of the page with scripts, if STELE_PICTURES names a folder.
func (c *curator) picture(name string) {
	folder := os.Getenv("STELE_PICTURES")
	if folder == "" || c.mute {
		return
	}
	var r struct{ Data string }
	c.do("Page.bringToFront", nil, nil) // nothing is drawn of another tab
	c.do("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &r)
	image, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	writeFile(c.t, filepath.Join(folder, name+".png"), string(image), 0o644)
}
