package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/zonemap"
)

// application is how the names of a scheme are found in the DNS.
type application struct {
	root     string // usual parent of the first keys
	under    string // scheme whose root is this one's too; "" for none
	part     string // of the name, by which it begins: see stele.Parts
	isURN    bool   // names are URNs
	isURI    bool   // names are other URIs: their schemes are the first keys
	attempts []attempt
}

// attempt is a way to find names. One that finds that there is no such name leaves it
// to the next.
type attempt func(s *session, ctx context.Context, app application) (Result, error)

// applications are the schemes whose names are found in the DNS.
func applications() map[string]application {
	return map[string]application{
		// RFC 3404, section 4.2.
		"urn": {root: ddds.URNRoot, part: "nid", isURN: true, attempts: []attempt{(*session).byRules}},
		// ARK's draft, "Looking up NMAs via DNS". Rules of the DDDS may stand there too.
		"ark": {root: "ark.arpa.", part: "naan", attempts: []attempt{(*session).byRules, (*session).byHost}},
		// OMG's LSID specification, section 13.3; and LSIDs are URNs.
		"lsid": {root: ddds.URNRoot, under: "urn", part: "authority", attempts: []attempt{(*session).byAuthority, (*session).asURN}},
		// RFC 3404, section 4.2: hdl.uri.arpa and doi.uri.arpa, https.uri.arpa and http.uri.arpa.
		"hdl":  {root: ddds.URIRoot, under: RootOfURIs, isURI: true, attempts: []attempt{(*session).byURI}},
		"purl": {root: ddds.URIRoot, under: RootOfURIs, isURI: true, attempts: []attempt{(*session).byURI}},
	}
}

// byRules walks the rules.
func (s *session) byRules(ctx context.Context, app application) (Result, error) {
	key, err := s.firstKey(app)
	if err != nil {
		return Result{}, err
	}
	names := []string{s.id.String()}
	if aus, err := ddds.URNString(s.query.Name); app.isURN && err == nil && aus != names[0] {
		// Rules are applied to what is canonical by the rules for all URNs. A publisher
		// may have written rules for what is canonical by those of the namespace.
		names = append([]string{aus}, names...)
	}
	var failed error
	for i, name := range names {
		s.name = name
		res, err := s.walk(ctx, key)
		if err == nil {
			return res, nil
		}
		failed = worse(failed, err)
		switch {
		case stele.KindOf(err) != stele.NotFound, errors.Is(err, ddds.ErrNoSuchName) && !isBroken(err) && s.last == key:
			return Result{}, failed
		case i+1 < len(names) && strings.EqualFold(name, names[i+1]) && !errors.Is(err, ddds.ErrNoRule):
			return Result{}, failed // keys ignore case: the other name ends there too
		}
	}
	return Result{}, failed
}

// RootOfURIs is what [DNSOptions.Roots] calls the root of URIs that are not URNs.
const RootOfURIs = zonemap.URIs

// start is a string that rules are applied to, and the key where they begin.
type start struct{ name, key string }

// uriStarts returns where the rules for a URI begin: at the scheme that it was written with,
// and at others that name the same.
func (s *session) uriStarts() (list []start, err error) {
	schemes, rest, ok := s.dns.o.Schemes.URI(s.id.Scheme(), s.id.String())
	if !ok {
		return nil, invalid("resolve.name-not-a-uri", "the name is not a URI")
	}
	written, _, _ := strings.Cut(strings.ToLower(s.query.Name), ":")
	if i := slices.Index(schemes, written); i > 0 {
		schemes = slices.Insert(slices.Delete(schemes, i, i+1), 0, written)
	}
	r := s.dns.roots[s.id.Scheme()]
	for _, scheme := range schemes {
		key := r.name
		if !r.single {
			if key, err = ddds.CanonicalName(scheme + "." + r.name); err != nil {
				return nil, err
			}
		}
		list = append(list, start{scheme + ":" + rest, key})
	}
	return list, nil
}

// byURI walks the rules for a URI.
func (s *session) byURI(ctx context.Context, _ application) (Result, error) {
	list, err := s.uriStarts()
	if err != nil {
		return Result{}, err
	}
	var failed error
	for _, from := range list {
		s.name = from.name
		res, err := s.walk(ctx, from.key)
		if err == nil {
			return res, nil
		}
		failed = worse(failed, err)
		if stele.KindOf(err) != stele.NotFound {
			break
		}
	}
	return Result{}, failed
}

// firstKey returns where the rules for the name begin.
func (s *session) firstKey(app application) (string, error) {
	r := s.dns.roots[s.id.Scheme()]
	if r.single {
		return r.name, nil
	}
	label, _ := s.parts.Get(app.part).(string)
	if label == "" || strings.Contains(label, ".") {
		return "", invalid("resolve.dns-part-missing", "the name has no {part} by which it could be found in the DNS", app.part)
	}
	return ddds.CanonicalName(label + "." + r.name)
}

// asURN walks the rules for a name of another scheme that is a URN too.
func (s *session) asURN(ctx context.Context, _ application) (Result, error) {
	r := s.dns.roots[s.id.Scheme()]
	key := r.name
	if !r.single {
		first, err := ddds.URNKey(r.name)
		if err != nil {
			return Result{}, err
		}
		if key, err = first(s.name); err != nil {
			return Result{}, err
		}
	}
	return s.walk(ctx, key)
}

// byHost looks for the record that names a host: flag h, the scheme as service. The
// name after the host's address is the thing itself there, by ARK's draft.
func (s *session) byHost(ctx context.Context, _ application) (Result, error) {
	s.name = s.id.String()
	suffix := ""
	switch s.query.Service {
	case stele.N2L:
	case stele.N2C, stele.N2P:
		suffix = "?info" // ARK's draft, section 5.1
	default:
		return Result{}, notFound("resolve.service-not-told-by-hosts", "hosts of {scheme} names do not tell {service}", s.id.Scheme(), s.query.Service)
	}
	failed := notFound("resolve.host-record-missing", "no record names a host for it")
	for _, f := range hostRecords(s.firstSet, s.id.Scheme()) {
		p, err := parseHostport(f.Replacement)
		if err != nil {
			s.tracer.note("%s: %v", f, err)
			continue
		}
		p.ttl = ttlOf(s.firstSet)
		s.tracer.note("the record with flag h names the host %s", p.HostPort())
		res, err := s.askPlaces(ctx, []place{p}, request{path: "/" + escapeName(s.name) + suffix, any: true})
		if err == nil {
			res.Flag = "h"
			return res, nil
		}
		if failed = err; stele.KindOf(err) != stele.Unavailable && !isBroken(err) {
			break
		}
	}
	return Result{}, failed
}

// byAuthority looks for the servers of an LSID's authority.
func (s *session) byAuthority(ctx context.Context, app application) (Result, error) {
	authority, _ := s.parts.Get(app.part).(string)
	name, err := ddds.CanonicalName("_lsid._tcp." + authority)
	if err != nil {
		return Result{}, notFound("resolve.authority-not-a-dns-name", "its authority is not a name of the DNS")
	}
	places, err := s.srvPlaces(ctx, name, false)
	if err != nil {
		return Result{}, err
	}
	res, err := s.askPlaces(ctx, places, request{service: s.query.asks(), unsure: true})
	if err == nil || stele.KindOf(err) == stele.Gone {
		return res, err
	}
	return s.server(ctx, places[0], places[0].URL("/authority/"), "lsid", fmt.Sprintf(
		"this is the authority of LSIDs in %s; ask it for getAvailableServices", authority))
}

// hostRecords returns the NAPTR records that name a host for a scheme, the best
// first.
func hostRecords(set []dns.RR, scheme string) (list []ddds.Fields) {
	for _, f := range naptrFields(set, true) {
		if strings.EqualFold(f.Flags, "h") && strings.EqualFold(f.Service, scheme) {
			list = append(list, f)
		}
	}
	sortFields(list)
	return list
}

func notFound(code, text string, args ...any) error {
	return &stele.Error{Op: "resolve", Kind: stele.NotFound, Err: stele.Messagef(code, text, args...)}
}
