package client

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// reply is a resolver's answer over HTTP.
type reply struct {
	status int
	url    *url.URL // that was asked for
	header http.Header
	body   []byte // of a list
	ttl    uint32
}

// mediaType returns the type of the answer, without parameters.
func (a *reply) mediaType() string {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || len(kind) > 100 {
		return ""
	}
	return visible(kind)
}

func (a *reply) isList() bool { return a.status == http.StatusOK && a.mediaType() == uriListType }

// maxAge returns for how many seconds the answer holds: what Cache-Control says, or
// as long as what led to it.
func (a *reply) maxAge() uint32 {
	for _, field := range a.header.Values("Cache-Control") {
		for word := range strings.SplitSeq(field, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			switch {
			case strings.EqualFold(name, "no-store"), strings.EqualFold(name, "no-cache"):
				return 0
			case strings.EqualFold(name, "max-age"):
				if n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
					return min(uint32(n), maxTTL)
				}
			}
		}
	}
	return maxTTL
}

// tell tells of the answer.
func (a *reply) tell(told *Exchange, err error) {
	if err != nil {
		told.Error = err.Error()
		return
	}
	told.Status, told.Type, told.Location = a.status, a.mediaType(), a.header.Get("Location")
}

// upgrade returns the place that a resolver redirects all HTTP requests to: its own, over
// HTTPS, with the same request. That is not an answer yet.
func (a *reply) upgrade() (p place, where string, ok bool) {
	if a.status < 300 || a.status >= 400 || a.url.Scheme != "http" {
		return p, "", false
	}
	next, err := a.url.Parse(a.header.Get("Location"))
	if err != nil || next.Scheme != "https" || next.RequestURI() != a.url.RequestURI() || !strings.EqualFold(next.Hostname(), a.url.Hostname()) {
		return p, "", false
	}
	p, err = parseBase(next.String())
	return p, next.String(), err == nil
}

// result reads the answer to a request for a URL. With any, an answer that is not a
// redirect is the thing itself; otherwise that is so for what describes it only, since
// N2L is answered with a redirect (RFC 2169, section 2.1).
func (a *reply) result(q *Request, where string, any bool) (Result, error) {
	switch {
	case a.status >= 300 && a.status < 400 && a.header.Get("Location") != "":
		next, err := a.url.Parse(a.header.Get("Location"))
		if err != nil {
			return Result{}, a.odd("it redirects to what is not a URL")
		}
		return a.located(q, next.String(), "")
	case a.isList():
		return a.fromList(q)
	case a.status == http.StatusOK && (any || q.Service != stele.N2L):
		return a.located(q, where, a.mediaType())
	case a.status < 400:
		return Result{}, a.odd("it does not answer as THTTP has it")
	}
	return Result{}, a.failure()
}

func (a *reply) located(q *Request, where, kind string) (Result, error) {
	safe, err := checkLocation(where)
	switch {
	case err != nil:
		return Result{}, a.odd(err.Error())
	case !q.allows(safe):
		return Result{}, notFound("resolve.location-protocol-not-wanted", "{host}: there is a location, but not by a protocol that was asked for", a.url.Host)
	}
	res := location(safe, a.ttl)
	res.Type = kind
	return res, nil
}

// odd is the error for an answer that makes no sense.
func (a *reply) odd(why string) error {
	return &stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("resolve.answer-odd", "{host} (status {status}): {reason}", a.url.Host, a.status, why)}
}

// failure is the error that a status code says.
func (a *reply) failure() error {
	kind, why := stele.Unavailable, "it can't answer now; try again"
	switch a.status {
	case http.StatusNotFound, http.StatusNotAcceptable, http.StatusNotImplemented:
		kind, why = stele.NotFound, "it does not know this"
	case http.StatusGone:
		kind, why = stele.Gone, "it was withdrawn"
	case http.StatusUnauthorized:
		kind, why = stele.Unauthenticated, "it wants to know who asks"
	case http.StatusForbidden:
		kind, why = stele.Forbidden, "it does not tell this"
	case http.StatusLoopDetected:
		kind, why = stele.Conflict, "the name leads back to itself"
	default:
		if a.status < 500 && a.status != http.StatusTooManyRequests && a.status != http.StatusRequestTimeout {
			kind, why = stele.Invalid, "it does not understand the request"
		}
	}
	return &stele.Error{Op: "resolve", Kind: kind, Err: stele.Messagef("resolve.resolver-failed", "{host}: {reason} (status {status})", a.url.Host, why, a.status)}
}

// fromList chooses from a list of locations, the best of which comes first.
func (a *reply) fromList(q *Request) (Result, error) {
	check := checkLocation
	if q.wantsNames() {
		check = checkName
	}
	list, err := parseURIList(a.body, check)
	if err != nil {
		return Result{}, a.odd(err.Error())
	}
	if list = byProtocol(list, q); len(list) == 0 {
		return Result{}, notFound("resolve.locations-unfit", "{host}: none of the locations will do", a.url.Host)
	}
	res := location(list[0], a.ttl)
	res.Others = list[1:min(len(list), 1+maxOthers)]
	return res, nil
}

// byProtocol puts locations in the order of the protocols that are wanted, and leaves
// out others if only these will do. Where types are wanted as well, the server has
// put the best first, and it stays so.
func byProtocol(list []string, q *Request) []string {
	if len(q.Protocols) == 0 {
		return list
	}
	rank := func(location string) int {
		if i := slices.Index(q.Protocols, protocolOf(location)); i >= 0 {
			return i
		}
		return len(q.Protocols)
	}
	if q.OnlyProtocols {
		list = slices.DeleteFunc(list, func(location string) bool { return !q.allows(location) })
	}
	if len(q.Accept) == 0 {
		slices.SortStableFunc(list, func(a, b string) int { return rank(a) - rank(b) })
	}
	return list
}

// maxList is how many locations of a list are read.
const maxList = 256

// parseURIList reads a list of URIs (RFC 2483, section 5): one a line, comments begin
// with #. It ignores what is not a location; a list without any is an error.
func parseURIList(body []byte, check func(string) (string, error)) (list []string, err error) {
	for line := range strings.Lines(string(body)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if safe, err := check(line); err == nil && !slices.Contains(list, safe) {
			list = append(list, safe)
		}
		if len(list) == maxList {
			break
		}
	}
	if len(list) == 0 {
		return nil, stele.Messagef("resolve.list-without-location", "there is no location in the list")
	}
	return list, nil
}
