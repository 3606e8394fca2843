//go:build !linux

package main

import "errors"

// exchange swaps two folders in one step, where the system can.
func exchange(string, string) error { return errors.ErrUnsupported }
