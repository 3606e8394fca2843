package outbound

import (
	"net/http"
	"time"
)

// Client asks HTTP servers at addresses that a rule allows.
type Client struct{ http.Client }

// NewClient returns a client whose requests take no longer than a time, and whose answers have at
// most so many bytes. It follows no redirect: what a request carries, such as a password, goes to
// the server that the caller names and no further.
func NewClient(rule Rule, patience time.Duration, maxAnswer int64) *Client {
	dialer := &Dialer{Rule: rule, Timeout: patience}
	return &Client{http.Client{
		Timeout: patience,
		Transport: &bounded{maxAnswer, &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: patience,
			MaxIdleConns: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// bounded ends answers that are too long.
type bounded struct {
	most int64
	next http.RoundTripper
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.next.RoundTrip(r)
	if err == nil {
		a.Body = http.MaxBytesReader(nil, a.Body, b.most)
	}
	return a, err
}
