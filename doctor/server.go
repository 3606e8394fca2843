package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// slowAnswer is how long the server may take to say that it is there.
const slowAnswer = time.Second

// examineServer asks the server whether it is alive and ready, on this machine and by its
// public address.
func examineServer(ctx context.Context, x *subject) {
	const start = "start it (systemctl start stele) and read its log (journalctl -u stele)"
	local := x.local()
	if x.Away {
		local = x.public()
	}
	if local == "" {
		x.warn("name the server with --server", "the port of http is any free one, so the server can't be found")
		return
	}
	response, took, err := x.get(ctx, local+"/healthz")
	switch {
	case err != nil:
		x.problem(start, "no server answers at %s: %v", local, err)
		return
	case response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") == "":
		x.problem("find out which program it is", "%s/healthz is answered with %s, so it is another program", local, response.Status)
		return
	}
	x.answers = true
	x.noteClock(response, took)
	ready, _, err := x.get(ctx, local+"/readyz")
	switch {
	case err != nil:
		x.problem(start, "%s/readyz is not answered: %v", local, err)
	case ready.StatusCode != http.StatusOK:
		x.problem("read why in its log (journalctl -u stele); a full disk and a server that ends are the usual reasons", "%s answers, but can't do all that it should (%s)", local, ready.Status)
	case took > slowAnswer:
		x.warn("see what else the machine does", "%s answers after %s", local, took.Round(time.Millisecond))
	default:
		x.ok("%s answers after %s", local, took.Round(time.Microsecond))
	}
	if base := x.Config.Base; !x.Away && base != "" {
		if _, took, err := x.get(ctx, base+"/healthz"); err != nil {
			x.problem("see that its name leads here, and that ports and certificate are right", "the public address %s does not answer: %v", base, err)
		} else {
			x.ok("%s answers after %s", base, took.Round(time.Microsecond))
		}
	}
}

// noteClock notes by how much the server's clock is ahead of ours, as far as Date
// tells, which has whole seconds.
func (x *subject) noteClock(response *http.Response, took time.Duration) {
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return
	}
	x.known, x.skew = true, 0
	now := x.Now()
	if earliest := now.Add(-took - time.Second); date.Before(earliest) {
		x.skew = date.Sub(earliest)
	} else if date.After(now) {
		x.skew = date.Sub(now)
	}
}

// How long before its end doctor reports a certificate. Those of ACME are renewed when a
// third of their time is left: 30 days, as a rule.
const (
	certificateSoon  = 14 * 24 * time.Hour
	certificateUrges = 3 * 24 * time.Hour
)

// examineCertificate connects to the public address, and judges what is shown there as
// a browser would.
func examineCertificate(ctx context.Context, x *subject) {
	base, err := url.Parse(x.public())
	if err != nil || base.Scheme != "https" {
		if !x.Away && x.Config.HTTPS != "" {
			x.warn("set base to https://HOST", "base is not an https address, so the server's public name is unknown")
		}
		return
	}
	address := base.Host
	if base.Port() == "" {
		address = net.JoinHostPort(base.Hostname(), "443")
	}
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: base.Hostname(), MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}} // it is judged below
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		x.problem(x.certificateHelp(), "no certificate is shown at %s: %v", address, err)
		return
	}
	defer conn.Close()
	x.judgeCertificate(base.Hostname(), conn.(*tls.Conn).ConnectionState().PeerCertificates)
}

// judgeCertificate judges a chain of certificates.
func (x *subject) judgeCertificate(host string, chain []*x509.Certificate) {
	leaf, between := chain[0], x509.NewCertPool() // TLS has no empty chains
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	roots := x.web.Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between, CurrentTime: x.Now()})
	left := leaf.NotAfter.Sub(x.Now())
	expires := fmt.Sprintf("%s expires in %d days, on %s", host, left/(24*time.Hour), leaf.NotAfter.UTC().Format(time.DateOnly))
	unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case left <= 0:
		x.problem(x.certificateHelp(), "%s expired on %s", host, leaf.NotAfter.UTC().Format(time.DateOnly))
	case isUnknown && len(chain) == 1:
		x.problem("tls-cert should have the certificates between it and the root too, or --ca names the root of a private CA", "the certificate of %s has an unknown issuer: %v", host, unknown)
	case err != nil:
		x.problem(x.certificateHelp(), "the certificate of %s is not good: %v", host, err)
	case left < certificateUrges:
		x.problem(x.certificateHelp(), "%s", expires)
	case left < certificateSoon:
		x.warn(x.certificateHelp(), "%s", expires)
	default:
		x.ok("%s", expires)
	}
}

// certificateHelp is what to do about a certificate.
func (x *subject) certificateHelp() string {
	if len(x.Config.ACMEDomains) > 0 {
		return "read in the log why the CA did not renew it (journalctl -u stele | grep certificates); its names must lead here, at ports 80 or 443; then systemctl reload stele"
	}
	return "put a new certificate into the files of tls-cert and tls-key; they are read within ten seconds"
}

// examineRedirect asks in clear for what should only be had by https.
func examineRedirect(ctx context.Context, x *subject) {
	base, err := url.Parse(x.public())
	if err != nil || base.Scheme != "https" {
		return
	}
	plain := "http://" + base.Hostname()
	if base.Port() != "" { // not at the usual ports, so http is not either
		_, port, err := net.SplitHostPort(x.Config.HTTP)
		if err != nil || x.Away {
			return
		}
		plain = "http://" + net.JoinHostPort(base.Hostname(), port)
	}
	response, _, err := x.get(ctx, plain+"/")
	switch {
	case err != nil:
		x.warn("let the http listener be reached at port 80 of that name, and set redirect-https", "names that people write without https lead nowhere: %v", err)
	case response.StatusCode/100 == 3 && strings.HasPrefix(response.Header.Get("Location"), "https://"):
		x.ok("%s leads to https", plain)
	default:
		x.warn("set redirect-https, or let the proxy in front send visitors there", "%s is answered in clear (%s)", plain, response.Status)
	}
}
