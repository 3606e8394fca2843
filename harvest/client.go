// Package harvest registers and updates names of a namespace from a repository that offers its records by the Open Archives
// Initiative Protocol for Metadata Harvesting, OAI-PMH 2.0.
//
// A [Client] asks a repository, politely: one request at a time, with a pause between two, and as late as the repository wants. It
// reads answers within limits, and believes nothing: a repository may answer with half a page, repeat a token for ever, or give
// dates that it was not asked for. A [Harvest] writes what it reads through the registrar, in pages, each with a bookmark, so that
// it can be interrupted at any time. It never withdraws more names than its limit without being told to.
package harvest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/plainxml"
)

const op = "harvest"

func refuse(kind stele.Kind, code, text string, args ...any) error {
	return stele.Errorf(op, stele.ID{}, kind, code, text, args...)
}

// Limits on what a repository may make the harvester do.
const (
	maxAnswer   = 16 << 20  // bytes of an answer
	maxElements = 300_000   // of an answer; each of them takes about 200 bytes of memory
	maxAttrs    = 600_000   // of all elements of an answer
	maxPages    = 1_000_000 // of a harvest
	maxEmpty    = 100       // pages without a record, one after the other
	maxToken    = 64 << 10  // bytes
	maxTries    = 5         // of a request that fails in a way that may pass
	maxBusy     = 100       // answers that ask to come back later, one after the other
	maxWait     = time.Hour // for which a repository may ask

	maxWaited = 48 * time.Hour      // in a run, in addition to the pauses
	maxRun    = 30 * 24 * time.Hour // from its first request to its last
)

// Source is what is harvested.
type Source struct {
	URL    string // the repository's base URL
	Format Format
	Set    string // "": all
	From   string // a date, 2026-06-01 or 2026-06-01T12:00:00Z; "": from the beginning
	Until  string // likewise
}

// Check says what is wrong with a source.
func (s *Source) Check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || len(s.URL) > 2000:
		return refuse(stele.Invalid, "harvest.url-invalid", `"{url}" is not the address of a repository; write its base URL, such as https://example.org/oai`, s.URL)
	case u.Query().Has("verb"):
		return refuse(stele.Invalid, "harvest.url-has-verb", "the address has a verb of the protocol; write the base URL, without what follows the question mark")
	case !s.Format.IsValid():
		return refuse(stele.Invalid, "harvest.format-unknown", `"{format}" is not a format that is read; there are epicur, oai_dc and oai_datacite`, string(s.Format))
	case len(s.Set) > 500:
		return refuse(stele.Invalid, "harvest.set-invalid", "the name of the set is too long")
	}
	for _, text := range []string{s.From, s.Until} {
		if text != "" && !isDate(text) {
			return refuse(stele.Invalid, "harvest.date-invalid", `"{date}" is not a date of the protocol, such as 2026-06-01 or 2026-06-01T12:00:00Z`, text)
		}
	}
	if s.From != "" && s.Until != "" && len(s.From) != len(s.Until) {
		return refuse(stele.Invalid, "harvest.dates-differ", "one date has a time and the other one has none; write both in the same way")
	}
	return nil
}

// place returns where the repository is, for readers: a query may have a key that only the harvester knows.
func (s *Source) place() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Forms of dates (OAI-PMH 2.0, 3.3.1).
const (
	dayForm    = "2006-01-02"
	secondForm = "2006-01-02T15:04:05Z"
)

func isDate(text string) bool { _, ok := parseDate(text); return ok }

func parseDate(text string) (time.Time, bool) {
	for _, form := range [...]string{dayForm, secondForm} {
		if at, err := time.Parse(form, text); err == nil && at.Format(form) == text {
			return at, true
		}
	}
	return time.Time{}, false
}

// Client asks repositories. One goroutine uses it.
type Client struct {
	// HTTP sends a request. It judges addresses, and bounds how long the head of an answer takes.
	HTTP interface {
		Do(*http.Request) (*http.Response, error)
	}
	Now   func() time.Time
	Wait  func(ctx context.Context, d time.Duration) error // waits; tests do not
	Pause time.Duration                                    // least time between two requests
	Limit time.Duration                                    // for one answer; 5 minutes if 0
	Agent string
	Busy  func(wait time.Duration, why string) // is told when the client waits longer than Pause; may be nil

	last   time.Time     // when the last answer came
	begun  time.Time     // when the run began
	waited time.Duration // in the run, since the repository was busy or failed

	mostWaited time.Duration // in a run; maxWaited if 0
}

// begin begins a run.
func (c *Client) begin() { c.begun, c.waited = c.Now(), 0 }

// errSlow says that a run takes too long.
var errSlow = refuse(stele.Unavailable, "harvest.too-slow", "the repository is too slow, or asks to come back later too often; what was read is written: give the same command again to go on")

// Page is an answer to ListRecords.
type Page struct {
	Items []Item
	Token string    // for the next page; "" if this is the last one
	Date  time.Time // when the repository made the page, by its clock; zero if it does not say
}

// Repository is what a repository says of itself.
type Repository struct {
	Name    string
	Days    bool // its dates have no times
	Deleted string
}

// Identify asks a repository who it is.
func (c *Client) Identify(ctx context.Context, s Source) (*Repository, error) {
	root, err := c.ask(ctx, s, url.Values{"verb": {"Identify"}})
	if err != nil {
		return nil, err
	}
	about := root.Child("Identify")
	if about == nil {
		return nil, notOAI(s.URL)
	}
	r := &Repository{Name: childText(about, "repositoryName"), Deleted: childText(about, "deletedRecord")}
	r.Days = childText(about, "granularity") == "YYYY-MM-DD"
	return r, nil
}

// Page asks for the first page of a list, or for that of a token.
func (c *Client) Page(ctx context.Context, s Source, token string) (*Page, error) {
	q := url.Values{"verb": {"ListRecords"}}
	if token != "" {
		q.Set("resumptionToken", token)
	} else {
		q.Set("metadataPrefix", string(s.Format))
		for name, value := range map[string]string{"set": s.Set, "from": s.From, "until": s.Until} {
			if value != "" {
				q.Set(name, value)
			}
		}
	}
	root, err := c.ask(ctx, s, q)
	if err != nil {
		return nil, err
	}
	p := new(Page)
	p.Date, _ = parseDate(childText(root, "responseDate"))
	list := root.Child("ListRecords")
	if e := root.Child("error"); e != nil {
		switch code := e.Get("code"); {
		case code == "noRecordsMatch" && token == "":
			return p, nil
		case code == "badResumptionToken":
			return nil, errToken
		default:
			return nil, refuse(stele.Invalid, "harvest.refused", `the repository refuses the request: {code}: {text}`, brief(code), brief(e.Text))
		}
	}
	if list == nil {
		return nil, notOAI(s.URL)
	}
	for _, e := range list.Children {
		switch e.Name.Local {
		case "record":
			p.Items = append(p.Items, readItem(s.Format, e))
		case "resumptionToken":
			p.Token = strings.TrimSpace(e.Text)
		}
	}
	if len(p.Token) > maxToken {
		return nil, refuse(stele.Invalid, "harvest.token-too-long", "the repository gave a resumption token of more than {most} bytes", maxToken)
	}
	return p, nil
}

// errToken says that a repository does not know a token any more.
var errToken = refuse(stele.Conflict, "harvest.token-refused", "the repository no longer knows where the harvest was; start it again with --again")

func notOAI(at string) error {
	return refuse(stele.Invalid, "harvest.not-oai", "{url} does not answer as a repository of OAI-PMH 2.0 does; look at it in a browser, with ?verb=Identify", at)
}

// brief returns what a repository says, for a message.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return text
}

// ask sends a request and reads the answer. It tries again where that may help.
func (c *Client) ask(ctx context.Context, s Source, q url.Values) (*plainxml.Element, error) {
	at, err := url.Parse(s.URL)
	if err != nil {
		return nil, refuse(stele.Invalid, "harvest.url-invalid", `"{url}" is not the address of a repository; write its base URL, such as https://example.org/oai`, s.URL)
	}
	query := at.Query()
	for name, values := range q {
		query[name] = values
	}
	at.RawQuery = query.Encode()
	tries, busy := 0, 0
	for {
		if c.waited > cmp.Or(c.mostWaited, maxWaited) || !c.begun.IsZero() && c.Now().Sub(c.begun) > maxRun {
			return nil, errSlow
		}
		if err := c.wait(ctx, c.last.Add(c.Pause).Sub(c.Now())); err != nil {
			return nil, err
		}
		root, again, err := c.once(ctx, at.String())
		c.last = c.Now()
		switch {
		case err == nil:
			return root, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case again < 0: // it does not help
			return nil, err
		case again > 0:
			if busy++; busy > maxBusy {
				return nil, err
			}
		default:
			if tries++; tries >= maxTries {
				return nil, err
			}
			again = c.Pause + time.Second<<(2*tries)
		}
		c.waited += again
		if c.Busy != nil {
			c.Busy(again, brief(stele.Reason(err).Error()))
		}
		if err := c.wait(ctx, again); err != nil {
			return nil, err
		}
	}
}

func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return c.Wait(ctx, d)
}

// once sends a request. If it fails, again says when to try again: 0 soon, and negative never.
func (c *Client) once(ctx context.Context, at string) (root *plainxml.Element, again time.Duration, err error) {
	limit := c.Limit
	if limit == 0 {
		limit = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, -1, err
	}
	request.Header.Set("User-Agent", c.Agent)
	request.Header.Set("Accept", "text/xml, application/xml;q=0.9")
	response, err := c.HTTP.Do(request)
	if err != nil {
		if stele.KindOf(err) == stele.Forbidden {
			return nil, -1, err
		}
		return nil, 0, refuse(stele.Unavailable, "harvest.unreachable", "the repository can't be reached: {cause}", err)
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests:
		err := refuse(stele.Unavailable, "harvest.busy", "the repository answers with {status}", response.Status)
		return nil, c.retryAfter(response.Header.Get("Retry-After")), err
	case code >= 500:
		return nil, 0, refuse(stele.Unavailable, "harvest.status", "the repository answers with {status}; check the address, and try again later", response.Status)
	case code != http.StatusOK:
		return nil, -1, refuse(stele.Invalid, "harvest.status", "the repository answers with {status}; check the address, and try again later", response.Status)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && kind == "text/html" {
		return nil, -1, notOAI(at)
	}
	body := &body{r: response.Body}
	root, err = plainxml.Parse(body, plainxml.Limits{Bytes: maxAnswer, Token: 4 << 20, Elements: maxElements, AllAttributes: maxAttrs, Instructions: true})
	switch {
	case body.err != nil:
		return nil, 0, refuse(stele.Unavailable, "harvest.half-answer", "the repository sent a part of an answer only: {cause}", body.err)
	case err != nil:
		return nil, -1, refuse(stele.Invalid, "harvest.answer-unreadable", "the answer of the repository can't be read: {cause}", stele.Reason(err))
	case root.Name.Local != "OAI-PMH":
		return nil, -1, notOAI(at)
	}
	return root, 0, nil
}

// retryAfter reads for how long a repository asks to wait: seconds, or a date.
func (c *Client) retryAfter(text string) time.Duration {
	wait := time.Minute
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(c.Now())
	}
	return min(max(wait, time.Second), maxWait)
}

// body remembers why reading failed.
type body struct {
	r   io.Reader
	err error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		b.err = err
	}
	return n, err
}

func childText(e *plainxml.Element, local string) string {
	if c := e.Child(local); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}
