package hdlclient

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// The types of values that say where handles are (section 5 of the specification).
const (
	typeSite          = "HS_SITE"
	typeService       = "HS_SERV"
	typePrefixSite    = "HS_SITE.PREFIX"
	typePrefixService = "HS_SERV.PREFIX"
	typeDelegate      = "HS_NA_DELEGATE" // the old name of HS_SITE.PREFIX
)

// prefixMark begins the names of records that describe prefixes.
const prefixMark = "0.NA/"

// Bounds of one request of a caller.
const (
	maxHops = 12 // look-ups of prefixes and services, and referrals
	maxAsks = 24 // messages that are sent, repeats over UDP not counted
)

// walk is the work for one request of a caller.
type walk struct {
	c        *Client
	trace    func(Step)
	hops     int
	asks     int
	unproven bool // something that was not certified led here
}

func (c *Client) newWalk(trace func(Step)) *walk { return &walk{c: c, trace: trace} }

func (w *walk) tell(s Step) {
	if w.trace != nil {
		w.trace(s)
	}
}

// hop counts a step to another service.
func (w *walk) hop() error {
	if w.hops++; w.hops > maxHops {
		return refuse(stele.Unavailable, "hdlclient.too-many-referrals", "the handle leads through more than {most} services; its prefix is probably set up in a circle", maxHops)
	}
	return nil
}

// run asks the service that has a handle, and follows referrals to others.
func (w *walk) run(ctx context.Context, handle string, admin bool, send func(context.Context, *server) (*reply, error)) (*reply, error) {
	sv, err := w.serviceFor(ctx, handle)
	for err == nil {
		var got *reply
		if got, err = w.first(ctx, sv, handle, admin, send); err != nil {
			break
		}
		if code := got.code(); code != hdl.ServiceReferral && code != hdl.PrefixReferral {
			return got, nil
		}
		sv, err = w.referred(ctx, got, handle)
	}
	return nil, err
}

// first asks the sites of a service, until one answers.
func (w *walk) first(ctx context.Context, sv *service, handle string, admin bool, send func(context.Context, *server) (*reply, error)) (*reply, error) {
	list, err := w.c.servers(ctx, sv, handle, admin)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, s := range list {
		got, err := send(ctx, s)
		switch {
		case err == nil && (!isFailureOf(got.code()) || i == len(list)-1 && failed == nil):
			return got, nil
		case err == nil:
			err = got.failure()
		case ctx.Err() != nil, errors.Is(err, errMaybeDone), isUnverified(err):
			return nil, err
		}
		failed = worse(failed, err)
	}
	return nil, failed
}

// worse returns the error that says more about why there is no answer.
func worse(a, b error) error {
	if a == nil || stele.KindOf(a) == stele.Forbidden && stele.KindOf(b) == stele.Unavailable {
		return b
	}
	return a
}

// serviceFor returns the service that has a handle.
func (w *walk) serviceFor(ctx context.Context, handle string) (*service, error) {
	o := &w.c.o
	switch {
	case o.Server != nil:
		return &service{named: o.Server}, nil
	case len(o.Sites) > 0:
		return given(o.Sites), nil
	}
	prefix, _, found := strings.Cut(handle, "/")
	if !found || strings.EqualFold(prefix+"/", prefixMark) {
		return given(o.Root), nil // the root knows the prefixes
	}
	return w.prefixService(ctx, prefix)
}

// given returns the service of sites that the caller gave.
func given(list []hdl.Site) *service {
	sv := &service{}
	for _, s := range list {
		sv.sites = append(sv.sites, site{Site: s, given: true, trusted: true})
	}
	return sv
}

// prefixService asks the root for the service of a prefix.
func (w *walk) prefixService(ctx context.Context, prefix string) (*service, error) {
	name := folded(prefix)
	if sv, proven := w.c.known.find(name, w.c.o.Now()); sv != nil {
		w.unproven = w.unproven || !proven
		return sv, nil
	}
	if err := w.hop(); err != nil {
		return nil, err
	}
	found, err := w.resolve(ctx, Query{Handle: prefixMark + prefix, Types: []string{typeSite, typeService}})
	if stele.KindOf(err) == stele.NotFound {
		return nil, refuse(stele.NotFound, "hdlclient.prefix-unknown", "the root of the Handle System does not know the prefix {prefix}: {cause}", prefix, stele.Reason(err))
	}
	if err != nil {
		return nil, err
	}
	w.unproven = w.unproven || !found.Certified
	sv, err := w.serviceOf(ctx, prefixMark+prefix, found.Values, found.Certified)
	if err == nil {
		w.c.known.keep(name, sv, !w.unproven, w.c.o.Now(), lifetime(found.Values))
	}
	return sv, err
}

// referred returns the service that a referral names: by the values in it, or by a handle that has them.
func (w *walk) referred(ctx context.Context, got *reply, handle string) (*service, error) {
	if err := w.hop(); err != nil {
		return nil, err
	}
	body, ok := got.body.(*hdl.ReferralBody)
	if !ok {
		return nil, got.odd()
	}
	w.unproven = w.unproven || !got.certified
	switch {
	case len(body.Values) > 0:
		return w.serviceOf(ctx, handle, body.Values, got.certified)
	case len(body.Handle) > 0:
		return w.handleService(ctx, string(body.Handle))
	}
	return nil, refuse(stele.Unavailable, "hdlclient.referral-empty", "{server} refers to another service for {handle}, and does not say to which one", got.from, handle)
}

// handleService returns the service that a handle describes.
func (w *walk) handleService(ctx context.Context, handle string) (*service, error) {
	if err := w.hop(); err != nil {
		return nil, err
	}
	if err := checkHandle(handle); err != nil {
		return nil, err
	}
	found, err := w.resolve(ctx, Query{Handle: handle, Types: []string{typeSite, typeService, typePrefixSite, typePrefixService}})
	if err != nil {
		return nil, err
	}
	w.unproven = w.unproven || !found.Certified
	return w.serviceOf(ctx, handle, found.Values, found.Certified)
}

// serviceOf returns the service that values describe: sites, or else a handle that has them.
func (w *walk) serviceOf(ctx context.Context, handle string, values []hdl.Value, certified bool) (*service, error) {
	sv := &service{}
	var wrong error
	for i := range values {
		v := &values[i]
		if len(sv.sites) >= maxSites || !isOne(v, typeSite, typePrefixSite, typeDelegate) {
			continue
		}
		parsed, err := hdl.ParseSite(append([]byte(nil), v.Data...))
		if err != nil {
			wrong = err
			continue
		}
		sv.sites = append(sv.sites, site{Site: parsed, trusted: certified && !w.unproven})
	}
	if len(sv.sites) > 0 {
		return sv, nil
	}
	for i := range values {
		if v := &values[i]; isOne(v, typeService, typePrefixService) {
			return w.handleService(ctx, string(v.Data))
		}
	}
	if wrong != nil {
		return nil, refuse(stele.Unavailable, "hdlclient.record-site-unreadable", "the record {handle} names a site that cannot be read: {cause}", handle, wrong)
	}
	return nil, refuse(stele.NotFound, "hdlclient.no-site", "the record {handle} names no service (HS_SITE or HS_SERV)", handle)
}

func isOne(v *hdl.Value, types ...string) bool {
	for _, t := range types {
		if strings.EqualFold(string(v.Type), t) {
			return true
		}
	}
	return false
}

// maxLifetime is for how long a service is remembered at most: sites move.
const maxLifetime = time.Hour

// lifetime returns for how long values are good.
func lifetime(values []hdl.Value) time.Duration {
	most := maxLifetime
	for i := range values {
		if values[i].TTLType != hdl.TTLRelative {
			return 0
		}
		most = min(most, time.Duration(values[i].TTL)*time.Second)
	}
	return most
}

// known are the services of prefixes that were looked up.
type known struct {
	mu   sync.Mutex
	list map[string]knownService
}

type knownService struct {
	*service
	proven bool
	until  time.Time
}

// maxKnown is how many services are remembered.
const maxKnown = 256

func (k *known) find(prefix string, now time.Time) (sv *service, proven bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, ok := k.list[prefix]
	if !ok || !now.Before(one.until) {
		return nil, false
	}
	return one.service, one.proven
}

func (k *known) keep(prefix string, sv *service, proven bool, now time.Time, life time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil || len(k.list) >= maxKnown {
		k.list = make(map[string]knownService)
	}
	k.list[prefix] = knownService{sv, proven, now.Add(life)}
}
