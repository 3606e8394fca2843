package desk

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// TestFrames: no page may be shown within another site's page, whatever is answered.
func TestFrames(t *testing.T) {
	s := newSite(t)
	ed, out := s.as("ed"), s.browser()
	for name, p := range map[string]page{
		"sign in": out.get("/.desk/sign-in"), "no session": out.get("/.desk/"), "home": ed.get("/.desk/"), "form": ed.get("/.desk/new?namespace=ark:12345/x5"),
		"nothing there": ed.get("/.desk/nonsense"), "refused": s.as("sam").get("/.desk/namespace?namespace=ark:12345/x5"), "wrong form": ed.post("/.desk/new", url.Values{"do": {"save"}}), "file": ed.get("/.desk/names.csv"),
	} {
		if got := p.Header.Values("X-Frame-Options"); len(got) != 1 || got[0] != "DENY" {
			t.Errorf("%s: X-Frame-Options is %q", name, got)
		}
		const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		if got := p.Header.Values("Content-Security-Policy"); len(got) != 1 || got[0] != policy {
			t.Errorf("%s: Content-Security-Policy is %q", name, got)
		}
	}
}

// evil is a text that runs if a page takes it for markup.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>'`

// tame fails unless a page shows a text with evil in it as text.
func (p page) tame(what string) {
	p.t.Helper()
	if strings.Contains(p.text, "<script>alert") || strings.Contains(p.text, "<img src=x") {
		p.t.Errorf("%s is markup on %s", what, p.Request.URL)
	}
	if text := html.UnescapeString(p.text); !strings.Contains(text, "alert(1)") {
		p.t.Errorf("%s is not on %s, so nothing was tested:\n%s", what, p.Request.URL, p.main())
	}
	for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(p.text, -1) {
		if u, err := url.Parse(html.UnescapeString(link[1])); err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
			p.t.Errorf("%s is the link %s on %s", what, link[1], p.Request.URL)
		}
	}
}

// TestStoredMarkup: what users write anywhere is text on every page that shows it, and what is refused is text beside its field.
func TestStoredMarkup(t *testing.T) {
	s := newSite(t)
	olga, ed, admin := s.as("olga"), s.as("ed"), s.as("admin")
	shows := func(what string, p page) {
		t.Helper()
		p.tame(what)
	}
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/q7", Title: evil, Owner: "olga", Reviewed: true, Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}}}))(t)
	for _, at := range []string{"/.desk/", "/.desk/namespaces", "/.desk/new?namespace=ark:12345/q7", "/.desk/namespace?namespace=ark:12345/q7", "/.desk/namespace/edit?namespace=ark:12345/q7", "/.desk/members?namespace=ark:12345/q7"} {
		shows("the title of a namespace", olga.get(at))
	}
	shows("the type and language of a target", ed.post("/.desk/new", url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://example.org/1"}, "target.0.type": {evil}, "target.0.language": {evil}}))

	path := ed.make(url.Values{"target.0.url": {"https://example.org/1"}, "own": {"ark:12345/x5t"}})
	ed.post("/.desk/withdraw", url.Values{"id": {"ark:12345/x5t"}, "version": {"1"}, "reason": {evil}, "do": {"withdraw"}}).leads(path)
	for _, at := range []string{"/.desk/withdraw?id=ark:12345/x5t", "/.desk/history?id=ark:12345/x5t"} {
		shows("a tombstone", ed.get(at))
	}
	shows("a preview of a tombstone", ed.post("/.desk/withdraw", url.Values{"id": {"ark:12345/x5t"}, "version": {"2"}, "reason": {evil}, "replacement": {""}, "do": {"preview"}}))

	must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse("ark:12345/q7a"))(t), Targets: target(1)}))(t)
	edContext := auth.With(t.Context(), must(s.users.Principal(t.Context(), "ed"))(t))
	proposal := must(s.r.Propose(edContext, registrar.Proposal{Base: 1, Note: evil, Record: &stele.Record{ID: must(s.names.Parse("ark:12345/q7a"))(t), State: stele.Active, Metadata: stele.Metadata{"what": evil}, Targets: target(2)}}))(t)
	shows("the note of a proposal", olga.get(proposalURL(proposal.ID)))
	shows("a proposal", olga.get("/.desk/proposals"))
	olga.post("/.desk/proposal/decline", url.Values{"id": {proposal.ID}, "reason": {evil}})
	shows("why a proposal was declined", ed.get(proposalURL(proposal.ID)))

	if _, _, err := s.r.CreateToken(s.admin, auth.TokenRequest{User: "ed", Label: evil, Scopes: []auth.Scope{auth.ScopeRead}}); err != nil {
		t.Fatal(err)
	}
	shows("the label of a token", ed.get("/.desk/account"))
	shows("the label of a token", admin.get("/.desk/person?name=ed"))

	inside := must(s.users.Principal(t.Context(), "ed"))(t)
	inside.Session, inside.Proved = "test", s.now
	must(s.r.AddPasskey(auth.With(t.Context(), inside), auth.Passkey{User: "ed", Name: evil, Site: "id.example.org", Credential: []byte("credential"), PublicKey: []byte("key")}, auth.Answered{ID: "x", Expires: s.now.Add(time.Hour)}))(t)
	shows("the name of a passkey", ed.get("/.desk/account"))
	shows("the name of a passkey", admin.get("/.desk/person?name=ed"))

	shows("a group", admin.post("/.desk/person", url.Values{"name": {"ed"}, "do": {"save"}, "groups": {evil}}))
	shows("a group with a role", olga.post("/.desk/members/give", url.Values{"namespace": {"ark:12345/x5"}, "kind": {"group"}, "to": {evil}, "role": {"editor"}}))
	shows("an heir", olga.post("/.desk/keeping/add", url.Values{"namespace": {"ark:12345/x5"}, "registry": {evil}, "address": {evil}, "days": {evil}}))
}

// TestOvertaken: the second of two editors sees what the first one wrote, and what was there before, as text.
func TestOvertaken(t *testing.T) {
	s := newSite(t)
	ed, olga := s.as("ed"), s.as("olga")
	path := ed.make(url.Values{"own": {"ark:12345/x5t"}, "target.0.url": {"https://example.org/1"}, "what": {"First"}})
	form := func(title string) url.Values {
		return url.Values{"id": {"ark:12345/x5t"}, "version": {"1"}, "do": {"save"}, "target.0.url": {"https://example.org/1"}, "what": {title}}
	}
	olga.post("/.desk/record", form("Olga's "+evil)).leads(path)
	p := ed.post("/.desk/record", form("Ed's title")).has(409, `<del><bdi class="lines">First</bdi></del><ins><bdi class="lines">Olga&#39;s `, `value="Ed&#39;s title"`)
	p.tame("the title that another user gave")
}

// TestMarkupOfBrowsers: what a browser says it is, is text on every page that lists sessions.
func TestMarkupOfBrowsers(t *testing.T) {
	s := newSite(t)
	credential, _, err := s.r.CreateLink(s.admin, "ed", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	r := must(http.NewRequest("POST", s.url+"/.desk/link/"+credential, nil))(t)
	r.Header.Set("User-Agent", evil)
	b.do(r).leads("/.desk/")
	b.get("/.desk/account").tame("a user agent")
	s.as("admin").get("/.desk/person?name=ed").tame("a user agent")
}

// TestMarkupOfServers: what other servers answer is text on the pages that tell where names lead, and no link runs a script.
func TestMarkupOfServers(t *testing.T) {
	s := newLinkSite(t)
	must(s.r.SetLinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = true }))(t)
	ed := s.as("ed")
	const address = "https://example.org/?alert(1)"
	for i, f := range []apijson.LinkFinding{
		{State: "moved", Cause: "redirected", Final: "https://example.net/" + evil}, {State: "moved", Cause: "redirected", Final: "javascript:alert(1)//" + evil},
		{State: "blocked", Cause: "wall", Wall: evil}, {State: "broken", Cause: evil}, {State: "ok", Drift: evil, Title: evil}, {State: "broken", Cause: "not-found", Title: evil, Copy: "javascript:alert(1)//" + evil},
	} {
		f.URL, f.Status, f.Since, f.Checked = address+strings.Repeat("&", i), 200, s.now, s.now
		id := "ark:12345/x5m" + string(rune('0'+i))
		s.tell(id, f)
		for _, at := range []string{"/.desk/record?id=" + url.QueryEscape(id), "/.desk/record?id=" + url.QueryEscape(id) + "&take=0", "/.desk/record?id=" + url.QueryEscape(id) + "&copy=0", linksPage + "&kind=" + f.Kind()} {
			ed.get(at).tame("a finding " + f.State)
		}
	}
	ed.get(linksPage).tame("a finding")
	ed.get("/.desk/links/accept?namespace=ark:12345/x5&host=example.org").tame("a new address")
}

// TestMarkupOfJobs: what a file has is text in its preview, on the page of its job, and in the list of jobs.
func TestMarkupOfJobs(t *testing.T) {
	s := newSite(t)
	s.runJobs()
	ed := s.as("ed")
	ed.make(url.Values{"own": {"ark:12345/x5old"}, "target.0.url": {"https://example.org/old"}})
	const sheet = "PID,Link,Title," + `"""><script>alert(1)</script>"` + "\n,https://example.org/1," + `"""><img src=x onerror=alert(1)>"` + ",x\nark:12345/x5old,https://example.org/new,alert(1),y\n" + `"<script>alert(1)</script>",https://example.org/3,Bad,z` + "\n"
	path := ed.send("<img src=x onerror=alert(1)>.csv", sheet, intoX5).leads("/.desk/many/").location()
	for _, at := range []string{path, path + "?kind=new", path + "?kind=refused"} {
		ed.get(at).tame("a row")
	}
	// The name is withdrawn while the job waits, so that the job says why it left a row.
	ed.post("/.desk/withdraw", url.Values{"id": {"ark:12345/x5old"}, "version": {"1"}, "reason": {evil}, "do": {"withdraw"}})
	job := ed.write(path, "good").leads("/.desk/jobs/").location()
	ed.awaitJob(job).tame("a row that was not written")
	ed.get("/.desk/jobs").tame("the name of a file")
	ed.get(job + "/undo").tame("the name of a file")
	ed.get("/.desk/replace?from=" + url.QueryEscape("https://example.org/"+evil) + "&to=" + url.QueryEscape("https://example.org/"+evil)).tame("what is replaced")
}

// TestMarkupOfZones: what is refused beside the fields of a zone, and what other name servers say, is text.
func TestMarkupOfZones(t *testing.T) {
	s, z := newZonedSite(t)
	admin := s.as("admin")
	admin.make(url.Values{"own": {"ark:12345/x5a"}, "target.0.url": {"https://example.org/a"}})
	for _, field := range []string{"zone", "servers", "mailbox", "secondaries", "separator", "resolver", "parts", "layout"} {
		admin.post("/.desk/zone", zoneValues("1", field, evil)).has(422).tame("the field " + field)
	}
	admin.post("/.desk/tsig", url.Values{"name": {evil}}).has(422).tame("the name of a key")
	admin.follow(admin.post("/.desk/zone", zoneValues("1", "parts", "")))
	z.err = errors.New(evil)
	z.secondaries = []stele.SecondaryAnswer{{Zone: "maps.example.", At: evil, Why: evil}}
	admin.follow(admin.post("/.desk/zone/check", url.Values{"namespace": {"ark:12345/x5"}})).tame("what a name server says")
}

// TestMarkupOfIssuers: the name of an account is text, and so is that of its provider.
func TestMarkupOfIssuers(t *testing.T) {
	s := newIssuerSite(t, "invited", func(o *issuer.Settings) { o.Label = evil })
	s.browser().get("/.desk/sign-in").tame("the name of a provider")
	s.provider.SignIn(map[string]any{"sub": "7" + evil, "preferred_username": evil, "groups": []string{evil}}, map[string]any{"name": evil, "email": evil})
	olga := s.as("olga")
	p := olga.post("/.desk/account/issuer", url.Values{"issuer": {"campus"}}).has(200)
	p.tame("the name of a provider")
	olga.get(s.atProvider(s.link(p))).leads("/.desk/account?done=issuer-joined")
	olga.get("/.desk/account").tame("the name of an account")
	s.as("admin").get("/.desk/person?name=olga").tame("the name of an account")
}
