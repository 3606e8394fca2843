package test

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeskUsage has readers follow names of the demo, which the running server counts, and a curator look at the figures in Chromium.
func TestDeskUsage(t *testing.T) {
	served := visitDemo(t, "STELE_USAGE_INTERVAL=1s")
	site := "http://" + served.http
	const name = "ark:12345/x5xm4dd26"
	for _, agent := range []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla/5.0 (Macintosh; rv:139.0) Gecko/20100101 Firefox/139.0", "curl/8.14.1", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"} {
		readName(t, site+"/"+name, agent)
	}
	c := newCurator(t, site, true)
	c.open(site + "/.desk/")
	c.click("form[action$=demo] button")
	c.open(site + "/.desk/record?id=" + name)
	for !strings.Contains(c.text("document.body.innerText"), "3 resolutions in 13 months") { // until the server has written them
		c.open(c.text("location.href"))
	}
	// The curator follows the name: what users of the desk do is not counted.
	c.click("main aside a[rel=noopener]")
	c.open(site + "/.desk/record?id=" + name)
	c.judge("use-record")
	c.click(`a[href^="/.desk/usage"]`)
	c.sees("3\nresolutions", "1\nby robots, apart", "Counted since", "so far", "stele usage "+name)
	c.judge("use-name")
	c.click("nav.choose a")
	c.sees("3\nresolutions")
	c.fill("#from", "soon")
	c.click("form.choose button")
	c.sees("There is one problem", "is not a month or a day")
	c.judge("use-mistake")

	c.open(site + "/.desk/")
	c.click(`a[href="/.desk/usage?namespace=ark%3A12345%2Fx5"]`)
	c.sees("resolutions", "visitors, day by day", "Most used names", "An atlas of rivers", "Where readers come from", "Names that were not used")
	c.judge("use-namespace")
	c.click(`a[href*="show=unused"]`)
	c.sees("All names were used", "Counting began on")
	c.open(site + "/.desk/usage?namespace=ark%3A12345%2Fb2&show=unused")
	c.sees("no reader used", "made ")
	c.judge("use-unused")
	c.open(site + "/.desk/usage?namespace=ark%3A12345%2Fx5")
	// The owner makes the figures public, and a reader looks at them.
	c.text(`(() => { document.querySelector("input[name=public]").checked = true; return "yes" })()`)
	c.click("form[action='/.desk/usage'][method=post] button")
	c.sees("Saved.", "The public page")
	c.judge("use-settings")
	c.click(`a[href^="/.usage/"]`)
	c.sees("resolutions", "Counted since", "What is counted") // none of a month that is not over
	c.judge("public-use-namespace-en")
	c.open(site + "/.info/" + name)
	c.sees("It was not used in the months that are over.")
	c.judge("public-use-record-en")
	c.click(`a[href*="/.usage/"]`)
	c.sees("An atlas of rivers", "resolutions")
	c.judge("public-use-name-en")
	c.click(`footer a[hreflang="pt-BR"]`)
	c.sees("resoluções", "por robôs, à parte")
	c.judge("public-use-name-pt")
	c.open(site + "/.usage/ark:12345/x5")
	c.sees("resoluções")
	c.judge("public-use-namespace-pt")
	c.click(`footer a[hreflang="en"]`)
	c.open(site + "/.desk/usage?namespace=ark%3A12345%2Fx5")
	c.click("footer button[lang=pt-BR]")
	c.sees("resoluções", "por robôs, à parte")
	c.judge("use-namespace-pt")
	for _, problem := range c.complaints() {
		if !strings.Contains(problem, "the server responded with a status of 4") {
			t.Error(problem)
		}
	}
}

// readName follows a name as a reader does.
func readName(t *testing.T, at, agent string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", agent)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 3 {
		t.Fatalf("%s is answered with %s", at, answer.Status)
	}
}
