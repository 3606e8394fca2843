//go:build unix

package pebble

import "syscall"

// setUmask sets the umask of the process until the function that it returns is called.
func setUmask(mask int) func() {
	before := syscall.Umask(mask)
	return func() { syscall.Umask(before) }
}
