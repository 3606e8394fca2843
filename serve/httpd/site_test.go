package httpd

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

// siteBegins is when the clock of a site begins.
var siteBegins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// site is a server at https://id.example.org over a registry in memory, with a
// clock that tests set.
type site struct {
	t        testing.TB
	schemes  *stele.Schemes
	store    stele.Store
	registry *registrar.Registrar
	handler  *Handler
	learned  *Handler // answers from what it knows of the registry, as far as it can
	admin    context.Context
	clock    atomic.Int64 // nanoseconds since siteBegins
}

func (s *site) now() time.Time { return siteBegins.Add(time.Duration(s.clock.Load())) }

// pass lets time pass.
func (s *site) pass(d time.Duration) { s.clock.Add(int64(d)) }

func newSite(t testing.TB, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, admin: auth.With(context.Background(), auth.Local())}
	var err error
	if s.schemes, err = all.New(all.Config{Now: s.now, PURLHosts: []string{"purl.org", "id.example.org"}}); err != nil {
		t.Fatal(err)
	}
	store := mem.New(s.now)
	s.store = store
	t.Cleanup(func() { store.Close() })
	reads := resolver.New(store, s.schemes, resolver.Options{Now: s.now, CacheBytes: 1 << 20, DefaultTTL: 3600, Hosts: []string{"id.example.org"}})
	learned := resolver.New(store, s.schemes, resolver.Options{Now: s.now, CacheBytes: 1 << 20, RedirectBytes: 1 << 20, DefaultTTL: 3600, Hosts: []string{"id.example.org"}})
	t.Cleanup(learned.Close)
	s.registry = registrar.New(store, s.schemes, registrar.Options{Now: s.now,
		OnCommit: func(records ...*stele.Record) {
			reads.Invalidate(records...)
			learned.Invalidate(records...)
		},
		OnNamespaces: func() {
			reads.InvalidateNamespaces()
			learned.InvalidateNamespaces()
		}})
	o := Options{Resolver: reads, Registry: s.registry, Schemes: s.schemes, Pages: webtest.Pages(t), Now: s.now, Base: "https://id.example.org", Host: "id.example.org"}
	for _, c := range change {
		c(&o)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	s.handler = New(o)
	o.Resolver, o.Observe, o.Log = learned, nil, nil
	s.learned = New(o)
	return s
}

func (s *site) id(text string) stele.ID {
	s.t.Helper()
	id, err := s.schemes.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// space adds a namespace.
func (s *site) space(prefix string, change ...func(*stele.Namespace)) {
	s.t.Helper()
	key, err := s.registry.ParsePrefix(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
	for _, c := range change {
		c(ns)
	}
	if _, err := s.registry.AddNamespace(s.admin, ns); err != nil {
		s.t.Fatal(err)
	}
}

// add registers a record, as JSON has it.
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

// to registers a name that leads somewhere.
func (s *site) to(name, url string) {
	s.t.Helper()
	s.add(`{"id":"` + name + `","url":"` + url + `"}`)
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
}

func (a answer) get(name string) string { return a.Header.Get(name) }

// ask sends a request with the target as it is. The head is given as names and
// values; "Host" may be among them.
func (s *site) ask(method, target string, head ...string) answer {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://id.example.org/", nil)
	r.RequestURI = target
	for i := 0; i+1 < len(head); i += 2 {
		if head[i] == "Host" {
			r.Host = head[i+1]
			continue
		}
		r.Header.Add(head[i], head[i+1])
	}
	return s.send(r)
}

// askAs is a GET by an authenticated user.
func (s *site) askAs(name, group, target string) answer {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://id.example.org/", nil)
	r.RequestURI = target
	return s.send(r.WithContext(auth.With(r.Context(), auth.Principal{Name: name, Groups: []string{group}})))
}

func (s *site) send(r *http.Request) answer {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := answer{Response: w.Result()}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a.body = string(body)
	checkAnswer(s.t, r, a)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.checkLearned(r, a)
	}
	return a
}

// checkLearned checks that what is known of a name where it leads makes no difference:
// the first time it may have to be learned.
func (s *site) checkLearned(r *http.Request, a answer) {
	s.t.Helper()
	for range 2 {
		w := httptest.NewRecorder()
		s.learned.ServeHTTP(w, r)
		if b := w.Result(); b.StatusCode != a.StatusCode || !reflect.DeepEqual(b.Header, a.Header) || w.Body.String() != a.body {
			s.t.Errorf("%s %q: %d %v\n%s\nwhere it was learned: %d %v\n%s", r.Method, r.RequestURI, a.StatusCode, a.Header, a.body, b.StatusCode, b.Header, w.Body)
		}
	}
}

// checkAnswer checks what holds for every answer.
func checkAnswer(t testing.TB, r *http.Request, a answer) {
	t.Helper()
	for name, values := range a.Header {
		for _, value := range values {
			for _, c := range []byte(name + value) {
				if c < ' ' || c > '~' {
					t.Errorf("%s %q: the header %s is %q", r.Method, r.RequestURI, name, value)
					break
				}
			}
		}
	}
	if http.StatusText(a.StatusCode) == "" {
		t.Errorf("%s %q: the status is %d", r.Method, r.RequestURI, a.StatusCode)
	}
	if r.Method == http.MethodHead && a.body != "" {
		t.Errorf("%s %q: the body is %q", r.Method, r.RequestURI, a.body)
	}
	if location := a.get("Location"); location != "" {
		if _, ok := destination.Safe(location); !ok && !strings.HasPrefix(location, "/.") {
			t.Errorf("%s %q: leads to %q", r.Method, r.RequestURI, location)
		}
	}
}

// get is ask with GET.
func (s *site) get(target string, head ...string) answer {
	s.t.Helper()
	return s.ask(http.MethodGet, target, head...)
}

// leads checks where a target leads.
func (s *site) leads(target, location string, status int, head ...string) answer {
	s.t.Helper()
	a := s.get(target, head...)
	if a.StatusCode != status || a.get("Location") != location {
		s.t.Errorf("GET %s %q: %d to %q, expected %d to %q\n%s", target, head, a.StatusCode, a.get("Location"), status, location, a.body)
	}
	return a
}

// fails checks that a target is answered with an error that has the texts in its body.
func (s *site) fails(target string, status int, texts ...string) answer {
	s.t.Helper()
	a := s.get(target, "Accept", "application/json")
	if a.StatusCode != status || a.get("Content-Type") != problemType {
		s.t.Errorf("GET %s: %d %s, expected %d\n%s", target, a.StatusCode, a.get("Content-Type"), status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			s.t.Errorf("GET %s: %q is not in %s", target, text, a.body)
		}
	}
	return a
}
