package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/backuptar"
)

func (h *Handler) backupOperations() []operation {
	return []operation{{
		name: "backup", method: http.MethodGet, path: "backup", group: "Running the server",
		summary: "Copy the whole registry",
		about: "A tar of files: the registry as it is at one moment, with its history, its users and tokens, and how far minters are. The server goes on meanwhile. " +
			"Its last entry is " + backuptar.EndEntry + "; a tar without it was cut off. What is unpacked is a folder as stele backup makes it.",
		asks: administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "The backup.", media: apijson.Tar}},
		fails:   []int{404},
		serve:   h.backup,
	}}
}

// backup makes a copy and sends it.
func (h *Handler) backup(c *call) (err error) {
	if h.o.Upkeep.Backup == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("backup.unsupported", "this server makes no backups; use those of its database")}
	}
	if c.r.Method == http.MethodHead { // HEAD does not need the backup
		return c.stream(apijson.Tar).flush()
	}
	if !h.duties.copy.TryLock() {
		return busy(c, "a backup is being sent, or restored")
	}
	defer h.duties.copy.Unlock()
	ctx, stop := c.running()
	defer stop()
	still := c.patiently()
	if err := h.o.Registrar.Witness(ctx, "backup", "", "begin"); err != nil {
		still()
		return err
	}
	folder, changes, remove, err := h.o.Upkeep.Backup(ctx)
	still()
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			h.o.Registrar.NoteEnd(c.ctx, "backup", "", nil)
		}
		if rerr := remove(); rerr != nil {
			h.o.Log.ErrorContext(c.ctx, "the copy of a backup could not be removed", "error", apijson.Legible(rerr.Error()))
		}
	}()
	c.w.Header().Set("Content-Disposition", `attachment; filename="stele-backup.tar"`)
	out := c.stream(apijson.Tar)
	if err := backuptar.Pack(ctx, out, folder, changes, h.o.Now(), nil); err != nil {
		if _, ok := errors.AsType[*stele.Error](err); !ok {
			err = &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: err}
		}
		return err
	}
	return out.flush()
}

// patiently extends the client's time until stop is called: the server sends nothing
// meanwhile.
func (c *call) patiently() (stop func()) {
	c.extend(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(max(c.h.o.Patience/3, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				c.extend(0)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
