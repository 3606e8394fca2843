//go:build !linux

package main

import "errors"

// diskRoom returns how many bytes the disk of a folder has, where that is known.
func diskRoom(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
