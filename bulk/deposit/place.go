package deposit

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Place is where deposits are kept, as a URL says it. It never has a secret.
type Place struct{ url url.URL }

// ParsePlace reads the URL of a place:
//
//	file:///srv/vault
//	sftp://user@host/path
//	s3://bucket/prefix?endpoint=https://s3.example.org&region=eu-central-1
func ParsePlace(text string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Place{}, errPlace
	}
	if _, secret := u.User.Password(); secret {
		return Place{}, failf(stele.Invalid, "deposit.place-with-password", "a password does not belong into a URL; name a file with credentials instead")
	}
	if u.Fragment != "" || u.Opaque != "" || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return Place{}, errPlace
	}
	ok := false
	switch query := u.Query(); u.Scheme {
	case "file":
		ok = (u.Host == "" || u.Host == "localhost") && u.User == nil && path.IsAbs(u.Path) && u.RawQuery == ""
	case "sftp":
		ok = u.Hostname() != "" && u.User.Username() != "" && path.IsAbs(u.Path) && u.RawQuery == ""
	case "s3":
		ok = u.Host != "" && u.Port() == "" && u.User == nil
		for name, values := range query {
			ok = ok && (name == "endpoint" && isEndpoint(values[0]) || name == "region" && values[0] != "") && len(values) == 1
		}
	}
	if !ok {
		return Place{}, errPlace
	}
	return Place{*u}, nil
}

var errPlace = failf(stele.Invalid, "deposit.not-a-place", "this is not a place for deposits; write file:///FOLDER, sftp://USER@HOST/FOLDER, or s3://BUCKET/FOLDER?endpoint=https://HOST&region=REGION")

// isEndpoint reports whether a text is the URL of a server, without a path.
func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

// String returns the URL.
func (p Place) String() string { return p.url.String() }

// IsLocal reports whether the place is a folder of this machine.
func (p Place) IsLocal() bool { return p.url.Scheme == "file" }

// How long connecting to a server may take, and one request, which may carry an object; and how many bytes an answer may have.
const (
	Connecting = 30 * time.Second
	Patience   = 10 * time.Minute
	MaxAnswer  = maxList + 1
)

// Doer asks a server by HTTP: a client of package outbound, which follows no redirect.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Access is how places are reached.
type Access struct {
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
	HTTP        Doer
	Credentials string   // file with a private key of SSH, or with the keys of S3
	KnownHosts  []string // files with the keys of SSH servers; those that are not there are left out
	Environment func(name string) string
	Now         func() time.Time
	Wait        func(ctx context.Context, d time.Duration) error
}

// Open makes the place ready for use. It connects when the first thing is asked for.
func (p Place) Open(a Access) (Destination, error) {
	var to Destination
	var err error
	switch p.url.Scheme {
	case "file":
		to = &folder{filepath.Clean(filepath.FromSlash(p.url.Path))}
	case "sftp":
		to, err = openSFTP(p, a)
	case "s3":
		to, err = openS3(p, a)
	default:
		err = errPlace
	}
	if err != nil {
		return nil, err
	}
	return &patient{to, a.Wait}, nil
}
