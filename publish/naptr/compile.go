// Package naptr makes DNS records of registered records: the owner name of an identifier
// ([Mapping]), and the NAPTR rules, URI and TXT records that stand there ([Compiler]).
//
// It knows identifiers, records and the settings of their namespaces. It knows nothing of
// zones, reads no store, and signs nothing: package publish does that.
package naptr

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
)

// Order and Preference are those of rules that no target decides.
//
// FurtherOrder is the order of rules for clients that know RFC 3404 only, and for what does
// not fit. It comes after the usual order of targets, but owners may give targets any order.
// Where it comes first no harm is done: a client of the EDDDS looks at all orders where
// there are RES: rules, and takes those before others.
const (
	Order        = stele.DefaultOrder
	Preference   = stele.DefaultPreference
	FurtherOrder = 200
)

// ResolverServices are what a Stele resolver gives over THTTP: what RFC 2483 has, by its
// names and by the older ones of RFC 2169, and the EDDDS's services (thesis, figures 7.10
// to 7.12).
func ResolverServices() ddds.Services {
	s := THTTPServices("L", "Ls", "R", "Rs", "C", "Cs", "N", "Ns")
	s.Offers = append(s.Offers, ddds.Offer{Service: stele.N2S}, ddds.Offer{Service: stele.N2P})
	return s
}

// THTTPServices are services of RFC 2483, by both names. The older ones come first: all
// resolvers know them.
func THTTPServices(results ...string) ddds.Services {
	s := ddds.Services{Protocol: "thttp"}
	for _, r := range results {
		s.Offers = append(s.Offers, ddds.Offer{Service: stele.Service("N2" + r)})
	}
	for _, r := range results {
		s.Offers = append(s.Offers, ddds.Offer{Service: stele.Service("N2" + r), Token: stele.Service("I2" + r)})
	}
	return s
}

// Named is an identifier with the record that has it, as identifier or alias, and
// the namespace whose defaults hold for it.
type Named struct {
	ID        stele.ID
	Record    *stele.Record
	Namespace *stele.Namespace
}

// Compiler makes DNS records of registered ones. One goroutine at a time uses it.
type Compiler struct {
	Schemes  *stele.Schemes
	Resolver Host
	Further  []ddds.Fields        // the rule that leads to the resolver, if it has one
	TTL      uint32               // where the namespace has none
	Tells    func(id string) bool // whether rules must tell case variants of it apart
	Full     bool                 // rules match their identifier only, since others share the name
	heads    map[headOf]ruleHead  // that were made before; nil: they are not kept
}

// Compiled is what stands at an owner name. [Compiled.Records] makes DNS records of it; a
// server that sends many packs its fields without them.
type Compiled struct {
	Rules []ddds.Fields // NAPTR records
	URIs  []URI
	Texts [][]string       // TXT records, each of strings that are not escaped
	TTL   uint32           // of all of them, in seconds
	Notes []*stele.Message // what could not be published as it is, for checks of the zone
}

// URI is a URI record (RFC 7553) with the weight [URIWeight].
type URI struct {
	Priority uint16
	Target   string
}

// Compile makes what stands at the owner name of some identifiers.
func (c *Compiler) Compile(list []Named) (out Compiled) {
	c.CompileTo(&out, list)
	return out
}

// CompileTo is compile in the memory of something that was compiled before.
func (c *Compiler) CompileTo(out *Compiled, list []Named) {
	*out = Compiled{Rules: out.Rules[:0], URIs: out.URIs[:0], Texts: out.Texts[:0], Notes: out.Notes[:0], TTL: math.MaxUint32}
	for i := range list {
		c.add(out, &list[i], len(list) > 1)
	}
	if len(list) > 0 && !c.Full {
		out.Rules = append(out.Rules, c.Further...)
	}
	if len(out.Rules) > ddds.MaxRules {
		out.Note("zone-note.too-many-rules", "{rules} rules are more than clients take; the last {left-out} are left out", len(out.Rules), len(out.Rules)-ddds.MaxRules)
		out.Rules = out.Rules[:ddds.MaxRules]
	}
	out.Rules, out.URIs = once(out.Rules), once(out.URIs)
	if out.TTL == math.MaxUint32 {
		out.TTL = c.TTL
	}
}

// once drops what is in a list already: no record stands twice at a name (RFC 2181,
// section 5). Targets whose URLs are too long have the same rule if they differ in
// nothing else.
func once[T comparable](list []T) []T {
	kept := list[:0]
	for _, v := range list {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// URLTooLong is the code of the note that a URL fits no rule and there is no resolver which
// has a shorter one: clients do not find it.
const URLTooLong = "zone-note.url-too-long"

// Note notes what could not be published as it is.
func (out *Compiled) Note(code, text string, args ...any) {
	out.Notes = append(out.Notes, stele.Messagef(code, text, args...))
}

// subject is an identifier with the pattern that its rules have.
type subject struct {
	*Named
	text  string // of the identifier
	ere   string // matches it
	fold  bool   // in any case
	tells bool   // its rules must tell case variants apart
}

func (c *Compiler) subject(n *Named) subject {
	s := subject{Named: n, text: n.ID.String()}
	s.tells = c.Tells(s.text)
	s.ere, s.fold = identifierPattern(c.Schemes, n.ID.Scheme(), s.text, s.tells)
	return s
}

// add adds what is published of an identifier. shared says that others have the
// same owner name: then nothing is published that can't tell them apart.
func (c *Compiler) add(out *Compiled, n *Named, shared bool) {
	out.TTL = min(out.TTL, cmp.Or(n.ttl(), c.TTL))
	if s := c.subject(n); n.Record.State == stele.Withdrawn {
		c.addTombstone(out, &s)
	} else {
		c.addTargets(out, &s, shared)
	}
	if text := describe(n); len(text) > 0 && !c.Full {
		if shared {
			text = append([]string{"id=" + n.ID.String()}, text...)
		}
		out.Texts = append(out.Texts, SplitTexts(text))
	}
}

func (n *Named) ttl() uint32 {
	if n.Namespace == nil {
		return 0
	}
	return n.Namespace.TTL
}

// addTargets adds a rule for each target, and URI records for locations.
func (c *Compiler) addTargets(out *Compiled, s *subject, shared bool) {
	targets := inOrder(apart(inOrder(s.Record.Targets)))
	// What the owner signed here comes before what is said to be signed elsewhere.
	signed := len(s.Record.Signatures) > 0
	promised := false
	locations := out.URIs // they come after those of other records
	var others []URI
	var last *stele.Target // the location before
	for i := range targets {
		t := &targets[i]
		if t.Status == 404 || t.Status == 410 || signed && t.Service == stele.N2S {
			continue // the resource is not available there at present
		}
		promised = promised || t.Service == stele.N2P
		if t.TTL > 0 {
			out.TTL = min(out.TTL, t.TTL)
		}
		short := c.addRule(out, s, t)
		switch {
		case t.Service == stele.N2L:
			rank := 10
			if last != nil {
				rank = int(locations[len(locations)-1].Priority)
				if last.Order != t.Order || last.Preference != t.Preference {
					rank += 10
				}
			}
			if slices.ContainsFunc(locations[len(out.URIs):], func(u URI) bool { return u.Target == t.URL }) {
				continue // one location of two types
			}
			last = t
			locations = append(locations, URI{uint16(min(rank, 60000)), t.URL})
		case short:
			others = append(others, URI{65535, t.URL})
		}
	}
	if signed {
		c.addSignatures(out, s)
	}
	if !promised {
		c.addPromise(out, s)
	}
	if shared || c.Full {
		return // a client could not tell to which name URI records belong
	}
	out.URIs = append(locations, others...)
	if c.Resolver.IsZero() {
		c.addPlain(out, s, targets)
	}
}

// addRule adds the rule of a target. Its result tells that the URL was too long, so
// that the rule leads to the resolver instead, or is missing.
func (c *Compiler) addRule(out *Compiled, s *subject, t *stele.Target) (short bool) {
	id := s.text
	rule, ok := c.rule(s, t.URL, t)
	if ok {
		out.Rules = append(out.Rules, rule)
		return false
	}
	if c.Resolver.IsZero() {
		out.Note("zone-note.url-too-long", "{id}: the URL of its {service} has {bytes} bytes, too many for a rule; give the zone a resolver, which has shorter ones (stele zone add --resolver)", id, t.Service, len(t.URL))
		return true
	}
	if t.Type != "" && t.Service != stele.N2S && t.Service != stele.N2P {
		rule, ok = c.rule(s, c.Resolver.typed(t.Service, id, t.Type), t)
	}
	if !ok {
		rule, ok = c.rule(s, c.Resolver.Service(t.Service, id), t)
	}
	if !ok {
		out.Note("zone-note.no-url-fits", "{id}: neither the URL of its {service} nor that of the resolver fits a rule; clients find it over HTTP", id, t.Service)
		return true
	}
	out.Rules = append(out.Rules, rule)
	out.Note("zone-note.url-by-resolver", "{id}: the URL of its {service} has {bytes} bytes, too many for a rule; the rule leads to the resolver, and a URI record has the URL", id, t.Service, len(t.URL))
	return true
}

// rule makes the rule that leads an identifier to a URL: with the identifier in it if that
// fits, or for all names if no other identifier can come here. ok is false if it does not
// fit.
func (c *Compiler) rule(s *subject, url string, t *stele.Target) (f ddds.Fields, ok bool) {
	protocol, _, _ := strings.Cut(url, ":")
	head := c.head(protocol, t)
	if head.flags == "" {
		return f, false
	}
	f = ddds.Fields{Order: t.Order, Preference: t.Preference, Flags: head.flags, Service: head.service, Replacement: "."}
	f.Regexp, ok = c.express(s, url)
	return f, ok
}

// express makes the expression of such a rule.
func (c *Compiler) express(s *subject, url string) (field string, ok bool) {
	if field, ok = expression(s.ere, url, s.fold); !ok && !s.tells && !c.Full {
		field, ok = expression(".*", url, false)
	}
	return field, ok
}

// expression writes what [ddds.NewExpression] would, of parts that are known to be
// right: it is done for each rule of each answer, and that would take ten times as
// long. ok is false if it does not fit a field.
func expression(ere, literal string, fold bool) (field string, ok bool) {
	const delimiters = "!#~%,@=&:/'`<>_" + "ABCDEFGHJKLMNOPQRSTUVWXYZ"
	to := ddds.QuoteReplacement(literal)
	size := len(ere) + len(to) + 3
	if fold {
		size++
	}
	if size > dnsrr.MaxString {
		return "", false
	}
	for i := range len(delimiters) {
		d := delimiters[i : i+1]
		if strings.Contains(ere, d) || strings.Contains(to, d) {
			continue
		}
		if fold {
			return d + ere + d + to + d + "i", true
		}
		return d + ere + d + to + d, true
	}
	return "", false
}

// offers is the service field of a target. The EDDDS has no place for parameters
// of media types, nor for the media type of a signature.
func offers(flag ddds.Flag, t *stele.Target) string {
	if t.Type == "" || t.Service == stele.N2S || t.Service == stele.N2P {
		return string(t.Service)
	}
	kind, _, _ := strings.Cut(t.Type, ";")
	typed := ddds.Services{Offers: []ddds.Offer{{Service: t.Service, Type: strings.TrimSpace(kind)}}}
	if text, err := typed.Field(flag); err == nil {
		return text
	}
	return string(t.Service)
}

// addTombstone adds the rule of a withdrawn identifier, which leads to the page that says
// why.
func (c *Compiler) addTombstone(out *Compiled, s *subject) {
	id := s.text
	if c.Resolver.IsZero() {
		out.Note("zone-note.withdrawn-without-page", "{id} is withdrawn, and no resolver has a page about it; give the zone one (stele zone add --resolver)", id)
		return
	}
	t := &stele.Target{Service: stele.N2P, Order: Order, Preference: Preference}
	rule, ok := c.rule(s, c.Resolver.page(id), t)
	if !ok {
		out.Note("zone-note.withdrawn-page-too-long", "{id} is withdrawn, and the address of the page about it does not fit a rule; clients find it over HTTP", id)
		return
	}
	out.Rules = append(out.Rules, rule)
}

// FurtherRule is the rule for clients that know RFC 3404 only, and for names that do not
// fit: they go to the resolver. To EDDDS clients it is a spare. ok is false if the zone's
// name is so long that nothing stands below it.
func FurtherRule(zone string, order, preference uint16) (f ddds.Fields, ok bool) {
	r := ddds.Rule{Order: order, Preference: preference, Flag: ddds.FlagSRV, Services: ResolverServices(), Replacement: HTTPService + zone}
	f, err := r.Fields()
	return f, err == nil
}

// OpenRule is the rule for services that are defined later: a resolver is there, and the
// rule does not say which services it has (RFC 3404, section 4.4, "the empty string"). It
// stands at keys, after the further rule of the same order. The owner name of an
// identifier needs none: there a new service has a rule of its own (thesis, 6.3.2).
func OpenRule(zone string, order, preference uint16) (f ddds.Fields, ok bool) {
	r := ddds.Rule{Order: order, Preference: preference, Flag: ddds.FlagSRV, Services: OpenServices(), Replacement: HTTPService + zone}
	f, err := r.Fields()
	return f, err == nil
}

// OpenServices are the services of such a rule: the protocol, and no list.
func OpenServices() ddds.Services { return ddds.Services{Protocol: "thttp"} }

// HTTPService is where the resolver's host and port are found in a zone.
const HTTPService = "_http._tcp."

// addPlain adds a rule of RFC 3404 for the best location, where there is no resolver
// that plain clients could go to.
func (c *Compiler) addPlain(out *Compiled, s *subject, targets []stele.Target) {
	for i := range targets {
		t := &targets[i]
		protocol := t.Protocol()
		if t.Service != stele.N2L || t.Status >= 400 || protocol != "http" && protocol != "https" {
			continue
		}
		field, ok := expression(".*", t.URL, false)
		if ok && !s.tells {
			out.Rules = append(out.Rules, ddds.Fields{Order: FurtherOrder, Preference: Preference,
				Flags: string(ddds.FlagURI), Service: "http+N2L+N2R+I2L+I2R", Regexp: field, Replacement: "."})
			return
		}
	}
}

// Records makes resource records of what was compiled, for an owner name.
func (out *Compiled) Records(owner string) []dns.RR {
	var list []dns.RR
	for _, f := range out.Rules {
		list = append(list, NewNAPTR(owner, out.TTL, f))
	}
	for _, u := range out.URIs {
		list = append(list, newURI(owner, out.TTL, u))
	}
	for _, t := range out.Texts {
		escaped := make([]string, len(t))
		for i := range t {
			escaped[i] = ddds.Escape(t[i])
		}
		list = append(list, &dns.TXT{Hdr: dnsrr.Header(owner, dns.TypeTXT, out.TTL), Txt: escaped})
	}
	return list
}

// NewNAPTR makes a record of a rule. The library keeps texts as zone files have them.
func NewNAPTR(owner string, ttl uint32, f ddds.Fields) dns.RR {
	return &dns.NAPTR{
		Hdr: dnsrr.Header(owner, dns.TypeNAPTR, ttl), Order: f.Order, Preference: f.Preference,
		Flags: ddds.Escape(f.Flags), Service: ddds.Escape(f.Service), Regexp: ddds.Escape(f.Regexp),
		Replacement: f.Replacement,
	}
}

// LibraryURI is the size of the longest URI that the DNS library writes.
const LibraryURI = 1024

// newURI makes a URI record (RFC 7553). One that the library does not write is given
// to it in the form of unknown types (RFC 3597), which is the same on the wire.
func newURI(owner string, ttl uint32, u URI) dns.RR {
	h := dnsrr.Header(owner, dns.TypeURI, ttl)
	if text := ddds.Escape(u.Target); len(text) <= LibraryURI {
		return &dns.URI{Hdr: h, Priority: u.Priority, Weight: URIWeight, Target: text}
	}
	data := append([]byte{byte(u.Priority >> 8), byte(u.Priority), 0, 1}, u.Target...)
	return &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(data)}
}

// headOf is what the flags and services of a rule depend on.
type headOf struct {
	protocol string
	service  stele.Service
	media    string
}

// ruleHead is the flags and services of a rule; without flags there is no rule.
type ruleHead struct{ flags, service string }

// KeepHeads has the compiler keep the flags and services of rules, for a caller that
// compiles many records.
func (c *Compiler) KeepHeads() { c.heads = make(map[headOf]ruleHead) }

// head makes flags and services of a rule that leads to a URL of a protocol. A whole zone
// has few of them.
func (c *Compiler) head(protocol string, t *stele.Target) (h ruleHead) {
	key := headOf{protocol, t.Service, t.Type}
	if h, ok := c.heads[key]; ok {
		return h
	}
	if flag, err := ddds.Resolved(strings.ToLower(protocol)); err == nil {
		h = ruleHead{string(flag), offers(flag, t)}
	}
	if c.heads != nil && len(c.heads) < maxHeads {
		c.heads[key] = h
	}
	return h
}

// maxHeads bounds how many flags and services a compiler keeps.
const maxHeads = 1000

// URIWeight is the weight of all URI records.
const URIWeight = 1
