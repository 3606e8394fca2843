package test

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// TestDeskNamespaces has an administrator make a namespace at the desk of the demo in Chromium, publish
// it in the DNS and sign it, with scripts and without. Dig and kdig then get what the desk showed.
func TestDeskNamespaces(t *testing.T) {
	served := visitDemo(t)
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			c := newCurator(t, "http://"+served.http, scripts)
			c.open(c.site + "/.desk/")
			c.click("form[action$=demo] button")
			prefix, zone := "ark:54321/q7", "letters.example"
			if !scripts {
				prefix, zone = "ark:54321/q8", "post.example"
			}
			c.makeNamespace(prefix)
			c.publishNamespace(served, prefix, zone)
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
	c.click("footer button[lang=en]")
}

// publishNamespace publishes a namespace, signs its zone, and checks its steps.
func (c *curator) publishNamespace(served *demo, prefix, zone string) {
	c.open(c.site + "/.desk/new?namespace=" + prefix)
	c.fill("#target-0-url", "https://www.example.org/letter")
	c.click("button[value=save]")
	c.sees("The name is made.")
	name := strings.TrimPrefix(c.text(`new URL(location.href).searchParams.get("id")`), prefix)
	c.open(c.site + "/.desk/namespace?namespace=" + prefix)
	c.sees("It is not published in the DNS.")
	c.click(`a[href^="/.desk/zone"]`)
	c.fill("#zone", zone)
	c.fill("#servers", "ns1."+zone+" 127.0.0.1")
	c.fill("#mailbox", "nonsense")
	c.click("button[value=save]")
	c.sees("There is one problem", "is not a mailbox")
	c.fill("#mailbox", "hostmaster@example.org")
	c.fill("#resolver", "id.example.org")
	c.click("button[value=look]")
	c.sees("A name becomes this domain name:", name+"."+zone+".")
	c.judge("zone-new")
	c.click("button[value=save]")
	c.sees("Saved. The steps below", "Please delegate "+zone+".", "Not checked yet.")
	c.click("button[value=online]")
	c.sees("In the mode online", "Key tag")
	c.click("form[action$=check] button")
	c.sees("Every step was checked.", "Its name servers answer", "It could not be found out")
	c.judge("zone")
	host, port, err := net.SplitHostPort(served.dns)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, program := range []string{"dig", "kdig"} {
		for kind, want := range map[string]string{"NAPTR": "https://www.example.org/letter", "URI": "https://www.example.org/letter"} {
			out, err := exec.CommandContext(c.t.Context(), program, "@"+host, "-p", port, "+short", name+"."+zone, kind).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				c.t.Errorf("%s %s: %v\n%s", program, kind, err, out)
			}
		}
		out, err := exec.CommandContext(c.t.Context(), program, "@"+host, "-p", port, "+dnssec", name+"."+zone, "NAPTR").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "RRSIG") {
			c.t.Errorf("%s: the answer is not signed: %v\n%s", program, err, out)
		}
	}
	c.click(`a[href^="/.desk/zone/keys"]`)
	c.sees("active: it signs")
	c.click("button[name=role]")
	c.sees("The keys have changed.", "Next step", "It can be done from this time on:")
	c.judge("zone-keys")
	c.open(c.site + "/.desk/")
	c.click("footer button[lang=pt-BR]")
	c.open(c.site + "/.desk/zone?namespace=" + prefix)
	c.sees("Passos até que o mundo encontre a zona")
	c.judge("zone-pt")
}

// until waits until an expression of JavaScript is true.
func (c *curator) until(condition string) {
	c.t.Helper()
	c.do("Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": "new Promise(done => { const look = () => (" + condition + ") ? done() : setTimeout(look, 20); look() })"}, nil)
}
