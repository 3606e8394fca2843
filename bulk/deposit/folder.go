package deposit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// folder is a place on a disk of this machine.
type folder struct{ path string }

// partial begins the names of files that are being written.
const partial = ".part-"

func (f *folder) Close() error { return nil }

func (f *folder) at(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// Put writes a file beside its place, and gives it its name when it is on the disk. A link never replaces a file.
func (f *folder) Put(_ context.Context, name string, data []byte) (err error) {
	path := f.at(name)
	if err := f.makeFolders(filepath.Dir(path)); err != nil {
		return folderError(err)
	}
	part, err := os.CreateTemp(filepath.Dir(path), partial+"*")
	if err != nil {
		return folderError(err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // the data have another name then
	_, err = part.Write(data)
	err = errors.Join(err, part.Sync(), part.Close())
	if err == nil {
		err = os.Link(part.Name(), path)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EPERM): // a file system without links
		err = f.rename(part.Name(), path)
	}
	if err == nil {
		err = disk.Sync(filepath.Dir(path))
	}
	return folderError(err)
}

func (f *folder) rename(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	return os.Rename(from, to)
}

// makeFolders makes folders durable, from that of the place on. The folder that the place is in must be there: it may be on a disk that
// is not mounted.
func (f *folder) makeFolders(path string) error {
	if _, err := os.Stat(path); err == nil || len(path) < len(f.path) {
		return err
	}
	outer := filepath.Dir(path)
	if err := f.makeFolders(outer); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Sync(outer)
}

// Get returns what a file has.
func (f *folder) Get(_ context.Context, name string, most int64) ([]byte, error) {
	in, err := os.Open(f.at(name))
	if err != nil {
		return nil, folderError(err)
	}
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, folderError(err)
	}
	if int64(len(data)) > most {
		return nil, tooLong(name, most)
	}
	return data, nil
}

func tooLong(name string, most int64) error {
	return failf(stele.Invalid, "deposit.object-too-long", "{object} has more than {most} bytes at the place, and should not", name, most)
}

func (f *folder) List(ctx context.Context, name string, each func(name string, size int64) error) error {
	err := filepath.WalkDir(f.at(name), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case !d.Type().IsRegular() || isPartial(d.Name()):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		within, err := filepath.Rel(f.path, path)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(within), info.Size())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return folderError(err)
}

func isPartial(name string) bool { return len(name) > len(partial) && name[:len(partial)] == partial }

// folderError gives an error of a disk its kind.
func folderError(err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok || err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	kind := stele.Invalid
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = stele.NotFound
	case errors.Is(err, fs.ErrPermission):
		kind = stele.Forbidden
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = stele.Exhausted
	}
	return &stele.Error{Op: op, Kind: kind, Err: err}
}
