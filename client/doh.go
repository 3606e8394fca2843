package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

// messageType is the media type of DNS messages (RFC 8484, section 6).
const messageType = "application/dns-message"

// maxMessage is the longest DNS message.
const maxMessage = 1<<16 - 1

// newSecureTransport makes a transport for DNS over HTTPS, over HTTP/2 where the server
// speaks it (RFC 8484, section 5.2).
func newSecureTransport(o *DNSOptions) *http.Transport {
	t := endpoint.NewTransport()
	t.Proxy = http.ProxyFromEnvironment
	t.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs, Time: o.Now, MinVersion: tls.VersionTLS12}
	t.ForceAttemptHTTP2 = true
	t.IdleConnTimeout = 30 * time.Second
	return t
}

// exchangeHTTPS asks with POST: with GET the question would stand in the URL, and servers
// log URLs. Redirects are not followed.
func (u *upstream) exchangeHTTPS(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	packed, err := m.Pack()
	if err != nil {
		return nil, stele.Messagef("dns.question-not-askable", "the question can't be asked: {cause}", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.server.url, bytes.NewReader(packed))
	if err != nil {
		return nil, refusal{stele.Messagef("doh.url", "the server's URL can't be asked")}
	}
	req.Header.Set("Content-Type", messageType)
	req.Header.Set("Accept", messageType)
	req.Header.Set("User-Agent", endpoint.UserAgent)
	resp, err := u.https.RoundTrip(req)
	if err != nil {
		return nil, endpoint.WithoutURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	if err != nil {
		return nil, err
	}
	return readHTTPS(m, resp.StatusCode, resp.Header, body)
}

// readHTTPS reads the answer of a server for DNS over HTTPS. It subtracts the Age of an
// HTTP cache's answer from the TTLs (RFC 8484, section 5.1).
func readHTTPS(m *dns.Msg, status int, header http.Header, body []byte) (*dns.Msg, error) {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return nil, stele.Messagef("dns.https-server-unavailable", "the server can't answer now (HTTP status {status})", status)
	case status != http.StatusOK:
		return nil, refusal{stele.Messagef("doh.status", "the server does not answer DNS over HTTPS there (HTTP status {status})", status)}
	}
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != messageType {
		return nil, refusal{stele.Messagef("doh.not-a-message", "the server answers with something that is not a DNS message")}
	}
	if len(body) > maxMessage {
		return nil, stele.Messagef("resolve.answer-too-long", "the answer is too long")
	}
	reply := new(dns.Msg)
	if len(body) < headerSize || reply.Unpack(body) != nil || !answers(m, reply) {
		return nil, errMalformed
	}
	if age, err := strconv.ParseUint(header.Get("Age"), 10, 31); err == nil {
		grow(reply, uint32(age))
	}
	return reply, nil
}

// grow subtracts seconds from the TTLs of records.
func grow(m *dns.Msg, seconds uint32) {
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, r := range section {
			if h := r.Header(); h.Rrtype != dns.TypeOPT { // there it is not a TTL
				h.Ttl -= min(h.Ttl, seconds)
			}
		}
	}
}
