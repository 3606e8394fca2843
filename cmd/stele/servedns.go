package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/dnsd"
)

// startDNS begins to answer for the zones of published namespaces, if it should.
func (s *server) startDNS(r *registry) error {
	if s.DNS == "" {
		return nil
	}
	r.published = dnsd.NewZones(dnsd.ZonesOptions{
		Store: r.store, Schemes: r.schemes, Log: s.log, DefaultTTL: uint32(s.TTL.Seconds()),
	})
	rate := dnsd.DefaultRateLimit()
	if rate.Same = s.DNSRate; rate.Same == 0 {
		rate = dnsd.RateLimit{}
	}
	s.dns = dnsd.New(dnsd.Options{Zones: r.published, Now: s.now, Log: s.log, CacheBytes: int(s.DNSCache), Rate: rate})
	// It ends by Shutdown, and not with the context of those who started it.
	err := s.dns.Listen(context.Background(), s.DNS)
	if errors.Is(err, syscall.EADDRINUSE) && s.demo && s.origin["dns"] == "default" {
		err = s.dns.Listen(context.Background(), demoAnyPort) // nobody asked for that one
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse("serve", stele.Unavailable, "another program answers the DNS on %s; end it, or choose another address", s.DNS)
	case errors.Is(err, syscall.EACCES):
		return refuse("serve", stele.Forbidden, "only an administrator may listen on %s; choose a port from 1024 on, or grant the capability CAP_NET_BIND_SERVICE", s.DNS)
	case err != nil:
		return refuse("serve", stele.Unavailable, "listening on %s: %v", s.DNS, err)
	}
	return nil
}

// endDNS ends the name server. If patience ends first the questions under way are
// broken off, which their clients ask again, but not left alone: they read the registry.
func (s *server) endDNS(ctx context.Context) error {
	if s.dns.Shutdown(ctx) == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.dns.Shutdown(soon); err != nil {
		return refuse("serve", stele.Unavailable, "ended before all questions of the DNS were answered: %v", err)
	}
	return nil
}

// dnsNumbers are the counts of the name server, for Prometheus.
type dnsNumbers struct {
	server  *dnsd.Server
	answers *prometheus.Desc
	other   []dnsCount
}

// dnsCount is one count.
type dnsCount struct {
	desc *prometheus.Desc
	of   func(*dnsd.Stats) uint64
}

// addDNS adds the counts of the name server.
func (m *metrics) addDNS(server *dnsd.Server) {
	n := &dnsNumbers{server: server, answers: prometheus.NewDesc("stele_dns_answers_total", "Answers of the name server, by response code.", []string{"rcode"}, nil)}
	add := func(name, help string, of func(*dnsd.Stats) uint64) {
		n.other = append(n.other, dnsCount{prometheus.NewDesc("stele_dns_"+name+"_total", help, nil, nil), of})
	}
	add("udp", "Messages answered over UDP.", func(s *dnsd.Stats) uint64 { return s.UDP })
	add("tcp", "Messages answered over TCP.", func(s *dnsd.Stats) uint64 { return s.TCP })
	add("truncated", "Answers that did not fit and sent the client to TCP.", func(s *dnsd.Stats) uint64 { return s.Truncated })
	add("dropped", "Messages that deserved no answer.", func(s *dnsd.Stats) uint64 { return s.Dropped })
	add("held", "Answers held back by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Held })
	add("slipped", "Answers shortened by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Slipped })
	add("cookies", "Messages with a good server cookie.", func(s *dnsd.Stats) uint64 { return s.Cookies })
	add("hits", "Questions answered with what was packed before.", func(s *dnsd.Stats) uint64 { return s.Hits })
	add("misses", "Questions for which the registry was asked.", func(s *dnsd.Stats) uint64 { return s.Misses })
	add("connections", "TCP connections accepted.", func(s *dnsd.Stats) uint64 { return s.Connections })
	add("refused", "TCP connections closed at once, since there were too many.", func(s *dnsd.Stats) uint64 { return s.Refused })
	m.registry.MustRegister(n)
}

// Describe tells Prometheus what there is.
func (n *dnsNumbers) Describe(to chan<- *prometheus.Desc) {
	to <- n.answers
	for _, c := range n.other {
		to <- c.desc
	}
}

// Collect tells Prometheus the counts.
func (n *dnsNumbers) Collect(to chan<- prometheus.Metric) {
	stats := n.server.Stats()
	for rcode, count := range stats.Rcodes {
		to <- prometheus.MustNewConstMetric(n.answers, prometheus.CounterValue, float64(count), rcode)
	}
	for _, c := range n.other {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.of(&stats)))
	}
}
