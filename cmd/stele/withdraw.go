package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/edit"
)

func (p *program) withdrawCommand() *cobra.Command {
	var reason, replacement string
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "withdraw ID --reason TEXT",
		Short: "Withdraw an identifier, with a reason",
		Long: `Withdraw replaces the record with a tombstone: clients that ask for the name learn why
it was withdrawn, when, and what to use instead. The registry keeps the record and its
history, and never gives the name to another record.

Withdraw changes the reason and the replacement of a record that is already withdrawn.
'stele reinstate ID' undoes a withdrawal.`,
		Example: `  stele withdraw ark:12345/x54xz321 --reason 'Retracted by its authors.'
  stele withdraw 10.5072/rivers --reason 'Merged into the atlas.' --replacement 10.5072/atlas`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage.Errorf(cmd, "flag.withdraw-reason-missing", "the reason is missing; say why with --reason, for those who come later")
			}
			return p.change(cmd, args[0], func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error) {
				var instead stele.ID
				if replacement != "" {
					var err error
					if instead, err = l.Parse(replacement); err != nil {
						return nil, &stele.Error{Op: "withdraw", ID: id, Kind: stele.Invalid,
							Err: stele.Problems{{Path: "tombstone.replacement", Err: edit.Syntax(err)}}}
					}
				}
				return l.Withdraw(ctx, id, ifVersion, reason, instead)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, which is public")
	cmd.Flags().StringVar(&replacement, "replacement", "", "`ID` to use instead")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}
