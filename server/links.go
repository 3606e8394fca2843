package server

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
)

// resolverPatience is how long the second resolver may take.
const resolverPatience = 5 * time.Second

// openLinks reads the settings of the link checker.
func (s *server) openLinks() error {
	var err error
	if s.linkRules, err = OpenLinkRules(s.LinkRules); err == nil {
		s.linkRule, err = outbound.ParseRule(s.LinkAllow)
	}
	if err == nil {
		s.harvestRule, err = outbound.ParseRule(s.HarvestAllow)
	}
	if err != nil {
		return refuse("serve", stele.Invalid, "", "{cause}", err)
	}
	return nil
}

// newChecker returns what checks the targets of a registry.
func (s *server) newChecker(r *registry.Registry) *check.Checker {
	o := s.linkOptions()
	o.Registrar, o.Store, o.Log, o.Lease, o.Own = r.Registrar, r.Store, s.log, s.JobLease, s.LinkOwn
	o.Ask = s.traceAsking(o.Ask)
	return check.New(o)
}

// linkOptions returns how the server asks links. It does not ask itself, neither by a name of its own nor by the name of its public address, which
// a proxy may have the certificate of.
func (s *server) linkOptions() check.Options {
	return LinkOptions(s.linkRules, s.linkRule, s.LinkResolver, s.LinkTimeGate, linkAgent(s.o.Version, s.Base), s.isOwnSite, s.now)
}

// LinkOptions returns how links are asked: by which rules answers are judged, which addresses may be asked, the address of a second resolver
// and that of an archive, if there are some, who asks, and which hosts are not asked.
func LinkOptions(rules links.Judge, rule outbound.Rule, resolver, timegate, agent string, own func(host string) bool, now func() time.Time) check.Options {
	o := ask.Options{Rule: rule, Rules: rules, Now: now, Own: own, Agent: agent}
	if resolver != "" {
		o.Second = outbound.NewResolver(resolver, resolverPatience)
	}
	a := ask.New(o)
	c := check.Options{Rules: rules, Ask: a.Check, Servers: a.Servers, Now: now, Rand: rand.Reader}
	if timegate != "" {
		c.Archive = a.Archive(timegate)
	}
	return c
}

// linkAgent returns the name under which links are checked: who asks, and where that is explained.
func linkAgent(version, base string) string {
	agent := "Stele"
	if v, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-"); v != "" && v[0] >= '0' && v[0] <= '9' {
		agent += "/" + v
	}
	if base != "" {
		agent += " (+" + base + "/.well-known/stele)"
	}
	return agent
}
