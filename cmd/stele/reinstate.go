package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *program) reinstateCommand() *cobra.Command {
	var ifVersion uint64
	cmd := &cobra.Command{
		Use:   "reinstate ID",
		Short: "Take a withdrawal back",
		Long: `Reinstate makes a withdrawn record active again, with the targets and the metadata
that it had. It is a new version; the withdrawal stays in the history.`,
		Example: `  stele reinstate ark:12345/x54xz321`,
		Args:    oneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				rec, err := l.Reinstate(ctx, id, ifVersion)
				if err != nil {
					return err
				}
				return p.printName(p.stdout, rec)
			})
		},
	}
	ifVersionFlag(cmd, &ifVersion)
	return neverFiles(cmd)
}
