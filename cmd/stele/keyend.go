package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/wording"
)

func (p *program) keyRetireCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "retire PREFIX KEY",
		Short: "Let a key sign no more",
		Long: `Retire ends the use of a key, now or at a later time. What it signed before stays good.
A key that is retired does not come back: what it signed meanwhile would be believed.

KEY is its name, or the beginning of it if no other key begins so. If a name begins with
a hyphen, write -- before the prefix.`,
		Example: `  stele key retire urn:paradisec kPrK_qmx
  stele key retire urn:paradisec kPrK_qmx --at 2027-01-31`,
		Args:              keyArguments,
		ValidArgsFunction: p.completeKeys(2, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			when := p.now()
			if at != "" {
				var err error
				if when, err = parseMoment(at); err != nil {
					return misuse(cmd, "--at: %w", err)
				}
			}
			return p.changeKey(cmd, args, func(k *stele.SigningKey) {
				if ended := !k.Expires.IsZero() && !k.Expires.After(p.now()); ended && at == "" {
					return
				}
				k.Expires = when.UTC().Truncate(time.Second)
				if k.Expires.Before(k.Created) {
					k.Expires = k.Created
				}
			}, func(ns *stele.Namespace, k *stele.SigningKey) error {
				return p.say("%s signs nothing for %s from %s on\n", k.ID, ns.Key(), wording.Moment(k.Expires))
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "when: a `date`, or a time (default now)")
	return neverFiles(cmd)
}

func (p *program) keyRevokeCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "revoke PREFIX KEY",
		Short: "Say that a key proves nothing any more",
		Long: `Revoke says that somebody else may have a key: from now on nothing that it ever signed
is believed, since they could date a signature back. It can't be undone. What should
stay provable is signed again, with another key.

KEY is its name, or the beginning of it if no other key begins so. If a name begins with
a hyphen, write -- before the prefix.`,
		Example:           "  stele key revoke urn:paradisec kPrK_qmx",
		Args:              keyArguments,
		ValidArgsFunction: p.completeKeys(2, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.changeKey(cmd, args, func(k *stele.SigningKey) {
				if now := p.now().UTC().Truncate(time.Second); k.Revoked.IsZero() || k.Revoked.After(now) {
					k.Revoked = now
				}
			}, func(ns *stele.Namespace, k *stele.SigningKey) error {
				return p.say("%s proves nothing for %s from %s on\n", k.ID, ns.Key(), wording.Moment(k.Revoked))
			})
		},
	})
}

func keyArguments(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return misuse(cmd, "give the prefix of a namespace and the name of a key, as in: urn:paradisec kPrK_qmx")
	}
	return nil
}

// changeKey changes one key of a namespace.
func (p *program) changeKey(cmd *cobra.Command, args []string, change func(*stele.SigningKey), tell func(*stele.Namespace, *stele.SigningKey) error) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		key, err := l.ParsePrefix(args[0])
		if err != nil {
			return err
		}
		ns, at, err := l.ChangeKey(ctx, key, args[1], change)
		if err != nil {
			return err
		}
		if p.json {
			return p.printKey(ns, ns.Keys[at].ID)
		}
		return tell(ns, &ns.Keys[at])
	})
}

// completeKeys offers prefixes of namespaces that have keys, then their keys, and after
// that many arguments nothing, or files.
func (p *program) completeKeys(arguments int, then cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) >= arguments {
			return nil, then
		}
		// Without a registry that can be asked, nothing is offered.
		_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
			list, err := l.WithKeys(ctx, args...)
			if err != nil {
				return err
			}
			for _, ns := range list {
				if len(args) == 0 {
					names = append(names, ns.Key().String())
					continue
				}
				for _, k := range ns.Keys {
					names = append(names, k.ID+"\t"+k.Algorithm)
				}
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
