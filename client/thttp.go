package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/ddds"
)

const (
	maxBody     = 64 << 10 // of an answer that is a list
	maxConnects = 8        // to resolvers, for one name
	uriListType = "text/uri-list"
)

// request is what a resolver that rules lead to is asked for.
type request struct {
	service string // of RFC 2169 or RFC 2483, as it is named to the server
	whole   string // or a whole URL
	path    string // or a path, which is the thing itself
	any     bool   // an answer that is not a redirect is the thing itself
	unsure  bool   // whether the server speaks THTTP is not known
}

// at returns the URL to ask at a place.
func (q *request) at(p place, s *session) string {
	switch {
	case q.whole != "":
		return q.whole
	case q.service != "":
		return p.URL(servicePath(q.service, s.forResolver(s.name)))
	}
	return p.URL(q.path)
}

// servicePath is where a service is asked for (RFC 2169, section 2).
func servicePath(service, name string) string { return "/uri-res/" + service + "?" + escapeName(name) }

// escapeName writes a name as it may stand in a request. Percent-encodings are part of
// names that have them, and stay.
func escapeName(name string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		c := name[i]
		keep := c > ' ' && c <= '~' && strings.IndexByte("\"#<>\\^`{|}", c) < 0
		if c == '%' {
			_, err := strconv.ParseUint(name[i+1:min(i+3, len(name))], 16, 8)
			keep = err == nil && i+2 < len(name)
		}
		if keep {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// askPlaces asks the first of several servers that answers.
func (s *session) askPlaces(ctx context.Context, places []place, q request) (Result, error) {
	var failed error
	for _, p := range places {
		res, err := s.askPlace(ctx, p, q)
		if err == nil {
			return res, nil
		}
		if stele.KindOf(err) != stele.Unavailable && !isBroken(err) {
			return Result{}, err // it is an answer, even if other servers are down
		}
		if failed = worse(failed, err); ctx.Err() != nil {
			break
		}
	}
	return Result{}, failed
}

// askPlace asks a server at each of its addresses, until one answers.
func (s *session) askPlace(ctx context.Context, p place, q request) (Result, error) {
	list, ttl, err := s.addresses(ctx, p)
	if err != nil {
		return Result{}, asBroken(err)
	}
	where := q.at(p, s)
	var failed error
	for _, addr := range list {
		if s.connects == maxConnects {
			return Result{}, &stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("resolve.resolvers-silent", "{resolvers} resolvers do not answer; that is enough", maxConnects)}
		}
		s.connects++
		where := where
		a, err := s.get(ctx, where, netip.AddrPortFrom(addr, p.Port))
		if err == nil {
			if next, there, ok := a.upgrade(); ok {
				where = there
				a, err = s.get(ctx, where, netip.AddrPortFrom(addr, next.Port))
			}
		}
		if err == nil {
			a.ttl = min(a.ttl, ttl, p.lasts())
			s.inClear(where)
			return a.result(s.query, where, q.any || isResource(q.service))
		}
		failed = &stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("resolve.host-failed", "{host} at {address}: {cause}; try again", p.Host, addr, err)}
		if ctx.Err() != nil {
			break
		}
	}
	return Result{}, failed
}

// inClear notes that an answer came in clear: an attacker on the network path could have
// changed it, whatever led there.
func (s *session) inClear(where string) {
	if status, _ := s.trust.sum(); status != dnssec.Unchecked && protocolOf(where) != "https" {
		s.trust.add(dnssec.Verdict{Status: dnssec.Insecure, Why: "the last step was made over HTTP, in clear"}, where)
	}
}

// lasts returns for how many seconds the records that led to a place hold; the maximum if
// no record led there.
func (p place) lasts() uint32 {
	if p.ttl == 0 {
		return maxTTL
	}
	return p.ttl
}

// get asks for a URL at an address.
func (s *session) get(ctx context.Context, where string, addr netip.AddrPort) (*reply, error) {
	told := &Exchange{URL: where, Address: addr.String()}
	s.tracer.add(Step{HTTP: told})
	if permit := s.dns.o.Permit; permit != nil {
		if err := permit(addr); err != nil {
			m := stele.Messagef("http.not-permitted", "not permitted: {cause}", err)
			told.Error = m.Error()
			return nil, m
		}
	}
	var dialer net.Dialer
	transport := endpoint.NewTransport()
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", addr.String())
	}
	transport.DisableKeepAlives = true
	a, err := roundTrip(ctx, transport, where, s.query, s.dns.o.HTTPTimeout)
	a.tell(told, err)
	return a, err
}

// roundTrip sends a request and reads the answer. It follows no redirects.
func roundTrip(ctx context.Context, transport http.RoundTripper, where string, q *Request, timeout time.Duration) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, stele.Messagef("resolve.name-not-askable-over-http", "the name can't be asked for over HTTP")
	}
	req.Header.Set("User-Agent", endpoint.UserAgent)
	req.Header.Set("Accept", q.AcceptHeader())
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, endpoint.Timely(ctx, endpoint.WithoutURL(err))
	}
	defer resp.Body.Close()
	a := &reply{status: resp.StatusCode, url: req.URL, header: resp.Header}
	if a.isList() {
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
		switch {
		case err != nil:
			return nil, endpoint.Timely(ctx, err)
		case len(a.body) > maxBody:
			return nil, stele.Messagef("resolve.answer-too-long", "the answer is too long")
		}
	}
	a.ttl = a.maxAge()
	return a, nil
}

// AcceptHeader writes the media types that are wanted as HTTP has them. Those of
// signatures are algorithms, which HTTP does not know.
func (q *Request) AcceptHeader() string {
	if len(q.Accept) == 0 || q.Service == stele.N2S {
		return "*/*"
	}
	return joinAccept(q.Accept)
}

func joinAccept(list []ddds.Preference) string {
	var words []string
	for _, p := range list {
		word, err := encodeURI(p.Range)
		if err != nil {
			continue
		}
		if !strings.Contains(word, "/") {
			word += "/*"
		}
		if p.Q != 1000 {
			word += ";q=" + weight(min(max(p.Q, 0), 1000))
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
