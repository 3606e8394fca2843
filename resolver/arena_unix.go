//go:build unix

package resolver

import "syscall"

// newArena returns memory that is taken from the system page by page as it is written
// to, and that the garbage collector does not count: it would let as much garbage
// pile up beside it. It returns nil if there is none.
func newArena(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

// freeArena gives memory back that nobody looks at any more.
func freeArena(b []byte) {
	if len(b) > 0 {
		_ = syscall.Munmap(b) // it was mapped, and is as it was then
	}
}
