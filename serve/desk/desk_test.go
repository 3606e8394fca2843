package desk

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/webtest"
)

// site is a desk with some users: admin, olga who owns the namespace ark:12345/x5, ed who edits
// it, ruth who reads it, and sam who has no role.
type site struct {
	t     *testing.T
	r     *registrar.Registrar
	names *stele.Schemes
	url   string
	admin context.Context

	handler *Handler
	jobs    *job.Board
	users   *auth.Directory

	store   stele.Store
	secrets *secret.Ring

	public *web.Pages

	now time.Time
}

// theDesk is the pages of all sites, read once.
var theDesk struct {
	sync.Once
	pages *deskpage.Pages
}

func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, now: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC), admin: auth.With(t.Context(), auth.Local())}
	clock := func() time.Time { return s.now }
	store := mem.New(clock)
	schemes := must(all.New(all.Config{Now: clock, PURLHosts: []string{"purl.org", "w3id.org", "purl.obolibrary.org"}}))(t)
	s.names = schemes
	directory := auth.NewDirectory(store, clock)
	s.store, s.secrets = store, secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"})
	s.r = registrar.New(store, schemes, registrar.Options{Now: clock, Secrets: s.secrets, OnAccess: directory.Forget})
	s.jobs, s.users = job.NewBoard(job.Options{Registrar: s.r, Schemes: schemes, Now: clock}), directory
	index := must(search.Open(t.Context(), search.Options{Source: store}))(t)
	t.Cleanup(func() { index.Close() })
	s.public = webtest.Pages(t)
	theDesk.Do(func() { theDesk.pages = must(deskpage.New(s.public, webtest.Languages(t)))(t) })
	o := Options{
		Registrar: s.r, Directory: directory, Store: store, Schemes: schemes, Pages: theDesk.pages, Languages: webtest.Languages(t), Now: clock, Jobs: s.jobs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Subject: func(r *http.Request, rec *stele.Record, ns *stele.Namespace) describe.Subject {
			return describe.Subject{Record: rec, Namespace: ns, Base: s.url, Self: s.url + "/" + rec.ID.String()}
		},
		OwnHost: func(*http.Request) bool { return true }, ClientAddr: func(*http.Request) netip.Addr { return netip.MustParseAddr("127.0.0.1") },
	}
	finder := &search.Finder{Index: index, Schemes: schemes, Get: s.r.Get, Sight: func(ctx context.Context, within stele.NamespaceKey) (search.Sight, error) {
		return s.r.Sight(ctx, within)
	}}
	o.Find = func(ctx context.Context, q search.Query) (search.Page, error) {
		if err := index.CatchUp(ctx); err != nil {
			return search.Page{}, err
		}
		return finder.Find(ctx, q)
	}
	for _, f := range change {
		f(&o)
	}
	s.handler = New(o)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	for _, name := range []string{"admin", "olga", "ed", "ruth", "sam"} {
		must(s.r.AddUser(s.admin, auth.User{Name: name, Admin: name == "admin"}))(t)
	}
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Title: "Maps of Pará", Owner: "olga", Hosts: []string{".example.org", "example.org"},
		Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zeeddk"}, Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}, {To: "user:ruth", Role: stele.RoleReader}}}))(t)
	return s
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// browser is a user's browser, without scripts.
type browser struct {
	*site
	client *http.Client
	lang   string
	once   bool // pages are not asked for in Portuguese too
}

func (s *site) browser() *browser {
	jar := must(cookiejar.New(nil))(s.t)
	return &browser{site: s, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as returns the browser of a user who is signed in.
func (s *site) as(user string) *browser {
	s.t.Helper()
	b := s.browser()
	credential, _, err := s.r.CreateLink(s.admin, user, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	b.post("/.desk/link/"+credential, nil).leads("/.desk/")
	return b
}

type page struct {
	*http.Response
	t    *testing.T
	text string
}

func (b *browser) do(r *http.Request) page {
	b.t.Helper()
	if b.lang != "" {
		r.Header.Set("Accept-Language", b.lang)
	}
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))(b.t)
	p := page{response, b.t, string(text)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && response.StatusCode/100 != 3 {
		p.wellFormed()
	}
	return p
}

// get opens a page, in Portuguese too, to see that no English is left there.
func (b *browser) get(path string) page {
	b.t.Helper()
	open := func() page { return b.do(must(http.NewRequest("GET", b.url+path, nil))(b.t)) }
	if !strings.Contains(path, "/back?") { // which is answered once
		b.translated(open)
	}
	return open()
}

// translated opens a page in Portuguese.
func (b *browser) translated(open func() page) {
	b.t.Helper()
	if b.lang == "" && !b.once {
		b.lang = "pt-BR"
		open()
		b.lang = ""
	}
}

// ours are English texts that are data of the tests, and not of pages.
var ours = []string{"Maps of Pará", "Maps of Amapá", "A title of two lines", "An atlas of rivers", "It was wrong.", "It was registered by import 1, which was reverted"}

// post sends a form. What is refused is sent in Portuguese too.
func (b *browser) post(path string, form url.Values) page {
	b.t.Helper()
	send := func() page {
		r := must(http.NewRequest("POST", b.url+path, strings.NewReader(form.Encode())))(b.t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return b.do(r)
	}
	p := send()
	if p.StatusCode >= 400 && p.StatusCode < 500 && !strings.Contains(path, "/sign-in/") { // where attempts are limited
		b.translated(send)
	}
	return p
}

// wellFormed fails unless the page is XML, and has no text without a language.
func (p page) wellFormed() {
	p.t.Helper()
	dec := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(p.text, "<!DOCTYPE html>")))
	dec.Entity = xml.HTMLEntity
	for {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			p.t.Fatalf("%s: %v\n%s", p.Request.URL, err, p.text)
		}
	}
	for _, wrong := range []string{"<no value>", "%!", "ZgotmplZ"} {
		if strings.Contains(p.text, wrong) {
			p.t.Errorf("%s has %q", p.Request.URL, wrong)
		}
	}
	for _, text := range webtest.English(p.text, ours...) {
		p.t.Errorf("%s %s in Portuguese has %s", p.Request.Method, p.Request.URL, text)
	}
	if csp := p.Header.Get("Content-Security-Policy"); csp != deskpage.Policy || p.Header.Get("Cache-Control") != "no-store" {
		p.t.Errorf("%s: the policy is %q", p.Request.URL, csp)
	}
}

// leads fails unless the answer leads to another page.
func (p page) leads(to string) page {
	p.t.Helper()
	if p.StatusCode != http.StatusSeeOther || !strings.HasPrefix(p.Header.Get("Location"), to) {
		p.t.Fatalf("%s %s: %s to %q, want %s\n%s", p.Request.Method, p.Request.URL, p.Status, p.Header.Get("Location"), to, p.main())
	}
	return p
}

// has fails unless the page has a status and texts.
func (p page) has(status int, texts ...string) page {
	p.t.Helper()
	if p.StatusCode != status {
		p.t.Fatalf("%s %s: %s, want %d\n%s", p.Request.Method, p.Request.URL, p.Status, status, p.main())
	}
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			p.t.Errorf("%s %s has no %q\n%s", p.Request.Method, p.Request.URL, text, p.main())
		}
	}
	return p
}

// lacks fails if the page has one of some texts.
func (p page) lacks(texts ...string) page {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.main(), text) {
			p.t.Errorf("%s %s has %q\n%s", p.Request.Method, p.Request.URL, text, p.main())
		}
	}
	return p
}

func (p page) main() string {
	_, text, _ := strings.Cut(p.text, "<main")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// follow follows a redirect.
func (b *browser) follow(p page) page {
	b.t.Helper()
	if p.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("%s %s: %s\n%s", p.Request.Method, p.Request.URL, p.Status, p.main())
	}
	return b.get(p.Header.Get("Location"))
}

// make makes a name, and returns the path of its page.
func (b *browser) make(form url.Values) string {
	b.t.Helper()
	form.Set("do", "save")
	if !form.Has("namespace") {
		form.Set("namespace", "ark:12345/x5")
	}
	p := b.post("/.desk/new", form).leads("/.desk/record?id=")
	path, _, _ := strings.Cut(p.Header.Get("Location"), "&")
	return path
}

func TestMake(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	b.get("/.desk/new").has(200, "Maps of Pará", "The next name is", "ark:12345/x50")
	b.post("/.desk/new", url.Values{"do": {"add-target"}, "target.0.url": {"https://example.org/1"}, "what": {"Kept"}}).has(200, `value="https://example.org/1"`, `name="target.1.url"`, `value="Kept"`)
	b.post("/.desk/new", url.Values{"do": {"remove-target.0"}, "target.0.url": {"https://example.org/1"}, "target.1.url": {"https://example.org/2"}}).has(200, `value="https://example.org/2"`)
	path := b.make(url.Values{"target.0.url": {"https://example.org/1"}, "target.0.type": {"text/html"}, "what": {"An atlas of rivers"}, "who": {"Costa, R."}, "when": {"2015"},
		"more.0.key": {"where"}, "more.0.value": {"Belém"}, "statement": {"We keep\r\nit."}})
	b.get(path).has(200, "An atlas of rivers", "Costa, R.", "Belém", "https://example.org/1", "Save as version 2", "registered")
	id := must(url.Parse(path))(t).Query().Get("id")
	rec := must(s.r.Get(s.admin, must(must(all.New(all.Config{Now: time.Now}))(t).Parse(id))(t)))(t)
	if rec.By != "ed" || rec.State != stele.Active || rec.Persistence.Statement != "We keep\nit." || rec.Targets[0].Type != "text/html" {
		t.Errorf("got %+v", rec)
	}

	// All problems at once, beside their fields and on top; nothing typed is lost.
	p := b.post("/.desk/new", url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://drive.example.net/x"}, "target.1.url": {""}, "target.2.url": {"nonsense"}, "target.2.order": {"many"},
		"until": {"some day"}, "what": {"Typed"}}).has(422, `value="Typed"`, `href="#target-2-url"`, `href="#target-2-order"`, `href="#until"`)
	if strings.Contains(p.text, `href="#target-1-url"`) {
		t.Error("an empty row is wrong")
	}
	b.post("/.desk/new", url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://drive.example.net/x"}}).has(422, `href="#target-0-url"`, `aria-describedby="target-0-url-problem"`)
	b.post("/.desk/new", url.Values{"do": {"save"}, "own": {"ark:99999/elsewhere"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://example.org/"}}).has(422)
	own := b.make(url.Values{"own": {"ark:/12345/x5my-own"}, "target.0.url": {"https://example.org/own"}, "reserve": {"yes"}})
	b.get(own).has(200, "reserved", "Save and publish")
	b.post("/.desk/new", url.Values{"do": {"save"}, "own": {"ark:12345/x5myown"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://example.org/"}}).has(422, "alert")
	b.get("/.desk/new?like="+url.QueryEscape(id)).has(200, "An atlas of rivers")
}

func TestEdit(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	path := b.make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"First"}})
	id := must(url.Parse(path))(t).Query().Get("id")
	form := func(version, title string) url.Values {
		return url.Values{"id": {id}, "version": {version}, "do": {"save"}, "target.0.url": {"https://example.org/1"}, "what": {title}}
	}
	b.follow(b.post("/.desk/record", form("1", "Second"))).has(200, "Saved.", "Second", "Save as version 3")
	b.follow(b.post("/.desk/record", form("2", "Second"))).has(200, "no new version")

	// Olga was faster: Ed sees what she changed, and his own words.
	olga := s.as("olga")
	olga.post("/.desk/record", form("2", "Olga's title")).leads(path)
	b.post("/.desk/record", form("2", "Ed's title")).has(409, "olga saved version 3 meanwhile", "Olga&#39;s title", `value="Ed&#39;s title"`, `name="version" value="3"`)
	b.post("/.desk/record", form("3", "Ed's title")).leads(path)

	b.get("/.desk/history?id="+url.QueryEscape(id)).has(200, "Version 4", "Version 1", "Revert to this version", "olga")
	b.post("/.desk/revert", url.Values{"id": {id}, "version": {"4"}, "to": {"2"}}).leads(path)
	b.get(path).has(200, "Second")
	b.post("/.desk/revert", url.Values{"id": {id}, "version": {"4"}, "to": {"1"}}).has(409)
	b.get("/.desk/disavow?id="+url.QueryEscape(id)+"&number=1").has(200, "Disavow version 1")
	b.post("/.desk/disavow", url.Values{"id": {id}, "version": {"5"}, "number": {"1"}, "reason": {"It was wrong."}}).has(403)
	olga.post("/.desk/disavow", url.Values{"id": {id}, "version": {"5"}, "number": {"1"}, "reason": {""}}).has(422)
	olga.follow(olga.post("/.desk/disavow", url.Values{"id": {id}, "version": {"5"}, "number": {"1"}, "reason": {"It was wrong."}})).has(200, "disavowed", "It was wrong.")

	w := url.Values{"id": {id}, "version": {"6"}, "reason": {""}, "do": {"preview"}}
	b.get("/.desk/withdraw?id="+url.QueryEscape(id)).has(200, "See the tombstone first")
	b.post("/.desk/withdraw", w).has(422, "Say why")
	w.Set("reason", "Printed twice.")
	w.Set("replacement", "ark:12345/x5nothing!!")
	w.Set("replacement", "")
	b.post("/.desk/withdraw", w).has(200, "What readers will see", "Printed twice.")
	w.Set("do", "withdraw")
	b.follow(b.post("/.desk/withdraw", w)).has(200, "withdrawn", "Reinstate")
	b.follow(b.post("/.desk/reinstate", url.Values{"id": {id}, "version": {"7"}})).has(200, "Reinstated.")
	if p := b.get("/.desk/qr.svg?id=" + url.QueryEscape(id)).has(200); p.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("got %v", p.Header)
	}
	if p := b.get("/.desk/qr.png?id=" + url.QueryEscape(id)).has(200); !bytes.HasPrefix([]byte(p.text), []byte("\x89PNG")) {
		t.Error("no PNG")
	}
}

func TestFind(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	path := b.make(url.Values{"target.0.url": {"https://example.org/rivers"}, "what": {"Rivers of Pará"}})
	b.make(url.Values{"target.0.url": {"https://maps.example.org/lakes"}, "what": {"=Lakes"}, "reserve": {"yes"}})
	b.get("/.desk/names").has(200, "Rivers of Pará", "=Lakes")
	b.get("/.desk/names?q=para").has(200, "Rivers of Pará")
	if p := b.get("/.desk/names?q=rivers").has(200); strings.Contains(p.main(), "Lakes") {
		t.Error("lakes are found among rivers")
	}
	b.get("/.desk/names?state=reserved").has(200, "=Lakes")
	b.get("/.desk/names?q=nothing-like-it").has(200, "Nothing was found.")
	b.get("/.desk/names?since=soon").has(400, "is not a date")
	b.get("/.desk/names?q=" + url.QueryEscape("https://n2t.net/"+must(url.Parse(path))(t).Query().Get("id"))).leads(path)
	csv := b.get("/.desk/names.csv?q=lakes").has(200, "id,url,state", "https://maps.example.org/lakes", "'=Lakes")
	if !strings.HasPrefix(csv.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("got %v", csv.Header)
	}
	b.get("/.desk/").has(200, "Rivers of Pará", "Last changes")
	b.get("/.desk/namespaces").has(200, "Maps of Pará", "editor")
	if p := s.as("sam").get("/.desk/names").has(200); strings.Contains(p.main(), "Rivers") || strings.Contains(p.main(), "Lakes") {
		t.Error("sam, who has no role, finds names")
	}
}

// TestRights walks every form with every role: the desk lets a user do what the registrar lets
// them do, and nothing else.
func TestRights(t *testing.T) {
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": true, "ruth": false, "sam": false} {
		s := newSite(t)
		ed, b := s.as("ed"), s.as(user)
		path := ed.make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"One"}})
		id := must(url.Parse(path))(t).Query().Get("id")
		version := 1
		check := func(path string, form url.Values) {
			t.Helper()
			p := b.post(path, form)
			if done := p.StatusCode == http.StatusSeeOther && strings.Contains(p.Header.Get("Location"), "done="); done != may {
				t.Errorf("%s, %s: %s %s\n%s", user, path, p.Status, p.Header.Get("Location"), p.main())
			}
			if may && strings.Contains(form.Encode(), "id=") {
				version++
			}
		}
		v := func() string { return string(rune('0' + version)) }
		check("/.desk/new", url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://example.org/2"}})
		check("/.desk/record", url.Values{"id": {id}, "version": {v()}, "do": {"save"}, "target.0.url": {"https://example.org/3"}})
		check("/.desk/revert", url.Values{"id": {id}, "version": {v()}, "to": {"1"}})
		if user != "ed" { // an editor may do all but this
			check("/.desk/disavow", url.Values{"id": {id}, "version": {v()}, "number": {"1"}, "reason": {"x"}})
		}
		check("/.desk/withdraw", url.Values{"id": {id}, "version": {v()}, "reason": {"x"}, "do": {"withdraw"}})
		check("/.desk/reinstate", url.Values{"id": {id}, "version": {v()}})
		if !may && version != 1 {
			t.Errorf("%s changed the record", user)
		}
	}
	// The session of another user is not ended.
	s := newSite(t)
	ed, sam := s.as("ed"), s.as("sam")
	for session, err := range s.r.Sessions(s.admin, "ed") {
		if err != nil {
			t.Fatal(err)
		}
		sam.post("/.desk/account/end", url.Values{"id": {session.ID}}).has(403)
	}
	ed.get("/.desk/").has(200)
}

// TestHostile: other sites can't act for a user, markup stays text, and nothing typed is lost when
// the session has ended.
func TestHostile(t *testing.T) {
	s := newSite(t)
	b := s.as("ed")
	r := must(http.NewRequest("POST", s.url+"/.desk/new", strings.NewReader(url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"https://example.org/"}}.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Origin", "https://evil.example")
	if p := b.do(r); p.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %s", p.Status)
	}
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>'`
	path := b.make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {evil}, "who": {evil}, "more.0.key": {"note"}, "more.0.value": {evil}, "statement": {evil}})
	id := must(url.Parse(path))(t).Query().Get("id")
	for _, at := range []string{path, "/.desk/", "/.desk/names", "/.desk/names?q=" + url.QueryEscape(evil), "/.desk/history?id=" + url.QueryEscape(id), "/.desk/new?like=" + url.QueryEscape(id), "/.desk/new?namespace=" + url.QueryEscape(evil), "/.desk/sign-in?next=" + url.QueryEscape(evil)} {
		if p := b.get(at); strings.Contains(p.text, "<script>alert") || strings.Contains(p.text, "<img src=x") {
			t.Errorf("%s has markup of a user", at)
		}
	}
	form := url.Values{"id": {id}, "version": {"1"}, "do": {"save"}, "target.0.url": {"https://example.org/typed"}, "what": {"Typed for an hour"}}
	s.now = s.now.Add(13 * time.Hour)
	p := b.post("/.desk/record", form).has(401, "Your session has ended", "Typed for an hour", "https://example.org/typed", `action="/.desk/record"`)
	for name := range form {
		if !strings.Contains(p.text, `name="`+name+`"`) {
			t.Errorf("the field %s is lost", name)
		}
	}
	b = s.as("ed")
	b.post("/.desk/record", form).leads(path)
	b.post("/.desk/new", url.Values{"what": {strings.Repeat("x", maxForm)}}).has(400, "more than")
	b.get("/.desk/nonsense").has(404)
	b.get("/.desk/record?id=nonsense").has(400)
	b.get("/.desk/record?id=ark:12345/x5nothing").has(404)
}

// TestPortuguese shows every page in Portuguese; no page mixes languages where a text is there.
func TestPortuguese(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Demo = "admin" })
	b := s.as("ed")
	path := b.make(url.Values{"target.0.url": {"https://example.org/1"}, "what": {"Rios"}})
	id := url.QueryEscape(must(url.Parse(path))(t).Query().Get("id"))
	english := webtest.Languages(t).Get("en")
	for _, at := range []string{"/.desk/", "/.desk/names", "/.desk/namespaces", "/.desk/namespace?namespace=ark:12345/x5", "/.desk/namespace/new", "/.desk/new", path, "/.desk/history?id=" + id, "/.desk/withdraw?id=" + id, "/.desk/disavow?id=" + id + "&number=1", "/.desk/account", "/.desk/nonsense"} {
		b.lang = "pt-BR"
		p := b.get(at)
		if !strings.Contains(p.text, `<html lang="pt-BR">`) || p.Header.Get("Content-Language") != "pt-BR" {
			t.Errorf("%s is not in Portuguese", at)
		}
		for _, key := range []string{"nav.namespaces", "frame.skip", "frame.motto", "edit.add-target", "account.sessions", "home.changes", "names.find"} {
			if strings.Contains(p.text, english.Text(key)) {
				t.Errorf("%s has %q", at, english.Text(key))
			}
		}
		b.lang = "en"
		if p := b.get(at); !strings.Contains(p.text, `<html lang="en">`) {
			t.Errorf("%s is not in English", at)
		}
	}
	b.lang = "pt-BR"
	b.get("/.desk/history?id="+id).has(200, "registrado")
	b.post("/.desk/new", url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "target.0.url": {"nonsense"}}).has(422, "Há um problema", "não começa com um protocolo permitido")
	out := s.browser()
	out.lang = "pt-BR"
	out.get("/.desk/sign-in").has(200, "Entrar", "demonstração")
	out.post("/.desk/language", url.Values{"tag": {"en"}, "next": {"/.desk/sign-in"}}).leads("/.desk/sign-in")
	out.get("/.desk/sign-in").has(200, "Sign in")
}
