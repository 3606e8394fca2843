package publish

import (
	"context"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonemap"
)

// Problem is something that is wrong with what is published, or could be better.
type Problem struct {
	Zone string
	ID   stele.ID // of the identifier that it is about; zero if it is about the zone
	// Serious says that clients do not find something. Otherwise all works, but not as well
	// as it could.
	Serious bool
	Text    string // what it is, and what to do
	Code    string // of the text, for programs; see [stele.Message]
}

// Check tells all problems of a zone, or of all zones if the name is empty. told is
// called with the number of records read since it was called last; it may be nil.
func (z *Zones) Check(ctx context.Context, name string, report func(Problem), told func(n int)) error {
	set, err := z.current(ctx)
	if err != nil {
		return err
	}
	names := set.order
	if name != "" {
		one, err := z.zoneNamed(ctx, name)
		if err != nil {
			return err
		}
		names = []string{one.Name}
	}
	for _, clash := range set.clashes {
		if name == "" || clash.zone == names[0] {
			report(Problem{Serious: true, Text: clash.problem.Error(), Code: clash.problem.Code})
		}
	}
	for _, n := range names {
		c := &checker{zone: set.zones[n], report: report, told: told}
		if err := c.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checker checks one zone.
type checker struct {
	zone   *Zone
	report func(Problem)
	told   func(n int)
}

func (c *checker) tell(id stele.ID, serious bool, code, text string, args ...any) {
	m := stele.Messagef(code, text, args...)
	name, _ := stele.CodeOf(m)
	c.report(Problem{c.zone.Name, id, serious, m.Error(), name})
}

func (c *checker) check(ctx context.Context) error {
	if err := c.zone.index.await(ctx); err != nil {
		return err
	}
	if c.zone.isCatalog() {
		return nil // it has no servers, and clients never ask for it
	}
	c.checkZone()
	switch c.zone.ns.Publication.Layout {
	case stele.LayoutNames:
		return c.checkNames(ctx)
	case stele.LayoutRules:
		out, err := c.zone.collection(ctx)
		if err != nil {
			return err
		}
		for _, note := range out.Notes {
			c.tell(stele.ID{}, !isAboutRules(note), "", "{cause}", note)
		}
		c.checkSize(stele.ID{}, c.zone.Name, out.Records(c.zone.Name))
	}
	return nil
}

// checkZone looks at what does not depend on records.
func (c *checker) checkZone() {
	c.checkServers()
	c.checkResolver()
	if p := &c.zone.ns.Publication; p.Layout != stele.LayoutRoot {
		if _, ok := zonemap.KeyOf(c.zone.set.schemes, c.zone.ns.Key()); !ok {
			c.tell(stele.ID{}, true, "zone-check.prefix-without-dns-key", "no client finds it: names under {prefix} have no key in the DNS; they are found over HTTP, and the zone can be taken away", c.zone.ns.Prefix)
		}
	}
	for _, note := range c.zone.notes {
		c.tell(stele.ID{}, true, "", "{cause}", note)
	}
	if p := &c.zone.ns.Publication; p.Signing == stele.SigningOnline && len(p.Secondaries) > 0 {
		c.tell(stele.ID{}, true, "zone-check.online-signed-with-secondaries", "it is signed in the mode online, and its secondaries get it without signatures, so validating resolvers refuse what they answer; 'stele zone sign {zone} --mode transfer' sends signatures along, or let the secondaries sign and end the signing here with --mode off", c.zone.Name)
	}
	if c.zone.trouble != nil {
		c.tell(stele.ID{}, true, "", "{cause}", c.zone.trouble)
	}
	if outer := c.zone.set.outer(c.zone); outer != nil && len(c.zone.ns.Publication.Servers) == 0 {
		c.tell(stele.ID{}, true, "zone-check.delegation-missing", "it is inside the zone {zone}, whose file can't delegate it; name its servers with --ns", outer.Name)
	}
	for _, name := range append([]string{c.zone.Name}, c.zone.staticNames()...) {
		c.checkSize(stele.ID{}, name, c.zone.static[name])
	}
}

func (c *checker) checkServers() {
	p := &c.zone.ns.Publication
	switch len(p.Servers) {
	case 0:
		c.tell(stele.ID{}, true, "zone-check.name-servers-missing", "it has no name servers, so resolvers can't find it and no file of it loads; name them with 'stele zone add {zone} --ns NAME=ADDRESS'", c.zone.argument())
	case 1:
		c.tell(stele.ID{}, false, "zone-check.one-name-server", "it has one name server; with two it is found while one is down (RFC 2182)")
	}
	for _, s := range p.Servers {
		if c.zone.contains(s.Name) && len(s.Addresses) == 0 {
			c.tell(stele.ID{}, true, "zone-check.name-server-address-missing", "its name server {server} is in the zone itself and has no address, so resolvers can't find it; give --ns {server}=ADDRESS", s.Name)
		}
		if inner := c.zone.set.find(s.Name); inner != nil && inner != c.zone {
			if n := inner.static[s.Name]; len(n) == 0 {
				c.tell(stele.ID{}, true, "zone-check.name-server-address-missing-in-zone", "its name server {server} is in the zone {zone}, which has no address of it", s.Name, inner.Name)
			}
		}
	}
	if p.Mailbox == "" {
		c.tell(stele.ID{}, false, "zone-check.mailbox-missing", "it names no mailbox, so hostmaster@{zone} is published; give --mailbox", strings.TrimSuffix(c.zone.Name, "."))
	}
}

func (c *checker) checkResolver() {
	p := &c.zone.ns.Publication
	if p.Layout == stele.LayoutRoot {
		return
	}
	if p.Resolver == "" {
		c.tell(stele.ID{}, false, "zone-check.resolver-missing", "it names no resolver, so names that do not fit the DNS are not found, and withdrawn ones have no page; give --resolver HOST")
		return
	}
	h := naptr.ParseHost(p.Resolver)
	if in := c.zone.set.find(h.Name); in != nil {
		for _, rr := range in.static[h.Name] {
			if t := rr.Header().Rrtype; t == dns.TypeA || t == dns.TypeAAAA {
				return
			}
		}
		c.tell(stele.ID{}, true, "zone-check.resolver-address-missing-in-zone", "its resolver {resolver} is in the zone {zone}, which has no address of it; use a name outside of it, or that of a name server, or add its address with 'stele zone record add'", h.Name, in.Name)
	}
	if c.zone.ns.Delegate != "" {
		c.tell(stele.ID{}, false, "zone-check.unregistered-http-only", "names that are not registered are answered by another resolver, over HTTP only: in the DNS they do not exist")
	}
	if len(c.zone.ns.Rules) > 0 && p.Layout != stele.LayoutRules {
		c.tell(stele.ID{}, false, "zone-check.rules-http-only", "names for which a rule of the namespace answers are found over HTTP only: in the DNS they do not exist; in a zone with the layout rules they would be found, where the DNS can express the rules")
	}
	if c.zone.ns.Passthrough {
		c.tell(stele.ID{}, false, "zone-check.suffixes-http-only", "names that follow a registered one lead to its targets over HTTP only: in the DNS they do not exist")
	}
}

// checkNames looks at all identifiers.
func (c *checker) checkNames(ctx context.Context) error {
	return c.zone.eachRegistered(ctx, c.told, func(id stele.ID, r *stele.Record) error {
		return c.checkName(ctx, id, r)
	})
}

func (c *checker) checkName(ctx context.Context, id stele.ID, r *stele.Record) error {
	z := c.zone
	owner, reason := z.mapping.Owner(id.String())
	if reason != nil {
		how := "it is found over HTTP only"
		if z.ns.Publication.Resolver == "" {
			how = "it is not found"
		}
		c.tell(id, z.ns.Publication.Resolver == "", "zone-check.owner-name-missing", "it has no owner name, so {consequence}: {reason}", how, reason)
		return nil
	}
	if in := z.set.find(owner); in != z {
		c.tell(id, true, "zone-check.owner-in-other-zone", "its owner name {owner} is in the zone {zone}", owner, in.Name)
		return nil
	}
	c.checkOwn(id, owner)
	list := []naptr.Named{{ID: id, Record: r, Namespace: z.set.namespaceOf(id)}}
	if z.mapping.Tells(id.String()) {
		var err error
		if list, err = z.at(ctx, owner); err != nil {
			return err
		}
		if len(list) == maxVariants {
			c.tell(id, true, "zone-check.case-variants-too-many", "{limit} identifiers or more differ in case only; the others are not published", maxVariants)
		}
	}
	out := z.compiler().Compile(list)
	for _, note := range out.Notes {
		if text, ok := strings.CutPrefix(note.Error(), id.String()+": "); ok {
			c.report(Problem{c.zone.Name, id, note.Code == naptr.URLTooLong, text, note.Code})
		}
	}
	for _, t := range r.Targets {
		if t.Partial {
			c.tell(id, false, "zone-check.names-below-http-only", "names below it that are not registered lead to its target over HTTP only: in the DNS they do not exist")
			break
		}
	}
	c.checkSize(id, owner, out.Records(owner))
	return nil
}

// checkSize tells of answers that do not fit one packet.
func (c *checker) checkSize(id stele.ID, name string, records []dns.RR) {
	byType := make(map[uint16][]dns.RR)
	for _, rr := range records {
		byType[rr.Header().Rrtype] = append(byType[rr.Header().Rrtype], rr)
	}
	for _, kind := range []uint16{dns.TypeNAPTR, dns.TypeURI, dns.TypeTXT, dns.TypeA, dns.TypeAAAA} {
		size := answerSize(name, kind, byType[kind])
		if size > dnsrr.MaxUDP {
			c.tell(id, size > dnsrr.MaxMessage, "zone-check.answer-exceeds-packet", "the answer for {type} records at {name} has {bytes} bytes, and {limit} fit one packet: clients ask again over TCP; fewer targets or shorter URLs help", dns.TypeToString[kind], name, size, dnsrr.MaxUDP)
		}
	}
}

// ednsSize is the size of what comes with every answer to a modern client: an OPT
// record with a cookie.
const ednsSize = 11 + 28

// answerSize is the size of the answer with some records.
func answerSize(name string, kind uint16, records []dns.RR) int {
	m := dns.Msg{Compress: true, Question: []dns.Question{{Name: name, Qtype: kind, Qclass: dns.ClassINET}}, Answer: records}
	return m.Len() + ednsSize
}

// Advise returns what should be done about a zone, without looking at its records.
func (z *Zones) Advise(ctx context.Context, name string) (list []Problem, err error) {
	one, err := z.zoneNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	c := &checker{zone: one, report: func(p Problem) { list = append(list, p) }}
	if !one.isCatalog() {
		c.checkZone()
	}
	return list, nil
}
