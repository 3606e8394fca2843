package client

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/ddds"
)

// DNSOptions are what the way over the DNS needs to know. Schemes must be set; the
// rest may be left as it is.
type DNSOptions struct {
	Schemes *stele.Schemes // that read names; see package scheme/all

	// Servers are asked in turn; they should be recursive resolvers. Without any they
	// are the system's. Either all of them are asked in clear or none: a question that
	// should be private never becomes public because a server fails.
	Servers []NameServer

	// RootCAs are the authorities that sign name servers' certificates; the system's if nil.
	RootCAs *x509.CertPool

	// DNSSEC says how answers are authenticated; "": not at all. Validate needs a
	// clock.
	DNSSEC DNSSEC

	// Anchors are the keys that are trusted; those of the public DNS if nil.
	Anchors *dnssec.Anchors

	// Roots are where the rules of a scheme begin: "urn" (urn.arpa if it is not here),
	// "ark" (ark.arpa) and [RootOfURIs] (uri.arpa), for handles, DOIs and PURLs.
	// urn.example. stands for paradisec.urn.example. and the like; @urn.example. is one
	// name with the rules of all namespaces.
	Roots map[string]string

	// ThesisZones are zones, with all below them, whose rules are read as the thesis on
	// the EDDDS prints them; "." is all zones. See [ddds.Thesis].
	ThesisZones []string

	// Now is the clock by which answers expire, and signatures and certificates are
	// judged. Without one nothing is cached.
	Now func() time.Time

	// Random returns a number from 0 to n-1 and may be called by many goroutines at
	// once. It shares the load among rules and servers of equal rank; without it they
	// stay in the order they came in.
	Random func(n int) int

	CacheBytes  uint64        // for answers, about; 4 MiB if 0
	Timeout     time.Duration // for one name, all in all; 30 s if 0
	TryTimeout  time.Duration // for one question to one server; 2 s if 0
	HTTPTimeout time.Duration // for one request to a resolver; 5 s if 0
	Tries       int           // how often each server is asked; 3 if 0

	// Permit is called before the client connects to a resolver that rules name. If it
	// returns an error, the client does not connect. A server that resolves names for the
	// public should refuse addresses of its own network.
	Permit func(netip.AddrPort) error
}

// DNS resolves names by the rules that stand in the DNS. It is used by many
// goroutines at once.
type DNS struct {
	o         DNSOptions
	roots     map[string]root
	upstreams []*upstream
	cache     *cache            // nil: nothing is cached
	validator *dnssec.Validator // nil: nothing is validated
}

// root is where the rules of a scheme begin.
type root struct {
	name   string // canonical
	single bool   // the rules of all namespaces stand here
}

// NewDNS makes a way over the DNS. It sends nothing yet.
func NewDNS(o DNSOptions) (*DNS, error) {
	if o.Schemes == nil {
		return nil, invalid("resolve.schemes-missing", "there are no schemes to read names")
	}
	if len(o.Servers) == 0 {
		list, err := SystemServers()
		if err != nil {
			return nil, err
		}
		o.Servers = list
	}
	o.Servers = slices.Clone(o.Servers[:min(len(o.Servers), maxServers)])
	if err := checkServers(o.Servers); err != nil {
		return nil, err
	}
	if err := o.checkDNSSEC(); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.TryTimeout = cmp.Or(o.TryTimeout, 2*time.Second)
	o.HTTPTimeout = cmp.Or(o.HTTPTimeout, 5*time.Second)
	o.Tries = cmp.Or(o.Tries, 3)
	zones := make([]string, len(o.ThesisZones))
	for i, zone := range o.ThesisZones {
		zones[i] = dns.CanonicalName(zone)
		if _, ok := dns.IsDomainName(zone); !ok {
			return nil, invalid("zone.name-invalid", `"{zone}" is not a name of a zone`, zone)
		}
	}
	o.ThesisZones = zones
	d := &DNS{o: o, roots: make(map[string]root), upstreams: newUpstreams(&o)}
	for scheme, app := range applications() {
		r, err := parseRoot(cmp.Or(o.Roots[scheme], o.Roots[app.under], app.root))
		if err != nil {
			return nil, err
		}
		d.roots[scheme] = r
	}
	if o.Now != nil {
		d.cache = newCache(o.Now, cmp.Or(o.CacheBytes, 4<<20))
	}
	if o.DNSSEC == Validate {
		d.validator = dnssec.New(o.Anchors, o.Now)
	}
	return d, nil
}

// Close closes connections to name servers. Without it idle connections end by
// themselves, after half a minute at most.
func (d *DNS) Close() {
	for _, u := range d.upstreams {
		u.close()
	}
}

// now is the time by the clock; without one it stands still.
func (d *DNS) now() time.Time {
	if d.o.Now == nil {
		return time.Time{}
	}
	return d.o.Now()
}

// Knows reports whether names of a scheme can be found over the DNS.
func Knows(scheme string) bool {
	_, ok := applications()[scheme]
	return ok
}

func parseRoot(text string) (root, error) {
	name, single := strings.CutPrefix(text, "@")
	name, err := ddds.CanonicalName(name)
	if err != nil {
		return root{}, invalid("resolve.root-invalid", `"{root}" is not a root; write urn.example.org, or @urn.example.org for one name with the rules of all namespaces`, text)
	}
	return root{name, single}, nil
}

// Resolve finds where a name leads.
func (d *DNS) Resolve(ctx context.Context, q Request) (Result, error) {
	q, err := q.check()
	if err != nil {
		return Result{}, err
	}
	x, err := d.o.Schemes.Explain(q.Name)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	s := &session{dns: d, query: &q, id: x.ID, parts: x.Parts, Components: ComponentsOf(x.Parts), tracer: newTracer(q.Trace)}
	res, err := s.resolve(ctx)
	status, why := s.trust.sum()
	if err != nil {
		err = aboutName(x.ID, err)
		res = Result{Trace: s.tracer.trace(&q, nil, err)}
	} else {
		res.ID, res.Via, res.Service, res.DNSSEC, res.Insecure = x.ID, ViaDNS, q.Service, status, why
		s.Place(&res)
		res.Trace = s.tracer.trace(&q, &res, nil)
	}
	if res.Trace != nil {
		res.Trace.DNSSEC = status
	}
	return res, err
}

// session is the resolution of one name.
type session struct {
	dns   *DNS
	query *Request
	id    stele.ID
	parts stele.Parts
	Components
	tracer *tracer
	trust  trust

	name     string    // that rules are applied to, and resolvers are asked for
	last     string    // the key that was asked last
	firstSet []dns.RR  // the records at the first key
	visits   []*tracer // the questions for each key of a walk
	connects int       // to resolvers, so far
	hosts    map[host]addressed
	fallback *Result // a resolver whose protocol is not known
}

// resolve tries the ways that names of the scheme have, one after the other while
// there is no such name, or no server that knows.
func (s *session) resolve(ctx context.Context) (Result, error) {
	app, ok := applications()[s.id.Scheme()]
	if !ok {
		return Result{}, invalid("resolve.scheme-http-only", "{scheme} names are not found over the DNS; ask a resolver over HTTP", s.id.Scheme())
	}
	s.name = s.id.String()
	var failed error
	for _, attempt := range app.attempts {
		res, err := attempt(s, ctx, app)
		if err == nil {
			return res, nil
		}
		failed = worse(failed, err)
		if kind := stele.KindOf(err); kind != stele.NotFound && kind != stele.Unavailable || ctx.Err() != nil {
			break
		}
	}
	return Result{}, failed
}

// tryAgain is the error for a question that no server could answer.
func tryAgain(name string, why error) error {
	if errors.Is(why, context.DeadlineExceeded) {
		why = stele.Messagef("server.answer-timed-out", "no answer in time")
	}
	return ddds.TryAgain(name, why)
}
