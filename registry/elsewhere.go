package registry

import (
	"context"
	"errors"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/postgres"
)

// Elsewhere restores a backup to a place that no other process uses: a folder that does not
// exist yet, or an empty database. It returns the registry there as the backup has it: nothing
// is inherited, so that it can be compared with the registry of which it is a backup. It must
// not be used in place of that one until [Restore.Inherit] has been called.
func (o *Restore) Elsewhere(ctx context.Context, backup string, at Place) (*Registry, error) {
	if at.IsDatabase() {
		reason, err := postgres.BackupSeal(backup)
		if err == nil {
			err = refuseSealed(backup, reason)
		}
		if err == nil {
			err = postgres.Restore(ctx, at.URL, backup, postgres.Options{Now: o.Open.Now, Log: o.Open.Log, Brief: true})
		}
		if err != nil {
			return nil, err
		}
		return Open(ctx, at, o.Schemes, o.brief())
	}
	if err := IsFolderBackup(backup); err != nil {
		return nil, err
	}
	if err := copyFolder(ctx, backup, at.Folder); err != nil {
		return nil, failf("restore", stele.Unavailable, "restore.backup-not-copied", "the backup can't be copied: {cause}", err)
	}
	r, err := Open(ctx, at, o.Schemes, o.brief())
	if err != nil {
		return nil, err
	}
	reason, err := r.Store.Sealed(ctx)
	if err == nil {
		err = refuseSealed(backup, reason)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
