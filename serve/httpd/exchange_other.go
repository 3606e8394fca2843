//go:build !unix

package httpd

import "errors"

// canExchange: here sockets are not used by calls of the system.
const canExchange = false

var errWait = errors.ErrUnsupported

func systemWrite(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func systemRead(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
