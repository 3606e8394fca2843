// Package desktest uses a server's desk as its first administrator does, for tests that
// start the program on a new registry.
package desktest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Label is the label of the tokens that Token makes.
const Label = "first one"

var (
	link = regexp.MustCompile(`/\.desk/link/stele-link_[0-9a-z]+_[0-9A-Za-z_-]{43}`)

	token = regexp.MustCompile(`stele_[0-9a-z]{12}_[0-9A-Za-z_-]{43}`)
)

// Link returns the path of the one-time link in what a server prints; "" if it has none.
func Link(printed string) string { return link.FindString(printed) }

// Token signs in at a server by the one-time link that it printed, and makes a token with
// all scopes. At is the address of the server, as in "http://127.0.0.1:8080".
func Token(ctx context.Context, client *http.Client, at, printed string) (string, error) {
	path := Link(printed)
	if path == "" {
		return "", fmt.Errorf("no link is in %s", printed)
	}
	here := *client
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	signedIn, page, err := post(ctx, &here, at+path, nil, nil)
	if err != nil {
		return "", err
	}
	if signedIn.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("the link is answered with %s\n%s", signedIn.Status, page)
	}
	form := url.Values{"label": {Label}, "scope": {"read", "mint", "write", "admin", "backup", "metrics"}, "expires": {"90"}}
	answer, page, err := post(ctx, &here, at+"/.desk/account/tokens", form, signedIn.Cookies())
	if err != nil {
		return "", err
	}
	made := token.FindString(page)
	if made == "" {
		return "", fmt.Errorf("no token is made: %s\n%s", answer.Status, page)
	}
	return made, nil
}

// maxPage bounds what is read of a page.
const maxPage = 1 << 20

// post sends a form with cookies. A cookie is sent over http, too, if the server's own
// address is an https one that a proxy would have.
func post(ctx context.Context, client *http.Client, at string, form url.Values, cookies []*http.Cookie) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPage))
	return answer, string(text), err
}
