package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
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
		x.warn("name the server with --server", "doctor.http-port-unknown", "the port of http is any free one, so the server can't be found")
		return
	}
	response, took, err := x.get(ctx, local+"/healthz")
	switch {
	case err != nil:
		x.problem(start, "doctor.server-silent", "no server answers at {server}: {cause}", local, err)
		return
	case response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") == "":
		x.problem("find out which program it is", "doctor.health-answered-by-other-program", "{server}/healthz is answered with {status}, so it is another program", local, response.Status)
		return
	}
	if x.isFree() {
		x.problem("start the server of this folder, or name the right folder, with --data or --config", "doctor.server-of-other-registry", "the server at {server} has another registry: no process has {folder} open", local, x.Place.Folder)
		return
	}
	x.answers = true
	x.noteClock(response, took)
	ready, _, err := x.get(ctx, local+"/readyz")
	switch {
	case err != nil:
		x.problem(start, "doctor.readiness-not-answered", "{server}/readyz is not answered: {cause}", local, err)
	case ready.StatusCode != http.StatusOK:
		x.problem("read why in its log (journalctl -u stele); a full disk and a server that ends are the usual reasons", "doctor.server-not-ready", "{server} answers, but can't do all that it should ({status})", local, ready.Status)
	case took > slowAnswer:
		x.warn("see what else the machine does", "doctor.server-answers-slowly", "{address} answers only after {duration}", local, took.Round(time.Millisecond))
	default:
		x.ok("doctor.server-answers", "{address} answers after {duration}", local, took.Round(time.Microsecond))
	}
	if base := x.Config.Base; !x.Away && base != "" {
		if _, took, err := x.get(ctx, base+"/healthz"); err != nil {
			x.problem("see that its name leads here, and that ports and certificate are right", "doctor.public-address-silent", "the public address {address} does not answer: {cause}", base, err)
		} else {
			x.ok("doctor.server-answers", "{address} answers after {duration}", base, took.Round(time.Microsecond))
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
			x.warn("set base to https://HOST", "doctor.public-name-unknown", "base is not an https address, so the server's public name is unknown")
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
		x.problem(x.certificateHelp(), "doctor.certificate-not-shown", "no certificate is shown at {address}: {cause}", address, err)
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
	expires := stele.Messagef("doctor.certificate-expires", "{host} expires in {days} days, on {date}", host, int64(left/(24*time.Hour)), leaf.NotAfter.UTC().Format(time.DateOnly))
	unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case left <= 0:
		x.problem(x.certificateHelp(), "doctor.certificate-expired", "{host} expired on {date}", host, leaf.NotAfter.UTC().Format(time.DateOnly))
	case isUnknown && len(chain) == 1:
		x.problem("tls-cert should have the certificates between it and the root too, or --ca names the root of a private CA", "doctor.certificate-issuer-unknown", "the certificate of {host} has an unknown issuer: {cause}", host, unknown)
	case err != nil:
		x.problem(x.certificateHelp(), "doctor.certificate-bad", "the certificate of {host} is not good: {cause}", host, err)
	case left < certificateUrges:
		x.problem(x.certificateHelp(), "", "{cause}", expires)
	case left < certificateSoon:
		x.warn(x.certificateHelp(), "", "{cause}", expires)
	default:
		x.ok("", "{cause}", expires)
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
		x.warn("let the http listener be reached at port 80 of that name, and set redirect-https", "doctor.http-not-answered", "names that people write without https lead nowhere: {cause}", err)
	case response.StatusCode/100 == 3 && strings.HasPrefix(response.Header.Get("Location"), "https://"):
		x.ok("doctor.http-redirected", "{url} leads to https", plain)
	default:
		x.warn("set redirect-https, or let the proxy in front send visitors there", "doctor.http-answered-in-clear", "{url} is answered in clear ({status})", plain, response.Status)
	}
}
