package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
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

// inRegistry opens the registry, calls do with a context that an interrupt ends and
// in which the administrator of the folder acts, and closes the registry.
func (p *program) inRegistry(cmd *cobra.Command, do func(ctx context.Context, r *registry.Registry) error) (err error) {
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
func (p *program) openRegistry(ctx context.Context, schemes *stele.Schemes, log *slog.Logger, o resolver.Options) (*registry.Registry, error) {
	store, err := p.place().open(ctx, p, log, p.brief)
	if err != nil {
		return nil, err
	}
	if !p.restoring {
		if err := storecopy.RefuseUnfinished(ctx, store, p.place().forCopy()); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	r := registry.New(store, schemes, p.registryOptions(log, o))
	tell := p.tellHost
	if !p.brief {
		tell = func(host string) { log.Info("a PURL host is kept in the registry from now on", "host", host) }
	}
	if err := p.learnHosts(ctx, r, tell); err != nil {
		return nil, errors.Join(err, p.closeRegistry(r))
	}
	if err := r.ReadGenerations(ctx); err != nil {
		return nil, errors.Join(err, p.closeRegistry(r))
	}
	if p.place().url != "" && !p.brief {
		if err := r.Share(ctx, p.now, log); err != nil {
			return nil, errors.Join(err, p.closeRegistry(r))
		}
	}
	return r, nil
}

// registryOptions are how the flags would have a registry opened.
func (p *program) registryOptions(log *slog.Logger, o resolver.Options) registry.Options {
	return registry.Options{Now: p.now, Random: rand.IntN, Log: log, Resolver: o, Secrets: p.secrets, BlockSize: p.block,
		Notify: p.notify, Transfer: p.transfer, Shared: p.place().url != "" && !p.brief}
}

// closeRegistry closes the registry.
func (p *program) closeRegistry(r *registry.Registry) error {
	if err := r.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", p.place(), err)
	}
	return nil
}
