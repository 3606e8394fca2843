package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/backuptar"
)

func (h *Handler) restoreOperations() []operation {
	return []operation{{
		name: "restore", method: http.MethodPost, path: "restore", group: "Running the server",
		summary: "Replace the registry with a backup",
		about: "The backup is unpacked beside the registry and checked; only then it takes its place, in one step. Requests wait for a moment meanwhile. The registry as it was is kept on the server. " +
			"All that was written after the backup was made is not there any more. No name is given again: minters go on after where they are, and templates are shut until their counters are set ahead. " +
			"Users and tokens stay as they are now, with those that only the backup knows.",
		asks: administrator, scope: auth.ScopeAdmin,
		query: []parameter{{name: "confirm", required: true, min: 1, max: 255, example: "stele-data",
			about: "the name of the registry's folder on the server, without the folders it is in, to make sure that this is the server you mean"}},
		body: &body{media: []string{apijson.Tar}, about: "A backup as the operation backup gives it."},
		answers: []answer{{status: 200, about: "What is done, and at the end that it is done.", value: apijson.Restored{}, media: apijson.Lines, lines: true,
			example: `{"done":true,"changes":1042,"kept":"/var/lib/stele.before-20310502T100000Z"}`}},
		fails: []int{404, 409},
		serve: h.restore,
	}}
}

// restore unpacks a backup and puts it in the place of the registry. Faults of the backup's
// tar get a status of their own; the answer begins when all of it is read.
func (h *Handler) restore(c *call) error {
	if h.o.Upkeep.Stage == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("restore.unsupported", "this server restores no backups; use the means of its database")}
	}
	if !h.duties.copy.TryLock() {
		return busy(c, "a backup is being sent, or restored")
	}
	defer h.duties.copy.Unlock()
	if err := h.o.Registrar.Witness(c.ctx, "restore", "", "begin"); err != nil {
		return err
	}
	staging, err := h.o.Upkeep.Stage(c.ctx, c.text("confirm"))
	if err != nil {
		return err
	}
	defer func() {
		if err := staging.Remove(); err != nil {
			h.o.Log.ErrorContext(c.ctx, "what is left of a restore could not be removed", "error", apijson.Legible(err.Error()))
		}
	}()
	in := &steady{ctx: c.ctx, c: c, left: h.o.Patience}
	if err := unpackBackup(c.ctx, in, staging.Folder(), staging.Room()); err != nil {
		return err
	}
	out := c.stream(apijson.Lines)
	var done Restored
	err = c.attend(out, func(ctx context.Context, tell func(line any)) (err error) {
		done, err = staging.Restore(ctx, func(what string) { tell(apijson.Restored{Step: what}) })
		return err
	})
	last := apijson.Restored{Done: true, Changes: &done.Changes, Kept: done.Kept, Shut: done.Shut}
	for _, z := range done.Zones {
		last.Zones = append(last.Zones, newCheckedZone(z.Zone, z.Serial, z.Shut, z.Secondaries))
	}
	if err != nil {
		// The client has its answer already; so the reason comes as a line of it.
		problem := problemOf(err)
		last = apijson.Restored{Problem: &problem}
	}
	if lerr := out.line(last); lerr != nil && err == nil {
		return lerr
	}
	if ferr := out.flush(); err == nil {
		return ferr
	}
	return err
}

// unpackBackup reads the tar of a backup into an empty folder.
func unpackBackup(ctx context.Context, in io.Reader, folder *os.Root, room uint64) error {
	have, err := backuptar.Unpack(ctx, in, folder, room)
	refuse := func(kind stele.Kind, code, text string, args ...any) error {
		return &stele.Error{Op: "restore", Kind: kind, Err: stele.Messagef(code, text, args...)}
	}
	malformed, isMalformed := errors.AsType[*backuptar.MalformedError](err)
	unwritten, isUnwritten := errors.AsType[*backuptar.WriteError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, backuptar.ErrCutOff):
		return refuse(stele.Invalid, "restore.cut-off", "this is not a backup as the operation backup gives it: {cause}; send all of it", err)
	case errors.Is(err, backuptar.ErrIncomplete):
		return refuse(stele.Invalid, "restore.totals-differ", "this is not a backup as the operation backup gives it: it has {files} files of {bytes} bytes, which is not what its end says; make another one", have.Files, have.Bytes)
	case errors.Is(err, backuptar.ErrTooLarge):
		return refuse(stele.Unavailable, "backup.disk-full", "the disk has no room for the backup; make some")
	case isMalformed:
		return refuse(stele.Invalid, "restore.not-a-backup", "this is not a backup as the operation backup gives it: {cause}", malformed)
	case isUnwritten:
		return refuse(stele.Unavailable, "backup.not-writable", "the backup can't be written here: {cause}", unwritten)
	}
	return cut(err)
}
