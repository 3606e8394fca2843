// Package disk has what the standard library lacks for files that must survive a crash:
// swapping two folders in one step, making a folder's entries durable, locks, free space; and
// what is wrong with a file that the user named.
package disk

import (
	"errors"
	"fmt"
	"os"

	"github.com/stele-id/stele"
)

// Sync makes the entries of a folder durable.
func Sync(folder string) error {
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
