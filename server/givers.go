package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
)

// GiverWatcher returns what asks the registries that this one watches as their heir: at public addresses, and at those that a rule has.
func GiverWatcher(r *registrar.Registrar, rule outbound.Rule, agent string, now func() time.Time, log *slog.Logger) *giver.Watcher {
	var name [8]byte
	_, _ = rand.Read(name[:]) // it never fails
	fetch := outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: giver.Connecting, Own: net.InterfaceAddrs}, giver.Heading)
	heirs := &heir.Checker{HTTP: outbound.NewClient(rule, heir.Patience, heir.MaxAnswer), Agent: agent}
	return &giver.Watcher{Watches: r, HTTP: fetch, AskHeir: heirs.HandOvers, Agent: agent, Now: now, Wait: waitFor, Log: log, Server: hex.EncodeToString(name[:])}
}

// givers returns what asks the registries that are watched.
func (s *server) givers(r *registry.Registry) *giver.Watcher {
	w := GiverWatcher(r.Registrar, s.heirRule, linkAgent(s.o.Version, s.Base), s.now, s.log)
	w.Controls = s.HandOverControl
	return w
}

// watchGivers asks the registries that are watched until the context ends.
func (s *server) watchGivers(ctx context.Context, r *registry.Registry) {
	s.givers(r).Run(auth.WithOrigin(auth.With(ctx, auth.Local()), auth.Origin{Via: "server"}))
}
