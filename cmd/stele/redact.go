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
		Short: "Remove the content of a record, by a legal order",
		Long: `Redact carries out a legal order. It removes the content of the record: targets,
metadata, handle values, the persistence statement and the original spelling of its
name. It withdraws the record with the given reason, which is public. Of earlier
versions the registry keeps only the numbers, the dates and the authors.

Redact does not ask for confirmation, and it can't be undone: save what you need first.
(To end the use of a name without an order, withdraw it. To stop the use of an earlier
version, disavow it.)

The names stay, and are never given to another record. 'stele store compact' removes the
bytes from the files of the registry. Backups from before the redaction still have them:
destroy those backups, or let them expire. If you restore one of them, redact the record
again.`,
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
	cmd.Flags().StringVar(&reason, "reason", "", "`reason`, which is public")
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}
