//go:build !linux

package main

import "time"

// monotonic is of use to systemd only.
func monotonic() time.Duration { return 0 }

// disciplined is not known where the kernel does not tell.
func disciplined() (right bool, wrong time.Duration, known bool) { return false, 0, false }
