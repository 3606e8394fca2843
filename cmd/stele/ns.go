package main

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

func (p *program) nsCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "ns",
		Short: "Namespaces: who may write where, and how names are made",
		Long: `A namespace is what one authority controls: all names that begin with a prefix,
and with no longer one that is a namespace too. It has an owner, perhaps a way to
make new names, and rules and defaults for its records.

A prefix is written as its names begin: ark:12345/x5, 102.100.272/, urn:example,
sid.inpe.br/mtc-m18. A scheme with a colon, such as ark:, is the root of all names
of that scheme; every scheme has it.`,
		Example: `  stele ns add ark:12345/x5 --title 'Reports' --minter noid --template .reedeedk --check
  stele ns set ark:12345/x5 --host-allowed .example.org --protocol https
  stele ns grant ark:12345/x5 user:ann editor
  stele ns show ark:12345/x5
  stele ns check ark:12345/x5
  stele ns ls ark`,
	}, p.nsAddCommand(), p.nsShowCommand(), p.nsLsCommand(), p.nsSetCommand(), p.nsGrantCommand(), p.nsUngrantCommand(), p.nsSkipCommand(), p.nsCheckCommand(), p.nsHistoryCommand())
}

func (p *program) nsAddCommand() *cobra.Command {
	var f namespaceFlags
	cmd := &cobra.Command{
		Use:   "add PREFIX",
		Short: "Make a namespace",
		Long: `Add makes a namespace, and prints its prefix in canonical form.

The prefix belongs to this namespace alone. So do the prefixes of the names that its
minter makes: with --host and --ip, both that of the repository names and that of the
IBIps.`,
		Example: `  stele ns add ark:12345/x5 --owner ana --title 'Reports' --minter noid --template .reedeedk --check
  stele ns add sid.inpe.br/mtc-m18 --minter ibi --host mtc-m18.sid.inpe.br --ip 150.163.34.243
  stele ns add 102.100.272/ --minter pilin --level permanent --statement 'Kept by the library.'
  stele ns add urn:nbn:de --delegate 'https://nbn-resolving.org/{id}'`,
		Args: oneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.creating(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
				f.apply(ns)
				if ns, err = l.AddNamespace(ctx, ns); err != nil {
					return err
				}
				return p.printPrefix(p.stdout, ns)
			})
		},
	}
	f.add(cmd)
	return neverFiles(cmd)
}

func (p *program) nsSetCommand() *cobra.Command {
	var f namespaceFlags
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "set PREFIX",
		Short: "Change a namespace",
		Long: `Set changes what the flags say and leaves the rest. A flag with nothing, such as
--owner '' or --host-allowed '', removes what was set. Another --minter forgets the
settings of the one before; --minter '' makes no new names any more.

Names that are registered stay as they are, even where the new rules would refuse
them.`,
		Example: `  stele ns set ark:12345/x5 --owner ana --quota 10000
  stele ns set sid.inpe.br/mtc-m18 --granularity 1ms
  stele ns set ark: --level permanent`,
		Args: oneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !given(cmd, "if-version") {
				return misuse(cmd, "there is nothing to change; say what, such as --owner WHO")
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				ns, err := l.SetNamespace(ctx, key, ifVersion, func(ns *stele.Namespace) error {
					f.apply(ns)
					return nil
				})
				if err != nil {
					return err
				}
				return p.printPrefix(p.stdout, ns)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Uint64Var(&ifVersion, "if-version", 0, "write only if this is the namespace's version")
	return neverFiles(cmd)
}

func (p *program) nsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show PREFIX",
		Short:   "Show a namespace",
		Long:    "Show prints all that is set for a namespace. It exits with 3 if there is none.",
		Example: "  stele ns show ark:12345/x5\n  stele ns show ark:",
		Args:    oneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				ns, err := l.Namespace(ctx, key)
				if err != nil {
					return err
				}
				if p.json {
					return p.printPrefix(p.stdout, ns)
				}
				card, err := l.namespaceCard(ctx, ns)
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, card)
				return err
			})
		},
	}
	return neverFiles(cmd)
}

func (p *program) nsLsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [SCHEME]",
		Short: "List namespaces",
		Long: `Ls lists the prefixes of all namespaces, or of those of a scheme, by scheme and in
order. The root of a scheme is listed if somebody has changed it.`,
		Example: "  stele ns ls\n  stele ns ls --json ark",
		Args:    atMostOne("the scheme"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			schemes, err := p.schemes(cmd)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return schemes.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			only := ""
			if len(args) == 1 {
				only = strings.TrimSuffix(args[0], ":")
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				if only != "" && l.schemes.Lookup(only) == nil {
					return misuse(cmd, "%.60q is no scheme; there are %s", only, strings.Join(l.schemes.Names(), ", "))
				}
				return p.listNamespaces(ctx, l, only)
			})
		},
	}
	return neverFiles(cmd)
}

// listNamespaces prints the namespaces of a scheme, or of all if it is empty.
func (p *program) listNamespaces(ctx context.Context, l *ledger, scheme string) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return err
		}
		if ns.Version == 0 || scheme != "" && ns.Scheme != scheme {
			continue
		}
		if err := p.printPrefix(out, ns); err != nil {
			return err
		}
	}
	return out.Flush()
}

// printPrefix prints a namespace: for a person its prefix, for a program all of it.
func (p *program) printPrefix(w io.Writer, ns *stele.Namespace) error {
	text := []byte(ns.Key().String())
	if p.json {
		text = document.AppendNamespace(nil, ns)
	}
	_, err := w.Write(escapeUnseen(append(text, '\n')))
	return err
}
