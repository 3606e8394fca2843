package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/stele-id/stele"
)

// fileError is the error about a file that the user named.
func fileError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &stele.Error{Kind: stele.NotFound, Err: err}
	}
	return &stele.Error{Kind: stele.Invalid, Err: err}
}

// refuse makes an error of a verb.
func refuse(op string, kind stele.Kind, format string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: fmt.Errorf(format, args...)}
}
