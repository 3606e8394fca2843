package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// HandleOptions are what the way by the Handle protocol needs to know. Schemes, Client and Now must be set.
type HandleOptions struct {
	Schemes *stele.Schemes    // that read names; see package scheme/all
	Client  *hdlclient.Client // that asks servers
	Now     func() time.Time  // the clock by which values expire

	// Random returns a number from 0 to n-1. It draws among locations by their weights; without it the first is taken.
	Random func(n int) int

	Timeout time.Duration // for one name, all in all; 15 s if 0
}

// Handle resolves handles, and so DOIs, by the Handle protocol. It is used by many goroutines at once.
type Handle struct{ o HandleOptions }

// NewHandle makes a way by the Handle protocol. It sends nothing yet.
func NewHandle(o HandleOptions) (*Handle, error) {
	if o.Schemes == nil || o.Client == nil || o.Now == nil {
		return nil, invalid("resolve.schemes-missing", "there are no schemes to read names")
	}
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	return &Handle{o}, nil
}

// Resolve finds where a name leads.
func (h *Handle) Resolve(ctx context.Context, q Request) (Result, error) {
	q, err := q.check()
	if err != nil {
		return Result{}, err
	}
	x, err := h.o.Schemes.Explain(q.Name)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	t := newTracer(q.Trace)
	l := lead{c: h.o.Client, query: &q, tracer: t, schemes: h.o.Schemes, now: h.o.Now, random: h.o.Random}
	res, err := l.follow(ctx, x.ID)
	if err != nil {
		err = aboutName(x.ID, err)
		return Result{Trace: t.trace(&q, nil, err)}, err
	}
	res.ID, res.Via, res.Service = x.ID, ViaHandle, q.Service
	res.Trace = t.trace(&q, &res, nil)
	return res, nil
}

// lead is the way from a handle to a location.
type lead struct {
	c       *hdlclient.Client
	query   *Request
	tracer  *tracer
	schemes *stele.Schemes
	now     func() time.Time
	random  func(n int) int
}

// maxHandleAliases is how many handles may be aliases of one another, as the web server has it.
const maxHandleAliases = 8

// leading are the types of values that lead to a location. A dot at the end stands for the types below it too.
var leading = []string{destination.TypeURL + ".", destination.TypeAlias, destination.TypeLoc + "."}

// follow asks for a handle, goes on to those that it is an alias of, and chooses a location.
func (l *lead) follow(ctx context.Context, id stele.ID) (Result, error) {
	if id.Scheme() != destination.HandleScheme {
		return Result{}, invalid("resolve.scheme-not-of-handles", "{scheme} names are not found by the Handle protocol; ask the DNS, or a resolver over HTTP", id.Scheme())
	}
	if s := l.query.Service; s != stele.N2L && s != "N2Ls" && !isResource(string(s)) {
		return Result{}, notFound("resolve.service-not-of-handles", "the Handle protocol tells locations (N2L), and nothing for {service}", s)
	}
	res := Result{Found: FoundLocation, TTL: maxTTL, Certified: true}
	seen := []stele.ID{}
	for range maxHandleAliases {
		handle := strings.TrimPrefix(id.String(), destination.HandleMark)
		got, err := l.c.Resolve(ctx, hdlclient.Query{Handle: handle, Types: leading, Trace: l.tell})
		if f, ok := errors.AsType[*hdlclient.Failure](err); ok && f.Code == hdl.ValuesNotFound {
			return Result{}, notFound("resolve.handle-without-location", "the handle is there, and has no value that leads to a location (URL, 10320/loc or HS_ALIAS)")
		}
		if err != nil {
			return Result{}, err
		}
		values := l.values(got.Values)
		res.TTL, res.Certified = min(res.TTL, l.ttl(got.Values)), res.Certified && got.Certified
		seen = append(seen, id)
		next, err := l.alias(values)
		if err != nil {
			return Result{}, err
		}
		if !next.IsValid() {
			return l.choose(res, handle, values)
		}
		if slices.Contains(seen, next) {
			break
		}
		l.tracer.note("%s is an alias of %s", id, next)
		id = next
	}
	return Result{}, &stele.Error{Op: "resolve", Kind: stele.Conflict, Err: stele.Messagef("resolve.aliases-in-a-circle", "the handle is an alias of others that lead back to it, or there are more than {most} of them", maxHandleAliases)}
}

// tell tells of a step.
func (l *lead) tell(s hdlclient.Step) { l.tracer.add(Step{Handle: &s}) }

// values returns values in the form of the vocabulary.
func (l *lead) values(list []hdl.Value) (out []stele.HandleValue) {
	for i := range list {
		v := &list[i]
		out = append(out, stele.HandleValue{Index: v.Index, Type: string(v.Type), Data: v.Data})
	}
	return out
}

// ttl returns for how long values are good.
func (l *lead) ttl(list []hdl.Value) uint32 {
	least := uint32(maxTTL)
	for i := range list {
		v := &list[i]
		if v.TTLType != hdl.TTLAbsolute {
			least = min(least, v.TTL)
			continue
		}
		left := int64(v.TTL) - l.now().Unix()
		least = min(least, uint32(max(0, min(left, maxTTL))))
	}
	return least
}

// alias returns the handle that values of type HS_ALIAS name; the zero ID if there is none.
func (l *lead) alias(values []stele.HandleValue) (stele.ID, error) {
	for i := range values {
		if v := &values[i]; destination.HasType(v.Type, destination.TypeAlias) {
			id, err := destination.ParseHandle(l.schemes, strings.TrimSpace(string(v.Data)))
			if err != nil {
				return stele.ID{}, &stele.Error{Op: "resolve", Kind: stele.Conflict, Err: stele.Messagef("resolve.alias-invalid", "the handle is an alias of something that is not a handle: {cause}", stele.Reason(err))}
			}
			return id, nil
		}
	}
	return stele.ID{}, nil
}

// choose chooses among the places that values lead to, as the web server does: by the locations of type 10320/loc, or else the
// first of type URL.
func (l *lead) choose(res Result, handle string, values []stele.HandleValue) (Result, error) {
	list := byProtocol(destination.Places(handle, values, l.random), l.query)
	if len(list) == 0 {
		return Result{}, notFound("resolve.handle-locations-unfit", "none of the locations of the handle will do")
	}
	res.Location, res.Protocol = list[0], protocolOf(list[0])
	res.Others = list[1:min(len(list), 1+maxOthers)]
	return res, nil
}

// askHandle asks servers of the Handle System that rules lead to.
func (s *session) askHandle(ctx context.Context, places []place) (Result, error) {
	var failed error
	for _, p := range places {
		res, err := s.askHandleAt(ctx, p)
		if err == nil {
			return res, nil
		}
		if stele.KindOf(err) != stele.Unavailable && !isBroken(err) {
			return Result{}, err // it is an answer
		}
		if failed = worse(failed, err); ctx.Err() != nil {
			break
		}
	}
	return Result{}, failed
}

func (s *session) askHandleAt(ctx context.Context, p place) (Result, error) {
	list, ttl, err := s.addresses(ctx, p)
	if err != nil {
		return Result{}, asBroken(err)
	}
	if permit := s.dns.o.Permit; permit != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(a netip.Addr) bool {
			err := permit(netip.AddrPortFrom(a, p.Port))
			if err != nil {
				s.tracer.note("%s is not permitted: %v", a, err)
			}
			return err != nil
		})
	}
	if s.connects++; len(list) == 0 || s.connects > maxConnects {
		return Result{}, asBroken(&stele.Error{Op: "resolve", Kind: stele.Unavailable, Err: stele.Messagef("resolve.no-handle-server", "{host} has no address that may be asked", p.Host)})
	}
	c, err := hdlclient.New(hdlclient.Options{Server: &hdlclient.Place{Host: p.Host, Port: p.Port, Addresses: list}, Permit: s.dns.o.Permit, Now: s.dns.o.Now, Rand: rand.Reader})
	if err != nil {
		return Result{}, err
	}
	l := lead{c: c, query: s.query, tracer: s.tracer, schemes: s.dns.o.Schemes, now: s.dns.o.Now, random: s.dns.o.Random}
	res, err := l.follow(ctx, s.id)
	if err != nil {
		return Result{}, err
	}
	if status, _ := s.trust.sum(); status != dnssec.Unchecked && !res.Certified {
		s.trust.add(dnssec.Verdict{Status: dnssec.Insecure, Why: "the last step was made by the Handle protocol, without a certified answer"}, p.HostPort())
	}
	res.TTL = min(res.TTL, ttl, p.lasts())
	return res, nil
}
