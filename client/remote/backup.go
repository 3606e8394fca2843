package remote

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/stele-id/stele"
)

// A backup travels as a tar of its files. Its last entry says how many there were, so
// that the reader recognises a backup that was cut off.
const (
	completeEntry = "stele-backup-complete"
	maxComplete   = 4 << 10
)

// complete is what the last entry of a backup says.
type complete struct {
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Changes uint64 `json:"changes"`
}

// Backup copies the registry to a new folder on this machine, and returns how many
// changes it has. The folder appears when it is complete. Only an administrator may make
// a backup.
func (r *Registry) Backup(ctx context.Context, folder string) (changes uint64, err error) {
	const op = "backup"
	if _, err := os.Lstat(folder); err == nil {
		return 0, refuse(op, stele.ID{}, stele.Invalid, "the folder %q is there already; name a new one", folder)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, refuse(op, stele.ID{}, stele.Unavailable, "%w", err)
	}
	s, err := r.open(ctx, &ask{method: http.MethodGet, path: "backup", again: true}, nil, streamStill)
	if err != nil {
		return 0, under(op, stele.ID{}, err)
	}
	defer s.Close()
	part := filepath.Clean(folder) + ".part"
	if err := os.Mkdir(part, 0o700); err != nil {
		return 0, refuse(op, stele.ID{}, stele.Unavailable, "%w; remove it if an earlier backup left it behind", err)
	}
	changes, err = unpack(s, part)
	if err == nil {
		err = os.Rename(part, folder)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(filepath.Clean(folder)))
	}
	if err != nil {
		if _, ours := errors.AsType[*stele.Error](err); !ours {
			err = refuse(op, stele.ID{}, stele.Unavailable, "%w", err)
		}
		return 0, errors.Join(err, os.RemoveAll(part))
	}
	return changes, nil
}

// unpack writes the files of a backup to a folder, and syncs them to the disk.
func unpack(in io.Reader, folder string) (changes uint64, err error) {
	root, err := os.OpenRoot(folder) // nothing in the tar leads out of it
	if err != nil {
		return 0, err
	}
	defer root.Close()
	var have complete
	files := tar.NewReader(in)
	for {
		head, err := files.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return 0, cutOff
		case err != nil:
			return 0, err
		case head.Typeflag != tar.TypeReg || !filepath.IsLocal(head.Name) || strings.Contains(head.Name, "\\"):
			return 0, unread(fmt.Errorf("%.100q is not a file of a backup", head.Name))
		case head.Name == completeEntry:
			return have.check(files, folder)
		}
		n, err := unpackFile(root, head.Name, files)
		if err != nil {
			return 0, err
		}
		have.Files++
		have.Bytes += n
	}
}

var cutOff = unread(errors.New("the backup was cut off"))

// check reads the last entry, and fails unless all files are there that it counts.
func (have *complete) check(in io.Reader, folder string) (changes uint64, err error) {
	text, err := io.ReadAll(io.LimitReader(in, maxComplete))
	if err != nil {
		return 0, err
	}
	var said complete
	if err := json.Unmarshal(text, &said); err != nil || said.Files != have.Files || said.Bytes != have.Bytes {
		return 0, cutOff
	}
	return said.Changes, syncFolder(folder)
}

func unpackFile(root *os.Root, name string, in io.Reader) (n int64, err error) {
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return 0, err
		}
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err = io.Copy(file, in)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, cutOff
	case err != nil:
		return n, err
	}
	return n, file.Sync()
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
	Kept    string   `json:"kept"` // folder on the server of the registry as it was; "" if there was none
	Changes uint64   `json:"changes"`
	Shut    []string `json:"shut"` // namespaces whose templates make no names until they are skipped ahead

	Zones []CheckedZone `json:"zones"` // those with secondaries, and those that are shut
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
		err := pack(w, folder, sent)
		packed <- err
		_ = w.CloseWithError(err) // it never fails
	}()
	q := &ask{method: http.MethodPost, path: "restore", media: tarType, query: url.Values{"confirm": {confirm}}}
	s, err := r.open(ctx, q, pipe, streamStill)
	_ = pipe.CloseWithError(io.ErrClosedPipe) // ends the packing, whatever happened
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		if err == nil {
			_ = s.Close() // what it answers to a part does not matter
		}
		return Restored{}, refuse(op, stele.ID{}, stele.Unavailable, "the backup can't be read: %w", packErr)
	}
	if err != nil {
		return Restored{}, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return Restored{}, err
		}
		var line struct {
			Restored
			Done    bool     `json:"done"`
			Problem *problem `json:"problem"`
		}
		switch err := json.Unmarshal(text, &line); {
		case err != nil:
			return Restored{}, unread(err)
		case line.Problem != nil:
			return Restored{}, under(op, stele.ID{}, line.Problem.err(r.o.Schemes, line.Problem.Status))
		case line.Done:
			return line.Restored, nil
		}
	}
	return Restored{}, refuse(op, stele.ID{}, stele.Unavailable, "the answer was cut off; look whether the backup is restored before you try again")
}

// pack writes the files of a folder as the tar of a backup.
func pack(w io.Writer, folder string, sent func(int64)) error {
	root := os.DirFS(folder)
	out := tar.NewWriter(w)
	var have complete
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case !d.Type().IsRegular():
			return fmt.Errorf("%.100q is neither a file nor a folder, so this is not a backup", name)
		}
		n, err := packFile(out, root, name, sent)
		have.Files++
		have.Bytes += n
		return err
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(have)
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: completeEntry, Size: int64(len(text)), Mode: 0o600}); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	return out.Close()
}

func packFile(out *tar.Writer, root fs.FS, name string, sent func(int64)) (int64, error) {
	file, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}); err != nil {
		return 0, err
	}
	for n := int64(0); ; {
		k, err := io.CopyN(out, file, 1<<20)
		if n += k; sent != nil && k > 0 {
			sent(k)
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}
