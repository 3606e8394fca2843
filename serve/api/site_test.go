package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/usage"
	"github.com/stele-id/stele/web/webtest"
)

// site is an API over a registry in memory, whose clock is that of the machine and can
// be set ahead. In it are users with every role, and records in every state.
type site struct {
	t         testing.TB
	schemes   *stele.Schemes
	store     stele.Store
	whole     *registry.Registry
	registry  *registrar.Registrar
	directory *auth.Directory
	handler   *Handler
	admin     context.Context
	clock     atomic.Int64      // nanoseconds ahead of the machine's
	tokens    map[string]string // by user
	log       syncBuffer
}

func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }

// pass lets time pass.
func (s *site) pass(d time.Duration) { s.clock.Add(int64(d)) }

// Users of a site. The owner, editor and reader have these roles in ark:12345, the stranger
// is owner of ark:99999, and theOutsider has no role.
const (
	theAdmin    = "root"
	theOwner    = "ann"
	theEditor   = "ed"
	theReader   = "rita"
	theStranger = "bob"
	theOutsider = "nemo"
)

func newSite(t testing.TB, change ...func(*Options)) *site {
	t.Helper()
	return newSiteWith(t, secret.NewRing(secret.Text{Keep: "stele-secret-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", Name: "the test"}), change...)
}

// newSiteWith is newSite with a key that encrypts secrets, or with none if the ring is nil.
func newSiteWith(t testing.TB, secrets *secret.Ring, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, admin: auth.With(context.Background(), auth.Local()), tokens: make(map[string]string)}
	var err error
	if s.schemes, err = all.New(all.Config{Now: s.now, PURLHosts: []string{"purl.org"}}); err != nil {
		t.Fatal(err)
	}
	s.store = mem.New(s.now)
	t.Cleanup(func() { s.store.Close() })
	whole := registry.New(s.store, s.schemes, registry.Options{Now: s.now, Resolver: resolver.Options{CacheBytes: 1 << 20}, Log: slog.New(slog.DiscardHandler), Secrets: secrets})
	s.whole, s.directory, s.registry = whole, whole.Directory, whole.Registrar
	reads := whole.Resolver
	index, err := search.Open(t.Context(), search.Options{Source: s.store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	o := Options{
		Usage: &usage.Book{Registrar: s.registry, Schemes: s.schemes}, UsageLogs: s.usageLogs(t),
		Search: &search.Finder{Index: index, Schemes: s.schemes, Get: s.registry.Get, Sight: func(ctx context.Context, within stele.NamespaceKey) (search.Sight, error) {
			return s.registry.Sight(ctx, within)
		}},
		Registrar: s.registry, Store: s.store, Resolver: reads, Schemes: s.schemes, Directory: s.directory, Pages: webtest.Pages(t), Now: s.now,
		Base: "https://id.example.org", Log: newTestLog(&s.log), Transparency: whole,
	}
	rules, err := links.UsualRules()
	if err != nil {
		t.Fatal(err)
	}
	o.Heirs = &heir.Checker{Registrar: s.registry, Schemes: s.schemes, HTTP: loopbackOnly{outbound.NewClient(outbound.Rule{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, heir.Patience, heir.MaxAnswer)}}
	o.Givers = &giver.Watcher{Watches: s.registry, HTTP: o.Heirs.(*heir.Checker).HTTP, Now: s.now, Server: "test", Wait: func(context.Context, time.Duration) error { return nil }}
	o.Links = check.New(check.Options{Registrar: s.registry, Store: s.store, Rules: rules, Now: s.now, Rand: rand.Reader}) // it does not run
	for _, c := range change {
		c(&o)
	}
	s.handler = New(o)
	s.fill()
	return s
}

// fill adds users, namespaces and records.
func (s *site) fill() {
	s.t.Helper()
	for _, u := range []auth.User{{Name: theAdmin, Admin: true}, {Name: theOwner}, {Name: theEditor, Groups: []string{"editors"}}, {Name: theReader}, {Name: theStranger}, {Name: theOutsider}} {
		if _, err := s.registry.AddUser(s.admin, u); err != nil {
			s.t.Fatal(err)
		}
		s.tokens[u.Name] = s.token(u.Name, s.now().Add(24*time.Hour))
	}
	for _, ns := range []string{
		`{"scheme":"ark","prefix":"ark:12345","owner":"ann","grants":[{"to":"group:editors","role":"editor"},{"to":"user:rita","role":"reader"}]}`,
		`{"scheme":"ark","prefix":"ark:12345/x5","minter":{"kind":"noid","template":".reeeedk"}}`,
		`{"scheme":"ark","prefix":"ark:99999","owner":"bob"}`,
	} {
		n, err := document.DecodeNamespace(s.schemes, []byte(ns))
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.registry.AddNamespace(s.admin, n); err != nil {
			s.t.Fatal(err)
		}
	}
	s.add(
		`{"id":"ark:12345/x1","url":"https://example.org/1","metadata":{"what":"A thing"},"aliases":["urn:example:x1"]}`,
		`{"id":"ark:12345/x2","url":"https://example.org/2"}`,
		`{"id":"ark:12345/hidden","state":"reserved","url":"https://example.org/hidden"}`,
		`{"id":"ark:12345/secret","url":"https://example.org/secret","readers":["user:carl"]}`,
		`{"id":"ark:12345/gone","url":"https://example.org/gone"}`,
		`{"id":"ark:99999/y1","url":"https://example.net/1"}`,
	)
	if _, err := s.registry.Withdraw(s.admin, s.id("ark:12345/gone"), 0, "It was wrong", stele.ID{}); err != nil {
		s.t.Fatal(err)
	}
}

// signLog brings the transparency log up to date, as a running server does, and signs a checkpoint.
func (s *site) signLog() {
	s.t.Helper()
	keys, err := s.whole.SetUpLog(s.admin, "id.example.org/.log")
	if err == nil {
		err = s.whole.SignLog(s.admin, keys, nil)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// token makes a token for a user.
func (s *site) token(user string, expires time.Time) string {
	s.t.Helper()
	return s.made(s.admin, auth.TokenRequest{User: user, Label: "test", Expires: expires})
}

// made makes a token as it is asked for.
func (s *site) made(ctx context.Context, want auth.TokenRequest) string {
	s.t.Helper()
	credential, _, err := s.registry.CreateToken(ctx, want)
	if err != nil {
		s.t.Fatal(err)
	}
	return credential
}

// child makes a token by the token of a user, through the API.
func (s *site) child(who, body string) (made apijson.MadeToken) {
	s.t.Helper()
	s.ask(who, "POST", Root+"/tokens", body).want(s.t, http.StatusCreated).read(s.t, &made)
	return made
}

func (s *site) id(text string) stele.ID {
	s.t.Helper()
	id, err := s.schemes.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// add registers records, as JSON has them.
func (s *site) add(records ...string) {
	s.t.Helper()
	for _, text := range records {
		record, err := document.DecodeRecord(s.schemes, []byte(text))
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.registry.Register(s.admin, record); err != nil {
			s.t.Fatal(err)
		}
	}
}

// reply is what a client got.
type reply struct {
	*http.Response
	body string
}

func (a reply) get(name string) string { return a.Header.Get(name) }

// read reads the body as JSON.
func (a reply) read(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%d %v: %s", a.StatusCode, err, a.body)
	}
}

// problem reads the body as a problem document.
func (a reply) problem(t testing.TB) (p apijson.Problem) {
	t.Helper()
	if got := a.get("Content-Type"); got != apijson.ProblemJSON {
		t.Errorf("%d has the type %q: %s", a.StatusCode, got, a.body)
	}
	a.read(t, &p)
	if p.Status != a.StatusCode {
		t.Errorf("the status is %d, and in the problem %d", a.StatusCode, p.Status)
	}
	return p
}

// ask sends a request with the target as it is, as the user of that name, or as the public if
// who is "". The head is given as names and values. A body has the type JSON if that does not
// say otherwise.
func (s *site) ask(who, method, target, body string, head ...string) reply {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://id.example.org/", nil)
	r.RequestURI = target
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", apijson.JSON)
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", apijson.MergePatch)
		}
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+s.tokens[who])
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header[http.CanonicalHeaderKey(head[i])] = nil
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Add(head[i], head[i+1])
	}
	return s.send(r)
}

func (s *site) send(r *http.Request) reply {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := reply{Response: w.Result()}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a.body = string(body)
	return a
}

// serve starts a real server, and returns its address.
func (s *site) serve() string {
	s.t.Helper()
	server := httptest.NewServer(s.handler)
	s.t.Cleanup(server.Close)
	return server.URL
}

// want checks a status.
func (a reply) want(t testing.TB, status int) reply {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("got %d, want %d: %s", a.StatusCode, status, bytes.TrimSpace([]byte(a.body)))
	}
	return a
}

// usageLogs returns what counts log files of other servers for the site.
func (s *site) usageLogs(t testing.TB) UsageLogs {
	t.Helper()
	agents, err := usage.NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &usage.Uploads{Now: s.now, Importer: func() *usage.LogImporter {
		return &usage.LogImporter{
			Store: s.registry, Schemes: s.schemes, Agents: agents, Now: s.now,
			Space: func(context.Context, stele.ID) (stele.NamespaceKey, error) {
				return stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, nil
			},
			Find: func(_ context.Context, id stele.ID) (stele.ID, bool, error) { return id, true, nil },
		}
	}}
}
