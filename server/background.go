package server

import (
	"github.com/stele-id/stele/publish/zonekey"

	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/search"
)

const (
	// requestLife is how long the answer to a request with an idempotency key is kept.
	requestLife = 24 * time.Hour

	// requestsAtOnce is how many are forgotten before other writers get a turn.
	requestsAtOnce = 10_000
)

// forgetRequests forgets requests that are a day old, now and every hour, until the
// context ends.
func (s *server) forgetRequests(ctx context.Context, r *registrar.Registrar) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		for {
			n, err := r.ExpireIdempotencyKeys(ctx, s.now().Add(-requestLife), requestsAtOnce)
			if err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
				s.log.Warn("old requests can't be forgotten", "error", err.Error())
			}
			if n < requestsAtOnce {
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// hostsEvery is how often a server looks for PURL hosts that another server of the same
// database has added.
const hostsEvery = 5 * time.Second

// learnHostsOften looks for them until the context ends.
func (s *server) learnHostsOften(ctx context.Context, r *registry.Registry) {
	ticks := time.NewTicker(hostsEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if err := r.Registrar.LearnHosts(ctx); err != nil && ctx.Err() == nil {
				s.log.Debug("the PURL hosts of the registry can't be read", "error", err.Error())
			}
		}
	}
}

// workOnJobs works on bulk changes until the context ends.
func (s *server) workOnJobs(ctx context.Context, f *generation) {
	runner := &job.Runner{Board: f.jobs, Directory: f.registry.Directory, Log: s.log, Lease: s.JobLease}
	if f.registry.Follower != nil { // with several servers, the log of a job says which worked on it
		if host, err := os.Hostname(); err == nil {
			runner.Server = host
		}
	}
	runner.Run(ctx)
}

// learnRedirects reads where all names lead, once, and again when the follower has forgotten
// everything. The server answers meanwhile, and also if that fails: it is only slower.
func (s *server) learnRedirects(ctx context.Context, r *registry.Registry) {
	for {
		if err := r.Resolver.Load(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("not all names are kept in memory; redirects take longer", "error", err.Error())
		}
		if r.Follower == nil {
			return
		}
		select {
		case <-r.Follower.Forgotten():
		case <-ctx.Done():
			return
		}
	}
}

// openSearch opens the search index of a registry, unless it is open. Without it the server
// answers all but searches.
func (s *server) openSearch(ctx context.Context, r *registry.Registry) {
	if r.Search != nil {
		return
	}
	folder := s.SearchFolder()
	switch {
	case s.o.Demo != "":
		folder = "" // a demonstration leaves nothing, and its registry is not where the settings say
	case folder == "":
		s.log.Info("records can't be searched by words; name a folder in search-index for that")
		return
	}
	if err := r.OpenSearch(ctx, folder, s.log); err != nil {
		s.log.Error("records can't be searched by words; see search-index in 'stele config list'", "error", err.Error())
	}
}

// searchStatus returns how the search index is that is used now.
func (s *server) searchStatus() search.Status {
	if f := s.generation.Load(); f != nil && f.registry.Search != nil {
		return f.registry.Search.Index.Status()
	}
	return search.Status{}
}

// keepUsesOften keeps note of when tokens are used until the context ends.
func (s *server) keepUsesOften(ctx context.Context, r *registry.Registry) {
	often := time.NewTicker(time.Minute)
	defer often.Stop()
	for {
		select {
		case <-often.C:
			s.keepUses(ctx, r)
		case <-ctx.Done():
			return
		}
	}
}

// keepUses writes when tokens were used last. If it fails, only these times are lost.
func (s *server) keepUses(ctx context.Context, r *registry.Registry) {
	if err := r.Directory.Flush(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
		s.log.Warn("when tokens were used last can't be written", "error", err.Error())
	}
}

// keepSigned renews the signatures of zones that are signed for secondaries before they
// expire, until the context ends.
func (s *server) keepSigned(ctx context.Context, r *registry.Registry) {
	zones := Zones(r)
	if zones == nil {
		return
	}
	keys := &zonekey.Manager{Store: r.Registrar, Zones: zones, Now: s.now, Random: rand.Reader}
	often := time.NewTicker(time.Hour)
	defer often.Stop()
	for {
		if err := keys.RefreshAll(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("signatures of zones could not be made anew; it is tried again in an hour", "error", err.Error())
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
	}
}
