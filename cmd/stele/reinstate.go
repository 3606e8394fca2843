package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
)

func (p *program) reinstateCommand() *cobra.Command {
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "reinstate ID",
		Short: "Undo the withdrawal of a record",
		Long: `Reinstate makes a withdrawn record active again, with the targets and the metadata that
it had. It adds a version; the withdrawal stays in the history.`,
		Example: `  stele reinstate ark:12345/x54xz321`,
		Args:    usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.change(cmd, args[0], func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error) {
				return l.Reinstate(ctx, id, ifVersion)
			})
		},
	}
	ifVersionFlag(cmd, &ifVersion)
	return usage.NeverFiles(cmd)
}
