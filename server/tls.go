package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
)

// certificates are what the server shows at its HTTPS listener.
type certificates interface {
	// config returns how TLS is spoken.
	config() *tls.Config
	// before returns a handler that answers the CA that issues certificates, and hands all
	// other requests on.
	before(next http.Handler) http.Handler
	// manage begins to see to it that there are certificates. The listeners are open.
	manage(ctx context.Context) error
	// reload looks for newer ones.
	reload(ctx context.Context)
	// expiries returns when the certificates end, by name.
	expiries() map[string]time.Time
	// names returns the names that there are certificates for.
	names() []string
	close()
}

// openCertificates returns the certificates that the configuration asks for; nil if
// the server speaks neither HTTPS nor DNS over TLS.
func (s *server) openCertificates() (certificates, error) {
	switch {
	case s.https.Listener == nil && len(s.DNSTLS) == 0:
		return nil, nil
	case len(s.ACMEDomains) > 0:
		return newACME(&s.Values, &s.http, &s.https, s.log)
	}
	f := &certificateFiles{cert: s.TLSCert, key: s.TLSKey, now: s.now, log: s.log}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// tlsSuites are the suites of TLS 1.2 that encrypt and authenticate in one step. Those
// with CBC, which Go offers too, have a history of attacks, and no client needs them that
// speaks TLS 1.2 well. The suites of TLS 1.3 are not a matter of choice.
var tlsSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// tlsConfig is TLS as Go's authors think best, without what is older than 1.2, and
// without CBC.
func tlsConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   tlsSuites,
		GetCertificate: get,
		NextProtos:     append([]string{"h2", "http/1.1"}, protocols...),
	}
}

// certificateFiles are a certificate and its key in files, which another program
// may replace at any time.
type certificateFiles struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]os.FileInfo // the files that were read last, whether they were good or not; nil if one was not there
	checked time.Time      // when the files were last looked at
}

// checkEvery is how often files are looked at, at most.
const checkEvery = 10 * time.Second

func (f *certificateFiles) config() *tls.Config {
	return tlsConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if now := f.now(); now.Sub(f.checked) >= checkEvery || now.Before(f.checked) {
			f.check(now)
		}
		return f.current, nil
	})
}

// load reads the files for the first time.
func (f *certificateFiles) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.checked = f.look(), f.now()
	pair, err := ReadPair(f.cert, f.key)
	f.current = pair
	return err
}

// check reads the files again if they have changed. A pair that is not good, or only half
// there, leaves the old one in place and is logged once.
func (f *certificateFiles) check(now time.Time) {
	f.checked = now
	seen := f.look()
	if isSame(seen[0], f.seen[0]) && isSame(seen[1], f.seen[1]) {
		return
	}
	f.seen = seen
	pair, err := ReadPair(f.cert, f.key)
	if err != nil {
		f.log.Error("the new certificate is not good, and the old one goes on", "error", err.Error())
		return
	}
	f.current = pair
	f.log.Info("the certificate was read again", "names", strings.Join(pair.Leaf.DNSNames, " "), "expires", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// look returns the files as they are.
func (f *certificateFiles) look() (seen [2]os.FileInfo) {
	for i, name := range []string{f.cert, f.key} {
		if info, err := os.Stat(name); err == nil {
			seen[i] = info
		}
	}
	return seen
}

// isSame reports whether a file was neither written to nor replaced.
func isSame(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ReadPair reads a certificate and its key from files.
func ReadPair(cert, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	missing, isMissing := errors.AsType[*fs.PathError](err)
	switch {
	case isMissing:
		return nil, refuse("tls", stele.Unavailable, "server.tls-file-unreadable", "{path} can't be read: {cause}; see tls-cert and tls-key in 'stele config list'", missing.Path, missing.Err)
	case err != nil:
		return nil, refuse("tls", stele.Invalid, "server.certificate-and-key-mismatch", "{certificate} and {key} are not a certificate and its key: {cause}", cert, key, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, refuse("tls", stele.Invalid, "", "{cert}: {cause}", cert, err)
		}
	}
	return &pair, nil
}

func (f *certificateFiles) before(next http.Handler) http.Handler { return next }
func (f *certificateFiles) manage(context.Context) error          { return nil }
func (f *certificateFiles) close()                                {}

func (f *certificateFiles) reload(context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.check(f.now())
}

func (f *certificateFiles) expiries() map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := f.current.Leaf.Subject.CommonName
	if names := f.current.Leaf.DNSNames; len(names) > 0 {
		name = slices.Min(names)
	}
	return map[string]time.Time{name: f.current.Leaf.NotAfter}
}

func (f *certificateFiles) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.Leaf.DNSNames
}
