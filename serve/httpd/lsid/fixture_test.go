package lsid_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/web/webtest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// authority is a server with an authority of LSIDs.
type authority struct {
	t         testing.TB
	schemes   *stele.Schemes
	store     stele.Store
	registrar *registrar.Registrar
	resolver  *resolver.Resolver
	url       string
	handler   http.Handler
	ctx       context.Context
	counted   *counter
	o         lsid.Options
}

// The tokens of an editor of the namespaces, and of a user without rights.
const (
	editorToken = "editors-token"
	guestToken  = "guests-token"
)

// newAuthority starts a server with the authority example.org.
func newAuthority(t testing.TB, change ...func(*httpd.Options, *lsid.Options)) *authority {
	t.Helper()
	clock := func() time.Time { return noon }
	schemes, err := all.New(all.Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, schemes: schemes, store: mem.New(clock), ctx: auth.With(t.Context(), auth.Local()), counted: &counter{}}
	t.Cleanup(func() { a.store.Close() })
	a.registrar = registrar.New(a.store, schemes, registrar.Options{Now: clock, OnCommit: func(r ...*stele.Record) { a.resolver.Invalidate(r...) }, OnNamespaces: func() { a.resolver.InvalidateNamespaces() }})
	a.resolver = resolver.New(a.store, schemes, resolver.Options{Now: clock, DefaultTTL: 3600, CacheBytes: 1 << 20})
	o := httpd.Options{Resolver: a.resolver, Registry: a.registrar, Schemes: schemes, Pages: webtest.Pages(t), Now: clock, Counter: a.counted, OwnName: func(name string) bool { return name == "id.example.org" },
		Identify: func(r *http.Request) (auth.Principal, error) {
			token, err := auth.Bearer(r.Header["Authorization"])
			switch {
			case err != nil:
				return auth.Principal{}, err
			case token == editorToken:
				return auth.Principal{Name: "ann"}, nil
			case token == guestToken:
				return auth.Principal{Name: "bob"}, nil
			}
			return auth.Principal{}, &stele.Error{Op: "authenticate", Kind: stele.Unauthenticated, Err: errors.New("the token is wrong")}
		}}
	a.o = lsid.Options{Resolver: a.resolver, Schemes: schemes, Now: clock, Data: a.registrar, Fetch: http.DefaultClient, Foreign: a.registrar, Names: a.registrar}
	for _, f := range change {
		f(&o, &a.o)
	}
	o.LSID = lsid.New(a.o)
	a.handler = httpd.New(o)
	server := httptest.NewServer(a.handler)
	t.Cleanup(server.Close)
	a.url = server.URL
	a.space("urn:lsid:example.org", nil)
	return a
}

func (a *authority) id(text string) stele.ID {
	a.t.Helper()
	id, err := a.schemes.Parse(text)
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// space adds a namespace, of which ann is an editor.
func (a *authority) space(prefix string, change func(*stele.Namespace)) {
	a.t.Helper()
	key, err := a.registrar.ParsePrefix(prefix)
	if err != nil {
		a.t.Fatal(err)
	}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Grants: []stele.Grant{{To: "user:ann", Role: stele.RoleEditor}}}
	if change != nil {
		change(ns)
	}
	if _, err := a.registrar.AddNamespace(a.ctx, ns); err != nil {
		a.t.Fatal(err)
	}
}

// put registers a record.
func (a *authority) put(name string, rec stele.Record) {
	a.t.Helper()
	rec.ID = a.id(name)
	if _, err := a.registrar.Register(a.ctx, &rec); err != nil {
		a.t.Fatal(err)
	}
}

// data is a target with the data of a name.
func data(url string) stele.Target {
	return stele.Target{Service: "N2D", URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
}

// answer is what the server answered.
type answer struct {
	*http.Response
	body string
}

func (a *authority) send(r *http.Request) answer {
	a.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return answer{resp, string(body)}
}

// get asks by HTTP GET. Pairs of header fields may follow.
func (a *authority) get(target string, head ...string) answer {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.url+target, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return a.send(r)
}

// soap sends a message to a path: the operation, with its arguments as XML.
func (a *authority) soap(path, operation, arguments string, head ...string) answer {
	a.t.Helper()
	text := `<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><o:` + operation + ` xmlns:o="urn:any">` + arguments + `</o:` + operation + `></e:Body></e:Envelope>`
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, strings.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return a.send(r)
}

// fails makes sure that an answer is an error with a code, by HTTP or in a fault.
func (w answer) fails(t testing.TB, code string) {
	t.Helper()
	if w.StatusCode < 400 {
		t.Errorf("the status is %d: %s", w.StatusCode, w.body)
	}
	if got := w.Header.Get("LSID-Error-Code"); got != code && !strings.Contains(w.body, "<errorcode>"+code+"</errorcode>") {
		t.Errorf("the code is %q, not %s: %s", got, code, w.body)
	}
}

// counter notes what is counted.
type counter struct {
	mu   sync.Mutex
	list []string
}

func (c *counter) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, text)
}

func (c *counter) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(c.list, ", ")
	c.list = nil
	return text
}

func (c *counter) Redirected(id stele.ID, _ netip.Addr, _, _ string) { c.note("data " + id.String()) }
func (c *counter) RedirectedByRule(id stele.ID, _ netip.Addr, _, _ string) {
	c.note("rule " + id.String())
}
func (c *counter) Described(id stele.ID, _ netip.Addr, _ string) { c.note("metadata " + id.String()) }
func (c *counter) Failed(id stele.ID, _ netip.Addr, _ string)    { c.note("unknown " + id.String()) }
