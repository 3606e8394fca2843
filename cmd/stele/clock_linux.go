package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// disciplined reports whether the kernel's clock is kept right by others, and by how
// much it may be wrong at most. It is not known where the kernel does not tell.
func disciplined() (right bool, wrong time.Duration, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, 0, false
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, time.Duration(t.Maxerror) * time.Microsecond, true
}
