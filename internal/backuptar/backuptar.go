// Package backuptar writes and reads a backup as it travels between a server and its client:
// a tar of the files of a folder, whose last entry says how many there were, so that the
// reader recognises a backup that was cut off. It does not know what is in the files.
package backuptar

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// EndEntry is the name of the last entry.
const EndEntry = "stele-backup-complete"

const (
	maxEnd = 4 << 10 // bytes of the last entry

	// maxFiles is how many files a backup may have: a registry of ten billion records has
	// fewer.
	maxFiles = 1_000_000
)

// End is what the last entry says.
type End struct {
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Changes uint64 `json:"changes"` // of the registry; 0 if the writer does not know
}

// Pack writes the files of a folder, and the last entry with the number of changes and the
// time now. It calls sent with the number of bytes read since the last call; sent may be nil.
func Pack(ctx context.Context, w io.Writer, folder fs.FS, changes uint64, now time.Time, sent func(int64)) error {
	out := tar.NewWriter(w)
	end := End{Changes: changes}
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case !d.Type().IsRegular():
			return stele.Messagef("backup.not-a-file-or-folder", `"{name}" is neither a file nor a folder, so this is not a backup`, name)
		}
		n, err := packFile(ctx, out, folder, name, sent)
		end.Files++
		end.Bytes += n
		return err
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(end)
	if err != nil {
		return err
	}
	head := &tar.Header{Typeflag: tar.TypeReg, Name: EndEntry, Size: int64(len(text)), Mode: 0o600, ModTime: now}
	if err := out.WriteHeader(head); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	return out.Close()
}

// packFile writes a file.
func packFile(ctx context.Context, out *tar.Writer, folder fs.FS, name string, sent func(int64)) (int64, error) {
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
	n, err := io.Copy(out, &interruptible{ctx, file, sent})
	if err == nil && n != info.Size() {
		err = stele.Messagef("backup.file-size-changed", `"{file}" has {bytes} bytes, and had {expected}`, name, n, info.Size())
	}
	return n, err
}

// interruptible is a reader that ends with a context, and tells how much was read.
type interruptible struct {
	ctx  context.Context
	r    io.Reader
	read func(int64)
}

func (r *interruptible) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b)
	if r.read != nil && n > 0 {
		r.read(int64(n))
	}
	return n, err
}

// Errors of [Unpack].
var (
	// ErrCutOff says that the tar ends before its last entry.
	ErrCutOff = stele.Messagef("backup-tar.cut-off", "it ends before its end")

	// ErrIncomplete says that the last entry counts other files than came.
	ErrIncomplete = stele.Messagef("backup-tar.count-differs", "its end counts other files")

	// ErrTooLarge says that the files have more bytes than there is room for.
	ErrTooLarge = stele.Messagef("backup-tar.no-room", "there is no room for the backup")
)

// MalformedError says why a tar is not a backup as [Pack] writes it.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *MalformedError) Unwrap() error { return e.Err }

func malformedf(code, text string, args ...any) error {
	return &MalformedError{stele.Messagef(code, text, args...)}
}

// WriteError is an error of writing a file of the backup, in contrast to one of reading the
// tar.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *WriteError) Unwrap() error { return e.Err }

// Unpack reads a tar as Pack writes it into an empty folder, and syncs each file to the disk.
// It refuses whatever else a tar can have: links, paths out of the folder, files that come
// twice, bytes after the end, and more bytes than there is room for. An error that is none of
// those of this package is one of reading in.
func Unpack(ctx context.Context, in io.Reader, folder *os.Root, room uint64) (End, error) {
	files := tar.NewReader(in)
	var have End
	for {
		head, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return have, ErrCutOff
		case err != nil:
			return have, readError(err)
		case head.Name == EndEntry && head.Typeflag == tar.TypeReg:
			return finish(files, in, have)
		}
		if have.Files++; have.Files > maxFiles {
			return have, malformedf("restore.files-too-many", "it has more than {limit} files", maxFiles)
		}
		if err := checkEntry(head); err != nil {
			return have, err
		}
		if uint64(head.Size) > room {
			return have, ErrTooLarge
		}
		room -= uint64(head.Size)
		have.Bytes += head.Size
		if err := unpackFile(ctx, files, folder, head); err != nil {
			return have, err
		}
	}
}

// finish makes sure that all files came, and that nothing follows.
func finish(files *tar.Reader, in io.Reader, have End) (End, error) {
	text, err := io.ReadAll(io.LimitReader(files, maxEnd))
	if err != nil {
		return have, readError(err)
	}
	var said End
	if err := json.Unmarshal(text, &said); err != nil || said.Files != have.Files || said.Bytes != have.Bytes {
		return have, ErrIncomplete
	}
	if _, err := files.Next(); !errors.Is(err, io.EOF) {
		return have, malformedf("store.value-followed", "something follows its end")
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(in, 1<<20)); err != nil { // a tar is padded
		return have, readError(err)
	}
	return said, nil
}

// checkEntry refuses an entry that no backup has.
func checkEntry(head *tar.Header) error {
	plain := !strings.ContainsFunc(head.Name, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && r != '/' && (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9')
	})
	switch {
	case head.Typeflag != tar.TypeReg,
		!plain || !fs.ValidPath(head.Name) || head.Name == "." || len(head.Name) > 255 || strings.Count(head.Name, "/") > 3:
		return malformedf("backup.file-unexpected", `"{file}" is not a file of a backup`, head.Name)
	case head.Size < 0:
		return malformedf("restore.file-size-negative", `"{file}" has a size below 0`, head.Name)
	}
	return nil
}

// unpackFile writes a file, and syncs it to the disk.
func unpackFile(ctx context.Context, in io.Reader, folder *os.Root, head *tar.Header) error {
	if dir := path.Dir(head.Name); dir != "." {
		if err := folder.MkdirAll(dir, 0o700); err != nil {
			return malformedf("restore.folder-invalid", `"{folder}" can't be a folder: {cause}`, dir, err)
		}
	}
	file, err := folder.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return malformedf("restore.file-twice", `"{file}" comes twice`, head.Name)
	} else if err != nil {
		return &WriteError{err}
	}
	_, rerr := io.Copy(marked{file}, &interruptible{ctx, in, nil})
	werr := errors.Join(file.Sync(), file.Close())
	if failure, ok := errors.AsType[*WriteError](rerr); ok {
		return failure
	}
	if rerr != nil {
		return readError(rerr)
	}
	if werr != nil {
		return &WriteError{werr}
	}
	return nil
}

// marked is a file that marks its write errors, so that they differ from read errors of the
// copied data.
type marked struct{ file *os.File }

func (m marked) Write(b []byte) (int, error) {
	n, err := m.file.Write(b)
	if err != nil {
		err = &WriteError{err}
	}
	return n, err
}

// readError returns the error of reading a tar: it is not a tar, it was cut off, or it can't
// be read.
func readError(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong), errors.Is(err, tar.ErrInsecurePath):
		return &MalformedError{err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrCutOff
	}
	return err
}
