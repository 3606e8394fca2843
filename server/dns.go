package server

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/postgres"
)

// Zones returns the zones that a name server answers for from a registry; nil if there is no
// name server.
func Zones(r *registry.Registry) *publish.Zones {
	zones, _ := r.Published.(*publish.Zones)
	return zones
}

// startDNS begins to answer for the zones of published namespaces, if it should: at the
// addresses of the settings, or at those of the name server before, if there was one.
func (s *server) startDNS(r *registry.Registry) error {
	if len(s.DNS) == 0 {
		return nil
	}
	zones := publish.NewZones(publish.ZonesOptions{
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
			return refuse("serve", stele.Invalid, "", "dns-proxies: {cause}", err)
		}
		proxies = append(proxies, network)
	}
	lookups := 0 // what is on this machine is read at once
	if s.Store != "" {
		lookups = databaseLookups
	}
	s.dns = dnsd.New(dnsd.Options{Lookups: lookups, Zones: zones, Now: s.now, Log: s.log, Tracer: s.tracer, CacheBytes: int(s.DNSCache), Rate: rate, Signatures: signatures,
		Notify: &s.notify, Transfer: &s.transfer, Identity: s.DNSIdentity, CountZones: s.Usage, NotifyFrom: sources, Proxies: proxies, Tapped: s.DNSTap,
		TCP: dnsd.TCPLimits{Connections: s.DNSConnections, PerClient: s.DNSPerClient}})
	for _, address := range at {
		// It ends by Shutdown, and not with the context of its caller.
		err := s.dns.Listen(context.Background(), address)
		if errors.Is(err, syscall.EADDRINUSE) && slices.Contains(s.o.AnyPort, "dns") {
			err = s.dns.Listen(context.Background(), anyPort)
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

// databaseLookups is how many questions of a UDP socket may wait for a database at once, while what is known is answered: as many as the
// store has connections for reading.
const databaseLookups = postgres.DefaultConnections

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
	cancel() // no query has come yet whose answer it should wait for
	_ = s.dns.Shutdown(ended)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse("serve", stele.Unavailable, "server.dns-address-in-use", "another program answers the DNS on {address}; end it, or choose another address", address)
	case errors.Is(err, syscall.EACCES):
		return refuse("serve", stele.Forbidden, "server.dns-port-privileged", "only an administrator may listen on {address}; choose a port from 1024 on, or grant the capability CAP_NET_BIND_SERVICE", address)
	}
	return refuse("serve", stele.Unavailable, "server.not-listening", "listening on {address}: {cause}", address, err)
}

// allowSecondaries reads where secondaries may be.
func (s *server) allowSecondaries() error {
	var err error
	s.notify, err = outbound.ParseRule(s.NotifyAllow)
	if err != nil {
		return refuse("serve", stele.Invalid, "", "notify-allow: {cause}", err)
	}
	s.transfer, err = outbound.ParseRule(s.TransferAllow)
	if err != nil {
		return refuse("serve", stele.Invalid, "", "transfer-allow: {cause}", err)
	}
	return nil
}

// endDNS ends the name server. If the context ends first, questions under way are broken
// off, and their clients ask again: they read the registry, so they can't be left alone.
func (s *server) endDNS(ctx context.Context) error {
	if s.dns.Shutdown(ctx) == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.dns.Shutdown(soon); err != nil {
		return refuse("serve", stele.Unavailable, "server.dns-ended-early", "ended before all questions of the DNS were answered: {cause}", err)
	}
	return nil
}
