package publish

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/publish/naptr"
)

// keyRules are the rules at a key: how its names go on.
type keyRules struct {
	list  []ddds.Fields
	notes []*stele.Message
}

func (k *keyRules) notef(code, text string, args ...any) {
	k.notes = append(k.notes, stele.Messagef(code, text, args...))
}

// add adds a rule, or notes why it can't be published.
func (k *keyRules) add(ns *stele.Namespace, r ddds.Rule) {
	f, err := r.Fields()
	if err != nil {
		k.notef("zone-note.rule-unpublished", "{namespace}: a rule can't be published: {cause}", ns.Key(), err)
		return
	}
	k.list = append(k.list, f)
}

// scope is which names of a key a rule is for: all of them, or those of a namespace
// below the key's.
type scope struct {
	ns     *stele.Namespace
	order  uint16
	whole  bool   // all that come to the key
	ere    string // that matches them, if not all
	fold   bool
	prefix naptr.Pattern // that matches the prefix alone
	joint  string
}

// newScope makes the scope of a namespace that is so many published namespaces below
// that of the key. Those further below come first.
func newScope(schemes *stele.Schemes, ns *stele.Namespace, depth int) scope {
	c := naptr.NewMapping(schemes, ns)
	s := scope{ns: ns, order: uint16(max(1, naptr.Order-depth)), whole: depth == 0, joint: ddds.Quote(c.Joint)}
	if c.Joint == ":" || c.Joint == "/" {
		s.joint = "[:/]" // names are cut at both
	}
	s.prefix = naptr.NewPattern(schemes, ns.Scheme, ns.Prefix, c.Casing)
	s.fold = s.prefix.Fold
	s.ere = "^" + s.prefix.ERE + s.joint + ".*$"
	return s
}

// addRule adds a rule that leads all names of the scope to one text.
func (s *scope) addRule(k *keyRules, flag ddds.Flag, services ddds.Services, preference uint16, to string) {
	r := ddds.Rule{Order: s.order, Preference: preference, Flag: flag, Services: services}
	if s.whole && flag.Output() != ddds.OutputURI {
		r.Replacement = to
		k.add(s.ns, r)
		return
	}
	s.express(k, r, s.ere, ddds.QuoteReplacement(to), s.fold)
}

// express adds a rule with an expression.
func (s *scope) express(k *keyRules, r ddds.Rule, ere, to string, fold bool) {
	var err error
	if r.Expression, err = ddds.NewExpression(ere, to, fold); err != nil {
		k.notef("zone-note.rule-unpublished", "{namespace}: a rule can't be published: {cause}", s.ns.Key(), err)
		return
	}
	k.add(s.ns, r)
}

// allServices are what a resolver that was discovered is asked for.
func allServices() ddds.Services {
	return ddds.Services{Offers: []ddds.Offer{{Service: stele.N2L}, {Service: stele.N2C}, {Service: stele.N2S}, {Service: stele.N2P}}}
}

// Preferences at a key: the rules of RFC 3404 that say the same as one of the EDDDS come
// after it, so that a client that knows both takes the first.
const (
	plainPreference   = 20
	furtherPreference = 50
	openPreference    = 60
)

// elsewhere adds the rules of a namespace that others answer for. They have one
// order and preference, so they share the load.
func (s *scope) elsewhere(k *keyRules) {
	for _, d := range s.ns.Publication.Elsewhere {
		flag, err := ddds.ParseFlag("DIS:" + string(d.Kind))
		if err != nil {
			k.notef("", "{namespace}: {cause}", s.ns.Key(), err)
			continue
		}
		s.addRule(k, flag, allServices(), naptr.Preference, d.At)
		switch {
		case d.Kind == stele.DiscoverNAPTR:
			s.addRule(k, ddds.FlagNone, ddds.Services{}, plainPreference, d.At)
		case d.Kind == stele.DiscoverSRV && strings.HasPrefix(d.At, naptr.HTTPService):
			s.addRule(k, ddds.FlagSRV, naptr.THTTPServices("L", "C", "R"), plainPreference, d.At)
		}
	}
}

// delegate adds the rules of a namespace for whose names another resolver has URLs.
// They are made of the name as it was given: rules can't encode it.
func (s *scope) delegate(k *keyRules) {
	to := ddds.QuoteReplacement(s.ns.AnsweredAt())
	scheme, name := s.prefix.ERE[:s.prefix.Rest], s.prefix.ERE[s.prefix.Rest:]
	id, rest := 1+strings.Count(scheme, "("), 2+s.prefix.Groups
	to = strings.NewReplacer("{id}", fmt.Sprintf(`\%d`, id), "{rest}", fmt.Sprintf(`\%d`, rest)).Replace(to)
	ere := "^" + scheme + "(" + name + "(" + s.joint + ".*))$" // the rest has the joint, as in package resolver
	r := ddds.Rule{Order: s.order, Preference: naptr.Preference, Flag: ddds.FlagDisURL, Services: ddds.Services{Offers: []ddds.Offer{{Service: stele.N2L}}}}
	s.express(k, r, ere, to, s.fold)
	r.Preference, r.Flag = plainPreference, ddds.FlagURI
	r.Services = naptr.THTTPServices("L", "R")
	r.Services.Protocol = "http"
	s.express(k, r, ere, to, s.fold)
}
