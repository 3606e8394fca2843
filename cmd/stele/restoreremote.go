package main

import (
	"context"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/client/remote"
)

// restoreAtServer puts a backup in the place of a server's registry.
func (p *program) restoreAtServer(cmd *cobra.Command, backup, confirm string) (report restored, err error) {
	if confirm == "" {
		return report, misuse(cmd, "say which registry is replaced: give the name of its folder on the server with --confirm")
	}
	if err := looksLikeStore(backup); err != nil {
		return report, err
	}
	size, err := folderSize(backup)
	if err != nil {
		return report, fileError(err)
	}
	err = p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error {
		var sent atomic.Int64
		progress := p.newProgress("restore", "pieces", size, sent.Load)
		defer progress.End()
		done, err := r.Restore(ctx, backup, confirm, func(n int64) {
			sent.Add(n)
			progress.Add(1)
		})
		report = restored{Data: r.String(), Kept: done.Kept, Changes: done.Changes, Shut: done.Shut}
		for _, z := range done.Zones {
			report.Zones = append(report.Zones, newRestoredZone(z.Zone, z.Serial, z.Shut, z.Secondaries))
		}
		return err
	})
	return report, err
}
