package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

var errSilence = stele.Messagef("ftp.timed-out", "nothing came for too long")

// askHTTP sends one request. It returns an offer, or where to ask instead.
func (f *Fetcher) askHTTP(ctx context.Context, u *url.URL, accept string, from int64, m *mark) (*offer, *url.URL, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &idleBody{ctx: ctx, cancel: cancel, idle: f.o.Idle, timer: time.AfterFunc(f.o.Idle, func() { cancel(errSilence) })}
	resp, err := f.send(ctx, u, accept, from, m)
	b.timer.Stop()
	if err != nil {
		err = b.reason(err)
		_ = b.Close()
		return nil, nil, about(u, err)
	}
	b.ReadCloser = resp.Body
	o, next, err := readHead(resp, u, from, m)
	if err != nil || next != nil || o.from < 0 {
		_ = b.Close()
	}
	switch {
	case err != nil:
		return nil, nil, about(u, err)
	case next != nil:
		return nil, next, nil
	case o.from < 0: // it is complete already
		o.from = from
		return o, nil, nil
	}
	o.body = b
	return o, nil, nil
}

// send sends the request. One for the rest of something is on the condition that it is
// still the same; otherwise all of it comes (RFC 9110, section 13.1.5).
func (f *Fetcher) send(ctx context.Context, u *url.URL, accept string, from int64, m *mark) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if accept == "" {
		accept = "*/*"
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", userAgent)
	if condition := m.condition(); from > 0 && condition != "" {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
		req.Header.Set("If-Range", condition)
	}
	return f.transport.RoundTrip(req)
}

// condition is the mark as a condition of HTTP; "" if it can't be one.
func (m *mark) condition() string {
	if m.ETag != "" {
		return m.ETag
	}
	return m.Modified
}

// readHead reads the header of an answer. An offer from below zero says that the part is
// complete already.
func readHead(resp *http.Response, u *url.URL, from int64, m *mark) (*offer, *url.URL, error) {
	o := &offer{size: resp.ContentLength, mark: markOf(resp), kind: mediaType(resp.Header), packing: encoding(resp.Header)}
	o.mark.Size = o.size
	switch resp.StatusCode {
	case http.StatusOK:
		o.open = resp.ContentLength < 0 && resp.ProtoMajor == 1 && len(resp.TransferEncoding) == 0
		return o, nil, nil
	case http.StatusPartialContent:
		err := o.continues(resp, from, m)
		return o, nil, err
	case http.StatusRequestedRangeNotSatisfiable:
		// It has not changed, or all of it would have come; and this may be all of it.
		if size, ok := parseUnsatisfied(resp.Header.Get("Content-Range")); ok && size == from && (m.Size < 0 || m.Size == size) {
			o.size, o.mark, o.from = size, *m, -1
			return o, nil, nil
		}
		return nil, nil, errChanged
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next, err := redirect(u, resp.Header.Get("Location"))
		return nil, next, err
	}
	return nil, nil, statusError(resp.StatusCode)
}

// errChanged says that the client can't resume: it must ask for all of it.
var errChanged = stele.Messagef("fetch.content-changed", "what is there now is not what an earlier attempt had begun with")

// continues reads an answer that is a part (RFC 9110, section 15.3.7): it must begin at
// the byte that was asked for, and be of the same thing.
func (o *offer) continues(resp *http.Response, from int64, m *mark) error {
	if from == 0 {
		return fail(stele.Conflict, "fetch.part-unrequested", "the server sends a part, where all was asked for")
	}
	first, last, size, ok := parseRange(resp.Header.Get("Content-Range"))
	same := m.ETag == "" || o.mark.ETag == "" || m.ETag == o.mark.ETag
	if !ok || first != from || size >= 0 && last != size-1 || m.Size >= 0 && size >= 0 && m.Size != size || !same {
		return errChanged
	}
	if size < 0 {
		size = m.Size
	}
	o.from, o.size, o.mark = from, size, *m
	return nil
}

// parseRange reads "bytes 5-9/10", and "bytes 5-9/*", of which the size is -1 (RFC 9110,
// section 14.4).
func parseRange(text string) (first, last, size int64, ok bool) {
	unit, text, found := strings.Cut(text, " ")
	if !found || !strings.EqualFold(unit, "bytes") {
		return 0, 0, 0, false
	}
	span, whole, ok1 := strings.Cut(text, "/")
	begin, end, ok2 := strings.Cut(span, "-")
	if !ok1 || !ok2 {
		return 0, 0, 0, false
	}
	first, bad1 := parseNumber(begin)
	last, bad2 := parseNumber(end)
	size = -1
	var bad3 error
	if whole != "*" {
		size, bad3 = parseNumber(whole)
	}
	ok = bad1 == nil && bad2 == nil && bad3 == nil && first <= last && (size < 0 || last < size)
	return first, last, size, ok
}

// parseUnsatisfied reads "bytes */10".
func parseUnsatisfied(text string) (int64, bool) {
	unit, text, _ := strings.Cut(text, " ")
	whole, ok := strings.CutPrefix(text, "*/")
	size, err := parseNumber(whole)
	return size, ok && err == nil && strings.EqualFold(unit, "bytes")
}

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// redirect reads where an answer leads.
func redirect(u *url.URL, location string) (*url.URL, error) {
	next, err := u.Parse(location)
	if err != nil || location == "" || len(location) > stele.MaxURL {
		return nil, fail(stele.Conflict, "fetch.redirect-not-a-url", "the server redirects to what is not a URL")
	}
	if next, err = parse(next.String()); err != nil {
		return nil, fail(stele.Conflict, "fetch.redirect-protocol-unsupported", `the server redirects to "{location}", and only http, https and ftp are followed`, location)
	}
	return next, nil
}

// markOf returns the marks of an answer that are strong: the same mark is on the same
// bytes. A date is that if it is older than the answer (RFC 9110, section 8.8.2.2).
func markOf(resp *http.Response) (m mark) {
	if tag := resp.Header.Get("ETag"); len(tag) >= 2 && len(tag) < 1024 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		m.ETag = tag
		return m
	}
	text := resp.Header.Get("Last-Modified")
	modified, bad := http.ParseTime(text)
	date, none := http.ParseTime(resp.Header.Get("Date"))
	if bad == nil && none == nil && date.Sub(modified) >= time.Minute {
		m.Modified = text
	}
	return m
}

// mediaType returns the type of an answer, without parameters.
func mediaType(h http.Header) string {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || len(kind) > 100 {
		return ""
	}
	return kind
}

// encoding returns how an answer is compressed, as RFC 9110, section 8.4, names it; "" if
// it is not.
func encoding(h http.Header) string {
	var list []string
	for one := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if one = strings.ToLower(strings.TrimSpace(one)); one != "" && one != "identity" {
			list = append(list, one)
		}
	}
	text := strings.Join(list, ", ")
	return text[:min(len(text), 100)]
}

// statusError is the error that a status says.
func statusError(status int) error {
	kind, why := stele.Conflict, "the server does not answer as it should"
	switch {
	case status == http.StatusNotFound, status == http.StatusNotAcceptable:
		kind, why = stele.NotFound, "it is not there"
	case status == http.StatusGone:
		kind, why = stele.Gone, "it is no longer there"
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		kind, why = stele.Unauthenticated, "the server wants to know who asks; get it with a program that can log in"
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		kind, why = stele.Forbidden, "the server does not give it to everybody"
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		kind, why = stele.Unavailable, "the server can't give it now; try again"
	}
	return fail(kind, "fetch.server-refuses", "{reason} (status {status})", why, status)
}

// idleBody is a body that fails if it is idle for too long.
type idleBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer
}

// Read reads. That an answer is shorter than it should be is an error of its own.
func (p *idleBody) Read(b []byte) (int, error) {
	p.timer.Reset(p.idle)
	n, err := p.ReadCloser.Read(b)
	p.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = p.reason(err)
	}
	return n, err
}

// Close ends the request, whether or not all was read.
func (p *idleBody) Close() error {
	p.timer.Stop()
	p.cancel(context.Canceled)
	if p.ReadCloser == nil {
		return nil
	}
	return p.ReadCloser.Close()
}

// reason says why the network failed, in words for the user.
func (p *idleBody) reason(err error) error {
	switch {
	case errors.Is(context.Cause(p.ctx), errSilence):
		return errSilence
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return stele.Messagef("fetch.connection-closed-early", "the connection was closed before all had come")
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fail(stele.Conflict, "", "{problem}: {cause}", ErrUntrusted, e.Err)
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return fail(stele.Conflict, "", "{problem}: {cause}", ErrUntrusted, e)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return stele.Messagef("fetch.host-unknown", `the host "{host}" is unknown`, e.Name)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
