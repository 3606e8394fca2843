package test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/auth/issuer/issuertest"
)

// deskPage is a page of the desk, or of the public site, as a user comes to it.
type deskPage struct {
	pattern string // the path of its route, below the desk; "" of a page that a form answers with
	at      string // its address below the site, in which {NAME} stands for what the set-up has found
	file    bool   // it is a file, which has no page to judge
	status  int    // of the answer; 0: 200

	do func(d *axeDesk, tongue string) // opens the page of a form
	by func(d *axeDesk) *curator       // who looks at it; nil: the administrator
}

// axeDesk is a demonstration with all ways to sign in, with mail, zones, and checks of links, and the users who look at it.
type axeDesk struct {
	*curator          // signed in as the administrator
	guest    *curator // not signed in
	doubted  *curator // signed in by a proxy, and has proved nothing
	found    []string // pairs of {NAME} and what it stands for
}

func (d *axeDesk) visitor() *curator { return d.guest }

// axePages are all pages. Each route of the desk that is read has at least one of them.
var axePages = []deskPage{
	{pattern: "{$}", at: "/.desk/"},
	{pattern: "names", at: "/.desk/names"},
	{pattern: "names", at: "/.desk/names?q=nothing-like-it"},
	{pattern: "names.csv", at: "/.desk/names.csv", file: true},
	{pattern: "bundle.tgz", at: "/.desk/bundle.tgz?namespace={x5}", file: true},
	{pattern: "namespaces", at: "/.desk/namespaces"},
	{pattern: "namespace", at: "/.desk/namespace?namespace={x5}"},
	{pattern: "namespace/new", at: "/.desk/namespace/new"},
	{pattern: "namespace/edit", at: "/.desk/namespace/edit?namespace={x5}"},
	{pattern: "zone", at: "/.desk/zone?namespace=urn:paradisec"},
	{pattern: "zone", at: "/.desk/zone?namespace={x5}"},
	{pattern: "zone/keys", at: "/.desk/zone/keys?namespace=urn:paradisec"},
	{pattern: "tsig", at: "/.desk/tsig"},
	{pattern: "links", at: "/.desk/links?namespace={x5}"},
	{pattern: "links", at: "/.desk/links?namespace={b2}"},
	{pattern: "links.csv", at: "/.desk/links.csv?namespace={b2}", file: true},
	{pattern: "links/accept", at: "/.desk/links/accept?namespace={b2}&host=127.0.0.2"},
	{pattern: "new", at: "/.desk/new?namespace={x5}"},
	{pattern: "record", at: "/.desk/record?id={record}"},
	{pattern: "record", at: "/.desk/record?id=10.5072/rivers-draft"},
	{pattern: "history", at: "/.desk/history?id={record}"},
	{pattern: "withdraw", at: "/.desk/withdraw?id={record}"},
	{pattern: "disavow", at: "/.desk/disavow?id={record}&number=1"},
	{pattern: "proposals", at: "/.desk/proposals"},
	{pattern: "proposal", at: "{proposal}"},
	{pattern: "labels", at: "/.desk/labels?id={record}"},
	{pattern: "qr.svg", at: "/.desk/qr.svg?id={record}", file: true},
	{pattern: "qr.png", at: "/.desk/qr.png?id={record}", file: true},
	{pattern: "account", at: "/.desk/account"},
	{pattern: "mail", at: "/.desk/mail"},
	{pattern: "usage", at: "/.desk/usage?namespace={x5}"},
	{pattern: "usage", at: "/.desk/usage?id={record}"},
	{pattern: "usage.csv", at: "/.desk/usage.csv?namespace={x5}", file: true},
	{pattern: "audit", at: "/.desk/audit"},
	{pattern: "audit.csv", at: "/.desk/audit.csv", file: true},
	{pattern: "people", at: "/.desk/people"},
	{pattern: "invite", at: "/.desk/invite"},
	{pattern: "person", at: "/.desk/person?name=zoe"},
	{pattern: "many", at: "/.desk/many"},
	{pattern: "many/{id}", at: "{preview}"},
	{pattern: "many/{id}/rejects", at: "{preview}/rejects", file: true},
	{pattern: "jobs", at: "/.desk/jobs"},
	{pattern: "jobs/{id}", at: "{job}"},
	{pattern: "jobs/{id}/result.csv", at: "{job}/result.csv", file: true},
	{pattern: "jobs/{id}/rejects", at: "{job}/rejects", file: true},
	{pattern: "jobs/{id}/undo", at: "{job}/undo"},
	{pattern: "replace", at: "/.desk/replace"},
	{pattern: "replace", at: "/.desk/replace?from=https://maps.example.org/&to=https://maps.example.org/new/"},
	{pattern: "account/password", at: "/.desk/account/password"},
	{pattern: "account/passkeys/new", at: "/.desk/account/passkeys/new"},
	{pattern: "account/tokens/new", at: "/.desk/account/tokens/new"},
	{pattern: "rules", at: "/.desk/rules?namespace={x5}"},
	{pattern: "keeping", at: "/.desk/keeping?namespace={x5}"},
	{pattern: "members", at: "/.desk/members?namespace={x5}"},
	{pattern: "settings", at: "/.desk/settings"},

	{pattern: "sign-in", at: "/.desk/sign-in", by: (*axeDesk).visitor},
	{pattern: "link/{credential}", at: "{link}", by: (*axeDesk).visitor},
	{pattern: "link/{credential}", at: "/.desk/link/stele-link_x", by: (*axeDesk).visitor, status: 401},
	{pattern: "confirm/{user}/{credential}", at: "/.desk/confirm/zoe/stele-address_x", by: (*axeDesk).visitor, status: 401},
	{pattern: "digest/{user}/{credential}", at: "/.desk/digest/zoe/stele-digest_x", by: (*axeDesk).visitor, status: 401},
	{pattern: "issuer/{name}", at: "/.desk/issuer/nothing", by: (*axeDesk).visitor, status: 404},
	{pattern: "issuer/{name}/back", at: "/.desk/issuer/campus/back", by: (*axeDesk).visitor, status: 401},

	// What forms answer with.
	{do: (*axeDesk).mistake, status: 422},
	{do: (*axeDesk).overtaken, status: 409},
	{do: (*axeDesk).ended, status: 401},
	{do: (*axeDesk).tombstone},
	{do: (*axeDesk).invited},
	{do: (*axeDesk).tokenMade},
	{do: (*axeDesk).keyMade},
	{do: (*axeDesk).joined},
	{do: (*axeDesk).refused, status: 403, by: (*axeDesk).visitor},
	{at: "/.desk/account/password", status: 403, by: func(d *axeDesk) *curator { return d.doubted }},
	{at: "/.desk/nonsense", status: 404},
	{at: "/.desk/person?name=nobody-like-it", status: 404},

	// Public pages that TestFace does not judge.
	{at: "/.log/"},
	{at: "/.about/help"},
	{at: "/.about/imprint"},
}

// TestDeskPages has axe-core judge every page of the desk in both languages (WCAG 2.2 AA). A route without a page in the table fails.
func TestDeskPages(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join(root, "serve/desk/desk.go"))
	if err != nil {
		t.Fatal(err)
	}
	routes := make(map[string]bool)
	for _, m := range regexp.MustCompile(`"GET " \+ Root \+ "([^"]*)"`).FindAllStringSubmatch(string(source), -1) {
		routes[m[1]] = true
		if !slices.ContainsFunc(axePages, func(p deskPage) bool { return p.pattern == m[1] }) {
			t.Errorf("no page of %s is judged; add it to axePages", m[1])
		}
	}
	if len(routes) < 50 {
		t.Fatalf("%d routes were found in desk.go", len(routes))
	}
	d := newAxeDesk(t)
	for _, tongue := range []string{"en", "pt-BR"} {
		for _, c := range []*curator{d.curator, d.guest, d.doubted} {
			c.speak(tongue)
		}
		for i := range axePages {
			if p := &axePages[i]; p.pattern == "" || routes[p.pattern] {
				d.look(p, tongue)
			} else {
				t.Errorf("there is no route %s", p.pattern)
			}
		}
	}
}

// speak makes the browser ask for a language.
func (c *curator) speak(tongue string) {
	c.t.Helper()
	headers := map[string]string{"Accept-Language": tongue}
	if c.user != "" {
		headers["Remote-User"] = c.user
	}
	c.do("Network.setExtraHTTPHeaders", map[string]any{"headers": headers}, nil)
}

// look opens a page and judges it.
func (d *axeDesk) look(p *deskPage, tongue string) {
	d.t.Helper()
	c := d.curator
	if p.by != nil {
		c = p.by(d)
	}
	at := strings.NewReplacer(d.found...).Replace(p.at)
	if p.file { // it is not shown
		var kind string
		c.evalAwait(fmt.Sprintf(`fetch(%q).then(r => r.status + " " + r.headers.get("Content-Type"))`, at), &kind)
		if !strings.HasPrefix(kind, "200 ") || strings.Contains(kind, "html") {
			d.t.Errorf("%s is %s", at, kind)
		}
		return
	}
	name := at
	if p.do != nil {
		p.do(d, tongue)
		name = c.text("document.title")
	} else {
		c.open(c.site + at)
		if want, _, _ := strings.Cut(at, "?"); c.text("location.pathname") != want {
			d.t.Errorf("%s leads to %s:\n%s", at, c.text("location.href"), c.text("document.body.innerText"))
			return
		}
	}
	if got := c.text("document.documentElement.lang"); got != tongue {
		d.t.Errorf("%s is in %q, want %q", name, got, tongue)
	}
	c.answered(max(p.status, 200))
	for _, v := range c.violations() {
		d.t.Errorf("%s in %s: %s", name, tongue, v)
	}
}

// newAxeDesk starts the desk and a browser, and makes what the pages show.
func newAxeDesk(t *testing.T) *axeDesk {
	folder, port := t.TempDir(), freePort(t)
	site := fmt.Sprintf("http://localhost:%d", port)
	d := &axeDesk{}
	provider := issuertest.Start(t, time.Now)
	for name, text := range map[string]string{
		"mail": "secret", "campus": issuertest.Secret,
		"about.en.md": "Ours.", "help.en.md": "# Help\n\nAsk [us](mailto:ids@example.org).\n\n- first\n- second\n", "help.pt-BR.md": "# Ajuda\n\nEscreva.\n", "imprint.en.md": "The library of examples.", "imprint.pt-BR.md": "A biblioteca de exemplos.",
		"stele.toml": fmt.Sprintf(`
http = "127.0.0.1:%d"
dns = ["127.0.0.1:%d"]
base = %q
passwords = true
site-name = "Biblioteca de exemplos"
site-contact = "ids@example.org"
site-texts = %q
trusted-proxies = ["127.0.0.1"]
proxy-user-header = "Remote-User"
mail-server = "localhost:%d"
mail-user = "stele"
mail-password-file = %q
mail-from = "Archive <ids@example.org>"
issuer.campus = %q
issuer-label.campus = "Campus"
issuer-client.campus = %q
issuer-secret-file.campus = %q
issuer-allow = ["127.0.0.1"]
`, port, freePort(t), site, folder, freePort(t), filepath.Join(folder, "mail"), provider.URL, issuertest.Client, filepath.Join(folder, "campus")),
	} {
		writeFile(t, filepath.Join(folder, name), text, 0o600)
	}
	serveConfig(t, folder, filepath.Join(folder, "stele.toml"), site, "--demo")

	d.curator = newCurator(t, site, true)
	d.do("Network.enable", nil, nil)
	d.guest, d.doubted = d.in(d.anotherUser()), d.in(d.anotherUser())
	d.prepare()
	return d
}

// prepare makes what the pages show.
func (d *axeDesk) prepare() {
	d.t.Helper()
	d.guest.do("Network.enable", nil, nil)
	d.doubted.do("Network.enable", nil, nil)
	d.speak("en")
	d.open(d.site + "/.desk/")
	d.click("form[action$=demo] button")
	found := map[string]string{"x5": "ark:12345/x5", "b2": "ark:12345/b2"}

	d.open(d.site + "/.desk/links?namespace=ark:12345/b2")
	d.click("button[value=on]")

	found["record"] = strings.TrimPrefix(d.name("An atlas of rivers"), d.site+"/.desk/record?id=")
	d.fill("#who", "Costa, R.")
	d.click("button.go[value=save]")
	d.fill("#what", "An atlas of rivers and lakes")
	d.text(`document.querySelector("button[value=save]").value = "propose"`)
	d.click("button[value=propose]")
	found["proposal"] = d.text(`location.pathname + "?id=" + new URL(location.href).searchParams.get("id")`)

	send := func() string {
		d.open(d.site + "/.desk/many")
		d.fill("#text", "Link;Title;Shelf mark\nhttps://maps.example.org/1;Mapa do Pará, folha 1;B 1\nhtps://maps.example.org/2;Rio Tapajós;B 3\n")
		d.choose("#namespace", "ark:12345/x5")
		d.click("form[enctype] button.go")
		return d.text("location.pathname")
	}
	send()
	d.click("button[value=good]")
	d.awaitJob()
	found["job"] = d.text("location.pathname")
	found["preview"] = send()

	d.open(d.site + "/.desk/invite")
	d.fill("#name", "zoe")
	d.fill("#groups", "maps")
	d.choose("#namespace", "ark:12345/x5")
	d.choose("#role", "editor")
	d.click("button[value=invite]")
	found["link"] = strings.TrimPrefix(d.text(`document.querySelector(".copy code").textContent`), d.site)
	d.open(d.site + "/.desk/invite")
	d.fill("#name", "rita")
	d.fill("#address", "rita@example.org") // a mail that waits: there is no such server
	d.click("button[value=invite]")

	// Zoe comes by the proxy.
	d.doubted.user = "zoe"
	d.doubted.speak("en")
	d.doubted.open(d.site + "/.desk/sign-in")
	d.doubted.click("form[action$='sign-in/proxy'] button")

	for name, is := range found {
		d.found = append(d.found, "{"+name+"}", is)
	}
}

// mistake sends a form with problems in it.
func (d *axeDesk) mistake(string) {
	d.open(d.site + "/.desk/new?namespace=ark:12345/x5")
	d.fill("#target-0-url", "nonsense")
	d.fill("#until", "2001-01-01")
	d.click("button.go[value=save]")
}

// overtaken saves a record that another tab has saved meanwhile.
func (d *axeDesk) overtaken(tongue string) {
	at := d.site + strings.NewReplacer(d.found...).Replace("/.desk/record?id={record}")
	d.open(at)
	other := d.in(d.anotherTab())
	other.open(at)
	other.fill("#what", "An atlas of great rivers, "+tongue)
	other.click("button.go[value=save]")
	d.fill("#what", "An atlas of long rivers")
	d.click("button.go[value=save]")
}

// ended sends a form after the session has ended in another tab, in which the user signs in again.
func (d *axeDesk) ended(string) {
	d.open(d.site + "/.desk/new?namespace=ark:12345/x5")
	d.fill("#what", "An atlas of rivers")
	other := d.in(d.anotherTab())
	other.open(d.site + "/.desk/account")
	other.click("main > form[action$=sign-out] button")
	d.click("button.go[value=save]")
	other.open(d.site + "/.desk/sign-in")
	other.click("form[action$=demo] button")
}

func (d *axeDesk) tombstone(string) {
	d.open(d.site + strings.NewReplacer(d.found...).Replace("/.desk/withdraw?id={record}"))
	d.fill("#reason", "Printed twice.")
	d.click("button[value=preview]")
}

func (d *axeDesk) invited(tongue string) {
	d.open(d.site + "/.desk/invite")
	d.fill("#name", "ana-"+strings.ToLower(tongue))
	d.click("button[value=invite]")
}

func (d *axeDesk) tokenMade(string) {
	d.open(d.site + "/.desk/account/tokens/new")
	d.fill("#label", "nightly import")
	d.click("main form button")
}

func (d *axeDesk) keyMade(tongue string) {
	d.open(d.site + "/.desk/tsig")
	d.fill("#name", strings.ToLower(tongue)+".example.net")
	d.click("form[action='/.desk/tsig'] button")
}

// joined is the page that leads to an OpenID provider.
func (d *axeDesk) joined(string) {
	d.open(d.site + "/.desk/account")
	d.click("form[action$='account/issuer'] button")
}

// refused comes back from a provider with an account that is linked to no user.
func (d *axeDesk) refused(string) {
	d.guest.open(d.site + "/.desk/issuer/campus?next=" + url.QueryEscape("/.desk/"))
}
