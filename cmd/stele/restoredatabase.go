package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/postgres"
)

// restoreDatabase puts a backup of a database into an empty one, whose minters repeat
// nothing that the backup knows of.
func (p *program) restoreDatabase(cmd *cobra.Command, backup string) (report restored, err error) {
	report.Data = p.place().String()
	reason, err := postgres.BackupSeal(backup)
	if err == nil {
		err = refuseSealed(backup, reason)
	}
	if err != nil {
		return report, err
	}
	mark, err := json.Marshal(copyMark{From: backup, Backup: true, Began: p.now()})
	if err != nil {
		return report, err
	}
	err = p.interruptible(cmd, func(ctx context.Context) error {
		return postgres.Restore(ctx, p.store, backup, postgres.Options{Now: p.now, Log: p.logger(), Brief: true}, stele.Cell{Name: markCell, Value: mark})
	})
	if err != nil {
		return report, err
	}
	p.restoring = true
	err = p.inRegistry(cmd, func(ctx context.Context, r *registry) error {
		// First of all: what the minters gave since the backup must not be given again.
		// Until that is so the mark keeps everybody else out.
		if err := r.registrar.Inherit(ctx, registrar.Legacy{}); err != nil {
			return err
		}
		var problems []string
		if err := r.verify(ctx, func(problem string) { problems = append(problems, problem) }); err != nil {
			return err
		}
		if len(problems) > 0 {
			return refuse("restore", stele.Internal, "the backup is damaged, and so is what was restored; drop the database, and restore another backup; %d problems, the first: %s", len(problems), problems[0])
		}
		if err := removeCopyMark(ctx, r.store); err != nil {
			return err
		}
		if report.Shut, err = r.shut(ctx); err != nil {
			return err
		}
		if report.MissingKeys, err = r.missingSecretKeys(ctx); err != nil {
			return err
		}
		report.Changes, err = r.store.LastChange(ctx)
		return err
	})
	return report, err
}

// refuseSealed refuses the backup of a registry that had moved: there would be two that
// make the same names.
func refuseSealed(backup, reason string) error {
	if reason == "" {
		return nil
	}
	return refuse("restore", stele.Conflict, "%s is of a registry that was sealed (%s); restore a backup of that one, or one from before", backup, reason)
}
