package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) redactCommand() *cobra.Command {
	var reason string
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "redact ID --reason TEXT",
		Short: "Remove what a record says, by a legal order",
		Long: `Redact follows a legal order. It removes what the record says: targets, metadata,
handle values, the statement of its persistence and your own spelling of its name. It
withdraws the record for the reason given, which the public reads. Of earlier versions
only that they were there, when, and by whom is kept.

It does not ask whether you are sure, and nothing takes it back: write down what you
need before. (To end the use of a name without an order, withdraw it. To stop the use
of an earlier version, disavow it.)

The names stay, and are never given to another record. The bytes leave the files of the registry
with 'stele store compact'. Backups that were made before still have them: destroy
those, or let them expire. If you restore one of them, redact the record again.`,
		Example: `  stele redact 10.5072/letters-1911 --reason 'Removed by order of the court of Belém.'`,
		Args:    usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usage.Errorf(cmd, "flag.redact-reason-missing", "the reason is missing; name the order with --reason, for those who come later")
			}
			return p.change(cmd, args[0], func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error) {
				return l.Redact(ctx, id, ifVersion, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, which the public reads")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}
