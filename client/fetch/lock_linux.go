package fetch

import (
	"os"
	"syscall"
)

// lock takes a file for this process alone, until it is closed.
func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
