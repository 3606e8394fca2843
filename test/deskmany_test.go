package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDeskMany has a curator send many rows at the desk of the demo in Chromium, look at the
// preview, start the job, undo it, and replace a host; with scripts and without.
func TestDeskMany(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			newCurator(t, "http://"+served.http, scripts).sendMany(fmt.Sprint(scripts))
		})
	}
}

// awaitJob waits until the job of the page has ended.
func (c *curator) awaitJob() {
	c.t.Helper()
	job := c.text("location.href")
	for range 600 {
		if c.text(`document.getElementById("live")?.dataset.live ?? "another page"`) == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
		c.open(job)
	}
	c.t.Fatalf("the job does not end:\n%s", c.text("document.body.innerText"))
}

func (c *curator) sendMany(tag string) {
	c.open(c.site + "/.desk/")
	c.click("form[action$=demo] button")
	c.open(c.site + "/.desk/many")
	c.judge("many")
	c.fill("#text", strings.ReplaceAll("Link;Title;Shelf mark\nhttps://maps.example.org/TAG/1;Mapa do Pará, folha 1;B 1\nhttps://maps.example.org/TAG/2;Mapa do Pará, folha 2;B 2\nhtps://maps.example.org/TAG/3;Rio Tapajós;B 3\n", "TAG", tag))
	c.text(`document.querySelector("#namespace").value = "ark:12345/x5"`)
	c.click("form[enctype] button.go")
	c.sees("3 rows", "Nothing is written yet", "semicolons", "will be made", "Rio Tapajós", "Write the 2 good rows")
	c.text(`document.querySelector("details.first").open = true`)
	c.judge("preview")
	c.click("button[value=good]")
	c.awaitJob()
	c.sees("3 of 3", "names made", "What was not written", "Undo it")
	c.judge("job")
	job := c.text("location.href")
	c.open(c.site + "/.desk/jobs")
	c.sees("Write pasted text")
	c.judge("jobs")
	c.open(c.site + "/.desk/replace?from=https://maps.example.org/" + tag + "/&to=https://maps.example.org/new-" + tag + "/")
	c.sees("2 names lead there")
	c.judge("replace")
	c.click("form[method=post][action$=replace] button.go")
	c.awaitJob()
	c.sees("2 of 2", "names changed")
	c.click(`a[href$="/undo"]`)
	c.sees("2 names get their former content")
	c.judge("undo")
	c.click("button.danger")
	c.awaitJob()
	c.sees("undone", "The job that it undoes")
	c.open(job)
	c.click("footer button[lang=pt-BR]")
	c.sees("nomes criados", "Desfazer")
	c.judge("job-pt")
	c.open(c.site + "/.desk/many")
	c.judge("many-pt")
	c.click("footer button[lang=en]")
	for _, problem := range c.complaints() {
		c.t.Error(problem)
	}
}
