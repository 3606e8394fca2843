// Package ask asks targets over HTTP, HTTPS and FTP what package links judges. It asks as a careful reader
// would: with a truthful name, as robots.txt allows, one page and no more than its beginning. It sends no
// credentials, runs no scripts, and reaches only addresses that the rule of package outbound allows, at every redirect.
package ask

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/outbound"
)

// Limits of a check.
const (
	maxBody    = 256 << 10 // of a page that are read
	maxWhole   = 100 << 20 // of something that is promised not to change
	largeBody  = 10 << 20  // from which on HEAD is enough the next time
	maxHops    = 10
	connecting = 10 * time.Second
	heading    = 30 * time.Second
	whole      = 60 * time.Second
)

// Options are what an Asker needs. Rules and Now must be set.
type Options struct {
	Rule  outbound.Rule
	Rules links.Judge
	Agent string // who asks: "Stele/1.2 (+https://id.example.org/.well-known/stele)"
	Now   func() time.Time
	Rand  io.Reader              // crypto/rand's Reader if nil
	Roots *x509.CertPool         // of certificates; nil: the system's
	Own   func(host string) bool // names this server, in lower case and without a dot at the end; it does not ask itself. nil: none does

	// Addresses returns those of this machine, which are asked only if the rule names them; nil: those of its interfaces.
	Addresses func() ([]net.Addr, error)

	Resolver *net.Resolver // nil: the system's
	Second   *net.Resolver // confirms that a host does not exist; nil: that is never sure

	Pause   time.Duration // between the requests of a check; 0: links.Gap
	Timeout time.Duration // of a whole check; 0: a minute
}

// Asker asks. It is used by many goroutines at once.
type Asker struct {
	o      Options
	dialer *outbound.Dialer
	visit  http.RoundTripper
	robots *robots
}

// New makes an Asker.
func New(o Options) *Asker {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Pause == 0 {
		o.Pause = links.Gap
	}
	if o.Timeout == 0 {
		o.Timeout = whole
	}
	if o.Addresses == nil {
		o.Addresses = net.InterfaceAddrs
	}
	a := &Asker{o: o, dialer: &outbound.Dialer{Rule: o.Rule, Timeout: min(connecting, o.Timeout), Resolver: o.Resolver, Own: o.Addresses}}
	a.visit = outbound.NewVisitor(a.dialer, min(heading, o.Timeout))
	a.robots = newRobots(a)
	return a
}

// Known is what is known of a target before it is asked.
type Known struct {
	Print links.Print
	Large bool // HEAD is enough
	Whole bool // the digest of the whole body is needed

	Types []string // media types of what is promised not to change; none: any
}

// Check asks a target, and what else is needed to judge the answer. It ends with the context, and never
// returns an error: what went wrong is in the answer.
func (a *Asker) Check(ctx context.Context, target string, k Known) (*links.Answer, links.Report) {
	began := a.o.Now()
	v := &visit{Asker: a}
	v.jar, _ = cookiejar.New(nil) // it has no error without options
	answer := v.check(ctx, target, k)
	return answer, links.Report{Took: max(v.took, a.o.Now().Sub(began)/10), CrawlDelay: v.crawl, Address: answer.Address}
}

// visit is one check, with cookies of its own: some sites redirect in circles without.
type visit struct {
	*Asker
	jar   *cookiejar.Jar
	crawl time.Duration
	took  time.Duration // of the slowest request
}

func (v *visit) check(ctx context.Context, target string, k Known) *links.Answer {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.User != nil {
		return &links.Answer{URL: target, Final: target, Failure: links.FailNotAskable}
	}
	if u.Scheme == "ftp" {
		return v.ftp(ctx, u, k)
	}
	method := http.MethodGet
	if k.Large && !k.Whole {
		method = http.MethodHead
	}
	answer := v.follow(ctx, method, u, k)
	if method == http.MethodHead && answer.Failure == links.NoFailure && (answer.Status < 200 || answer.Status >= 400) {
		if !v.pause(ctx) {
			return answer
		}
		answer = v.follow(ctx, http.MethodGet, u, k)
	}
	if links.NeedsNeighbour(answer) && v.o.Rules.Judge(answer).Weight == links.Good {
		v.neighbours(ctx, answer, k)
	}
	return answer
}

// neighbours asks for a path that can't exist, if the page is not the one that was seen before, and for the
// home page if that is needed.
func (v *visit) neighbours(ctx context.Context, answer *links.Answer, k Known) {
	seen := links.See(answer.Status, answer.Body)
	if k.Print.Text != 0 && seen.Text == k.Print.Text {
		return
	}
	random := make([]byte, 8)
	if _, err := io.ReadFull(v.o.Rand, random); err != nil {
		return
	}
	neighbour, home, ok := links.Neighbour(answer.Final, "x"+hex.EncodeToString(random))
	if !ok {
		return
	}
	if answer.Neighbour = v.see(ctx, neighbour); answer.Neighbour != nil && answer.Neighbour.Status == answer.Status {
		answer.Home = v.see(ctx, home)
	}
}

// see returns how a page looks; nil if it can't be seen.
func (v *visit) see(ctx context.Context, at string) *links.Sighting {
	u, err := url.Parse(at)
	if err != nil || !v.pause(ctx) {
		return nil
	}
	other := v.follow(ctx, http.MethodGet, u, Known{})
	if other.Failure != links.NoFailure || other.Distrust {
		return nil
	}
	return links.See(other.Status, other.Body)
}

// pause waits between two requests; false if the context ends.
func (v *visit) pause(ctx context.Context) bool {
	t := time.NewTimer(max(v.o.Pause, min(v.crawl, links.MaxCrawlDelay)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow asks for an address and follows redirects.
func (v *visit) follow(ctx context.Context, method string, u *url.URL, k Known) *links.Answer {
	ctx, cancel := context.WithTimeout(ctx, v.o.Timeout)
	defer cancel()
	answer := &links.Answer{URL: u.String(), Length: -1}
	seen := make(map[string]int)
	first := u
	for {
		answer.Final = u.String()
		if failure := v.mayAsk(ctx, u, first); failure != links.NoFailure {
			answer.Failure = failure
			return answer
		}
		// A site that sets a cookie and redirects to the same page is not a loop yet.
		if seen[answer.Final]++; seen[answer.Final] > 2 || len(answer.Hops) > maxHops {
			answer.Failure = links.FailLoop
			return answer
		}
		next := v.once(ctx, method, u, k, answer)
		if next == nil {
			return answer
		}
		answer.Hops = append(answer.Hops, links.Hop{URL: u.String(), Status: answer.Status})
		if frag := u.Fragment; next.Fragment == "" {
			next.Fragment = frag
		}
		u = next
	}
}

// mayAsk says why an address must not be asked.
func (v *visit) mayAsk(ctx context.Context, u, first *url.URL) links.Failure {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || !isPort(u, first) {
		return links.FailNotAskable
	}
	if v.isOwn(u) {
		return links.FailNotAskable
	}
	rules, failure := v.robots.of(ctx, v, u)
	if failure != links.NoFailure {
		return failure
	}
	v.crawl = max(v.crawl, rules.delay)
	if !rules.allow(u) {
		return links.FailRobots
	}
	return links.NoFailure
}

// isOwn reports whether an address is one of this server, by its name.
func (v *visit) isOwn(u *url.URL) bool {
	return v.o.Own != nil && v.o.Own(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

// isPort reports whether a redirect leads to a usual port, or to that of the target.
func isPort(u, first *url.URL) bool {
	switch p := u.Port(); p {
	case "", "80", "443":
		return true
	default:
		return p == first.Port()
	}
}

// once sends one request, and returns where the answer redirects to; nil if it does not.
func (v *visit) once(ctx context.Context, method string, u *url.URL, k Known, answer *links.Answer) (next *url.URL) {
	began := v.o.Now()
	defer func() { v.took = max(v.took, v.o.Now().Sub(began)) }()
	resp, failure := v.send(ctx, method, u, k, len(answer.Hops) == 0, answer)
	if failure != links.NoFailure {
		answer.Status, answer.Failure = 0, failure
		return nil
	}
	defer resp.Body.Close()
	answer.Status, answer.Header, answer.Length = resp.StatusCode, lower(resp.Header), resp.ContentLength
	answer.Wait = wait(resp.Header.Get("Retry-After"), v.o.Now())
	answer.Distrust = answer.Distrust || !v.isTrusted(resp, u.Hostname())
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
		if to, err := u.Parse(resp.Header.Get("Location")); err == nil && resp.Header.Get("Location") != "" {
			return to
		}
	}
	if method != http.MethodHead {
		read(resp.Body, k.Whole, answer)
	}
	if code := resp.Header.Get("Content-Encoding"); k.Whole && code != "" && code != "identity" {
		answer.Digest = [sha256.Size]byte{}
	}
	if answer.Distrust { // nothing is kept of it
		answer.Body, answer.Digest = nil, [sha256.Size]byte{}
	}
	return nil
}

// send sends a request.
func (v *visit) send(ctx context.Context, method string, u *url.URL, k Known, conditional bool, answer *links.Answer) (*http.Response, links.Failure) {
	var shaken atomic.Bool // the handshake of TLS failed; it may still be under way when the request has ended
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if host, _, err := net.SplitHostPort(c.Conn.RemoteAddr().String()); err == nil {
			answer.Address = host
		}
	}, TLSHandshakeDone: func(_ tls.ConnectionState, err error) { shaken.Store(err != nil) }}
	bare := *u
	bare.Fragment, bare.RawFragment = "", ""
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, bare.String(), nil)
	if err != nil {
		return nil, links.FailNotAskable
	}
	h := req.Header
	h.Set("User-Agent", v.o.Agent)
	h.Set("Accept", "text/html, */*;q=0.8")
	h.Set("Accept-Language", "en, *;q=0.5")
	if k.Whole { // the digest is that of the content as it is, and not of what is compressed or was
		h.Set("Accept-Encoding", "identity")
		if len(k.Types) > 0 {
			h.Set("Accept", strings.Join(k.Types, ", ")+", */*;q=0.1")
		}
	}
	if conditional {
		if k.Print.Tag != "" {
			h.Set("If-None-Match", k.Print.Tag)
		} else if !k.Print.Modified.IsZero() {
			h.Set("If-Modified-Since", k.Print.Modified.UTC().Format(http.TimeFormat))
		}
	}
	for _, c := range v.jar.Cookies(&bare) {
		req.AddCookie(c)
	}
	resp, err := v.visit.RoundTrip(req)
	if err != nil {
		failure := v.failure(ctx, u.Hostname(), err)
		if failure == links.FailReset && isOfTLS(err, shaken.Load()) {
			failure = links.FailTLS
		}
		return nil, failure
	}
	if cookies := resp.Cookies(); len(cookies) > 0 && len(cookies) <= 50 {
		v.jar.SetCookies(&bare, cookies)
	}
	return resp, links.NoFailure
}

// read reads the beginning of a body, and the digest of all of it if all is read.
func read(body io.Reader, whole bool, answer *links.Answer) {
	most := int64(maxBody)
	if whole {
		most = maxWhole
	}
	sum := sha256.New()
	var begin beginning
	n, err := io.Copy(io.MultiWriter(sum, &begin), io.LimitReader(body, most+1))
	answer.Body = begin.bytes
	if answer.Cut = err != nil || n > most; answer.Cut {
		return
	}
	answer.Length = n
	sum.Sum(answer.Digest[:0])
}

// beginning keeps the first bytes that are written.
type beginning struct{ bytes []byte }

func (b *beginning) Write(p []byte) (int, error) {
	if left := maxBody - len(b.bytes); left > 0 {
		b.bytes = append(b.bytes, p[:min(left, len(p))]...)
	}
	return len(p), nil
}

// IsLarge reports whether HEAD is enough for the next check.
func IsLarge(a *links.Answer) bool {
	media := a.Header.Get("content-type")
	return a.Status == http.StatusOK && (a.Length > largeBody || media != "" && !strings.HasPrefix(media, "text/"))
}

func lower(h http.Header) links.Header {
	l := make(links.Header, len(h))
	for name, values := range h {
		l[strings.ToLower(name)] = values
	}
	return l
}

// isTrusted judges the certificate of an answer.
func (v *visit) isTrusted(resp *http.Response, host string) bool {
	if resp.TLS == nil {
		return true
	}
	if len(resp.TLS.PeerCertificates) == 0 {
		return false
	}
	o := x509.VerifyOptions{DNSName: host, Roots: v.o.Roots, CurrentTime: v.o.Now(), Intermediates: x509.NewCertPool()}
	for _, c := range resp.TLS.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := resp.TLS.PeerCertificates[0].Verify(o)
	return err == nil
}

// wait reads Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func wait(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < 1<<30 {
		return max(time.Duration(n)*time.Second, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), time.Second)
	}
	return 0
}

// failure says why there is no answer.
func (v *visit) failure(ctx context.Context, host string, err error) links.Failure {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound && v.isAbsent(ctx, host):
			return links.FailNoName
		case isOfResolver(dns):
			return links.FailOurs
		}
		return links.FailDNS
	}
	var timeout net.Error
	switch {
	case errors.Is(err, stele.Forbidden):
		return links.FailPrivate
	case errors.Is(err, syscall.ECONNREFUSED):
		return links.FailRefused
	case slices.ContainsFunc(ownFaults, func(e syscall.Errno) bool { return errors.Is(err, e) }):
		return links.FailOurs
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return links.FailTimeout
	}
	return links.FailReset
}

// ownFaults are errors that this machine makes itself, without an answer of the other side: no route, a firewall of its own, no more files or ports.
var ownFaults = []syscall.Errno{syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EPERM, syscall.EACCES, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}

// isOfResolver reports whether this machine did not reach its resolver. The error has only the text of what went wrong.
func isOfResolver(err *net.DNSError) bool {
	return slices.ContainsFunc(append(ownFaults[:len(ownFaults):len(ownFaults)], syscall.ECONNREFUSED), func(e syscall.Errno) bool { return strings.HasSuffix(err.Err, ": "+e.Error()) })
}

// isOfTLS reports whether an error says that a host answered, and that it and this server do not agree on TLS: the host sent an alert, or what it said
// in a handshake that failed is not accepted here. A host that breaks off, or that does not speak TLS, has not answered.
func isOfTLS(err error, handshake bool) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "remote error" // of crypto/tls, for an alert
	}
	_, isOther := errors.AsType[tls.RecordHeaderError](err)
	return handshake && !isOther && !errors.Is(err, http.ErrSchemeMismatch) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// isAbsent asks the second resolver whether a host does not exist.
func (v *visit) isAbsent(ctx context.Context, host string) bool {
	if v.o.Second == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connecting)
	defer cancel()
	_, err := v.o.Second.LookupNetIP(ctx, "ip", host)
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}
