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
		Short: "End the use of an identifier, with a reason",
		Long: `Withdraw puts a tombstone where the record was: whoever asks for the name is told
why the thing is gone, since when, and what to use instead. The record stays, with
its history, and the name is never given to anything else.

To withdraw a record that is withdrawn changes reason and replacement. 'stele
reinstate ID' takes a withdrawal back.`,
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
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for those who come later")
	cmd.Flags().StringVar(&replacement, "replacement", "", "`ID` of what to use instead")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}
