package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/proof"
)

// Voucher says what vouches for keys.
type Voucher string

const (
	ByDNSSEC         Voucher = "dnssec"          // signatures lead from a trust anchor to the name's rules, and to the keys in their zone
	ByHTTPS          Voucher = "https"           // a server that proved its name sent them, and nothing else proves them
	ByRegistry       Voucher = "registry"        // the keys come from the registry itself
	NotAuthenticated Voucher = "unauthenticated" // an attacker on the network path could have sent them
)

// Keys are the keys with which what the names of a namespace stand for is signed.
type Keys struct {
	List []stele.SigningKey
	From string // where they are: _n2s.paradisec.example, or a URL
	By   Voucher
	Note string // why the keys are unauthenticated, or what else people should know
}

// IsKnown reports whether the keys are authenticated. An unknown Voucher is not enough.
func (v Voucher) IsKnown() bool { return v == ByDNSSEC || v == ByHTTPS || v == ByRegistry }

// Keys finds the keys of a name's namespace in the DNS: they are TXT records at _n2s of
// the zone in which the rules for the name end. They are proven only if the whole way to
// them is: all rules from the root down, the zone's end and the keys. Errors are of Kind
// NotFound if there are none, Unavailable if no server could answer, and Conflict if an
// answer fails validation.
func (d *DNS) Keys(ctx context.Context, name string) (Keys, error) {
	s, err := d.signatureSession(name)
	if err != nil {
		return Keys{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	keys, err := s.keys(ctx)
	if err != nil {
		return Keys{}, s.noKeys(err)
	}
	return keys, nil
}

// signatureSession begins a session that looks for keys or signatures.
func (d *DNS) signatureSession(name string) (*session, error) {
	x, err := d.o.Schemes.Explain(name)
	if err != nil {
		return nil, err
	}
	q := Request{Name: name, Service: stele.N2S}
	return &session{dns: d, query: &q, id: x.ID, parts: x.Parts, name: x.ID.String()}, nil
}

func (s *session) noKeys(err error) error {
	return &stele.Error{Op: "find the keys of", ID: s.id, Kind: stele.KindOf(err), Err: stele.Reason(err)}
}

// KeyServer finds the resolver that may tell the keys of a name's namespace, since the
// rules for the name lead to it, are validated, and have it asked by HTTPS. The rule for
// the place of signatures does not count: any user who may set a target chooses that.
// Errors are as those of [DNS.Keys].
func (d *DNS) KeyServer(ctx context.Context, name string) (string, error) {
	s, err := d.signatureSession(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	server, err := s.keyServer(ctx)
	if err != nil {
		return "", s.noKeys(err)
	}
	return server, nil
}

func (s *session) keyServer(ctx context.Context) (string, error) {
	list, err := s.candidates(ctx)
	if err != nil {
		return "", err
	}
	for i := range list {
		p, ok, err := s.resolverOf(ctx, &list[i])
		if err != nil {
			return "", err
		}
		if status, _ := s.trust.sum(); ok && p.Secure && status == dnssec.Secure {
			return p.URL(""), nil
		}
	}
	return "", notFound("resolve.proved-https-resolver-missing", "no validated rules lead to a resolver over HTTPS")
}

// resolverOf returns the resolver that a rule names; false if it names none, or does not
// say that it speaks THTTP.
func (s *session) resolverOf(ctx context.Context, c *ddds.Candidate) (p place, ok bool, err error) {
	if c.Flag.IsResolved() || c.Protocol != "thttp" {
		return place{}, false, nil
	}
	switch c.Flag.Output() {
	case ddds.OutputURI:
		p, err = parseBase(c.Key)
		return p, err == nil && !s.isNamed(c.Key), nil
	case ddds.OutputSRV:
		places, err := s.srvPlaces(ctx, c.Key, strings.HasPrefix(c.Key, "_https."))
		if err != nil {
			return place{}, false, err
		}
		return places[0], true, nil
	}
	return place{}, false, nil // a host without a port is asked in clear
}

func (s *session) keys(ctx context.Context) (Keys, error) {
	zone, err := s.zone(ctx)
	if err != nil {
		return Keys{}, err
	}
	if zone == "." {
		return Keys{}, notFound("resolve.rules-end-in-root", "its rules end in the root zone, which has no keys")
	}
	name := proof.Label + "." + zone
	a, err := s.lookup(ctx, nil, name, dns.TypeTXT)
	if err != nil {
		return Keys{}, err
	}
	keys := Keys{From: strings.TrimSuffix(name, "."), List: s.readKeys(a.records)}
	if len(keys.List) == 0 {
		return Keys{}, notFound("signature.keys-missing", "{source} has no keys", keys.From)
	}
	switch status, why := s.trust.sum(); status {
	case dnssec.Secure:
		keys.By = ByDNSSEC
		if s.dns.o.DNSSEC == TrustAD {
			keys.Note = "as the name server says"
		}
	case dnssec.Insecure:
		keys.By, keys.Note = NotAuthenticated, why
	default:
		keys.By, keys.Note = NotAuthenticated, "answers of the DNS were not validated"
	}
	return keys, nil
}

// zone returns the zone in which the rules for the name end: with validation, the one
// that a signed proof or a signed SOA record names.
func (s *session) zone(ctx context.Context) (string, error) {
	_, err := s.candidates(ctx)
	if err != nil && (s.last == "" || stele.KindOf(err) != stele.NotFound || errors.Is(err, ddds.ErrNoSuchName)) {
		return "", err
	}
	a, err := s.lookup(ctx, nil, s.last, dns.TypeSOA)
	switch {
	case err == nil:
		return a.owner, nil
	case a == nil || a.zone == "":
		return "", err
	}
	return a.zone, nil
}

// candidates returns where the rules lead.
func (s *session) candidates(ctx context.Context) ([]ddds.Candidate, error) {
	app, ok := applications()[s.id.Scheme()]
	if !ok {
		return nil, notFound("resolve.scheme-not-in-dns", "{scheme} names are not found over the DNS", s.id.Scheme())
	}
	var list []start
	var err error
	if app.isURI {
		list, err = s.uriStarts()
	} else {
		var key string
		key, err = s.rulesKey(app)
		list = []start{{s.name, key}}
	}
	if err != nil {
		return nil, err
	}
	var found ddds.Result
	for _, from := range list {
		s.name = from.name
		w := &ddds.Walker{Database: s}
		found, err = w.Walk(ctx, ddds.Request{Name: s.name, Start: from.key, Service: stele.N2S})
		if err == nil || stele.KindOf(err) != stele.NotFound || s.last != from.key {
			break // the zone of the name is found, or no server could tell
		}
	}
	return found.Candidates, err
}

// rulesKey returns where the rules for the name begin. A scheme below another has that
// one's.
func (s *session) rulesKey(app application) (string, error) {
	r := s.dns.roots[s.id.Scheme()]
	if app.under == "" || r.single {
		return s.firstKey(app)
	}
	first, err := ddds.URNKey(r.name)
	if err != nil {
		return "", err
	}
	return first(s.name)
}

// readKeys returns the keys in TXT records that sign for the name. Keys of a namespace below
// the zone's, which stand there too, sign for its own names only.
func (s *session) readKeys(records []dns.RR) (list []stele.SigningKey) {
	for _, r := range records[:min(len(records), maxKeyRecords)] {
		txt, ok := r.(*dns.TXT)
		if !ok {
			continue
		}
		var b strings.Builder
		for _, text := range txt.Txt {
			plain, err := ddds.Unescape(text)
			if err != nil {
				plain = text
			}
			b.WriteString(plain)
		}
		if k, prefix, err := proof.ParseScopedTXT(b.String()); err == nil && s.isIn(prefix) {
			list = append(list, k)
		}
	}
	return list
}

// maxKeyRecords is how many TXT records are read for keys.
const maxKeyRecords = 2 * proof.MaxKeys

// isIn reports whether the name is in a namespace; "" is that of the zone.
func (s *session) isIn(prefix string) bool {
	if prefix == "" {
		return true
	}
	return s.dns.o.Schemes.IsWithin(s.id, prefix)
}

const (
	jwksPath    = "/.well-known/stele/jwks/"
	maxDocument = 256 << 10 // of keys, and of signatures
	maxPrefixes = 16        // that a server is asked for
)

// JWKS finds the keys of a name's namespace at a resolver, which is given by its URL. It
// asks the resolver for the name itself, whose namespaces the resolver knows, and then for
// those that the name can be in, the smallest first. Errors are as those of [DNS.Keys].
func JWKS(ctx context.Context, f *fetch.Fetcher, schemes *stele.Schemes, resolver string, id stele.ID) (Keys, error) {
	base, err := parseBase(resolver)
	if err != nil {
		return Keys{}, &stele.Error{Op: "find the keys of", ID: id, Kind: stele.NotFound, Err: stele.Messagef("resolve.key-resolver-invalid", `"{resolver}" is not a resolver: {cause}`, resolver, err)}
	}
	base.Path = ""
	prefixes := []string{id.String()}
	for prefix := range schemes.Parents(id) {
		if len(prefixes) == maxPrefixes {
			break
		}
		prefixes = append(prefixes, prefix.String())
	}
	for _, prefix := range prefixes {
		where := base.URL(jwksPath + escapeName(prefix))
		keys, err := readJWKS(ctx, f, where)
		if err == nil && len(keys.List) > 0 {
			return keys, nil
		}
		if err != nil && stele.KindOf(err) != stele.NotFound {
			return Keys{}, &stele.Error{Op: "find the keys of", ID: id, Kind: stele.KindOf(err), Err: stele.Reason(err)}
		}
	}
	return Keys{}, &stele.Error{Op: "find the keys of", ID: id, Kind: stele.NotFound, Err: stele.Messagef("signature.keys-missing-at-server", "{server} has none for it", base.HostPort())}
}

func readJWKS(ctx context.Context, f *fetch.Fetcher, where string) (Keys, error) {
	text, info, err := f.Read(ctx, fetch.Request{Location: where, Accept: "application/jwk-set+json, application/json;q=0.9"}, maxDocument)
	if err != nil {
		return Keys{}, err
	}
	list, err := proof.ParseJWKS(text)
	if err != nil {
		return Keys{}, &stele.Error{Op: "read keys", Kind: stele.Conflict, Err: fmt.Errorf("%.200q: %w", info.URL, stele.Reason(err))}
	}
	keys := Keys{List: list, From: where, By: ByHTTPS}
	if u, err := url.Parse(where); err == nil {
		keys.From = u.Host
	}
	if info.InClear {
		keys.By, keys.Note = NotAuthenticated, "they came over HTTP, in clear"
	}
	return keys, nil
}
