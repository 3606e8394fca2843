package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/registrar"
)

func (p *program) purlHostCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "purl-host",
		Short: "Hosts whose http names are PURLs",
		Long: `A PURL has no mark but its host: http://purl.example.org/maps is a PURL if
purl.example.org is a PURL host of the registry. Some hosts of public resolvers are
always. Others belong to the registry: they are in its backups and copies, and clients
learn them from the server. A host is never taken away, since names under it could not
be read any more.`,
		Example: "  stele purl-host add purl.example.org\n  stele purl-host ls",
	}, p.purlHostAddCommand(), p.purlHostLsCommand())
}

func (p *program) purlHostAddCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "add HOST...",
		Short: "Add hosts whose http names are PURLs",
		Long: `Add adds hosts to those of the registry, for good, and prints them. A host is a host
name or an IPv4 address, perhaps with a port.`,
		Example: "  stele purl-host add purl.example.org\n  stele purl-host add purl.example.org localhost:8080 --server https://id.example.org",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse(cmd, "argument.purl-host-missing", "the host is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.creating(cmd, func(ctx context.Context, l *Registry) error {
				if _, err := l.AddPURLHosts(ctx, args...); err != nil {
					return err
				}
				return p.printHosts(args)
			})
		},
	})
}

func (p *program) purlHostLsCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:     "ls",
		Short:   "List the hosts whose http names are PURLs",
		Long:    "Ls lists the PURL hosts of the registry, in order, one a line.",
		Example: "  stele purl-host ls\n  stele purl-host ls --server https://id.example.org --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				hosts, err := l.PURLHosts(ctx)
				if err != nil {
					return err
				}
				return p.printHosts(hosts)
			})
		},
	})
}

func (p *program) printHosts(hosts []string) error {
	for _, host := range hosts {
		if p.json {
			if err := p.printObject(map[string]string{"host": host}); err != nil {
				return err
			}
			continue
		}
		if err := p.say("%s\n", printable(host)); err != nil {
			return err
		}
	}
	return nil
}

// tellHost says on standard error that a host was added.
func (p *program) tellHost(host string) {
	fmt.Fprintf(p.stderr, "stele: %s is a PURL host of this registry from now on; --purl-host is not needed again\n", printable(host))
}

// learnFarHosts adds the hosts of the server's registry to the schemes of a client. A
// server of an earlier version has no list; its names are read as before.
func learnFarHosts(ctx context.Context, r *remote.Registry) error {
	_, err := r.PURLHosts(ctx)
	if errors.Is(err, stele.Unavailable) || errors.Is(err, remote.ErrUntrusted) || ctx.Err() != nil {
		return err
	}
	return nil
}

// parseName reads an identifier. A text that can't be read may be a PURL under a host of the
// registry: then parseName gets the hosts, from the server if one is named, or else from the
// local registry, and reads it again.
func (p *program) parseName(cmd *cobra.Command, schemes *stele.Schemes, server, name string) (stele.ID, error) {
	id, err := schemes.Parse(name)
	if err == nil || !p.learnFor(cmd, schemes, server, name) {
		return id, err
	}
	return schemes.Parse(name)
}

// learnFor adds the PURL hosts of a registry to schemes, if a text may be a PURL. It
// reports whether it did: where there is no registry, or it can't be read, the text is
// read as before.
func (p *program) learnFor(cmd *cobra.Command, schemes *stele.Schemes, server, name string) bool {
	if !strings.Contains(name, "://") {
		return false // it has no host
	}
	return p.consult(cmd, schemes, server, func(r *remote.Registry) error {
		_, err := r.PURLHosts(cmd.Context())
		return err
	}, func(store stele.Store) error {
		return registrar.New(store, schemes, registrar.Options{Now: p.now}).LearnHosts(cmd.Context())
	})
}

// consult reads the registry of a server, or else the local one, for a verb that works
// without one too. It reports whether that was possible.
func (p *program) consult(cmd *cobra.Command, schemes *stele.Schemes, server string, far func(*remote.Registry) error, near func(stele.Store) error) bool {
	if server != "" {
		at := p.remote
		at.server = server
		r, err := at.open(cmd, schemes)
		if err != nil {
			return false
		}
		defer r.Close()
		return far(r) == nil
	}
	if p.place().Exists() != nil {
		return false
	}
	store, err := p.openStore(cmd.Context(), p.place(), slog.New(slog.DiscardHandler))
	if err != nil {
		return false
	}
	err = near(store)
	return errors.Join(err, store.Close()) == nil
}

// serverOf returns the server whose registry a verb works on; "" if the registry is local.
func (p *program) serverOf(cmd *cobra.Command) (string, error) {
	far, err := p.isRemote(cmd)
	if err != nil || !far {
		return "", err
	}
	return p.remote.server, nil
}
