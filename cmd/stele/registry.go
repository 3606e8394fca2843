package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/serve/dnsd"
	storecopy "github.com/stele-id/stele/store/copy"
)

// registryFlags are the flags of all verbs that work on a registry, and of those
// that read identifiers.
func (p *program) registryFlags(root *cobra.Command) {
	data := os.Getenv("STELE_DATA")
	if data == "" {
		data = config.DefaultData
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.data, "data", data, "folder of the registry (environment: STELE_DATA)")
	p.storeFlag(root)
	p.secretFlag(root)
	p.remote.add(root)
	flags.StringSliceVar(&p.config.PURLHosts, "purl-host", environmentList("purl-host", nil), "hosts whose http names are PURLs, beside those of the registry; see 'stele purl-host' (environment: STELE_PURL_HOST)")
	flags.StringSliceVar(&p.config.CheckedShoulders, "checked", environmentList("checked", nil), "shoulders of ARKs whose names end in a check character, such as 12345/x5 (environment: STELE_CHECKED)")
}

// environmentList returns the list that the environment has for a setting, or else
// the usual one. What is wrong in it is told where it is used.
func environmentList(name string, usual []string) []string {
	s := config.Find(name)
	text, given := os.LookupEnv(s.Variable())
	if !given {
		return usual
	}
	return config.SplitList(text)
}

// schemes makes the list of schemes that the flags ask for.
func (p *program) schemes(cmd *cobra.Command) (*stele.Schemes, error) {
	c := p.config
	c.PURLHosts = append(purl.DefaultHosts(), c.PURLHosts...)
	schemes, err := all.New(c)
	if err != nil {
		return nil, &usageError{err, cmd.CommandPath()}
	}
	return schemes, nil
}

// registry is what verbs work on: the store in the data folder or in a database, and
// those who write to it and read from it.
type registry struct {
	schemes   *stele.Schemes
	store     stele.Store
	registrar *registrar.Registrar
	resolver  *resolver.Resolver
	directory *auth.Directory // of users and tokens
	secrets   *secret.Ring
	published *dnsd.Zones // that are answered for; nil if none are
	follower  *follower   // of what other processes write; nil if none do

	generations atomic.Pointer[stele.Generations] // as they were at the last look; nil before the first
}

// readGenerations notes the generations of the registry.
func (r *registry) readGenerations(ctx context.Context) error {
	list, err := r.store.Generations(ctx)
	if err == nil {
		r.generations.Store(&list)
	}
	return err
}

// knownGenerations returns the generations of the registry as they were noted.
func (r *registry) knownGenerations() stele.Generations {
	if list := r.generations.Load(); list != nil {
		return *list
	}
	return nil
}

// committed tells those who keep something in memory what was written, before the
// writer is told.
func (r *registry) committed(records ...*stele.Record) {
	r.resolver.Invalidate(records...)
	if r.published != nil {
		r.published.Invalidate(records...)
	}
}

// namespaceCommitted is the same for namespaces.
func (r *registry) namespaceCommitted() {
	r.resolver.InvalidateNamespaces()
	if r.published != nil {
		r.published.InvalidateNamespaces()
	}
}

// inRegistry opens the registry, calls do with a context that an interrupt ends and
// in which the administrator of the folder acts, and closes the registry.
func (p *program) inRegistry(cmd *cobra.Command, do func(ctx context.Context, r *registry) error) (err error) {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p.brief = true
	r, err := p.openRegistry(ctx, schemes, log, resolver.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.closeRegistry(r)) }()
	return do(byCommand(ctx), r)
}

// openRegistry opens the registry in the data folder, or in the database that is named
// instead. The options' clock and chance are set here.
func (p *program) openRegistry(ctx context.Context, schemes *stele.Schemes, log *slog.Logger, o resolver.Options) (*registry, error) {
	store, err := p.place().open(ctx, p, log, p.brief)
	if err != nil {
		return nil, err
	}
	if !p.restoring {
		if err := storecopy.RefuseUnfinished(ctx, store, p.place().forCopy()); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	r := p.newRegistry(store, schemes, log, o)
	tell := p.tellHost
	if !p.brief {
		tell = func(host string) { log.Info("a PURL host is kept in the registry from now on", "host", host) }
	}
	if err := p.learnHosts(ctx, r, tell); err != nil {
		return nil, errors.Join(err, p.closeRegistry(r))
	}
	if err := r.readGenerations(ctx); err != nil {
		return nil, errors.Join(err, p.closeRegistry(r))
	}
	if p.place().url != "" && !p.brief {
		if err := r.share(ctx, p.now, log); err != nil {
			return nil, errors.Join(err, p.closeRegistry(r))
		}
	}
	return r, nil
}

// newRegistry puts those who write to a store and read from it over one.
func (p *program) newRegistry(store stele.Store, schemes *stele.Schemes, log *slog.Logger, o resolver.Options) *registry {
	r := &registry{schemes: schemes, store: store, secrets: p.secrets, directory: auth.NewDirectory(store, p.now)}
	o.Now, o.Random, o.Lagging = p.now, rand.IntN, r.lagging
	r.resolver = resolver.New(store, schemes, o)
	r.registrar = registrar.New(store, schemes, registrar.Options{
		Now:          p.now,
		Log:          log,
		OnCommit:     r.committed,
		OnNamespaces: r.namespaceCommitted,
		OnAccess:     r.directory.Forget,
		BlockSize:    p.block,
		Secrets:      p.secrets,
		Notify:       p.notify,
		Transfer:     p.transfer,
		Shared:       p.place().url != "" && !p.brief,
		Lagging:      r.lagging,
	})
	return r
}

// closeRegistry closes the registry.
func (p *program) closeRegistry(r *registry) error {
	if r.published != nil {
		r.published.Close()
	}
	r.resolver.Close()
	if err := r.flushAudit(); err != nil && !errors.Is(err, stele.ErrSealed) {
		return errors.Join(fmt.Errorf("closing %s: %w", p.place(), err), r.store.Close())
	}
	if err := r.store.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", p.place(), err)
	}
	return nil
}
