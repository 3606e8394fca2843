package deposit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/plainxml"
	"github.com/stele-id/stele/internal/terminal"
)

// Limits on a store that speaks S3.
const (
	maxAnswer = 8 << 20 // bytes of a list of 1000 objects, or of an error
	maxPages  = maxStored / 100
)

// s3Store is a place in a bucket of a store that speaks S3.
type s3Store struct {
	endpoint *url.URL
	bucket   string
	prefix   string // "", or ending with a slash
	region   string
	keys     s3Keys
	http     Doer
	now      func() time.Time

	plain atomic.Bool // the store does not know conditions
}

func openS3(p Place, a Access) (*s3Store, error) {
	env := a.Environment
	if env == nil {
		env = func(string) string { return "" }
	}
	query := p.url.Query()
	s := &s3Store{bucket: p.url.Host, region: cmp.Or(query.Get("region"), env("AWS_REGION"), "us-east-1"), now: a.Now, http: a.HTTP}
	if prefix := strings.Trim(path.Clean("/"+p.url.Path), "/"); prefix != "" {
		s.prefix = prefix + "/"
	}
	endpoint := cmp.Or(query.Get("endpoint"), env("AWS_ENDPOINT_URL"), "https://s3."+s.region+".amazonaws.com")
	if !isEndpoint(endpoint) {
		return nil, errPlace
	}
	var err error
	if s.endpoint, err = url.Parse(endpoint); err != nil {
		return nil, errPlace
	}
	if s.keys, err = readS3Keys(a.Credentials, env); err != nil {
		return nil, err
	}
	return s, nil
}

// readS3Keys reads the keys from a file, or from the environment if none is named. Errors never repeat what is in the file.
func readS3Keys(file string, env func(string) string) (s3Keys, error) {
	k := s3Keys{env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN")}
	if file != "" {
		text, err := disk.ReadSome(file, maxKeyFile)
		if err != nil {
			return s3Keys{}, err
		}
		k = s3Keys{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, "=")
			value = strings.TrimSpace(value)
			switch strings.TrimSpace(name) {
			case "aws_access_key_id":
				k.access = cmp.Or(k.access, value)
			case "aws_secret_access_key":
				k.secret = cmp.Or(k.secret, value)
			case "aws_session_token":
				k.token = cmp.Or(k.token, value)
			}
		}
	}
	if k.access == "" || k.secret == "" || strings.ContainsFunc(k.access+k.token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return s3Keys{}, failf(stele.Invalid, "deposit.s3-keys-missing", "a store that speaks S3 needs keys: a file with aws_access_key_id = ... and aws_secret_access_key = ..., named with --credentials or the setting escrow-credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
	}
	return k, nil
}

// ask sends a request and returns the answer, whose body the caller closes by calling done.
func (s *s3Store) ask(ctx context.Context, method, name string, query url.Values, data []byte, headers map[string]string) (a *http.Response, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	u := *s.endpoint
	u.Path = "/" + s.bucket
	if name != "" {
		u.Path += "/" + s.prefix + name
	}
	u.RawPath, u.RawQuery = escaped(u.Path, false), queryText(query)
	var body io.Reader
	if data != nil {
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		cancel()
		return nil, nil, failf(stele.Internal, "deposit.s3-request", "a request to {server} can't be made", s.endpoint.Host)
	}
	r.URL = &u
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	s.keys.sign(r, s.region, sumOf(data), s.now())
	r.Header.Set("User-Agent", "stele")
	r.Header.Set("Accept-Encoding", "identity") // objects are as they were put
	a, err = s.http.Do(r)
	if err != nil {
		cancel()
		return nil, nil, s.lost(err)
	}
	return a, func() {
		_, _ = io.CopyN(io.Discard, a.Body, 64<<10) // so that the connection can be used again
		_ = a.Body.Close()
		cancel()
	}, nil
}

// lost gives an error of a connection its kind.
func (s *s3Store) lost(err error) error {
	if ours, ok := errors.AsType[*stele.Error](err); ok {
		return failf(ours.Kind, "deposit.server-not-allowed", "{server} is not reached: {cause}", s.endpoint.Host, ours.Err)
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // without the URL
	}
	return failf(stele.Unavailable, "deposit.server-unreachable", "{server} can't be reached, or the connection was lost: {cause}", s.endpoint.Host, err)
}

// refused returns the error that an answer tells.
func (s *s3Store) refused(a *http.Response) error {
	code, text := a.Status, ""
	if root, err := plainxml.Parse(io.LimitReader(a.Body, 64<<10), plainxml.Limits{}); err == nil {
		if e := root.Child("Code"); e != nil {
			code = brief(e.Text)
		}
		if e := root.Child("Message"); e != nil {
			text = brief(e.Text)
		}
	}
	kind := stele.Invalid
	switch {
	case code == "RequestTimeout" || code == "SlowDown" || code == "InternalError" || code == "ServiceUnavailable": // with whatever status; the first comes with 400
		kind = stele.Unavailable
	case a.StatusCode == http.StatusNotFound && code == "NoSuchBucket":
		kind = stele.Invalid // the place itself is not there
	case a.StatusCode == http.StatusNotFound:
		kind = stele.NotFound
	case a.StatusCode == http.StatusUnauthorized:
		kind = stele.Unauthenticated
	case a.StatusCode == http.StatusForbidden:
		kind = stele.Forbidden
	case a.StatusCode == http.StatusInsufficientStorage:
		kind = stele.Exhausted
	case a.StatusCode >= 500 || a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusRequestTimeout || a.StatusCode == http.StatusConflict:
		kind = stele.Unavailable
	}
	return failf(kind, "deposit.s3-refused", "{server} answers for the bucket {bucket}: {status} {message}", s.endpoint.Host, s.bucket, code, text)
}

// brief returns a text of a server as a message may have it.
func brief(text string) string {
	return terminal.Printable(strings.ToValidUTF8(text[:min(len(text), 200)], ""))
}

// Put puts an object under the condition that there is none.
func (s *s3Store) Put(ctx context.Context, name string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	if !s.plain.Load() {
		known, err := s.putIf(ctx, name, data)
		if known || err != nil {
			return err
		}
		s.plain.Store(true)
	}
	a, done, err := s.ask(ctx, http.MethodHead, name, nil, nil, nil)
	if err != nil {
		return err
	}
	done()
	switch a.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
	default:
		return s.refused(a)
	}
	a, done, err = s.ask(ctx, http.MethodPut, name, nil, data, nil)
	if err != nil {
		return err
	}
	defer done()
	if a.StatusCode != http.StatusOK {
		return s.refused(a)
	}
	return nil
}

// putIf puts an object if there is none; known is false if the store does not know conditions.
func (s *s3Store) putIf(ctx context.Context, name string, data []byte) (known bool, err error) {
	a, done, err := s.ask(ctx, http.MethodPut, name, nil, data, map[string]string{"If-None-Match": "*"})
	if err != nil {
		return true, err
	}
	defer done()
	switch a.StatusCode {
	case http.StatusOK, http.StatusPreconditionFailed:
		return true, nil
	case http.StatusNotImplemented:
		return false, nil
	}
	return true, s.refused(a)
}

// Get returns an object.
func (s *s3Store) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	a, done, err := s.ask(ctx, http.MethodGet, name, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	switch {
	case a.StatusCode != http.StatusOK:
		return nil, s.refused(a)
	case a.ContentLength > most:
		return nil, tooLong(name, most)
	}
	data, err := io.ReadAll(io.LimitReader(a.Body, most+1))
	if err != nil {
		return nil, s.lost(err)
	}
	if int64(len(data)) > most {
		return nil, tooLong(name, most)
	}
	return data, nil
}

// List lists objects, page by page.
func (s *s3Store) List(ctx context.Context, folder string, each func(name string, size int64) error) error {
	prefix := s.prefix + folder + "/"
	token := ""
	for range maxPages {
		query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
		if token != "" {
			query.Set("continuation-token", token)
		}
		page, err := s.page(ctx, query)
		if err != nil {
			return err
		}
		for _, e := range page.Children {
			if e.Name.Local != "Contents" {
				continue
			}
			name, ok := strings.CutPrefix(textOf(e, "Key"), s.prefix)
			size, err := strconv.ParseInt(textOf(e, "Size"), 10, 64)
			if !ok || err != nil || !strings.HasPrefix(name, folder+"/") {
				return failf(stele.Invalid, "deposit.s3-list-wrong", "{server} lists what it was not asked for", s.endpoint.Host)
			}
			if err := each(name, size); err != nil {
				return err
			}
		}
		next := textOf(page, "NextContinuationToken")
		if textOf(page, "IsTruncated") != "true" {
			return nil
		}
		if next == "" || next == token {
			return failf(stele.Invalid, "deposit.s3-list-circle", "{server} lists the same objects again and again", s.endpoint.Host)
		}
		token = next
	}
	return failf(stele.Exhausted, "deposit.place-too-full", "the place has more than {most} objects; begin anew at another one", maxStored)
}

func textOf(e *plainxml.Element, name string) string {
	if c := e.Child(name); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

// page asks for a page of a list.
func (s *s3Store) page(ctx context.Context, query url.Values) (*plainxml.Element, error) {
	a, done, err := s.ask(ctx, http.MethodGet, "", query, nil, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	if a.StatusCode != http.StatusOK {
		return nil, s.refused(a)
	}
	root, err := plainxml.Parse(a.Body, plainxml.Limits{Bytes: maxAnswer, Elements: 100_000})
	if err == nil && root.Name.Local == "ListBucketResult" {
		return root, nil
	}
	if err != nil && stele.KindOf(err) != stele.Invalid {
		return nil, s.lost(err)
	}
	return nil, failf(stele.Invalid, "deposit.s3-answer-unreadable", "{server} does not answer as a store that speaks S3", s.endpoint.Host)
}

// Close does nothing: the client of the caller ends its connections.
func (s *s3Store) Close() error { return nil }
