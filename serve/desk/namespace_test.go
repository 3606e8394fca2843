package desk

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// newSpace returns a form for a new namespace.
func newSpace(prefix string, more ...string) url.Values {
	form := url.Values{"do": {"save"}, "prefix": {prefix}, "title": {"Old maps"}, "owner": {"olga"}, "minter-kind": {"noid"}, "minter-template": {".zeeddk"}, "checked": {"yes"}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

func TestMakeNamespace(t *testing.T) {
	s := newSite(t)
	b := s.as("admin")
	b.get("/.desk/namespaces").has(200, "Make a namespace")
	b.get("/.desk/namespace/new").has(200, "As an administrator you may", `value="ark"`, "shoulder")

	// Looking judges and shows names, and takes nothing.
	p := b.post("/.desk/namespace/new", newSpace("ark:/54321/q1", "do", "look")).has(200, "ark:54321/q1", "It is kept as", "ark:54321/q1000", "stele ns add ark:54321/q1 --title &#39;Old maps&#39;")
	if strings.Contains(p.text, `id="problems"`) {
		t.Errorf("a good form has problems\n%s", p.main())
	}
	b.get("/.desk/namespace?namespace=ark:54321/q1").has(404)

	// All problems are beside their fields.
	p = b.post("/.desk/namespace/new", newSpace("ark:54321/q1", "minter-template", "nonsense", "hosts", "https://x", "protocols", "gopher", "until", "some day", "delegate", "x", "ttl", "many", "status", "999", "quota", "-1", "owner", "\u202eann")).has(422)
	for _, field := range []string{"hosts", "protocols", "until", "delegate", "ttl", "status", "quota", "owner"} {
		if !strings.Contains(p.text, `href="#`+field+`"`) || !strings.Contains(p.text, `id="`+field+`-problem"`) {
			t.Errorf("nothing is said about %s\n%s", field, p.main())
		}
	}
	if !strings.Contains(p.text, `value="many"`) || !strings.Contains(p.text, "Old maps") {
		t.Error("something typed is lost")
	}
	b.post("/.desk/namespace/new", newSpace("ark:54321/q1", "minter-template", "nonsense")).has(422, `id="minter-template-problem"`)
	b.post("/.desk/namespace/new", newSpace("urn:!")).has(422, `id="prefix-problem"`)
	b.post("/.desk/namespace/new", newSpace("")).has(422, `id="prefix-problem"`)
	b.post("/.desk/namespace/new", newSpace("ark:12345/x5")).has(422, `id="prefix-problem"`, "exists")
	b.post("/.desk/namespace/new", newSpace("urn:example", "scheme", "ark")).has(422, `id="prefix-problem"`, "is a prefix of the scheme urn")
	b.post("/.desk/namespace/new", newSpace("ark:54321/q1", "minter-kind", "ibi", "minter-host", "a.example.org")).has(422, `id="minter-kind-problem"`)

	b.follow(b.post("/.desk/namespace/new", newSpace("ark:/54321/q1", "hosts", "example.org\n.example.org", "level", "permanent", "passthrough", "yes", "listed", "yes"))).has(200, "The namespace is made.", "Old maps", "The public may list its names.", "New names are opaque",
		"Addresses are at these hosts only: example.org, .example.org.", "Its names are promised to be: permanent.", "passed on", "0 names", "olga", "made")
	ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:54321/q1"}))(t)
	if ns.Owner != "olga" || !ns.Checked || ns.By != "admin" || len(ns.Hosts) != 2 {
		t.Errorf("got %+v", ns)
	}
	b.follow(b.post("/.desk/namespace/new", newSpace("102.100.272/", "minter-kind", "pilin", "checked", ""))).has(200, "as PILIN does", "102.100.272/")
	b.follow(b.post("/.desk/namespace/new", newSpace("urn:example", "minter-kind", "uuid", "checked", ""))).has(200, "UUIDs", "urn:example:")
	b.follow(b.post("/.desk/namespace/new", newSpace("sid.inpe.br/mtc-m18", "minter-kind", "ibi", "minter-host", "mtc-m18.sid.inpe.br", "checked", ""))).has(200, "made of dates", "sid.inpe.br/mtc-m18/2026")
}

func TestEditNamespace(t *testing.T) {
	s := newSite(t)
	olga, ed := s.as("olga"), s.as("ed")
	edit := "/.desk/namespace/edit?namespace=ark:12345/x5"
	olga.get("/.desk/namespace?namespace=ark:12345/x5").has(200, "Maps of Pará", "Change the settings", "Make a namespace below it", "user:ed", "editor")
	if p := ed.get("/.desk/namespace?namespace=ark:12345/x5").has(200, "Maps of Pará", "Make a name"); strings.Contains(p.text, "Change the settings") {
		t.Error("an editor is offered to change the settings")
	}
	ed.get(edit).has(403)
	olga.get(edit).has(200, `value=".zeeddk"`, ".example.org")
	form := func(version, title string) url.Values {
		return url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "version": {version}, "title": {title}, "owner": {"olga"}, "minter-kind": {"noid"}, "minter-template": {".zeeddk"}, "hosts": {".example.org\nexample.org"}}
	}
	olga.follow(olga.post("/.desk/namespace/edit", form("1", "Maps of Amapá"))).has(200, "Saved.", "Maps of Amapá", "Title")
	olga.follow(olga.post("/.desk/namespace/edit", form("2", "Maps of Amapá"))).has(200, "Nothing was changed")
	ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
	if len(ns.Grants) != 2 || ns.Minter.Template != ".zeeddk" {
		t.Errorf("what the form does not have is lost: %+v", ns)
	}
	// The administrator was faster.
	admin := s.as("admin")
	admin.post("/.desk/namespace/edit", form("2", "Theirs")).leads("/.desk/namespace?")
	olga.post("/.desk/namespace/edit", form("2", "Mine")).has(409, "admin saved version 3 meanwhile", "Title", `value="Mine"`, `name="version" value="3"`)
	olga.post("/.desk/namespace/edit", form("3", "Mine")).leads("/.desk/namespace?")
	wrong := form("4", "Mine")
	wrong.Set("hosts", "https://x")
	olga.post("/.desk/namespace/edit", wrong).has(422, `id="hosts-problem"`)
	wrong.Set("do", "look")
	olga.post("/.desk/namespace/edit", wrong).has(200, `id="hosts-problem"`)
	quota := form("4", "Mine")
	quota.Set("quota", "5")
	olga.post("/.desk/namespace/edit", quota).has(422, "may not change owner or quota")
	// An owner makes namespaces below their own only.
	olga.get("/.desk/namespace/new?prefix=ark:12345/x5").has(200, "You may make a namespace below one that you own", `value="ark:12345/x5"`)
	olga.post("/.desk/namespace/new", newSpace("ark:12345/x5a", "minter-kind", "")).leads("/.desk/namespace?")
	olga.post("/.desk/namespace/new", newSpace("ark:99999/a", "minter-kind", "")).has(422)
	s.as("sam").get("/.desk/namespace?namespace=ark:12345/x5").has(404)
	olga.get("/.desk/namespace?namespace=nonsense").has(404)
}

// TestNamespaceRights walks the forms of namespaces with every role.
func TestNamespaceRights(t *testing.T) {
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": false, "ruth": false, "sam": false} {
		s := newSite(t)
		b := s.as(user)
		for path, form := range map[string]url.Values{
			"/.desk/namespace/new":  newSpace("ark:12345/x5b", "minter-kind", ""),
			"/.desk/namespace/edit": {"do": {"save"}, "namespace": {"ark:12345/x5"}, "version": {"1"}, "title": {"New"}, "owner": {"olga"}, "minter-kind": {"noid"}, "minter-template": {".zeeddk"}},
		} {
			p := b.post(path, form)
			if done := p.StatusCode == http.StatusSeeOther && strings.Contains(p.Header.Get("Location"), "done="); done != may {
				t.Errorf("%s, %s: %s %s\n%s", user, path, p.Status, p.Header.Get("Location"), p.main())
			}
		}
	}
}
