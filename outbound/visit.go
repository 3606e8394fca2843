package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewResolver returns a resolver that asks the DNS server at an address, which the operator names.
func NewResolver(server string, patience time.Duration) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, server)
	}}
}

// maxHead is how many bytes the head of an answer may have.
const maxHead = 256 << 10

// NewVisitor returns what asks public sites, and keeps no connection open. It follows no
// redirect, and does not judge certificates: the caller looks at the TLS state of the answer, and must not
// send anything that is secret. It offers old versions of TLS and weak ciphers too: a site that knows no others is there, and its answer needs no
// protection. Head is how long a site may take for the head of an answer.
func NewVisitor(d *Dialer, head time.Duration) http.RoundTripper {
	return &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: d.Timeout, ResponseHeaderTimeout: head,
		MaxResponseHeaderBytes: maxHead, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, CipherSuites: everySuite()}}
}

// everySuite returns the cipher suites of TLS 1.0 to 1.2 that the program knows, weak ones too.
func everySuite() (list []uint16) {
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		list = append(list, s.ID)
	}
	return list
}
