package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

const (
	maxHead      = 64 << 10 // bytes of the head of an answer
	maxRedirects = 10
	maxAttempts  = 100 // for one file, however much each of them brings
	userAgent    = "stele-client"
)

var (
	// ErrUntrusted says that no trusted authority signed the server's certificate.
	ErrUntrusted = stele.Messagef("fetch.certificate-untrusted", "the server's certificate is signed by no authority that this machine trusts")
	// ErrSize says that something has another size than it must have.
	ErrSize = stele.Messagef("fetch.size-differs", "it has another size")
	// ErrAddress says that a server has an address that may not be reached.
	ErrAddress = stele.Messagef("fetch.address-private", "it is an address of this machine or of a private network")
)

// Options are how servers are asked. The zero value is ready to use.
type Options struct {
	RootCAs *x509.CertPool   // authorities that sign certificates; the system's if nil
	Now     func() time.Time // by which certificates are judged; the system's if nil

	// Dial opens connections; a [net.Dialer] does if nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// May says which addresses may be reached; all if nil. Each address of a host is
	// judged when the socket is about to connect to it, those of redirects too. A proxy of
	// the environment is the user's own choice and not judged; what it connects to is
	// judged if the location has an address instead of a host name. With Dial, May is not
	// called.
	May func(netip.Addr) bool

	Idle  time.Duration // for how long nothing may come; 30 s if 0
	Tries int           // how often it is tried without getting further; 4 if 0
	Pause time.Duration // before the second attempt, and twice that before the next; 1 s if 0
}

// Fetcher fetches files. It is used by many goroutines at once.
type Fetcher struct {
	o         Options
	transport *http.Transport
	proxies   sync.Map // addresses of the environment's proxies, with their port
}

// New makes a Fetcher. It sends nothing yet.
func New(o Options) *Fetcher {
	o.Idle = cmp.Or(o.Idle, 30*time.Second)
	o.Tries = cmp.Or(o.Tries, 4)
	o.Pause = cmp.Or(o.Pause, time.Second)
	f := &Fetcher{}
	if o.Dial == nil {
		o.Dial = f.dial
	}
	f.o = o
	f.transport = &http.Transport{
		Proxy:                  f.proxy,
		DialContext:            o.Dial,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, Time: o.Now, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.Idle,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true, // a digest is of what is there, and not of how it is sent
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        o.Idle,
	}
	return f
}

// Close closes idle connections.
func (f *Fetcher) Close() { f.transport.CloseIdleConnections() }

// Request says what is wanted.
type Request struct {
	Location string
	Accept   string // media types, as HTTP has them; any if ""
	MaxSize  int64  // bytes; no limit if 0

	// Sizes are what it may have; any up to MaxSize if there are none.
	Sizes []int64

	// Progress gets the number of bytes so far, and the total; -1 if it is unknown.
	Progress func(done, total int64)
}

// Info is what is known of something that was fetched.
type Info struct {
	URL     string // where it came from in the end
	Type    string // media type, without parameters; "" if the server did not say
	Size    int64
	Resumed int64 // bytes of it that an earlier attempt had brought
	InClear bool  // an attacker on the network path could have changed it
	Open    bool  // the server did not say how long it is, so it may be cut off

	// Encoding is how the server has compressed it, such as gzip, though it was asked not
	// to; "" if it has not. The file is as it was sent: its digest is of that, and a later
	// attempt resumes in that.
	Encoding string
}

// Fetches reports whether a location can be fetched from.
func Fetches(location string) bool {
	_, err := parse(location)
	return err == nil
}

// parse reads a location. Users and passwords in it are not sent, and fragments are for
// the program that shows the thing.
func parse(location string) (*url.URL, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return nil, fail(stele.Invalid, "fetch.not-an-absolute-url", `"{url}" is not an absolute URL with a host`, location)
	}
	switch u.Scheme = strings.ToLower(u.Scheme); u.Scheme {
	case "http", "https", "ftp":
		u.User, u.Fragment, u.RawFragment = nil, "", ""
		return u, nil
	}
	return nil, fail(stele.Invalid, "fetch.scheme-unsupported", `"{scheme}" is not fetched from; http, https and ftp are`, u.Scheme)
}

// mark is by what the client recognises that something has not changed. It is stored
// beside the part.
type mark struct {
	ETag     string    `json:"etag,omitempty"`     // strong (RFC 9110, section 8.8.1)
	Modified string    `json:"modified,omitempty"` // as HTTP has it, and strong too
	Time     time.Time `json:"time,omitzero"`      // of FTP
	Size     int64     `json:"size"`               // -1 if the server did not say
}

// isStrong reports whether the mark is good enough to resume.
func (m *mark) isStrong() bool {
	return m.ETag != "" || m.Modified != "" || !m.Time.IsZero() && m.Size >= 0
}

// offer is what a server is about to send.
type offer struct {
	body    body // nil if nothing is left to send
	from    int64
	size    int64 // of the whole; -1 if the server does not say
	mark    mark
	kind    string
	packing string
	url     string
	inClear bool
	open    bool
}

// body is read and closed.
type body interface {
	Read([]byte) (int, error)
	Close() error
}

func (o *offer) close() {
	if o.body != nil {
		_ = o.body.Close()
	}
}

// info is what the offer says.
func (o *offer) info() Info {
	return Info{URL: o.url, Type: o.kind, Encoding: o.packing, Size: o.size, InClear: o.inClear, Open: o.open}
}

// ask asks for what is at a location from a byte on, if its mark has not changed. It
// follows redirects.
func (f *Fetcher) ask(ctx context.Context, q *Request, from int64, m *mark) (*offer, error) {
	u, err := parse(q.Location)
	if err != nil {
		return nil, err
	}
	inClear := false
	seen := map[string]bool{}
	for range maxRedirects + 1 {
		if seen[u.String()] {
			return nil, fail(stele.Conflict, "fetch.redirects-circular", `"{location}" redirects in a circle`, q.Location)
		}
		seen[u.String()] = true
		inClear = inClear || u.Scheme != "https"
		var o *offer
		var next *url.URL
		if u.Scheme == "ftp" {
			o, err = f.askFTP(ctx, u, from, m)
		} else {
			o, next, err = f.askHTTP(ctx, u, q.Accept, from, m)
		}
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			o.url, o.inClear = u.String(), inClear
			return o, nil
		}
		u = next
	}
	return nil, fail(stele.Conflict, "fetch.redirects-too-many", `"{location}" redirects more than {limit} times`, q.Location, maxRedirects)
}

func fail(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "get", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// about adds to an error where it happened. Its kind stays.
func about(u *url.URL, err error) error {
	if e, ok := errors.AsType[addressError](err); ok {
		return fail(stele.Forbidden, "", "{host}: {cause}", u.Host, e)
	}
	if e, ok := err.(*stele.Error); ok && e.Err != nil {
		return fail(e.Kind, "", "{host}: {cause}", u.Host, e.Err)
	}
	return fail(stele.Unavailable, "", "{host}: {cause}", u.Host, err)
}
