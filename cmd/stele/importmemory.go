package main

import (
	"os"
	"runtime/debug"
)

// What an import makes is garbage as soon as its chunk is committed. So the collector
// may wait until there is much of it, but not for ever: what is in use is a third of
// the limit at most times. The store has some memory beside that.
const (
	importGarbage = 400
	importMemory  = 900 << 20
)

// waitForGarbage makes the collector wait, unless somebody has told it what to do. The
// function that it returns undoes that.
func waitForGarbage() (undo func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(importGarbage), debug.SetMemoryLimit(importMemory)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
