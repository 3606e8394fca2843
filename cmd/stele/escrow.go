package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) escrowCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "escrow",
		Short: "Provide for names in case that this registry, or another one, ends",
		Long: `A registry can end without a hand-over. For that case a namespace names its heirs: other
registries that may take it over after so many days in which this one gave no sign of life.
And deposits are kept at other places: bundles of all that an heir needs. docs/escrow.md and
docs/deposits.md describe how.

  heir      which registries may take over namespaces of this one
  watch     whether registries whose heir this one is still give signs of life
  ended     say that a registry whose heir this one was has ended
  deposit   bring what is new to a folder, a server that speaks SFTP, or a store that speaks S3
  check     check a deposit at its place
  fetch     get the bundle of a deposit back
  status    show the deposits that servers make on a schedule`,
		Example: `  stele escrow heir add ark:12345 --to heir.example.org/.log --address https://heir.example.org/ --after 180d
  stele escrow heir ls
  stele escrow watch add giver.example.org/.log --url https://giver.example.org --key giver.txt
  stele escrow deposit --to file:///mnt/vault
  stele escrow check file:///mnt/vault
  stele escrow fetch file:///mnt/vault -o registry.tar`,
	}, p.escrowHeirCommand(), p.escrowWatchCommand(), p.escrowEndedCommand(), p.escrowDepositCommand(), p.escrowCheckCommand(), p.escrowFetchCommand(), p.escrowStatusCommand())
}

// completePrefixes completes the first argument with the prefixes of namespaces.
func (p *program) completePrefixes(cmd *cobra.Command, args []string, _ string) (prefixes []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can't show an error while it completes.
	_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
		for ns, err := range l.Namespaces(ctx) {
			if err != nil {
				return err
			}
			if ns.Prefix != "" {
				prefixes = append(prefixes, ns.Prefix)
			}
		}
		return nil
	})
	return prefixes, cobra.ShellCompDirectiveNoFileComp
}
