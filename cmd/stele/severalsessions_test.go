package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/serve/desk"
)

// proxied is what servers need so that a proxy can sign users in, who have not proved then who they are.
var proxied = []string{"--trusted-proxies", "127.0.0.1", "--proxy-user-header", "Remote-User"}

// deskVisit is a browser at the desks of several servers, which follows no redirects.
type deskVisit struct {
	t *testing.T
	http.Client
}

func visitDesks(t *testing.T) *deskVisit {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &deskVisit{t: t, Client: http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	t.Cleanup(v.CloseIdleConnections)
	return v
}

// ask gets a page of the desk of a server, or sends a form if there is one, and returns the status, the path to which the answer
// leads, and the page.
func (v *deskVisit) ask(s *clusterServer, path string, form url.Values) (status int, to, page string) {
	v.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, s.http+desk.Root+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Remote-User", "root")
	answer, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	to, _, _ = strings.Cut(answer.Header.Get("Location"), "?")
	return answer.StatusCode, to, string(text)
}

// want fails unless a server answers with a status, leads to a path of the desk, and shows texts.
func (v *deskVisit) want(s *clusterServer, path string, form url.Values, status int, to string, texts ...string) {
	v.t.Helper()
	got, where, page := v.ask(s, path, form)
	if to != "" {
		to = desk.Root + strings.TrimPrefix(to, ".")
	}
	if got != status || where != to {
		v.t.Fatalf("%s at %s: %d to %q, want %d to %q\n%s", path, s.http, got, where, status, to, page)
	}
	wantText(v.t, page, texts...)
}

// shareSessions signs in at one of two servers: what a user does with sessions, settings and proofs at one holds at the other one
// at once.
func (c *cluster) shareSessions(t *testing.T) {
	a, b := c.servers[0], c.servers[1]
	enter := func(s *clusterServer) *deskVisit {
		t.Helper()
		v := visitDesks(t)
		v.want(s, "sign-in/proxy", url.Values{}, 303, ".")
		return v
	}

	// Signed out at one server, the cookie is worth nothing at the other one.
	v := enter(a)
	v.want(b, "", nil, 200, "", "root")
	kept := v.Jar.Cookies(mustURL(t, a.http+desk.Root))
	v.want(a, "sign-out", url.Values{}, 303, "sign-in")
	v.Jar.SetCookies(mustURL(t, a.http+desk.Root), kept)
	v.want(b, "", nil, 303, "sign-in")
	v.want(b, "new", url.Values{"what": {"Typed for an hour"}}, 401, "", "Your session has ended", "Typed for an hour")

	// To end the others at one server ends those of the other one, and not this one.
	first, second := enter(a), enter(b)
	first.want(b, "", nil, 200, "")
	second.want(b, "account/end-others", url.Values{}, 303, "account")
	for _, s := range c.servers {
		first.want(s, "", nil, 303, "sign-in")
		second.want(s, "", nil, 200, "")
	}

	// A setting.
	second.want(a, "settings", url.Values{"language": {"pt-BR"}}, 303, "settings")
	second.want(b, "account", nil, 200, "", `<html lang="pt-BR">`)
	second.want(b, "settings", url.Values{"language": {"en"}}, 303, "settings")
	second.want(a, "account", nil, 200, "", `<html lang="en">`)

	// A proof: the user who came by a proxy has to give one, and gives it by a link at one server.
	for _, s := range c.servers {
		second.want(s, "account/tokens/new", nil, 403, "", "root")
	}
	link := strings.Fields(runStele(c.t, "user", "link", "root", "--store", c.url, "--base", a.http))[0]
	second.want(a, strings.TrimPrefix(link, a.http+desk.Root), url.Values{}, 303, ".")
	second.want(b, "account/tokens/new", nil, 200, "")
	second.want(b, "account/end-others", url.Values{}, 303, "account")
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
