package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry/access"
)

func (p *program) zoneTSIGCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "tsig",
		Short: "Manage TSIG keys for zone transfers",
		Long: `Name servers sign their messages to each other with a shared secret (TSIG, RFC 8945). A
key has a name, which must be the same on both servers. 'stele zone secondary add' says
which secondaries must use which key.`,
		Example: `  stele zone tsig add secondary1.example.org
  stele zone tsig ls
  stele zone tsig retire secondary1.example.org`,
	}, p.zoneTSIGAddCommand(), p.zoneTSIGLsCommand(), p.zoneTSIGRetireCommand())
}

// withTSIG calls do with the keys of secondaries.
func (p *program) withTSIG(cmd *cobra.Command, do func(ctx context.Context, keys access.SecondaryKeys) error) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error { return do(ctx, l.SecondaryKeys()) })
}

func (p *program) zoneTSIGAddCommand() *cobra.Command {
	var algorithm string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a key, and print it once",
		Long: `Add makes a key and prints it, in the configuration syntax of BIND, of Knot and of NSD.
The key can't be shown again: if it is lost, make another.

The name is a domain name, and is never given to another key. A name such as
secondary1.paradisec.example, or one with a year in it, leaves room for the next key.`,
		Example: `  stele zone tsig add secondary1.example.org
  stele zone tsig add secondary1.example.org --algorithm hmac-sha512 --json`,
		Args: usage.OneArgument("the name of the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withTSIG(cmd, func(ctx context.Context, keys access.SecondaryKeys) error {
				k, err := keys.Add(ctx, args[0], algorithm)
				if err != nil {
					return err
				}
				return p.printSecret(k)
			})
		},
	}
	cmd.Flags().StringVar(&algorithm, "algorithm", zonekey.TSIGSHA256, "algorithm: hmac-sha256, hmac-sha384 or hmac-sha512")
	usage.Choices(cmd, "algorithm", zonekey.TSIGAlgorithms()...)
	return usage.NeverFiles(cmd)
}

// printSecret prints a new key, the only time that its secret is shown.
func (p *program) printSecret(k *zonekey.TSIGKey) error {
	if p.json {
		return p.printLine(k)
	}
	var texts []string
	for _, one := range k.Settings() {
		texts = append(texts, "# "+one.Server+"\n"+one.Text)
	}
	_, err := fmt.Fprint(p.stdout, strings.Join(texts, "\n"))
	if err == nil {
		fmt.Fprintln(p.stderr, "stele: it is not shown again, so keep it as a password")
	}
	return err
}

func (p *program) zoneTSIGLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls",
		Short: "List TSIG keys",
		Long: `Ls lists all keys, in order: the name, the algorithm, and the time since which the key
is in use or retired. It does not show secrets.`,
		Example: "  stele zone tsig ls\n  stele zone tsig ls --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withTSIG(cmd, func(ctx context.Context, keys access.SecondaryKeys) error {
				list, err := keys.List(ctx)
				if err != nil {
					return err
				}
				for i := range list {
					if err := p.printTSIG(&list[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

func (p *program) printTSIG(k *zonekey.TSIGKey) error {
	if p.json {
		return p.printLine(k)
	}
	state, at := "active", k.Created
	if !k.Retired.IsZero() {
		state, at = "retired", k.Retired
	}
	_, err := fmt.Fprintf(p.stdout, "%-30s %-12s %-8s %s\n", printable(k.Name), k.Algorithm, state, at.Format(time.RFC3339))
	return err
}

func (p *program) zoneTSIGRetireCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retire NAME",
		Short: "Retire a key, and erase its secret",
		Long: `Retire makes a key invalid and erases its secret. Secondaries that use it can't transfer
zones any more: first give them another key, with 'stele zone secondary add'.`,
		Example: "  stele zone tsig retire secondary1.example.org",
		Args:    usage.OneArgument("the name of the key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withTSIG(cmd, func(ctx context.Context, keys access.SecondaryKeys) error {
				k, err := keys.Retire(ctx, args[0])
				if err != nil {
					return err
				}
				return p.printTSIG(k)
			})
		},
		ValidArgsFunction: p.completeTSIG,
	}
	return usage.NeverFiles(cmd)
}

// completeTSIG lets shells complete the names of keys that are in use.
func (p *program) completeTSIG(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	// Without a registry that can be asked, nothing is offered.
	_ = p.withTSIG(cmd, func(ctx context.Context, keys access.SecondaryKeys) error {
		list, err := keys.List(ctx)
		for _, k := range list {
			if k.Retired.IsZero() {
				names = append(names, k.Name)
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
