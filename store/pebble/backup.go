package pebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// Backup implements [stele.Store]. The folder must not be there yet. It is a store of
// its own, which Open opens. On the same file system its tables are links to the
// store's, which never change; what is in it survives if the store is deleted, but
// not if the disk fails.
func (s *Store) Backup(ctx context.Context, folder string) error {
	folder, err := s.backupFolder(folder)
	if err != nil {
		return err
	}
	if err := s.takeTurn(ctx, s.moving, "backup"); err != nil {
		return err
	}
	defer func() { <-s.moving }()
	return s.read(ctx, "backup", func(v *view) error {
		h := v.opening
		if cause := h.failstop.broken(); cause != nil {
			return refuse("backup", stele.ID{}, stele.Unavailable, "store.opens-again-after-failed-write", "a write failed ({cause}), and the store is about to open itself again; try again later", cause)
		}
		if err := s.checkpoint(ctx, h, folder); err != nil {
			return err
		}
		// Until here a table may have been missing that the manifest names.
		if cause := h.failstop.broken(); cause != nil {
			err := refuse("backup", stele.ID{}, stele.Unavailable, "store.write-failed-meanwhile", "a write failed meanwhile ({cause}); try again later", cause)
			return errors.Join(err, s.fs.RemoveAll(folder))
		}
		return nil
	})
}

// backupFolder refuses a folder that is there, or in the store's.
func (s *Store) backupFolder(folder string) (string, error) {
	clean := filepath.Clean(folder)
	if s.fs == vfs.Default || s.fs == (privateFS{vfs.Default}) {
		absolute, err := filepath.Abs(clean)
		if err != nil {
			return "", refuse("backup", stele.ID{}, stele.Invalid, "", "{cause}", err)
		}
		clean = absolute
	}
	if clean == s.folder || strings.HasPrefix(clean, s.folder+string(filepath.Separator)) {
		return "", refuse("backup", stele.ID{}, stele.Invalid, "backup.in-store-folder", `the backup can't be in the store's own folder "{folder}"; name another`, s.folder)
	}
	if _, err := s.fs.Stat(clean); err == nil {
		return "", refuse("backup", stele.ID{}, stele.Invalid, "backup.folder-exists", `the folder "{folder}" is there already; name a new one`, folder)
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", refuse("backup", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	return clean, nil
}

// checkpoint lets Pebble write the backup. It syncs all that it writes, and the
// folders above. What was written is removed if it fails.
func (s *Store) checkpoint(ctx context.Context, h *opening, folder string) error {
	h.failstop.backup(ctx)
	defer h.failstop.backup(context.Background())
	err := checkpoint(h, folder)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrExist):
		return refuse("backup", stele.ID{}, stele.Invalid, "backup.folder-exists", `the folder "{folder}" is there already; name a new one`, folder)
	}
	left := s.fs.RemoveAll(folder)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), left)
	}
	return refuse("backup", stele.ID{}, stele.Unavailable, "backup.folder-not-written", `the backup can't be written to "{folder}": {cause}`, folder, errors.Join(err, left))
}

// checkpoint is Pebble's, without the panic that a folder causes which can't be
// synced.
func checkpoint(h *opening, folder string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return h.db.Checkpoint(folder)
}
