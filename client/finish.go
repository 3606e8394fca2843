package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/destination"
)

// finishCandidates goes on where the rules end, with the first candidate that leads to a
// result. NotFound from a resolver is a result. A resolver whose protocol is not known is
// returned only if nothing else is found.
func (s *session) finishCandidates(ctx context.Context, list []ddds.Candidate) (Result, error) {
	var failed error
	begun := s.dns.now()
	for i := range list {
		if i > 0 && s.dns.now().Sub(begun) > time.Duration(list[i].TTL)*time.Second {
			return Result{}, errStale
		}
		res, err := s.finishOne(ctx, &list[i])
		if err == nil && res.Found == FoundLocation && !s.query.allows(res.Location) {
			// A rule may say RES:http and lead to file: or javascript:. The URL decides.
			err = asBroken(notFound("resolve.protocol-not-wanted", "the protocol of {location} is not among those that were asked for", brief(res.Location)))
		}
		if err == nil && res.Found == FoundLocation {
			if !s.query.wantsNames() {
				res.Note = cmp.Or(res.Note, unsafeNote(res.Location))
			}
			return s.complete(res, list[i:]), nil
		}
		if err == nil {
			if s.fallback == nil {
				res = s.complete(res, list[i:i+1])
				s.fallback = &res
			}
			continue
		}
		if kind := stele.KindOf(err); kind == stele.Gone || kind == stele.NotFound && !isBroken(err) || isBogus(err) {
			return Result{}, err
		}
		s.tracer.note("%s leads nowhere: %v", list[i].Key, stele.Reason(err))
		failed = worse(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	if s.fallback != nil {
		return *s.fallback, nil
	}
	return Result{}, failed
}

// errStale says that rules expired while others were tried (RFC 3403, section 3).
var errStale error = &stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("resolve.rules-expired", "the rules expired before a resolver answered; try again")}

// broken says that a candidate leads nowhere, which says nothing of the name.
type broken struct{ err error }

func (e broken) Error() string { return e.err.Error() }
func (e broken) Unwrap() error { return e.err }

func isBroken(err error) bool {
	_, ok := errors.AsType[broken](err)
	return ok
}

// asBroken marks an error of the way to a resolver.
func asBroken(err error) error {
	return &stele.Error{Op: "resolve", Kind: stele.KindOf(err), Err: broken{stele.Reason(err)}}
}

// complete adds to a result what the candidate says of it, and what else there is.
func (s *session) complete(res Result, list []ddds.Candidate) Result {
	c := &list[0]
	res.Flag = c.Flag
	if res.Type == "" && c.Flag.IsResolved() {
		res.Type = c.Type
	}
	res.TTL = min(res.TTL, c.TTL)
	for i := 1; i < len(list) && len(res.Others) < maxOthers; i++ {
		other := &list[i]
		there := s.toTarget(other.Key, s.name)
		if !other.Flag.IsResolved() && other.Flag != ddds.FlagURI || there == res.Location || !s.query.allows(there) {
			continue
		}
		res.Others = append(res.Others, there)
		if other.Flag.IsResolved() == c.Flag.IsResolved() && other.Fit == c.Fit && other.Order == c.Order && other.Preference == c.Preference {
			res.Equals = append(res.Equals, there)
		}
	}
	return res
}

func (s *session) finishOne(ctx context.Context, c *ddds.Candidate) (Result, error) {
	if c.Flag.IsResolved() {
		return location(s.toTarget(c.Key, s.name), maxTTL), nil
	}
	switch c.Flag.Output() {
	case ddds.OutputURI:
		return s.finishURI(ctx, c)
	case ddds.OutputSRV:
		return s.finishSRV(ctx, c)
	case ddds.OutputHost:
		return s.finishHost(ctx, c)
	case ddds.OutputKey:
		return Result{Found: FoundServer, Location: c.Key, TTL: maxTTL, Note: "this is a resolver in the DNS; rules for the name stand there"}, nil
	}
	return Result{Found: FoundServer, Location: c.Key, Protocol: c.Protocol, TTL: maxTTL,
		Note: fmt.Sprintf("only who knows the protocol %s can make something of this", visible(c.Protocol))}, nil
}

func location(url string, ttl uint32) Result {
	return Result{Found: FoundLocation, Location: url, Protocol: protocolOf(url), TTL: ttl}
}

// unsafeNote warns of a location that is not on a server: a program that opens it may run
// it, or read a file of this machine. Rules of the DNS can lead anywhere.
func unsafeNote(location string) string {
	protocol := protocolOf(location)
	if stele.IsTargetProtocol(protocol) {
		return ""
	}
	return fmt.Sprintf("the location has the protocol %s, which no client fetches from a server; do not open it unless you know what it is", brief(protocol))
}

// isTHTTP reports whether a resolver is asked over HTTP (RFC 2169). It is unsure where
// the rule does not say so, but HTTP is spoken there.
func isTHTTP(protocol, name string) (yes, unsure bool) {
	label, _, _ := strings.Cut(name, ".")
	switch protocol {
	case "thttp":
		return true, false
	case "http", "https":
		return true, true
	case "":
		return label == "_http" || label == "_https" || label == "_thttp", true
	}
	return false, false
}

// finishURI goes on from a URI. That of flag U is the location, unless it is a resolver
// that speaks THTTP; that of DIS:URL is a resolver's, unless the name is in it: then it
// is what the resolver knows the name by.
func (s *session) finishURI(ctx context.Context, c *ddds.Candidate) (Result, error) {
	named := s.isNamed(c.Key)
	speaks, unsure := isTHTTP(c.Protocol, "")
	if c.Flag == ddds.FlagDisURL {
		speaks, unsure = true, true
	}
	p, err := parseBase(c.Key)
	switch {
	case c.Flag == ddds.FlagURI && (!speaks || unsure), c.Flag == ddds.FlagDisURL && named:
		return location(s.toTarget(c.Key, s.name), maxTTL), nil
	case err != nil:
		return Result{Found: FoundServer, Location: c.Key, Protocol: protocolOf(c.Key), TTL: maxTTL, Note: toAsk(protocolOf(c.Key))}, nil
	}
	q := request{service: s.asks(c), unsure: unsure}
	if named {
		q = request{whole: s.toTarget(c.Key, s.name)}
	}
	res, err := s.askPlaces(ctx, []place{p}, q)
	if err != nil && unsure && stele.KindOf(err) != stele.Gone {
		return Result{Found: FoundServer, Location: c.Key, Protocol: protocolOf(c.Key), TTL: maxTTL, Note: askedInVain(err)}, nil
	}
	return res, err
}

// asks returns the service that the resolver of a rule is asked for: in the rule's own
// words, if it has any.
func (s *session) asks(c *ddds.Candidate) string {
	return cmp.Or(string(c.Ask), s.query.asks())
}

// isNamed reports whether the name stands in a URL. Names that are looked for as URIs may
// stand there without the scheme.
func (s *session) isNamed(location string) bool {
	contains := func(text string) bool {
		text = strings.ToLower(text)
		return strings.Contains(text, strings.ToLower(s.name)) || strings.Contains(text, strings.ToLower(s.id.String()))
	}
	if contains(location) {
		return true
	}
	decoded, err := url.PathUnescape(location)
	return err == nil && contains(decoded)
}

// finishSRV goes on from a name with SRV records.
func (s *session) finishSRV(ctx context.Context, c *ddds.Candidate) (Result, error) {
	speaks, unsure := isTHTTP(c.Protocol, c.Key)
	secure := c.Protocol == "https" || strings.HasPrefix(c.Key, "_https.")
	places, err := s.srvPlaces(ctx, c.Key, secure)
	if err != nil {
		return Result{}, asBroken(err)
	}
	return s.finishPlaces(ctx, c, places, speaks, unsure)
}

// finishHost goes on from a name with addresses, or from an address.
func (s *session) finishHost(ctx context.Context, c *ddds.Candidate) (Result, error) {
	host := strings.TrimSuffix(c.Key, ".")
	if _, err := netip.ParseAddr(host); err != nil && !endpoint.IsHostName(host) {
		return Result{}, asBroken(notFound("resolve.key-not-a-host", "{key} is not a name of a host", c.Key))
	}
	speaks, unsure := isTHTTP(c.Protocol, "")
	p := newPlace(host, httpPort, false, maxTTL)
	switch c.Protocol {
	case "https":
		p = newPlace(host, httpsPort, true, maxTTL)
	case hdlProtocol:
		p = newPlace(host, hdlclient.Port, false, maxTTL)
	}
	switch c.Flag {
	case ddds.FlagDisA:
		p.family = dns.TypeA
	case ddds.FlagDisAAAA:
		p.family = dns.TypeAAAA
	}
	return s.finishPlaces(ctx, c, []place{p}, speaks, unsure)
}

// finishPlaces asks a resolver, or tells its address if it speaks something else.
func (s *session) finishPlaces(ctx context.Context, c *ddds.Candidate, places []place, speaks, unsure bool) (Result, error) {
	note := toAsk(c.Protocol)
	if c.Protocol == hdlProtocol && s.id.Scheme() == destination.HandleScheme && s.dns.o.Now != nil {
		return s.askHandle(ctx, places)
	}
	if speaks {
		res, err := s.askPlaces(ctx, places, request{service: s.asks(c), unsure: unsure})
		if err == nil || !unsure || stele.KindOf(err) == stele.Gone {
			return res, err
		}
		note = askedInVain(err)
	}
	where := places[0].HostPort()
	if c.Flag.Output() == ddds.OutputHost {
		where = places[0].Host // no record says which port
	}
	return s.server(ctx, places[0], where, c.Protocol, note)
}

// server tells the address of a resolver.
func (s *session) server(ctx context.Context, p place, where, protocol, note string) (Result, error) {
	list, ttl, err := s.addresses(ctx, p)
	if err != nil {
		return Result{}, asBroken(err)
	}
	res := Result{Found: FoundServer, Location: where, Protocol: protocol, TTL: min(ttl, p.ttl), Note: note}
	for _, a := range list {
		res.Addresses = append(res.Addresses, a.String())
	}
	return res, nil
}

// hdlProtocol is the Handle protocol in rules.
const hdlProtocol = "hdl"

func toAsk(protocol string) string {
	switch protocol {
	case "":
		return "this is a resolver; the rule does not say which protocol it speaks"
	case hdlProtocol:
		return "this is a server of the Handle System; ask it by the Handle protocol for the handle that the name stands for"
	}
	return "this is a resolver that speaks " + visible(protocol) + ", which this client does not"
}

func askedInVain(err error) string {
	return "this is a resolver; it did not answer by THTTP: " + stele.Reason(err).Error()
}
