package main

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/netip"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
)

// zonesOf returns the zones that the name server answers for from a registry; nil if it
// answers for none.
func zonesOf(r *registry.Registry) *dnsd.Zones {
	zones, _ := r.Published.(*dnsd.Zones)
	return zones
}

// startDNS begins to answer for the zones of published namespaces, if it should: at the
// addresses of the settings, or at those of the name server before, if there was one.
func (s *server) startDNS(r *registry.Registry) error {
	if len(s.DNS) == 0 {
		return nil
	}
	zones := dnsd.NewZones(dnsd.ZonesOptions{
		Store: r.Store, Schemes: r.Schemes, Log: s.log, DefaultTTL: uint32(s.TTL.Seconds()), Now: s.now,
		Secrets: r.Secrets,
	})
	r.Published = zones
	err := r.Registrar.NoteCompiler(auth.With(context.Background(), auth.Local()), zones.Compiler())
	if err != nil { // a registry that can't be written for now is served all the same
		s.log.Error("secondaries may keep what an older program made of the zones; start the server again when the registry can be written", "error", err.Error())
	}
	rate := dnsd.DefaultRateLimit()
	if rate.Same = s.DNSRate; rate.Same == 0 {
		rate = dnsd.RateLimit{}
	}
	signatures := s.DNSSignatures
	if signatures == 0 {
		signatures = math.MaxInt32
	}
	at, atTLS := s.DNS, s.DNSTLS
	if s.dns != nil {
		at, atTLS = texts(s.dns.Addrs()), texts(s.dns.AddrsTLS())
	}
	var sources []netip.Addr
	for _, text := range s.NotifySource {
		sources = append(sources, netip.MustParseAddr(text)) // the setting was read as one
	}
	var proxies []netip.Prefix
	for _, text := range s.DNSProxies {
		network, err := httpd.ParseProxy(text)
		if err != nil {
			return refuse("serve", stele.Invalid, "dns-proxies: %v", err)
		}
		proxies = append(proxies, network)
	}
	s.dns = dnsd.New(dnsd.Options{Zones: zones, Now: s.now, Log: s.log, CacheBytes: int(s.DNSCache), Rate: rate, Signatures: signatures,
		Notify: s.notify, Transfer: s.transfer, Identity: s.DNSIdentity, NotifyFrom: sources, Proxies: proxies, Tapped: s.DNSTap,
		TCP: dnsd.TCPLimits{Connections: s.DNSConnections, PerClient: s.DNSPerClient}})
	for _, address := range at {
		// It ends by Shutdown, and not with the context of those who started it.
		err := s.dns.Listen(context.Background(), address)
		if errors.Is(err, syscall.EADDRINUSE) && s.demo && s.Origin("dns") == config.Default {
			err = s.dns.Listen(context.Background(), demoAnyPort) // nobody asked for that one
		}
		if err != nil {
			return s.notListening(address, err)
		}
	}
	for _, address := range atTLS {
		if err := s.dns.ListenTLS(context.Background(), address, s.certificates.config()); err != nil {
			return s.notListening(address, err)
		}
	}
	return nil
}

// texts are addresses as they are written.
func texts(list []netip.AddrPort) (written []string) {
	for _, at := range list {
		written = append(written, at.String())
	}
	return written
}

// notListening says why the name server can't answer at an address, and ends it.
func (s *server) notListening(address string, err error) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no question has come yet whose answer should be waited for
	_ = s.dns.Shutdown(ended)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse("serve", stele.Unavailable, "another program answers the DNS on %s; end it, or choose another address", address)
	case errors.Is(err, syscall.EACCES):
		return refuse("serve", stele.Forbidden, "only an administrator may listen on %s; choose a port from 1024 on, or grant the capability CAP_NET_BIND_SERVICE", address)
	}
	return refuse("serve", stele.Unavailable, "listening on %s: %v", address, err)
}

// allowSecondaries reads where secondaries may be. Those of a demo are on this machine.
func (s *server) allowSecondaries() error {
	if s.demo {
		s.NotifyAllow, s.TransferAllow = append(s.NotifyAllow, "127.0.0.1", "::1"), append(s.TransferAllow, "127.0.0.1", "::1")
	}
	notify, err := outbound.ParseRule(s.NotifyAllow)
	if err != nil {
		return refuse("serve", stele.Invalid, "notify-allow: %v", err)
	}
	transfer, err := outbound.ParseRule(s.TransferAllow)
	if err != nil {
		return refuse("serve", stele.Invalid, "transfer-allow: %v", err)
	}
	s.notify, s.transfer = &notify, &transfer
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

// keepSigned makes the signatures of zones that are signed for others anew before they
// end, until the context ends.
func (s *server) keepSigned(ctx context.Context, r *registry.Registry) {
	zones := zonesOf(r)
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

// dnsNumbers are the counts of the name server, for Prometheus.
type dnsNumbers struct {
	server  func() *dnsd.Server // that answers now
	answers *prometheus.Desc
	other   []dnsCount
}

// dnsCount is one count.
type dnsCount struct {
	desc *prometheus.Desc
	of   func(*dnsd.Stats) uint64
}

// addDNS adds the counts of the name server.
func (m *metrics) addDNS(server func() *dnsd.Server) {
	n := &dnsNumbers{server: server, answers: prometheus.NewDesc("stele_dns_answers_total", "Answers of the name server, by response code.", []string{"rcode"}, nil)}
	add := func(name, help string, of func(*dnsd.Stats) uint64) {
		n.other = append(n.other, dnsCount{prometheus.NewDesc("stele_dns_"+name+"_total", help, nil, nil), of})
	}
	add("udp", "Messages answered over UDP.", func(s *dnsd.Stats) uint64 { return s.UDP })
	add("tcp", "Messages answered over TCP.", func(s *dnsd.Stats) uint64 { return s.TCP })
	add("tls", "Messages answered over TLS.", func(s *dnsd.Stats) uint64 { return s.TLS })
	add("https", "Messages answered over HTTPS.", func(s *dnsd.Stats) uint64 { return s.HTTPS })
	add("truncated", "Answers that did not fit and sent the client to TCP.", func(s *dnsd.Stats) uint64 { return s.Truncated })
	add("dropped", "Messages that deserved no answer.", func(s *dnsd.Stats) uint64 { return s.Dropped })
	add("held", "Answers held back by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Held })
	add("slipped", "Answers shortened by the rate limit.", func(s *dnsd.Stats) uint64 { return s.Slipped })
	add("cookies", "Messages with a good server cookie.", func(s *dnsd.Stats) uint64 { return s.Cookies })
	add("hits", "Questions answered with what was packed before.", func(s *dnsd.Stats) uint64 { return s.Hits })
	add("misses", "Questions for which the registry was asked.", func(s *dnsd.Stats) uint64 { return s.Misses })
	add("busy", "Answers shortened since too much was to be signed.", func(s *dnsd.Stats) uint64 { return s.Busy })
	add("wrong_signatures", "Messages with a wrong signature (TSIG).", func(s *dnsd.Stats) uint64 { return s.Signatures })
	add("transfers", "Transfers of whole zones to secondaries.", func(s *dnsd.Stats) uint64 { return s.Whole })
	add("differences", "Transfers of what has changed to secondaries.", func(s *dnsd.Stats) uint64 { return s.Differences })
	add("transfers_refused", "Transfers that were refused.", func(s *dnsd.Stats) uint64 { return s.Declined })
	add("transfers_failed", "Transfers that failed.", func(s *dnsd.Stats) uint64 { return s.Broken })
	add("notices", "Notices of changes that were sent to secondaries.", func(s *dnsd.Stats) uint64 { return s.Notices })
	add("notices_confirmed", "Notices that a secondary confirmed.", func(s *dnsd.Stats) uint64 { return s.Confirmed })
	add("notices_refused", "Notices that a secondary refused.", func(s *dnsd.Stats) uint64 { return s.Unwanted })
	add("notices_given_up", "Notices that no secondary confirmed.", func(s *dnsd.Stats) uint64 { return s.GivenUp })
	add("connections", "TCP connections accepted.", func(s *dnsd.Stats) uint64 { return s.Connections })
	add("refused", "TCP connections closed at once, since there were too many.", func(s *dnsd.Stats) uint64 { return s.Refused })
	add("tap_dropped", "Questions of which the collector of dnstap could not be told in time.", func(s *dnsd.Stats) uint64 { return s.Untold })
	add("replaced", "TCP connections closed to make room for those of other clients.", func(s *dnsd.Stats) uint64 { return s.Replaced })
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
	stats := n.server().Stats()
	for rcode, count := range stats.Rcodes {
		to <- prometheus.MustNewConstMetric(n.answers, prometheus.CounterValue, float64(count), rcode)
	}
	for _, c := range n.other {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.of(&stats)))
	}
}
