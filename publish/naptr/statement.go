package naptr

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	n2s "github.com/stele-id/stele/proof"
)

// maxWords bounds a statement in a TXT record, in bytes; the whole of it is what N2P leads to.
const maxWords = 800

// describe says in texts what a TXT record has of an identifier: what is promised,
// or why it was withdrawn.
func describe(n *Named) (texts []string) {
	add := func(key, value string) {
		if value != "" {
			texts = append(texts, key+"="+value)
		}
	}
	r := n.Record
	if r.State == stele.Withdrawn {
		if t := r.Tombstone; t != nil {
			add("withdrawn", t.At.UTC().Format(time.RFC3339))
			add("reason", shorten(t.Reason))
			add("replacement", t.Replacement.String())
		}
		return texts
	}
	promise := n.promise()
	add("persistence", string(promise.Level))
	add("until", promise.Until)
	add("statement", shorten(promise.Statement))
	return texts
}

// promise returns what is promised of an identifier: by its record, or by its namespace
// for all that do not say.
func (n *Named) promise() stele.Persistence {
	if n.Record.Persistence == (stele.Persistence{}) && n.Namespace != nil {
		return n.Namespace.Persistence
	}
	return n.Record.Persistence
}

// shorten cuts a long text between two characters.
func shorten(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return text[:boundary(text, maxWords)] + "..."
}

// boundary returns the last place up to n where no character is cut.
func boundary(text string, n int) int {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// SplitTexts cuts texts into strings that a TXT record can hold.
func SplitTexts(texts []string) (list []string) {
	for _, t := range texts {
		for len(t) > dnsrr.MaxString {
			n := boundary(t, dnsrr.MaxString)
			if n == 0 { // no UTF-8
				n = dnsrr.MaxString
			}
			list, t = append(list, t[:n]), t[n:]
		}
		list = append(list, t)
	}
	return list
}

// addSignatures adds the rule that leads to the signatures of a record, which the
// resolver gives. It says of which algorithms they are.
func (c *Compiler) addSignatures(out *Compiled, of *subject) {
	var offered []ddds.Offer
	for _, s := range of.Record.Signatures {
		o := ddds.Offer{Service: stele.N2S, Type: n2s.Algorithm(s)}
		if !slices.Contains(offered, o) {
			offered = append(offered, o)
		}
	}
	c.addOwn(out, of, ddds.Services{Offers: offered}, stele.N2S)
}

// addPromise adds the rule that leads to the statement of what is promised, which the
// resolver gives.
func (c *Compiler) addPromise(out *Compiled, s *subject) {
	if s.promise() != (stele.Persistence{}) && !c.Resolver.IsZero() {
		c.addOwn(out, s, ddds.Services{Offers: []ddds.Offer{{Service: stele.N2P}}}, stele.N2P)
	}
}

// addOwn adds the rule for a service that the resolver gives itself.
func (c *Compiler) addOwn(out *Compiled, s *subject, services ddds.Services, service stele.Service) {
	id := s.text
	if c.Resolver.IsZero() {
		out.Note("zone-note.signatures-without-resolver", "{id} has signatures, and no resolver gives them; give the zone one (stele zone add --resolver)", id)
		return
	}
	flag := c.Resolver.Flag()
	field, err := services.Field(flag)
	if err != nil {
		out.Note("zone-note.service-unpublished", "{id}: its {service} can't be published: {cause}", id, service, err)
		return
	}
	f := ddds.Fields{Order: Order, Preference: Preference, Flags: string(flag), Service: field, Replacement: "."}
	var ok bool
	if f.Regexp, ok = c.express(s, c.Resolver.Service(service, id)); !ok {
		out.Note("zone-note.address-too-long", "{id}: the address of its {service} does not fit a rule; clients find it over HTTP", id, service)
		return
	}
	out.Rules = append(out.Rules, f)
}
