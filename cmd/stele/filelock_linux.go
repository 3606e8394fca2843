package main

import (
	"os"
	"syscall"
)

// lockFile takes a file for this process alone, until it is closed.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sameOwner gives a file the owner and the group of another one, as far as this process
// may.
func sameOwner(file *os.File, as os.FileInfo) {
	if stat, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(stat.Uid), int(stat.Gid))
	}
}
