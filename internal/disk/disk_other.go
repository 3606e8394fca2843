//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Exchange returns ErrUnsupported: this system can't swap two folders in one step.
func Exchange(string, string) error { return errors.ErrUnsupported }

// Space returns ErrUnsupported: this system does not tell how many bytes are free.
func Space(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }

// Lock does nothing on this system: two processes that write the same file disturb each
// other.
func Lock(*os.File) error { return nil }

// SameOwner does nothing on this system.
func SameOwner(*os.File, os.FileInfo) {}
