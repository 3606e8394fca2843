//go:build !linux

package doctor

import (
	"errors"
	"io/fs"
	"time"
)

// isRunning can't be known here; a server writes its process down and removes that when it
// ends.
func isRunning(int) bool { return true }

// ownerOf can't be known here.
func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

// descriptorLimit can't be known here.
func descriptorLimit(int) (uint64, error) { return 0, errors.ErrUnsupported }

// disciplined is not known on this system.
func disciplined() (right bool, wrong time.Duration, known bool) { return false, 0, false }
