//go:build unix

package secret

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another. Only root can do that; for other users the
// owner is the same anyway, or may be.
func keepOwner(file *os.File, of fs.FileInfo) {
	if s, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(s.Uid), int(s.Gid))
	}
}
