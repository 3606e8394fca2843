package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) purlHostCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
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
	return usage.NeverFiles(&cobra.Command{
		Use:   "add HOST...",
		Short: "Add hosts whose http names are PURLs",
		Long: `Add adds hosts to those of the registry, for good, and prints them. A host is a host
name or an IPv4 address, perhaps with a port.`,
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
		Short:   "List the hosts whose http names are PURLs",
		Long:    "Ls lists the PURL hosts of the registry, in order, one a line.",
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
