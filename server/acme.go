package server

import (
	"maps"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
)

// acme are certificates that a CA issues to a server that proves that a name leads to it
// (RFC 8555): by the response to a request in clear, or in a TLS handshake (RFC 8737).
type acme struct {
	domains []string
	cache   *certmagic.Cache
	magic   *certmagic.Config
	issuer  *certmagic.ACMEIssuer
}

// challengePath begins the paths at which the CA asks (RFC 8555, section 8.3).
const challengePath = "/.well-known/acme-challenge/"

// tlsChallenge is the protocol by which the CA asks in a handshake (RFC 8737, section
// 6.2).
const tlsChallenge = "acme-tls/1"

// newACME makes certificates of a CA, for listeners that are open already.
func newACME(c *config.Values, plain, secure *listener, log *slog.Logger) (*acme, error) {
	roots, err := readRoots(c.ACMERoot)
	if err != nil {
		return nil, err
	}
	zap := newZap(log.With("about", "certificates"))
	a := &acme{domains: c.ACMEDomains}
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil },
		Logger:           zap,
	})
	a.magic = certmagic.New(a.cache, certmagic.Config{
		Storage:           &certmagic.FileStorage{Path: c.CertificateFolder()},
		DefaultServerName: c.ACMEDomains[0], // for clients that send no name
		Logger:            zap,
		OnEvent: func(_ context.Context, event string, data map[string]any) error {
			if event == "cert_obtained" {
				log.Info("there is a new certificate", "name", data["identifier"], "renewed", data["renewal"])
			}
			return nil
		},
	})
	a.issuer = certmagic.NewACMEIssuer(a.magic, certmagic.ACMEIssuer{
		CA: c.ACMECA, Email: c.ACMEEmail, Agreed: true, TrustedRoots: roots, Logger: zap,
		// It looks whether a program listens there; this server does.
		ListenHost: plain.host(), AltHTTPPort: plain.port(), AltTLSALPNPort: secure.port(),
	})
	a.magic.Issuers = []certmagic.Issuer{a.issuer}
	return a, nil
}

// readRoots reads the root certificates of a private CA; nil for those of the system.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, refuse("tls", stele.Unavailable, "server.acme-roots-unreadable", "the roots of the CA can't be read, see acme-root in 'stele config list': {cause}", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, refuse("tls", stele.Invalid, "server.file-without-certificate", "{file} has no certificate in PEM", file)
	}
	return pool, nil
}

func (a *acme) config() *tls.Config { return tlsConfig(a.magic.GetCertificate, tlsChallenge) }

// before answers the CA, for this server's names only: every client can ask, and the
// storage would be searched for each other name.
func (a *acme) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, challengePath) && a.has(r.Host) && a.issuer.HandleHTTPChallenge(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// has reports whether a host, perhaps with a port, is one of our names.
func (a *acme) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(a.domains, strings.ToLower(host))
}

// manage asks the CA in the background, again and again if need be. Until there is a
// certificate clients can't use HTTPS.
func (a *acme) manage(ctx context.Context) error { return a.magic.ManageAsync(ctx, a.domains) }

// reload renews now what would be renewed soon.
func (a *acme) reload(ctx context.Context) {
	_ = a.cache.RenewManagedCertificates(ctx) // what goes wrong is in the log
}

func (a *acme) expiries() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, name := range a.domains {
		for _, c := range a.cache.AllMatchingCertificates(name) {
			if c.Leaf != nil && c.Leaf.NotAfter.After(ends[name]) {
				ends[name] = c.Leaf.NotAfter
			}
		}
	}
	return ends
}

func (a *acme) names() []string { return a.domains }

func (a *acme) close() { a.cache.Stop() }

// zapLog is a log of certmagic's kind that writes to ours. It logs each step, for an operator
// who looks for a fault, and leaves out what is about visitors.
type zapLog struct{ log *slog.Logger }

var _ zapcore.Core = zapLog{}

func newZap(log *slog.Logger) *zap.Logger { return zap.New(zapLog{log}) }

// visitors are fields with the address of a visitor, or with what else they send.
var visitors = []string{"remote", "remote_ip", "remote_port", "remote_addr", "user_agent", "uri"}

func level(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.WarnLevel:
		return slog.LevelDebug
	case l < zapcore.ErrorLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// Enabled implements [zapcore.Core].
func (z zapLog) Enabled(l zapcore.Level) bool {
	return z.log.Enabled(context.Background(), level(l))
}

// With implements [zapcore.Core].
func (z zapLog) With(fields []zapcore.Field) zapcore.Core {
	return zapLog{slog.New(z.log.Handler().WithAttrs(attributes(fields)))}
}

// Check implements [zapcore.Core].
func (z zapLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if z.Enabled(e.Level) {
		return c.AddCore(e, z)
	}
	return c
}

// Write implements [zapcore.Core].
func (z zapLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	z.log.LogAttrs(context.Background(), level(e.Level), e.Message, attributes(fields)...)
	return nil
}

// Sync implements [zapcore.Core].
func (zapLog) Sync() error { return nil }

// attributes returns fields as our log has them.
func attributes(fields []zapcore.Field) (out []slog.Attr) {
	for _, f := range fields {
		if slices.Contains(visitors, f.Key) {
			continue
		}
		in := zapcore.NewMapObjectEncoder()
		f.AddTo(in)
		for _, key := range slices.Sorted(maps.Keys(in.Fields)) {
			if key != f.Key+"Verbose" { // an error's stack
				out = append(out, slog.Any(key, in.Fields[key]))
			}
		}
	}
	return out
}
