package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/resolver"
)

// picture is how the registry is when Prometheus asks.
type picture struct {
	now     time.Time
	store   stele.StoreMeasure
	caches  resolver.Stats
	links   check.Stats
	survey  *survey
	changes uint64 // the number of the last one
	known   bool   // changes could be read
	sealed  bool
	lagging time.Duration // for how long the store has been read from a replica

	behind  uint64        // changes that this server has not told its caches
	silence time.Duration // since the database answered
}

// picture looks at the registry that the server answers from now.
func (s *server) picture() *picture {
	f := s.generation.Load()
	p := &picture{now: s.now(), survey: f.survey.last.Load(), caches: f.registry.Resolver.Stats(), links: f.links.Stats()}
	if m, ok := f.registry.Store.(stele.Measured); ok {
		p.store = m.Measure()
	}
	if l, ok := f.registry.Store.(stele.Replicated); ok {
		if since, yes := l.Lagging(); yes {
			p.lagging = p.now.Sub(since)
		}
	}
	if follower := f.registry.Follower; follower != nil {
		p.behind, p.silence = follower.Behind(), max(0, p.now.Sub(follower.Heard()))
	}
	ctx, cancel := context.WithTimeout(auth.With(context.Background(), auth.Local()), readyTimeout)
	defer cancel()
	if last, err := f.registry.Store.LastChange(ctx); err == nil {
		p.changes, p.known = last, true
	}
	if reason, err := f.registry.Store.Sealed(ctx); err == nil {
		p.sealed = reason != ""
	}
	return p
}

// registryNumber is a metric of the registry. Of one with a label, list calls tell for
// each value.
type registryNumber struct {
	name, help string
	counter    bool
	of         func(p *picture) float64
	labels     []string
	list       func(p *picture, tell func(value float64, labels ...string))
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// registryNumbers are the metrics of a registry.
func registryNumbers() []registryNumber {
	return []registryNumber{
		{name: "stele_changes", help: "Number of the last change of the registry; -1 if it can't be read.", of: func(p *picture) float64 {
			if !p.known {
				return -1
			}
			return float64(p.changes)
		}},
		{name: "stele_names", help: "Names that are registered in namespaces, aliases included; counted every 15 seconds.", of: func(p *picture) float64 { return float64(p.survey.names) }},
		{name: "stele_namespaces", help: "Namespaces of the registry.", of: func(p *picture) float64 { return float64(p.survey.namespaces) }},
		{name: "stele_sealed", help: "1 if the registry is sealed, so that nothing is written.", of: func(p *picture) float64 { return truth(p.sealed) }},
		{name: "stele_store_commits_total", counter: true, labels: []string{"result"},
			help: "Commits: kept, refused because a rule does not hold, or failed because the store could not write.",
			list: func(p *picture, tell func(float64, ...string)) {
				tell(float64(p.store.Commits), "kept")
				tell(float64(p.store.Refused), "refused")
				tell(float64(p.store.Failed), "failed")
			}},
		{name: "stele_store_groups_total", counter: true, help: "Writes to the disk, or transactions of the database; each keeps the commits that waited.", of: func(p *picture) float64 { return float64(p.store.Groups) }},
		{name: "stele_store_writing_seconds_total", counter: true, help: "How long those writes took, altogether.", of: func(p *picture) float64 { return p.store.Writing.Seconds() }},
		{name: "stele_store_queue", help: "Commits that wait for their turn.", of: func(p *picture) float64 { return float64(p.store.Waiting) }},
		{name: "stele_store_queue_limit", help: "How many commits may wait.", of: func(p *picture) float64 { return float64(p.store.MayWait) }},
		{name: "stele_store_bytes", help: "Bytes of the registry's files; 0 for a database.", of: func(p *picture) float64 { return float64(p.store.Bytes) }},
		{name: "stele_store_unmerged_bytes", help: "Bytes of tables that have yet to be merged, about; 0 for a database.", of: func(p *picture) float64 { return float64(p.store.Unmerged) }},
		{name: "stele_store_free_bytes", help: "Free space of the registry's disk; 0 for a database.", of: func(p *picture) float64 { return float64(p.store.Free) }},
		{name: "stele_store_reserve_bytes", help: "With less free space than this the registry only reads; 0 for a database.", of: func(p *picture) float64 { return float64(p.store.Reserve) }},
		{name: "stele_store_connections", help: "Connections to the database that are in use; 0 for a folder.", of: func(p *picture) float64 { return float64(p.store.Connections) }},
		{name: "stele_store_connections_limit", help: "How many connections to the database may be open; 0 for a folder.", of: func(p *picture) float64 { return float64(p.store.MaxConnections) }},
		{name: "stele_store_replica_seconds", help: "For how long the server has read from a replica because the primary database is away; 0 if it does not.", of: func(p *picture) float64 { return p.lagging.Seconds() }},
		{name: "stele_follow_behind", help: "Changes of other servers that this one has not learnt of yet; 0 for a folder.", of: func(p *picture) float64 { return float64(p.behind) }},
		{name: "stele_follow_silence_seconds", help: "How long ago the database answered this server, which looks for changes of others; 0 for a folder.", of: func(p *picture) float64 { return p.silence.Seconds() }},
		{name: "stele_cache_hits_total", counter: true, labels: []string{"cache"}, help: "Look-ups that a cache answered: of redirects, of records, or of blocks of the registry's files.",
			list: func(p *picture, tell func(float64, ...string)) {
				tell(float64(p.caches.RedirectHits), "redirects")
				tell(float64(p.caches.RecordHits), "records")
				tell(float64(p.store.Hits), "blocks")
			}},
		{name: "stele_cache_misses_total", counter: true, labels: []string{"cache"}, help: "Look-ups that a cache could not answer.",
			list: func(p *picture, tell func(float64, ...string)) {
				tell(float64(p.caches.RedirectMisses), "redirects")
				tell(float64(p.caches.RecordMisses), "records")
				tell(float64(p.store.Misses), "blocks")
			}},
		{name: "stele_jobs_open", help: "Bulk changes of the desk that have not ended.", of: func(p *picture) float64 { return float64(p.survey.jobs) }},
		{name: "stele_mail_waiting", help: "Mail that is to be sent.", of: func(p *picture) float64 { return float64(p.survey.mailWaiting) }},
		{name: "stele_mail_given_up", help: "Mail that the mail server did not accept, of the last 30 days.", of: func(p *picture) float64 { return float64(p.survey.mailGivenUp) }},
		{name: "stele_mail_oldest_seconds", help: "For how long the oldest mail that waits has waited.", of: func(p *picture) float64 {
			if p.survey.mailOldest.IsZero() {
				return 0
			}
			return max(0, p.now.Sub(p.survey.mailOldest).Seconds())
		}},
		{name: "stele_links_checked_total", counter: true, labels: []string{"result"}, help: "Targets that the link checker asked: works, fails, unsure (perhaps another page), or unknown (the server keeps programs out).",
			list: func(p *picture, tell func(float64, ...string)) {
				tell(float64(p.links.Works), "works")
				tell(float64(p.links.Fails), "fails")
				tell(float64(p.links.Unsure), "unsure")
				tell(float64(p.links.Unknown), "unknown")
			}},
		{name: "stele_links_waiting", help: "Targets that are due and that the link checker has in its queue.", of: func(p *picture) float64 { return float64(p.links.Waiting) }},
		{name: "stele_links_working", help: "1 if this server is the one that checks links.", of: func(p *picture) float64 { return truth(p.links.Working) }},
	}
}

// zoneNumbers are the metrics of zones and their secondaries.
func zoneNumbers() []registryNumber {
	return []registryNumber{
		{name: "stele_zones", help: "Zones that the name server answers for.", of: func(p *picture) float64 { return float64(p.survey.zones) }},
		{name: "stele_secondaries", labels: []string{"state"}, help: "Copies of zones at secondaries, by how they are compared with the zone; asked every minute.",
			list: func(p *picture, tell func(float64, ...string)) {
				for _, state := range []stele.SecondaryState{stele.SecondarySame, stele.SecondaryBehind, stele.SecondaryAhead, stele.SecondaryFar, stele.SecondaryRefuses, stele.SecondaryLame, stele.SecondarySilent, stele.SecondaryUnasked} {
					tell(float64(p.survey.secondaries[state]), string(state))
				}
			}},
		{name: "stele_secondary_behind", labels: []string{"zone", "secondary"}, help: "By how much the serial of a secondary's copy differs from that of the zone; of 200 copies at most.",
			list: func(p *picture, tell func(float64, ...string)) {
				for _, l := range p.survey.lags {
					tell(float64(l.serials), l.zone, l.at)
				}
			}},
		{name: "stele_secondary_behind_seconds", labels: []string{"zone", "secondary"}, help: "For how long the copy has had another serial than the zone; 0 if it has the same.",
			list: func(p *picture, tell func(float64, ...string)) {
				for _, l := range p.survey.lags {
					if l.since.IsZero() {
						tell(0, l.zone, l.at)
					} else {
						tell(max(0, p.now.Sub(l.since).Seconds()), l.zone, l.at)
					}
				}
			}},
	}
}

// registryCollector tells Prometheus the numbers of a registry, all of one look at it.
type registryCollector struct {
	look    func() *picture
	numbers []registryNumber
	descs   []*prometheus.Desc
}

// addRegistry adds the numbers of the registry, and with zones those of its zones.
func (m *metrics) addRegistry(look func() *picture, zones bool) {
	c := &registryCollector{look: look, numbers: registryNumbers()}
	if zones {
		c.numbers = append(c.numbers, zoneNumbers()...)
	}
	for _, n := range c.numbers {
		c.descs = append(c.descs, prometheus.NewDesc(n.name, n.help, n.labels, nil))
	}
	m.registry.MustRegister(c)
}

// Describe tells Prometheus what there is.
func (c *registryCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect tells Prometheus the numbers.
func (c *registryCollector) Collect(to chan<- prometheus.Metric) {
	p := c.look()
	for i, n := range c.numbers {
		kind := prometheus.GaugeValue
		if n.counter {
			kind = prometheus.CounterValue
		}
		tell := func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.descs[i], kind, value, labels...)
		}
		if n.list != nil {
			n.list(p, tell)
		} else {
			tell(n.of(p))
		}
	}
}
