//go:build unix

package httpd

import "syscall"

const canExchange = true

// errWait says that nothing can be read yet.
const errWait = syscall.EAGAIN

// systemWrite writes to a socket without waiting.
func systemWrite(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Write(int(fd), b); err != syscall.EINTR {
			return n, err
		}
	}
}

// systemRead reads from a socket without waiting.
func systemRead(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), b); err != syscall.EINTR {
			return n, err
		}
	}
}
