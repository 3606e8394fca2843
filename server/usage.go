package server

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/serve/api"
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
		Space: f.spaceOf,
	}
	if s.countries != nil {
		o.Country = s.countries.Country
	}
	if f.dns != nil {
		o.Zones = f.dns.ZoneAnswers
	}
	return usage.New(o)
}

// spaceOf returns the namespace of a name; the zero key: it has none.
func (f *generation) spaceOf(ctx context.Context, id stele.ID) (key stele.NamespaceKey) {
	if ns, err := f.registry.Resolver.Namespace(ctx, id); err == nil && ns != nil {
		key = ns.Key()
	}
	return key
}

// usageStats returns how the counter is that counts now.
func (s *server) usageStats() usage.Stats {
	if f := s.generation.Load(); f != nil && f.usage != nil {
		return f.usage.Stats()
	}
	return usage.Stats{}
}

// countedAll knows the namespaces whose redirects no cache should keep.
type countedAll struct {
	spaces atomic.Pointer[map[stele.NamespaceKey]bool] // nil if there are none
}

// has reports whether a name is in one of them. Where there are none, it costs next to nothing.
func (a *countedAll) has(id stele.ID, space func(ctx context.Context, id stele.ID) stele.NamespaceKey) bool {
	spaces := a.spaces.Load()
	return spaces != nil && (*spaces)[space(context.Background(), id)]
}

// followCountedAll keeps them as they are in the registry until the context ends.
func (s *server) followCountedAll(ctx context.Context, f *generation) {
	ticks := time.NewTicker(max(min(s.UsageInterval, 30*time.Second), time.Second))
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.readCountedAll(ctx, f)
		case <-ctx.Done():
			return
		}
	}
}

// readCountedAll reads them. It is called before the first redirect: caches would keep that one.
func (s *server) readCountedAll(ctx context.Context, f *generation) {
	list, err := f.registry.Registrar.UsageSpaces(auth.With(ctx, auth.Local()))
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			s.log.Warn("how the use of namespaces is counted can't be read; it is tried again", "error", err.Error())
		}
		return
	}
	var spaces map[stele.NamespaceKey]bool
	for i := range list {
		if !list[i].CountAll {
			continue
		}
		if spaces == nil {
			spaces = make(map[stele.NamespaceKey]bool)
		}
		spaces[list[i].Key()] = true
	}
	if spaces == nil {
		f.countedAll.spaces.Store(nil)
		return
	}
	f.countedAll.spaces.Store(&spaces)
}

// usageLogs returns what counts log files of other servers; nil if use is not counted.
func (s *server) usageLogs(f *generation) api.UsageLogs {
	if s.agents == nil {
		return nil
	}
	f.uploads = &usage.Uploads{Now: s.now, Importer: func() *usage.LogImporter {
		im := &usage.LogImporter{Agents: s.agents, Now: s.now, Log: s.log, Cut: s.UsageCut, Lists: s.agents.Digest()}
		if s.countries != nil {
			im.Country = s.countries.Country
			im.Lists += " " + s.countries.Digest()
		}
		access.CountsFor(f.registry, im)
		return im
	}}
	return f.uploads
}

// uploadsEvery is how often the server looks for log files whose senders have left.
const uploadsEvery = 10 * time.Minute

// forgetUploads forgets log files of clients that have left, as long as the registry is open: they may have readers' addresses.
func (s *server) forgetUploads(ctx context.Context, f *generation) {
	every := time.NewTicker(uploadsEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			if err := f.uploads.Forget(); err != nil {
				s.log.Warn("a log file that nobody waits for could not be closed", "err", err)
			}
		}
	}
}
