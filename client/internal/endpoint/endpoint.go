// Package endpoint has what all HTTP clients below client share: reading the URL of a
// server, a transport that bounds what a server can do, and errors of the network without
// the addresses in them. It sends nothing.
package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

const (
	HTTPPort  = 80  // the port of a URL that begins with http and names none
	HTTPSPort = 443 // the port of a URL that begins with https and names none

	// UserAgent is the name under which all requests are sent.
	UserAgent = "stele-client"

	// MaxHeader is how many bytes the header of an answer may have.
	MaxHeader = 32 << 10
)

// ErrNoAnswer is the error of a server that does not answer in time.
var ErrNoAnswer = stele.Messagef("server.answer-timed-out", "no answer in time")

// Endpoint is where a server answers over HTTP.
type Endpoint struct {
	Host   string // a name without the dot at its end, or an address
	Port   uint16
	Secure bool   // it speaks HTTPS
	Path   string // before that of requests, escaped, without a slash at its end
}

// Parse reads the URL of a server. It ignores query and fragment.
func Parse(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil {
		return Endpoint{}, stele.Messagef("server.url-not-http", "this is not an http or https URL")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if _, err := netip.ParseAddr(host); err != nil && !IsHostName(host) {
		return Endpoint{}, stele.Messagef("server.url-without-host", "the URL has no host")
	}
	e := Endpoint{Host: host, Port: HTTPPort, Secure: u.Scheme == "https"}
	if e.Secure {
		e.Port = HTTPSPort
	}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return Endpoint{}, stele.Messagef("server.url-port-invalid", "the URL has no good port")
		}
		e.Port = uint16(n)
	}
	e.Path = strings.TrimRight(u.EscapedPath(), "/")
	return e, nil
}

// HostPort returns host and port, as people write them.
func (e Endpoint) HostPort() string { return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) }

// URL returns the URL of a path there.
func (e Endpoint) URL(path string) string {
	scheme, usual := "http", uint16(HTTPPort)
	if e.Secure {
		scheme, usual = "https", HTTPSPort
	}
	host := e.HostPort()
	if e.Port == usual {
		if host = e.Host; strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	}
	return scheme + "://" + host + e.Path + path
}

// IsHostName reports whether a text is a host's name: letters, digits, hyphens, and
// underscores, which are in use.
func IsHostName(text string) bool {
	if text == "" || len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// NewTransport returns a transport that bounds what a server can do.
func NewTransport() *http.Transport {
	return &http.Transport{
		MaxResponseHeaderBytes: MaxHeader,
		DisableCompression:     true, // a small answer may unpack to a large one
		TLSHandshakeTimeout:    5 * time.Second,
	}
}

// WithoutURL returns an error of net/http without the URL in it.
func WithoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// Timely returns [ErrNoAnswer], or the context's own error, if that is why something
// failed, and otherwise err without addresses.
func Timely(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrNoAnswer
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
