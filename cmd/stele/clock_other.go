//go:build !linux

package main

import "time"

// disciplined is not known where the kernel does not tell.
func disciplined() (right bool, wrong time.Duration, known bool) { return false, 0, false }
