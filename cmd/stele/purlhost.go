package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) purlHostCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "purl-host",
		Short: "Manage the hosts of PURLs",
		Long: `A PURL is recognised by its host alone: http://purl.example.org/maps is a PURL if
purl.example.org is a PURL host of the registry. Some hosts of public resolvers always
are PURL hosts. The others are stored in the registry: they are in its backups and
copies, and clients get them from the server. A PURL host can't be removed, because
names under it could not be parsed any more.`,
		Example: "  stele purl-host add purl.example.org\n  stele purl-host ls",
	}, p.purlHostAddCommand(), p.purlHostLsCommand())
}

func (p *program) purlHostAddCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "add HOST...",
		Short: "Add PURL hosts",
		Long: `Add adds PURL hosts to the registry, permanently, and prints them. A host is a host name
or an IPv4 address, optionally with a port.`,
		Example: "  stele purl-host add purl.example.org\n  stele purl-host add purl.example.org localhost:8080 --server https://id.example.org",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "argument.purl-host-missing", "the host is missing")
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
	return usage.NeverFiles(&cobra.Command{
		Use:     "ls",
		Short:   "List PURL hosts",
		Long:    "Ls lists the PURL hosts of the registry, in order, one per line.",
		Example: "  stele purl-host ls\n  stele purl-host ls --server https://id.example.org --json",
		Args:    usage.NoArguments,
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
