package server

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/usage"
)

// openAgents reads what user agents are, and the countries of addresses, if use is counted.
func (s *server) openAgents() error {
	if !s.Usage {
		return nil
	}
	var counter io.Reader
	if s.UsageRobots != "" {
		file, err := os.Open(s.UsageRobots)
		if err != nil {
			return refuse("serve", stele.Unavailable, "server.robots-not-read", "the list of robots can't be read, see usage-robots in 'stele config list': {cause}", err)
		}
		defer file.Close()
		counter = file
	}
	agents, err := usage.NewAgents(counter)
	if err != nil {
		return refuse("serve", stele.Invalid, "", "usage-robots: {cause}", err)
	}
	s.agents = agents
	if s.UsageCountries == "" {
		return nil
	}
	countries, err := usage.OpenCountries(s.UsageCountries)
	if err != nil {
		return refuse("serve", stele.Invalid, "", "usage-countries: {cause}", err)
	}
	s.countries = countries
	return nil
}

// countriesEvery is how often the server looks whether the file with countries changed.
const countriesEvery = time.Minute

// openUsage returns what counts the use of a registry; nil if it is not counted.
func (s *server) openUsage(f *generation) *usage.Counter {
	if s.agents == nil {
		return nil
	}
	o := usage.Options{
		Store: f.registry.Registrar, Agents: s.agents, Schemes: s.schemes, Now: s.now, Log: s.log, Cut: s.UsageCut, Interval: s.UsageInterval,
		Space: func(ctx context.Context, id stele.ID) (key stele.NamespaceKey) {
			if ns, err := f.registry.Resolver.Namespace(ctx, id); err == nil && ns != nil {
				key = ns.Key()
			}
			return key
		},
	}
	if s.countries != nil {
		o.Country = s.countries.Country
	}
	if f.dns != nil {
		o.Zones = f.dns.ZoneAnswers
	}
	return usage.New(o)
}

// usageStats returns how the counter is that counts now.
func (s *server) usageStats() usage.Stats {
	if f := s.generation.Load(); f != nil && f.usage != nil {
		return f.usage.Stats()
	}
	return usage.Stats{}
}
