package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/document/apijson"
)

// maxAnswer is how many bytes an answer may have that is one document: a page of a list has
// at most 8 MiB and one record more.
const maxAnswer = 32 << 20

// ask is a request to the API.
type ask struct {
	method string
	path   string // below the API's root, escaped
	query  url.Values
	header http.Header
	media  string // of the body
	body   []byte

	// document is sent as JSON, in the place of the body; nil: the body is sent. Its media type is that of JSON if media is empty.
	document any

	timeout time.Duration // if it may take longer than others

	// again says that the request is idempotent: it may be sent again after any failure,
	// because the server never does it twice.
	again bool
}

// response is what came back.
type response struct {
	status int
	header http.Header
	body   []byte
}

// fetch sends a request until it is answered, and reads the document of the answer into v, unless that is nil. An error says that it is
// of this operation.
func (r *Registry) fetch(ctx context.Context, op string, q *ask, v any) error {
	a, err := r.call(ctx, q)
	if err != nil || v == nil {
		return under(op, stele.ID{}, err)
	}
	return a.decode(v)
}

// call sends a request until it is answered, and reads the answer, which is one
// document. A problem becomes an error.
func (r *Registry) call(ctx context.Context, q *ask) (*response, error) {
	var a *response
	err := r.exchange(ctx, q, func(resp *http.Response) *failure {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		switch {
		case err != nil:
			return &failure{err: err}
		case len(body) > maxAnswer:
			return &failure{answered: unread(stele.Messagef("api.answer-too-large", "it has more than {limit} bytes", maxAnswer))}
		}
		a = &response{status: resp.StatusCode, header: resp.Header, body: body}
		return nil
	})
	return a, err
}

// exchange sends a request until the server answers with success, and calls read with the
// answer. If read fails, exchange may send the request again.
func (r *Registry) exchange(ctx context.Context, q *ask, read func(*http.Response) *failure) error {
	left, retried := r.o.Patience, false
	for attempt := 0; ; attempt++ {
		failed := r.once(ctx, q, read)
		if failed == nil {
			return nil
		}
		if p, ok := errors.AsType[*preconditionError](failed.answered); ok {
			p.retried = retried
		}
		pause, ok := failed.pause(q, attempt)
		if !ok || pause > left || ctx.Err() != nil {
			return failed.told(ctx, r)
		}
		left -= pause
		retried = retried || !failed.unsent
		if wait(ctx, pause) != nil {
			return failed.told(ctx, r)
		}
	}
}

// once sends a request once.
func (r *Registry) once(ctx context.Context, q *ask, read func(*http.Response) *failure) *failure {
	ctx, cancel := context.WithTimeout(ctx, max(r.o.Timeout, q.timeout))
	defer cancel()
	resp, failed := r.send(ctx, q, nil)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	return read(resp)
}

// send sends a request, whose body is stream unless that is nil, and returns the answer if
// its status is a success.
func (r *Registry) send(ctx context.Context, q *ask, stream io.Reader) (*http.Response, *failure) {
	where := r.base + "/" + q.path
	if len(q.query) > 0 {
		where += "?" + q.query.Encode()
	}
	body, media := stream, q.media
	switch {
	case body != nil:
	case q.document != nil:
		text, err := json.Marshal(q.document)
		if err != nil {
			return nil, &failure{answered: &stele.Error{Kind: stele.Internal, Err: err}}
		}
		body, media = bytes.NewReader(text), cmp.Or(media, apijson.JSON)
	case q.body != nil:
		body = bytes.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, where, body)
	if err != nil {
		return nil, &failure{answered: unfit("api.request-not-sendable", "the request can't be sent: {cause}", endpoint.WithoutURL(err))}
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", endpoint.UserAgent)
	req.Header.Set("Accept", "application/json, application/x-ndjson, application/x-tar, application/problem+json")
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if v := r.version.Load(); v != nil {
		req.Header.Set(stele.VersionHeader, v.String())
	}
	resp, err := r.o.Transport.RoundTrip(req) // follows no redirect, so that no other server gets the token
	if err != nil {
		return nil, &failure{err: err, unsent: isUnsent(err)}
	}
	r.noteVersion(resp.Header)
	r.noteTag(resp.Header)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body = &ending{resp.Body, func() { r.noteVersion(resp.Trailer) }}
		return resp, nil
	}
	defer resp.Body.Close()
	failed := r.refused(resp)
	if errors.Is(failed.answered, stele.ErrRestored) {
		r.version.Store(nil) // later requests read the registry as it is now
	}
	return nil, failed
}

// failure is why a request did not succeed.
type failure struct {
	err    error // of the network; nil if there was an answer
	unsent bool  // the server saw nothing of the request

	answered error // of the answer
	status   int
	after    time.Duration // Retry-After of the answer; 0 if it has none
	problem  bool          // the answer was a problem document of the API
}

// Pauses before another attempt grow, unless the server says how long they are.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// pause returns how long to wait before another attempt, if there may be one.
func (f *failure) pause(q *ask, attempt int) (time.Duration, bool) {
	grown := min(firstPause<<min(attempt, 10), maxPause)
	switch {
	case f.err != nil && (isUntrusted(f.err) || isPlain(f.err)):
		return 0, false
	case f.unsent:
		return grown, attempt < 4 // about 3 s: the server may be restarting
	case f.err != nil:
		return grown, q.again
	case f.status == http.StatusTooManyRequests: // nothing was done
		return max(f.after, firstPause), f.after > 0
	case f.status == http.StatusServiceUnavailable, f.status == http.StatusBadGateway, f.status == http.StatusGatewayTimeout:
		return max(f.after, grown), q.again
	}
	return 0, false
}

// told returns the error that the caller gets.
func (f *failure) told(ctx context.Context, r *Registry) error {
	if f.answered != nil {
		return f.answered
	}
	refuse := func(kind stele.Kind, code, text string, args ...any) error {
		return &stele.Error{Op: "ask " + r.site, Kind: kind, Err: stele.Messagef(code, text, args...)}
	}
	err := endpoint.WithoutURL(f.err)
	switch {
	case isPlain(err):
		return refuse(stele.Invalid, "", "{cause}", r.otherProtocol())
	case isUntrusted(err):
		return refuse(stele.Invalid, "api.certificate-untrusted", "{problem} ({cause}); name the certificate of its authority", ErrUntrusted, err)
	case ctx.Err() != nil:
		return refuse(stele.Unavailable, "", "{cause}", ctx.Err())
	}
	return refuse(stele.Unavailable, "unavailable.try-again", "{cause}; try again", endpoint.Timely(ctx, shorn(err)))
}

// shorn replaces errors of the network whose text says little.
func shorn(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return endpoint.ErrNoAnswer
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return stele.Messagef("api.answer-cut-off", "the connection ended before the answer did")
	}
	return err
}

// isUnsent reports whether an error came before the request was sent.
func isUnsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// isPlain reports whether the client asked by https and the server does not speak TLS.
func isPlain(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	return errors.Is(err, http.ErrSchemeMismatch)
}

// otherProtocol returns the error of a server that answers by http when the client asked
// by https, or the other way round.
func (r *Registry) otherProtocol() error {
	if rest, ok := strings.CutPrefix(r.site, "https://"); ok {
		return stele.Messagef("api.server-speaks-http", "the server answers by http there, and not by https; write http://{address}, or the port of https", rest)
	}
	return stele.Messagef("api.server-speaks-https", "the server answers by https there, and not by http; write https://{address}", strings.TrimPrefix(r.site, "http://"))
}

// isUntrusted reports whether the server's certificate is not trusted.
func isUntrusted(err error) bool {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok
}

// key makes an idempotency key.
func (r *Registry) key() (string, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(r.o.Rand, b); err != nil {
		return "", &stele.Error{Op: "mint", Kind: stele.Unavailable, Err: stele.Messagef("api.idempotency-key-not-made", "random bytes for the idempotency key cannot be read: {cause}", err)}
	}
	return hex.EncodeToString(b), nil
}

// decode reads the document of an answer. It ignores unknown fields, which newer servers
// may add.
func (a *response) decode(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return unread(err)
	}
	return nil
}

// unread returns the error of an answer that the client does not understand.
func unread(err error) error {
	return &stele.Error{Op: "read answer", Kind: stele.Internal, Err: stele.Messagef("api.answer-unreadable", "the server's answer can't be read: {cause}; is it a registry of the same version?", err)}
}

// pathOf returns a path below the API's root: a collection and an identifier or a prefix.
// It escapes what a proxy may normalise away: a second slash, and dots between slashes.
func pathOf(root, text string) string {
	const plain = "-_~.!$&'()*+,;=:@/"
	var b strings.Builder
	b.WriteString(root)
	b.WriteByte('/')
	for i := range len(text) {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if (letter || strings.IndexByte(plain, c) >= 0) && !(c == '/' && (i == 0 || text[i-1] == '/')) && !(c == '.' && isDots(text, i)) {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// isDots reports whether the byte at i stands in a segment of dots alone.
func isDots(text string, i int) bool {
	from := strings.LastIndexByte(text[:i], '/') + 1
	to := len(text)
	if n := strings.IndexByte(text[i:], '/'); n >= 0 {
		to = i + n
	}
	return strings.Trim(text[from:to], ".") == ""
}

// noteVersion remembers the state that an answer names in its header or its trailer. All
// later requests ask for that state or a newer one. It ignores what it can't read.
func (r *Registry) noteVersion(header http.Header) {
	told, err := stele.ParseVersionHeader(header[stele.VersionHeader])
	if err != nil {
		return
	}
	if told == (stele.Position{}) {
		return
	}
	for {
		have := r.version.Load()
		// A state of another generation replaces the known one: the registry was restored
		// since.
		if have != nil && have.Generation == told.Generation && told.Change <= have.Change || r.version.CompareAndSwap(have, &told) {
			return
		}
	}
}

// noteTag remembers how entity tags name the generation of the registry: the text after
// the number of the version.
func (r *Registry) noteTag(header http.Header) {
	if inside, ok := strings.CutPrefix(header.Get("ETag"), `"v`); ok {
		inside = strings.TrimSuffix(inside, `"`)
		number, mark, _ := strings.Cut(inside, ".")
		if _, err := strconv.ParseUint(number, 10, 64); err == nil {
			r.mark.Store(&mark)
		}
	}
}

// tagOf returns the entity tag of a version of something.
func (r *Registry) tagOf(version uint64) string {
	tag := `"v` + strconv.FormatUint(version, 10)
	if mark := r.mark.Load(); mark != nil && *mark != "" {
		tag += "." + *mark
	}
	return tag + `"`
}

// ending is a body that calls ended when all of it was read, because the trailer is
// complete then.
type ending struct {
	io.ReadCloser
	ended func()
}

func (b *ending) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended()
	}
	return n, err
}
