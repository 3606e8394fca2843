//go:build unix

package slab

import "syscall"

// newArena returns memory that the system provides page by page as it is written to, and
// that the garbage collector does not count: it would allow as much garbage beside it. It
// returns nil if the system has none.
func newArena(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

// freeArena returns memory of newArena to the system. The caller no longer reads it.
func freeArena(b []byte) {
	if len(b) > 0 {
		_ = syscall.Munmap(b) // it fails only for memory that was not mapped
	}
}
