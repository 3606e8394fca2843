//go:build unix

package dnsd

import "golang.org/x/sys/unix"

// newArena returns memory that is taken from the system page by page as it is written
// to, and that the garbage collector does not count: it would let as much garbage
// pile up beside it.
func newArena(size int) []byte {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, size)
	}
	return b
}

// freeArena gives memory back that nobody looks at any more. What newArena could not
// get from the system is left to the garbage collector.
func freeArena(b []byte) {
	if len(b) > 0 {
		_ = unix.Munmap(b) // it knows what it has mapped, and refuses the rest
	}
}
