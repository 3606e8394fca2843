package outbound

import (
	"net/http"
	"time"

	"github.com/stele-id/stele"
)

// maxFetchRedirects is how many redirects a fetcher follows.
const maxFetchRedirects = 5

// NewFetcher returns a client that fetches public files on behalf of users. The dialer judges each address that a
// request or a redirect leads to. The client verifies certificates, follows five redirects at most, of HTTP and HTTPS
// and never back from HTTPS to HTTP, sends neither cookies nor credentials, asks no proxy, and keeps no connection
// open. Head is how long a site may take for the head of an answer. The caller bounds how much it reads, and for how
// long.
func NewFetcher(d *Dialer, head time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: head,
			ResponseHeaderTimeout: head, MaxResponseHeaderBytes: maxHead, ForceAttemptHTTP2: true},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			last := via[len(via)-1].URL
			switch {
			case len(via) > maxFetchRedirects:
				return &stele.Error{Op: "fetch", Kind: stele.Invalid, Err: stele.Messagef("outbound.too-many-redirects", "there are more than {most} redirects", maxFetchRedirects)}
			case next.URL.Scheme != "https" && (next.URL.Scheme != "http" || last.Scheme == "https"), next.URL.User != nil:
				return &stele.Error{Op: "fetch", Kind: stele.Forbidden, Err: stele.Messagef("outbound.redirect-not-allowed", "a redirect leads from {from} to {to}, which is not followed", last.Scheme, next.URL.Scheme)}
			}
			next.Header.Del("Referer")
			return nil
		},
	}
}
