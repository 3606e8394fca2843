package api

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// A backup travels as a tar of its files, which ends with an entry that says how many
// there were. Without it the tar was cut off.
const (
	completeEntry = "stele-backup-complete"
	maxComplete   = 4 << 10
)

// completeDocument is what the last entry of a backup says.
type completeDocument struct {
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Changes uint64 `json:"changes"`
}

func (h *Handler) backupOperations() []operation {
	return []operation{{
		name: "backup", method: http.MethodGet, path: "backup", group: "Running the server",
		summary: "Copy the whole registry",
		about: "A tar of files: the registry as it is at one moment, with its history, its users and tokens, and how far minters are. The server goes on meanwhile. " +
			"Its last entry is " + completeEntry + "; a tar without it was cut off. What is unpacked is a folder as stele backup makes it.",
		asks: administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "The backup.", media: tarType}},
		fails:   []int{404},
		serve:   h.backup,
	}}
}

// backup makes a copy and sends it.
func (h *Handler) backup(c *call) (err error) {
	if h.o.Upkeep.Backup == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: errors.New("this server makes no backups; use those of its database")}
	}
	if c.r.Method == http.MethodHead { // HEAD does not need the backup
		return c.stream(tarType).flush()
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
			h.o.Log.Error("the copy of a backup could not be removed", "error", legible(rerr.Error()))
		}
	}()
	c.w.Header().Set("Content-Disposition", `attachment; filename="stele-backup.tar"`)
	out := c.stream(tarType)
	if err := packBackup(ctx, out, folder, changes, h.o.Now()); err != nil {
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

// packBackup writes the files of a backup.
func packBackup(ctx context.Context, w io.Writer, folder fs.FS, changes uint64, now time.Time) error {
	out := tar.NewWriter(w)
	complete := completeDocument{Changes: changes}
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%.100q is not a file, so this is not a backup", name)
		}
		n, err := packFile(ctx, out, folder, name)
		complete.Files++
		complete.Bytes += n
		return err
	})
	if err != nil {
		return &stele.Error{Op: "backup", Kind: stele.Unavailable, Err: err}
	}
	last, err := json.Marshal(complete)
	if err != nil {
		return err
	}
	head := &tar.Header{Typeflag: tar.TypeReg, Name: completeEntry, Size: int64(len(last)), Mode: 0o600, ModTime: now}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	if _, err := out.Write(last); err != nil {
		return err
	}
	return out.Close()
}

// packFile writes a file.
func packFile(ctx context.Context, out *tar.Writer, folder fs.FS, name string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	file, err := folder.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}
	if err := out.WriteHeader(head); err != nil {
		return 0, err
	}
	n, err := io.Copy(out, &interruptible{ctx, file})
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%.100q has %d bytes, and had %d", name, n, info.Size())
	}
	return n, err
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (r *interruptible) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
