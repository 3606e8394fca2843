package httpd

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// guarded is a site that knows users by their tokens.
type guarded struct {
	*site
	directory *auth.Directory
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{}
	g.site = newSite(t, func(o *Options) {
		o.Identify = func(r *http.Request) (auth.Principal, error) {
			return g.directory.AuthenticateHeader(r.Context(), r.Header["Authorization"])
		}
	})
	g.directory = auth.NewDirectory(g.store, g.now)
	return g
}

// token makes a user and returns what they put into Authorization.
func (g *guarded) token(name string, groups ...string) string {
	g.t.Helper()
	if _, err := g.registry.AddUser(g.admin, auth.User{Name: name, Groups: groups}); err != nil {
		g.t.Fatal(err)
	}
	credential, _, err := g.registry.CreateToken(g.admin, auth.TokenRequest{User: name, Expires: g.now().Add(24 * time.Hour)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.directory.Forget()
	return "Bearer " + credential
}

// everywhere is all ways to ask for a name that is an ARK, or a handle.
func everywhere(ark, handle string) []string {
	return []string{
		"/" + ark, "/" + ark + "?info", "/" + ark + "?+explain", "/.info/" + ark, "/.timemap/" + ark, "/.memento/20260101000000/" + ark,
		"/uri-res/N2L?" + ark, "/uri-res/N2Ls?" + ark, "/uri-res/N2C?" + ark, "/uri-res/N2Ns?" + ark,
		"/" + handle, "/" + handle + "?noredirect", "/api/handles/" + handle,
	}
}

func TestIdentify(t *testing.T) {
	g := newGuarded(t)
	reader := func(ns *stele.Namespace) { ns.Grants = []stele.Grant{{To: "group:staff", Role: stele.RoleReader}} }
	g.space("ark:12345", reader)
	g.space("20.500.99999/", reader)
	g.add(`{"id":"ark:12345/hidden","url":"https://example.org/1","readers":["user:ada"]}`,
		`{"id":"20.500.99999/HIDDEN","url":"https://example.org/1","readers":["user:ada"]}`,
		`{"id":"ark:12345/kept","url":"https://example.org/1","state":"reserved"}`,
		`{"id":"20.500.99999/KEPT","url":"https://example.org/1","state":"reserved"}`)
	staff, ada, zoe := g.token("sam", "staff"), g.token("ada"), g.token("zoe")
	for _, tt := range []struct {
		who, token, ark, handle string
		sees                    bool
	}{
		{"a reader of the namespace", staff, "ark:12345/hidden", "20.500.99999/HIDDEN", true},
		{"a reader of the namespace, of what is reserved", staff, "ark:12345/kept", "20.500.99999/KEPT", true},
		{"a reader of the record", ada, "ark:12345/hidden", "20.500.99999/HIDDEN", true},
		{"a reader of another record, of what is reserved", ada, "ark:12345/kept", "20.500.99999/KEPT", false},
		{"somebody", zoe, "ark:12345/hidden", "20.500.99999/HIDDEN", false},
		{"the public", "", "ark:12345/hidden", "20.500.99999/HIDDEN", false},
		{"the public, of what is reserved", "", "ark:12345/kept", "20.500.99999/KEPT", false},
	} {
		head := []string{}
		if tt.token != "" {
			head = []string{"Authorization", tt.token}
		}
		nothing := everywhere("ark:12345/nothing", "20.500.99999/NOTHING")
		for i, path := range everywhere(tt.ark, tt.handle) {
			a := g.get(path, head...)
			if sees := a.StatusCode < 400; sees != tt.sees {
				t.Errorf("%s: %s: %d %s", tt.who, path, a.StatusCode, a.body)
			}
			if tt.token != "" && (a.get("Cache-Control") != "private, no-store" || !strings.Contains(a.get("Vary"), "Authorization")) {
				t.Errorf("%s: %s: caches are told %q, %q", tt.who, path, a.get("Cache-Control"), a.get("Vary"))
			}
			if !tt.sees {
				isAsUnknown(t, a, g.get(nothing[i], head...), tt.who+": "+path)
			}
		}
	}
}

// isAsUnknown fails if an answer differs in more than the name from the one for an unknown
// name.
func isAsUnknown(t *testing.T, a, unknown answer, what string) {
	t.Helper()
	plain := strings.NewReplacer("nothing", "X", "NOTHING", "X", "hidden", "X", "HIDDEN", "X", "kept", "X", "KEPT", "X")
	if got, want := plain.Replace(a.body), plain.Replace(unknown.body); got != want || a.StatusCode != unknown.StatusCode {
		t.Errorf("%s: can be told from an unknown name:\n%d %s\n%d %s", what, a.StatusCode, got, unknown.StatusCode, want)
	}
	a.Header.Del("Content-Length")
	unknown.Header.Del("Content-Length")
	if !maps.EqualFunc(a.Header, unknown.Header, slices.Equal) {
		t.Errorf("%s: can be told from an unknown name:\n%v\n%v", what, a.Header, unknown.Header)
	}
}

// Wrong credentials are refused wherever a record could be shown, also where the public may
// see it, and nowhere else. (The REST interface of handles, whose clients send credentials of
// another system, is the exception: TestHandlesCredentials.)
func TestIdentifyWrong(t *testing.T) {
	g := newGuarded(t)
	g.space("ark:12345")
	g.space("20.500.99999/")
	g.add(`{"id":"ark:12345/open","url":"https://example.org/1"}`, `{"id":"20.500.99999/OPEN","url":"https://example.org/1"}`)
	token := g.token("ann")
	wrong := token[:len(token)-4] + "AAAA"
	for name, value := range map[string]string{"a wrong secret": wrong, "no token": "Bearer x", "another scheme": "Basic YTpi", "nothing": ""} {
		for _, path := range everywhere("ark:12345/open", "20.500.99999/OPEN") {
			if strings.HasPrefix(path, "/api/handles/") {
				continue
			}
			a := g.get(path, "Authorization", value)
			if a.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(a.get("WWW-Authenticate"), "Bearer ") || a.get("Cache-Control") != "private, no-store" {
				t.Errorf("%s: %s: %d %q", name, path, a.StatusCode, a.get("WWW-Authenticate"))
			}
			if strings.Contains(a.body, "example.org/1") || strings.Contains(a.body, wrong[len(wrong)-20:]) {
				t.Errorf("%s: %s: %s", name, path, a.body)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/robots.txt"} {
		if a := g.get(path, "Authorization", wrong); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := g.get("/ark:12345/open", "Authorization", token, "Authorization", token); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("two headers: %d", a.StatusCode)
	}
	g.pass(25 * time.Hour)
	if a := g.get("/ark:12345/open", "Authorization", token); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.body, "expired on 2026-01-02") {
		t.Errorf("an expired token: %d %s", a.StatusCode, a.body)
	}
}

// A near miss is offered to a user who may see it.
func TestIdentifyNear(t *testing.T) {
	g := newGuarded(t)
	g.space("ark:12345", func(ns *stele.Namespace) { ns.Owner = "ann" })
	g.add(`{"id":"ark:12345/hidden","url":"https://example.org/1","state":"reserved"}`)
	ann := g.token("ann")
	if a := g.get("/ark:12345/hidden."); strings.Contains(a.body, "did you mean") {
		t.Errorf("the public is told %s", a.body)
	}
	if a := g.get("/ark:12345/hidden.", "Authorization", ann); a.StatusCode == http.StatusNotFound && !strings.Contains(a.body, "did you mean") {
		t.Errorf("its owner is told %s", a.body)
	}
}

// The versions of a record are shown to readers of its namespace, reserved ones too.
func TestIdentifyHistory(t *testing.T) {
	g := newGuarded(t)
	g.space("ark:12345", func(ns *stele.Namespace) { ns.Owner = "ann" })
	g.add(`{"id":"ark:12345/x","url":"https://example.org/1","state":"reserved"}`)
	g.pass(time.Hour)
	if _, err := g.registry.Update(g.admin, g.id("ark:12345/x"), 0, func(r *stele.Record) error { r.State = stele.Active; return nil }); err != nil {
		t.Fatal(err)
	}
	ann := g.token("ann")
	for head, want := range map[string]int{"": 1, ann: 2} {
		var ask []string
		if head != "" {
			ask = []string{"Authorization", head}
		}
		if a := g.get("/.timemap/ark:12345/x", ask...); strings.Count(a.body, "memento\";") != want {
			t.Errorf("%q: want %d mementos: %s", head, want, a.body)
		}
		if a := g.get("/.info/ark:12345/x", ask...); strings.Count(a.body, `"version":`) != want+1 {
			t.Errorf("%q: want %d versions: %s", head, want, a.body)
		}
	}
}

// The observer gets requests with a token as it gets others, and the token is not in them.
func TestIdentifyObserved(t *testing.T) {
	var seen []Observation
	s := newSite(t, func(o *Options) {
		o.Identify = func(*http.Request) (auth.Principal, error) { return auth.Principal{Name: "ann"}, nil }
		o.Observe = func(x Observation) { seen = append(seen, x) }
	})
	s.space("ark:12345")
	s.to("ark:12345/x", "https://example.org/1")
	s.get("/ark:12345/x", "Authorization", "Bearer x")
	if len(seen) != 1 || seen[0].Scheme != "ark" || seen[0].Route != "identifier" || seen[0].Status != http.StatusFound || seen[0].Bytes == 0 {
		t.Errorf("%+v", seen)
	}
}

// A request without a token costs no more for it that there are users.
func TestIdentifyPublic(t *testing.T) {
	asked := 0
	s := newSite(t, func(o *Options) {
		o.Identify = func(*http.Request) (auth.Principal, error) { asked++; return auth.Principal{}, nil }
	})
	s.space("ark:12345")
	s.to("ark:12345/x", "https://example.org/1")
	r := httptest.NewRequest(http.MethodGet, "/ark:12345/x", nil).WithContext(context.Background())
	if a := s.send(r); a.StatusCode != http.StatusFound || a.get("Cache-Control") == "private, no-store" || asked != 0 {
		t.Errorf("%d %q, asked %d times", a.StatusCode, a.get("Cache-Control"), asked)
	}
}

// A search by location shows nothing of a hidden name, not even by what answers in its
// place: the whole of which it would be a part.
func TestPointingAtHiddenParts(t *testing.T) {
	var s *site
	s = newSite(t, func(o *Options) {
		o.Pointing = func(ctx context.Context, at stele.Location, after stele.ID) iter.Seq2[stele.ID, error] {
			return s.store.Pointing(ctx, at, after)
		}
	})
	s.space("ark:12345")
	s.add(`{"id":"ark:12345/whole","url":"https://example.org/whole"}`,
		`{"id":"ark:12345/whole/part","url":"https://example.org/part","state":"reserved"}`)
	for _, service := range []string{"L2Ns", "L2Ls", "L2C"} {
		hidden := s.get("/uri-res/" + service + "?https://example.org/part")
		none := s.get("/uri-res/" + service + "?https://example.org/none")
		if hidden.StatusCode != http.StatusNotFound || strings.ReplaceAll(hidden.body, "part", "none") != none.body {
			t.Errorf("%s: %d %s %s", service, hidden.StatusCode, hidden.get("Location"), hidden.body)
		}
	}
}
