package ezid_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/ezid"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

// site is a server over a registry in memory, whose clock is that of the machine and can be set ahead. In it are users with
// every role: owner, editor and reader of ark:99999, and one who has no role.
type site struct {
	t         testing.TB
	schemes   *stele.Schemes
	store     stele.Store
	registrar *registrar.Registrar
	server    *httptest.Server
	admin     context.Context
	clock     atomic.Int64
	tokens    map[string]string // by user
	log       logBuffer
}

// logBuffer keeps what the server logs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }

func newSite(t testing.TB, change ...func(*ezid.Options)) *site {
	t.Helper()
	s := &site{t: t, admin: auth.With(context.Background(), auth.Local()), tokens: make(map[string]string)}
	var err error
	if s.schemes, err = all.New(all.Config{Now: s.now}); err != nil {
		t.Fatal(err)
	}
	s.store = mem.New(s.now)
	t.Cleanup(func() { s.store.Close() })
	directory := auth.NewDirectory(s.store, s.now)
	reads := resolver.New(s.store, s.schemes, resolver.Options{Now: s.now, CacheBytes: 1 << 20})
	s.registrar = registrar.New(s.store, s.schemes, registrar.Options{
		Now: s.now, OnCommit: reads.Invalidate, OnNamespaces: reads.InvalidateNamespaces, OnAccess: directory.Forget,
	})
	o := ezid.Options{Registrar: s.registrar, Store: s.store, Schemes: s.schemes, Directory: directory, Now: s.now, ClientAddr: httpd.ClientAddr,
		OwnHost: func(r *http.Request) bool { return httpd.IsOwnHost(r, nil) }, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	for _, c := range change {
		c(&o)
	}
	s.server = httptest.NewServer(httpd.New(httpd.Options{Resolver: reads, Registry: s.registrar, Schemes: s.schemes, Pages: webtest.Pages(t), Now: s.now, EZID: ezid.New(o)}))
	t.Cleanup(s.server.Close)
	for _, u := range []auth.User{{Name: "root", Admin: true}, {Name: "ann"}, {Name: "ed", Groups: []string{"editors"}}, {Name: "rita"}, {Name: "nemo"}} {
		if _, err := s.registrar.AddUser(s.admin, u); err != nil {
			t.Fatal(err)
		}
		s.tokens[u.Name] = s.token(auth.TokenRequest{User: u.Name})
	}
	for _, ns := range []string{
		`{"scheme":"ark","prefix":"ark:99999","owner":"ann","grants":[{"to":"group:editors","role":"editor"},{"to":"user:rita","role":"reader"},{"to":"group:archive","role":"owner"}]}`,
		`{"scheme":"ark","prefix":"ark:99999/fk4","minter":{"kind":"noid","template":".reeeedk"}}`,
		`{"scheme":"hdl","prefix":"10.5072/","owner":"ann","grants":[{"to":"group:editors","role":"editor"}]}`,
		`{"scheme":"hdl","prefix":"10.5072/FK2","minter":{"kind":"noid","template":".reeeedk"}}`,
	} {
		n, err := document.DecodeNamespace(s.schemes, []byte(ns))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.registrar.AddNamespace(s.admin, n); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *site) token(want auth.TokenRequest) string {
	s.t.Helper()
	credential, _, err := s.registrar.CreateToken(s.admin, want)
	if err != nil {
		s.t.Fatal(err)
	}
	return credential
}

func (s *site) record(name string) *stele.Record {
	s.t.Helper()
	id, err := s.schemes.Parse(name)
	if err != nil {
		s.t.Fatal(err)
	}
	rec, err := s.registrar.Get(s.admin, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}

// reply is what a client got.
type reply struct {
	*http.Response
	body string
}

// ask sends a request as a user, the public if that is "". The headers are names and values.
func (s *site) ask(user, method, path, body string, headers ...string) reply {
	s.t.Helper()
	res, err := s.send(user, method, path, strings.NewReader(body), headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *site) send(user, method, path string, body io.Reader, headers ...string) (reply, error) {
	r, err := http.NewRequest(method, s.server.URL+"/.ezid"+path, body)
	if err != nil {
		return reply{}, err
	}
	if t, ok := body.(*strings.Reader); ok && t.Len() == 0 {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	if user != "" {
		r.SetBasicAuth(user, s.tokens[user])
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{res, string(text)}, err
}

// want compares the answer with a status and a body, or its beginning if that ends in "*".
func (r reply) want(t testing.TB, status int, body string) reply {
	t.Helper()
	begin, open := strings.CutSuffix(body, "*")
	if r.StatusCode != status || r.body != body && !(open && strings.HasPrefix(r.body, begin)) {
		t.Errorf("%s %s: %d %q; want %d %q", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.body, status, body)
	}
	if got := r.Header.Get("Content-Type"); got != "text/plain; charset=UTF-8" || r.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("%s: Content-Type %q, Cache-Control %q", r.Request.URL.Path, got, r.Header.Get("Cache-Control"))
	}
	return r
}

// elements reads the elements of an answer.
func (r reply) elements(t testing.TB) map[string]string {
	t.Helper()
	list, err := anvl.Parse(r.body)
	if err != nil {
		t.Fatalf("%v in %q", err, r.body)
	}
	all := make(map[string]string)
	for _, e := range list {
		all[e.Label] = e.Value
	}
	return all
}

// view returns the elements of an identifier, as a user sees them.
func (s *site) view(user, id string) map[string]string {
	s.t.Helper()
	return s.ask(user, "GET", "/id/"+id, "").want(s.t, 200, "success: *").elements(s.t)
}
