package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registry"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/postgres"
)

// restoreDatabase puts a backup of a database into an empty one, whose minters repeat
// nothing that the backup knows of.
func (p *program) restoreDatabase(cmd *cobra.Command, backup, present string) (report restored, err error) {
	reason, err := postgres.BackupSeal(backup)
	if err == nil {
		err = refuseSealed(backup, reason)
	}
	if err != nil {
		return report, err
	}
	mark, err := (&storecopy.Mark{From: backup, Backup: true, Began: p.now()}).Cell()
	if err != nil {
		return report, err
	}
	old, end, err := p.openPresent(cmd, present)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, end(err)) }()
	err = p.interruptible(cmd, func(ctx context.Context) error {
		return postgres.Restore(ctx, p.store, backup, postgres.Options{Now: p.now, Log: p.logger(), Brief: true}, mark)
	})
	if err != nil {
		return report, err
	}
	p.restoring = true
	err = p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		var problems []string
		if err := verifyRegistry(ctx, r, func(problem string) { problems = append(problems, problem) }); err != nil {
			return err
		}
		if len(problems) > 0 {
			return refuse("restore", stele.Internal, "the backup is damaged, and so is what was restored; drop the database, and restore another backup; %d problems, the first: %s", len(problems), problems[0])
		}
		// Until what follows is done the mark keeps everybody else out.
		answers, err := p.secondariesOf(ctx, r.Store, old)
		if err != nil {
			return err
		}
		if report, err = p.inherit(ctx, r, old, answers); err != nil {
			return err
		}
		return storecopy.RemoveMark(ctx, r.Store)
	})
	report.Data = p.place().String()
	return report, err
}

// openPresent opens the registry that the database replaces, and seals it: what it would
// still take would be lost, and names that it would still give would be given again. It
// is nil if none is named. End closes it; after an error it takes the seal away again.
func (p *program) openPresent(cmd *cobra.Command, present string) (old stele.Store, end func(error) error, err error) {
	if present == "" {
		return nil, func(error) error { return nil }, nil
	}
	at := place{folder: present}
	if strings.Contains(present, "://") {
		at = place{url: present}
	} else if err := looksLikeStore(present); err != nil {
		return nil, nil, err
	}
	if at == p.place() {
		return nil, nil, misuse(cmd, "--present and --store name the same database; restore into an empty one")
	}
	var had string
	err = p.interruptible(cmd, func(ctx context.Context) error {
		if old, err = at.open(ctx, p, p.logger(), true); err != nil {
			return err
		}
		if had, err = old.Sealed(ctx); err == nil && had == "" {
			err = old.Seal(ctx, "a backup took its place, in "+p.place().String())
		}
		if err != nil {
			err = errors.Join(err, old.Close())
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return old, func(failed error) (err error) {
		if failed != nil && had == "" {
			err = old.Seal(context.WithoutCancel(cmd.Context()), "")
		}
		return errors.Join(err, old.Close())
	}, nil
}

// refuseSealed refuses the backup of a registry that had moved: there would be two that
// make the same names.
func refuseSealed(backup, reason string) error {
	if reason == "" {
		return nil
	}
	return refuse("restore", stele.Conflict, "%s is of a registry that was sealed (%s); restore a backup of that one, or one from before", backup, reason)
}
