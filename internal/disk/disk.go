// Package disk has what the standard library lacks for files that must survive a crash:
// swapping two folders in one step, making a folder's entries durable, locks, free space; and
// what is wrong with a file that the user named.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/stele-id/stele"
)

// Sync makes the entries of a folder durable. Windows refuses that for folders; its file system keeps a journal of
// them.
func Sync(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// FileError is the error of a file that the user named: NotFound if it is not there, and
// otherwise Invalid.
func FileError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &stele.Error{Kind: stele.NotFound, Err: err}
	}
	return &stele.Error{Kind: stele.Invalid, Err: err}
}

// FreeName returns a name that no file has: path itself, or path with a number after it.
func FreeName(path string) string {
	for name, i := path, 2; ; i++ {
		if _, err := os.Lstat(name); err != nil { // the caller finds any other fault when it uses the name
			return name
		}
		name = fmt.Sprintf("%s-%d", path, i)
	}
}

// CreatePrivate writes a new file that only its owner may read, down to the disk. The error
// is [fs.ErrExist] if there is one with the name.
func CreatePrivate(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// FolderSize returns how many bytes the files of a folder have: all of them, or those with one of some endings, such as .sst.
func FolderSize(folder string, endings ...string) (size int64, err error) {
	return treeSize(os.DirFS(folder), endings)
}

// treeSize is FolderSize for a tree of files. A store removes files while it works: one that has vanished since its folder was read has no size.
func treeSize(tree fs.FS, endings []string) (size int64, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != ".":
			return nil
		case err != nil || d.IsDir() || len(endings) > 0 && !slices.Contains(endings, path.Ext(name)):
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// ReadSome reads a file that the user named, up to one byte more than the most that it should
// have.
func ReadSome(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, FileError(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, FileError(err)
	}
	return text, nil
}
