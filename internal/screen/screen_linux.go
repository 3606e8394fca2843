package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// Size returns how many columns and lines a terminal has; 80 and 24 if it does not say.
func Size(terminal *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return usualWidth, usualHeight
	}
	return int(size.Col), int(size.Row)
}

// Keys has a terminal hand over each key at once, without showing it, until restore is
// called. Ctrl-C and Ctrl-Z do what they always do.
func Keys(terminal *os.File) (restore func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	with := *before
	with.Lflag &^= unix.ICANON | unix.ECHO
	with.Cc[unix.VMIN], with.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &with); err != nil {
		return nil, err
	}
	// It fails only if the terminal is gone.
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }, nil
}
