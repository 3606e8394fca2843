//go:build unix

package fetch

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file belongs to the user this program runs as, has no other name,
// and can't be written to by others.
func isOwn(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Geteuid()) && s.Nlink == 1 && info.Mode().Perm()&0o022 == 0
}
