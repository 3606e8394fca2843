package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"iter"
	"log/slog"
	"net"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
)

// Times of requests to repositories: of connecting, of the head of an answer, and between two requests.
const (
	harvestConnecting = 10 * time.Second
	harvestHeading    = 2 * time.Minute
	harvestPause      = time.Second
)

// harvestOften does the harvests that are scheduled, until the context ends.
func (s *server) harvestOften(ctx context.Context, r *registry.Registry) {
	var name [8]byte
	_, _ = rand.Read(name[:]) // it never fails
	client := func() *harvest.Client { return HarvestClient(s.harvestRule, linkAgent(s.o.Version, s.Base), s.now) }
	runner := HarvestRunner(r, s.schemes, client, s.now, s.log, hex.EncodeToString(name[:]), s.JobLease)
	runner.Run(auth.WithOrigin(auth.With(ctx, auth.Local()), auth.Origin{Via: "server"}))
}

// checkHarvest says what is wrong with a repository that is to be harvested.
func checkHarvest(url, format, set string) error {
	s := harvest.Source{URL: url, Format: harvest.Format(format), Set: set}
	return s.Check()
}

// HarvestClient returns what asks repositories: at public addresses, and at those that a rule has.
func HarvestClient(rule outbound.Rule, agent string, now func() time.Time) *harvest.Client {
	fetch := outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: harvestConnecting, Own: net.InterfaceAddrs}, harvestHeading)
	return &harvest.Client{HTTP: fetch, Now: now, Pause: harvestPause, Agent: agent, Wait: waitFor}
}

// HarvestRunner returns what does the scheduled harvests of a registry that this process has open, under the name of a server.
func HarvestRunner(r *registry.Registry, schemes *stele.Schemes, client func() *harvest.Client, now func() time.Time, log *slog.Logger, name string, lease time.Duration) *harvest.Runner {
	return &harvest.Runner{Schedule: r.Registrar, To: harvestTo{r.Registrar, r.Store}, Users: r.Directory, Schemes: schemes, Client: client, Now: now, Log: log, Server: name, Lease: lease}
}

// harvestTo is the registry that harvests write to.
type harvestTo struct {
	*registrar.Registrar
	store stele.Store
}

func (h harvestTo) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	return h.store.Count(ctx, key)
}

func (h harvestTo) Export(ctx context.Context, key stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return h.Scan(ctx, key, "")
}

// waitFor waits, unless the context ends before.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
