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
	"os"
	"path"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// maxFiles is how many files a backup may have: a registry of ten billion records has
// fewer.
const maxFiles = 1_000_000

// restoredDocument is a line of what a restore does. An empty one says that it goes on.
type restoredDocument struct {
	Step    string           `json:"step,omitempty" doc:"What is done now."`
	Done    bool             `json:"done,omitempty" doc:"This is the last line: the backup is the registry now."`
	Changes *uint64          `json:"changes,omitempty" doc:"How many changes the registry has now."`
	Kept    string           `json:"kept,omitempty" doc:"The folder on the server in which the registry is that was replaced."`
	Shut    []string         `json:"shut,omitempty" doc:"Namespaces that make no names until their counters are set ahead; see skip."`
	Zones   []checkedZone    `json:"zones,omitempty" doc:"Zones that have secondaries or are shut, with the serials that they have now."`
	Problem *problemDocument `json:"problem,omitempty" doc:"Why nothing was replaced."`
}

func (h *Handler) restoreOperations() []operation {
	return []operation{{
		name: "restore", method: http.MethodPost, path: "restore", group: "Running the server",
		summary: "Put a backup in the place of the registry",
		about: "The backup is unpacked beside the registry and checked; only then it takes its place, in one step. Requests wait for a moment meanwhile. The registry as it was is kept on the server. " +
			"All that was written after the backup was made is not there any more. No name is given again: minters go on after where they are, and templates are shut until their counters are set ahead. " +
			"Users and tokens stay as they are now, with those that only the backup knows.",
		asks: administrator, scope: auth.ScopeAdmin,
		query: []parameter{{name: "confirm", required: true, min: 1, max: 255, example: "stele-data",
			about: "the name of the registry's folder on the server, without the folders it is in, to make sure that this is the server you mean"}},
		body: &body{media: []string{tarType}, about: "A backup as the operation backup gives it."},
		answers: []answer{{status: 200, about: "What is done, and at the end that it is done.", value: restoredDocument{}, media: linesType, lines: true,
			example: `{"done":true,"changes":1042,"kept":"/var/lib/stele.before-20310502T100000Z"}`}},
		fails: []int{404, 409},
		serve: h.restore,
	}}
}

// restore unpacks a backup and puts it in the place of the registry. Faults of the backup's
// tar get a status of their own; the answer begins when all of it is read.
func (h *Handler) restore(c *call) error {
	if h.o.Upkeep.Stage == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: errors.New("this server restores no backups; use the means of its database")}
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
			h.o.Log.Error("what is left of a restore could not be removed", "error", legible(err.Error()))
		}
	}()
	in := &steady{ctx: c.ctx, c: c, left: h.o.Patience}
	if err := unpackBackup(c.ctx, in, staging.Folder(), staging.Room()); err != nil {
		return err
	}
	out := c.stream(linesType)
	var done Restored
	err = c.attend(out, func(ctx context.Context, tell func(line any)) (err error) {
		done, err = staging.Restore(ctx, func(what string) { tell(restoredDocument{Step: what}) })
		return err
	})
	last := restoredDocument{Done: true, Changes: &done.Changes, Kept: done.Kept, Shut: done.Shut}
	for _, z := range done.Zones {
		last.Zones = append(last.Zones, newCheckedZone(z.Zone, z.Serial, z.Shut, z.Secondaries))
	}
	if err != nil {
		// The client has its answer already; so the reason comes as a line of it.
		problem := problemOf(err)
		last = restoredDocument{Problem: &problem}
	}
	if lerr := out.line(last); lerr != nil && err == nil {
		return lerr
	}
	if ferr := out.flush(); err == nil {
		return ferr
	}
	return err
}

// unpackBackup reads a tar as packBackup writes it into an empty folder. Whatever else
// a tar can have is refused: links, folders above, files that come twice, and more
// bytes than there is room for.
func unpackBackup(ctx context.Context, r io.Reader, folder *os.Root, room uint64) error {
	in := tar.NewReader(r)
	var have completeDocument
	for {
		head, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return unfit("it ends before its end; send all of it")
		case err != nil:
			return untar(err)
		case head.Name == completeEntry && head.Typeflag == tar.TypeReg:
			return finishBackup(in, r, have)
		}
		if have.Files++; have.Files > maxFiles {
			return unfit("it has more than %d files", maxFiles)
		}
		if err := checkEntry(head); err != nil {
			return err
		}
		if uint64(head.Size) > room {
			return &stele.Error{Op: "restore", Kind: stele.Unavailable, Err: errors.New("the disk has no room for the backup; make some")}
		}
		room -= uint64(head.Size)
		have.Bytes += head.Size
		if err := unpackFile(ctx, in, folder, head); err != nil {
			return err
		}
	}
}

// finishBackup makes sure that all came.
func finishBackup(in *tar.Reader, r io.Reader, have completeDocument) error {
	text, err := io.ReadAll(io.LimitReader(in, maxComplete))
	if err != nil {
		return untar(err)
	}
	var said completeDocument
	if err := json.Unmarshal(text, &said); err != nil || said.Files != have.Files || said.Bytes != have.Bytes {
		return unfit("it has %d files of %d bytes, which is not what its end says; make another one", have.Files, have.Bytes)
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		return unfit("something follows its end")
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err != nil { // a tar is padded
		return untar(err)
	}
	return nil
}

// checkEntry refuses an entry that no backup has.
func checkEntry(head *tar.Header) error {
	plain := !strings.ContainsFunc(head.Name, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && r != '/' && (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9')
	})
	switch {
	case head.Typeflag != tar.TypeReg:
		return unfit("%.100q is not a plain file", head.Name)
	case !plain || !fs.ValidPath(head.Name) || head.Name == "." || len(head.Name) > 255 || strings.Count(head.Name, "/") > 3:
		return unfit("%.100q is not a name of a file in a backup", head.Name)
	case head.Size < 0:
		return unfit("%.100q has a size below 0", head.Name)
	}
	return nil
}

// unpackFile writes a file, and makes sure that it stays.
func unpackFile(ctx context.Context, in io.Reader, folder *os.Root, head *tar.Header) error {
	if dir := path.Dir(head.Name); dir != "." {
		if err := folder.MkdirAll(dir, 0o700); err != nil {
			return unfit("%.100q can't be a folder: %w", dir, err)
		}
	}
	file, err := folder.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return unfit("%.100q comes twice", head.Name)
	} else if err != nil {
		return unwritten(err)
	}
	_, rerr := io.Copy(unseen{file}, &interruptible{ctx, in})
	werr := errors.Join(file.Sync(), file.Close())
	if failure, ok := errors.AsType[*writeError](rerr); ok {
		return unwritten(failure)
	}
	if rerr != nil {
		return untar(rerr)
	}
	if werr != nil {
		return unwritten(werr)
	}
	return nil
}

// unseen is a file that marks its write errors, so that they differ from read errors of the
// copied data.
type unseen struct{ file *os.File }

// writeError is an error of a file that is written.
type writeError struct{ error }

func (u unseen) Write(b []byte) (int, error) {
	n, err := u.file.Write(b)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// unfit says why something is not a backup.
func unfit(format string, args ...any) error {
	return &stele.Error{Op: "restore", Kind: stele.Invalid, Err: fmt.Errorf("this is not a backup as the operation backup gives it: "+format, args...)}
}

// untar says that a tar could not be read: it is not a tar, or did not arrive.
func untar(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, tar.ErrInsecurePath) {
		return unfit("%w", err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return unfit("it ends before its end; send all of it")
	}
	return cut(err)
}

// unwritten says that the server could not write.
func unwritten(err error) error {
	return &stele.Error{Op: "restore", Kind: stele.Unavailable, Err: fmt.Errorf("the backup can't be written here: %w", err)}
}
