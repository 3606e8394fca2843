package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/backuptar"
)

// Backup copies the registry to a new folder on this machine, and returns how many
// changes it has. The folder appears when it is complete. Only an administrator may make
// a backup.
func (r *Registry) Backup(ctx context.Context, folder string) (changes uint64, err error) {
	const op = "backup"
	if _, err := os.Lstat(folder); err == nil {
		return 0, refuse(op, stele.ID{}, stele.Invalid, "backup.folder-exists", `the folder "{folder}" is there already; name a new one`, folder)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, refuse(op, stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	s, err := r.open(ctx, &ask{method: http.MethodGet, path: "backup", again: true}, nil, streamStill)
	if err != nil {
		return 0, under(op, stele.ID{}, err)
	}
	defer s.Close()
	part := filepath.Clean(folder) + ".part"
	if err := os.Mkdir(part, 0o700); err != nil {
		return 0, refuse(op, stele.ID{}, stele.Unavailable, "backup.part-folder-left", "{cause}; remove it if an earlier backup left it behind", err)
	}
	changes, err = unpack(context.WithoutCancel(ctx), s, part) // the stream ends with ctx
	if err == nil {
		err = os.Rename(part, folder)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(filepath.Clean(folder)))
	}
	if err != nil {
		if _, ours := errors.AsType[*stele.Error](err); !ours {
			err = refuse(op, stele.ID{}, stele.Unavailable, "", "{cause}", err)
		}
		return 0, errors.Join(err, os.RemoveAll(part))
	}
	return changes, nil
}

// unpack writes the files of a backup to a folder, and syncs them to the disk.
func unpack(ctx context.Context, in io.Reader, folder string) (changes uint64, err error) {
	root, err := os.OpenRoot(folder) // nothing in the tar leads out of it
	if err != nil {
		return 0, err
	}
	defer root.Close()
	end, err := backuptar.Unpack(ctx, in, root, math.MaxUint64)
	switch {
	case errors.Is(err, backuptar.ErrCutOff), errors.Is(err, backuptar.ErrIncomplete):
		return 0, unread(stele.Messagef("backup.cut-off", "the backup was cut off"))
	case err != nil:
		if _, ok := errors.AsType[*backuptar.MalformedError](err); ok {
			return 0, unread(err)
		}
		return 0, err
	}
	return end.Changes, syncFolder(folder)
}

// syncFolder syncs the entries of a folder to the disk.
func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Restored is the result of a restore.
type Restored struct {
	Kept    string // folder on the server of the registry as it was; "" if there was none
	Changes uint64
	Shut    []string // namespaces whose templates make no names until they are skipped ahead

	Zones []CheckedZone // those with secondaries, and those that are shut
}

// Restore replaces the server's registry with a backup, which is in a folder on this
// machine. Confirm names the folder of that registry on the server, so that no other
// registry is replaced by mistake. Restore calls sent with the number of bytes sent since
// the last call; sent may be nil. Only an administrator may restore.
func (r *Registry) Restore(ctx context.Context, folder, confirm string, sent func(int64)) (Restored, error) {
	const op = "restore"
	pipe, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := backuptar.Pack(context.WithoutCancel(ctx), w, os.DirFS(folder), 0, time.Time{}, sent)
		packed <- err
		_ = w.CloseWithError(err) // it never fails
	}()
	q := &ask{method: http.MethodPost, path: "restore", media: apijson.Tar, query: url.Values{"confirm": {confirm}}}
	s, err := r.open(ctx, q, pipe, streamStill)
	_ = pipe.CloseWithError(io.ErrClosedPipe) // ends the packing, whatever happened
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		if err == nil {
			_ = s.Close() // what it answers to a part does not matter
		}
		return Restored{}, refuse(op, stele.ID{}, stele.Unavailable, "restore.backup-unreadable", "the backup can't be read: {cause}", packErr)
	}
	if err != nil {
		return Restored{}, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return Restored{}, err
		}
		var line apijson.Restored
		switch err := json.Unmarshal(text, &line); {
		case err != nil:
			return Restored{}, unread(err)
		case line.Problem != nil:
			return Restored{}, under(op, stele.ID{}, r.problem(line.Problem, line.Problem.Status))
		case line.Done:
			return restored(&line), nil
		}
	}
	return Restored{}, refuse(op, stele.ID{}, stele.Unavailable, "restore.answer-cut-off", "the answer was cut off; look whether the backup is restored before you try again")
}

// restored returns the result in the last line of an answer.
func restored(line *apijson.Restored) Restored {
	done := Restored{Kept: line.Kept, Shut: line.Shut}
	if line.Changes != nil {
		done.Changes = *line.Changes
	}
	for i := range line.Zones {
		done.Zones = append(done.Zones, checkedZone(&line.Zones[i]))
	}
	return done
}
