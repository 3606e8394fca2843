package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) escrowHeirCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "heir",
		Short: "Name the registries that may take over a namespace when this one falls silent",
		Long: `A namespace names its heirs, up to 8 of them. An heir asks for a checkpoint of this registry's log
every day. If it gets none on so many days, one after the other, it may take over a bundle of the
namespace with 'stele adopt --silent'. Namespaces below have the same heirs, unless they name others.

Everybody can see the heirs of a namespace. They are a part of its bundles, so make bundles from
time to time, and give them to the heirs.`,
		Example: `  stele escrow heir add ark:12345 --to heir.example.org/.log --address https://heir.example.org/ --after 180d
  stele escrow heir add ark:12345 --to second.example.net/.log --address https://second.example.net/ --after 365d
  stele escrow heir ls ark:12345
  stele escrow heir remove ark:12345 second.example.net/.log`,
	}, p.escrowHeirAddCommand(), p.escrowHeirLsCommand(), p.escrowHeirRemoveCommand())
}

func (p *program) escrowHeirAddCommand() *cobra.Command {
	var heir stele.Heir
	var after string
	cmd := &cobra.Command{
		Use:   "add PREFIX --to ORIGIN --address URL --after DAYS",
		Short: "Name an heir of a namespace",
		Long: `Add names an heir of a namespace and of all below it: by ORIGIN, the name of its log, which
'stele log key' prints there, by URL, the address of its resolver, and after how many days of
silence it may take over, from 30. An heir that is named already gets the new address and the new
number of days.

Give different heirs different numbers of days, so that two of them do not take over at the
same time. Owners of the namespace name heirs.`,
		Example: `  stele escrow heir add ark:12345 --to heir.example.org/.log --address https://heir.example.org/ --after 180d
  stele escrow heir add 102.100.272/ --to heir.example.org/.log --address https://heir.example.org/ --after 365d --server https://id.example.org`,
		ValidArgsFunction: p.completePrefixes,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := usage.OneArgument("the prefix")(cmd, args); err != nil {
				return err
			}
			if heir.Registry == "" || heir.Address == "" || after == "" {
				return usage.Errorf(cmd, "flag.escrow-heir-missing", "say which registry is the heir: --to with the origin of its log, --address with the URL of its resolver, and --after with a number of days such as 180d")
			}
			heir.Days, err = parseDays(cmd, after)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.changeHeirs(cmd, args[0], func(ns *stele.Namespace) error {
				if i := heirAt(ns, heir.Registry); i >= 0 {
					ns.Heirs[i] = heir
				} else {
					ns.Heirs = append(ns.Heirs, heir)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&heir.Registry, "to", "", "`origin` of the heir's log, such as heir.example.org/.log")
	cmd.Flags().StringVar(&heir.Address, "address", "", "`URL` of the heir's resolver, such as https://heir.example.org/")
	cmd.Flags().StringVar(&after, "after", "", "number of `days` of silence after which it may take over, such as 180d")
	_ = cmd.RegisterFlagCompletionFunc("after", cobra.FixedCompletions([]string{"90d", "180d", "365d"}, cobra.ShellCompDirectiveNoFileComp))
	return usage.NeverFiles(cmd)
}

// parseDays reads a number of days: 180d, or 180.
func parseDays(cmd *cobra.Command, text string) (int, error) {
	days, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 16)
	if err != nil || days < stele.MinHeirDays || days > stele.MaxHeirDays {
		return 0, usage.Errorf(cmd, "flag.escrow-days", `"{text}" is not a number of days from {least} to {most}; write it as 180d`, text, stele.MinHeirDays, stele.MaxHeirDays)
	}
	return int(days), nil
}

// heirAt returns the place of an heir in the list of a namespace, or -1.
func heirAt(ns *stele.Namespace, registry string) int {
	return slices.IndexFunc(ns.Heirs, func(h stele.Heir) bool { return h.Registry == registry })
}

func (p *program) escrowHeirRemoveCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "remove PREFIX ORIGIN",
		Short: "Remove an heir of a namespace",
		Long: `Remove removes an heir that the namespace itself names. An heir that has a bundle which names it
may still take that over after the silence that was agreed.`,
		Example: "  stele escrow heir remove ark:12345 heir.example.org/.log",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.escrow-heir-incomplete", "give the prefix and the origin of the heir's log, as in: ark:12345 heir.example.org/.log")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) != 1 {
				return p.completePrefixes(cmd, args, text)
			}
			_ = p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error { // a shell can't show an error
				ns, err := l.Namespace(ctx, key)
				if err != nil {
					return err
				}
				for _, h := range ns.Heirs {
					names = append(names, h.Registry)
				}
				return nil
			})
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.changeHeirs(cmd, args[0], func(ns *stele.Namespace) error {
				i := heirAt(ns, args[1])
				if i < 0 {
					return refuse("remove heir", stele.NotFound, "heir.missing", "{namespace} does not name {heir} as an heir; 'stele escrow heir ls' lists the heirs", ns.Key(), args[1])
				}
				ns.Heirs = slices.Delete(ns.Heirs, i, i+1)
				return nil
			})
		},
	})
}

// changeHeirs changes the heirs of a namespace, and prints them.
func (p *program) changeHeirs(cmd *cobra.Command, prefix string, change func(*stele.Namespace) error) error {
	return p.onPrefix(cmd, prefix, func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
		ns, err := l.SetNamespace(ctx, key, 0, change)
		if err != nil {
			return err
		}
		if p.json {
			return p.printPrefix(p.stdout, ns)
		}
		return p.say("%s", heirsText(ns))
	})
}

// heirsText tells the heirs of a namespace, one a line.
func heirsText(ns *stele.Namespace) string {
	if len(ns.Heirs) == 0 {
		return fmt.Sprintf("%s names no heirs\n", printable(ns.Key().String()))
	}
	var b strings.Builder
	for _, h := range ns.Heirs {
		fmt.Fprintf(&b, "%s  after %d days  %s  %s\n", printable(ns.Key().String()), h.Days, printable(h.Registry), printable(h.Address))
	}
	return b.String()
}

func (p *program) escrowHeirLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the heirs of namespaces",
		Long: `Ls lists the heirs of the namespace PREFIX and of all below it that name some, or of all
namespaces. If PREFIX itself names none, those of the namespace above it are listed: they are its
heirs, too. Everybody may see the heirs of a namespace, and administrators those of all.`,
		Example:           "  stele escrow heir ls\n  stele escrow heir ls ark:12345 --json",
		Args:              usage.AtMostOne("the prefix"),
		ValidArgsFunction: p.completePrefixes,
		RunE: func(cmd *cobra.Command, args []string) error {
			list := func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				all, err := l.HandOvers(ctx, key)
				if err != nil {
					return err
				}
				return p.printHeirs(all)
			}
			if len(args) == 0 {
				return p.reading(cmd, func(ctx context.Context, l *Registry) error { return list(ctx, l, stele.NamespaceKey{}) })
			}
			return p.onPrefix(cmd, args[0], list)
		},
	})
}

// heirLine is what --json prints of an heir.
type heirLine struct {
	Namespace string `json:"namespace"`
	Registry  string `json:"registry"`
	Address   string `json:"address"`
	Days      int    `json:"days"`
}

func (p *program) printHeirs(list []*stele.Namespace) error {
	for _, ns := range list {
		for _, h := range ns.Heirs {
			if p.json {
				if err := p.printObject(heirLine{ns.Key().String(), h.Registry, h.Address, h.Days}); err != nil {
					return err
				}
			}
		}
		if !p.json && len(ns.Heirs) > 0 {
			if err := p.say("%s", heirsText(ns)); err != nil {
				return err
			}
		}
	}
	return nil
}
