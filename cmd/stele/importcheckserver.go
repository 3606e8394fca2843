package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
)

// Limits of a test that is run by a request to a server.
const (
	checkPatience = 30 * time.Second // for one answer
	checkPause    = 10 * time.Second // that a server may ask for before the next request, at most
	checkAttempts = 5
)

// askServer returns a function that asks the server of --server where a name leads, as a browser does: by a GET request without a token,
// of which the redirect is read and not followed.
func (p *program) askServer() (ask asker, done func(), err error) {
	roots, err := p.remote.roots()
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots}, MaxResponseHeaderBytes: 1 << 20}
	c := &http.Client{Timeout: checkPatience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base := strings.TrimSuffix(p.remote.server, "/")
	if !strings.Contains(base, "://") {
		base = "https://" + base
	}
	return func(ctx context.Context, name string) (got foreign.Answer, err error) {
		for attempt := 1; ; attempt++ {
			answer, wait, err := askOnce(ctx, c, base, name)
			if err == nil || wait == 0 || attempt == checkAttempts {
				return answer, err
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return answer, ctx.Err()
			}
		}
	}, transport.CloseIdleConnections, nil
}

// askOnce sends one request. With an error, wait is how long the server wants to be left alone; 0 if it is of no use to ask again.
func askOnce(ctx context.Context, c *http.Client, base, name string) (got foreign.Answer, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/"+strings.NewReplacer("#", "%23", " ", "%20").Replace(name), nil)
	if err != nil { // it can't be a name that the server has
		return got, 0, nil
	}
	answer, err := c.Do(r)
	switch {
	case errors.Is(err, context.Canceled):
		return got, 0, err
	case err != nil:
		return got, time.Second, refuse("import", stele.Unavailable, "import.check-no-answer", "the server {server} does not answer, so the test of {name} can't be run ({cause}); run the import again later, which only runs the tests", base, name, err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
	switch {
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		wait = min(max(time.Duration(seconds)*time.Second, time.Second), checkPause)
		return got, wait, refuse("import", stele.Unavailable, "import.check-unanswered", "the server answers {status} for {name}, so its test can't be run; run the import again later, which only runs the tests", answer.StatusCode, name)
	case answer.StatusCode/100 != 3:
		return got, 0, nil
	}
	to := answer.Header.Get("Location")
	if u, err := url.Parse(to); to == "" || err != nil || !u.IsAbs() { // one that the server answers itself is not where the name leads
		return got, 0, nil
	}
	return foreign.Answer{URL: to, Status: answer.StatusCode}, 0, nil
}
