package main

import (
	"os"
	"runtime/debug"
)

// garbage is how much memory what is not used any more may take, about, before it is
// collected. Each time all records that are kept must be looked at: with Go's own
// setting, under which garbage may take as much as they do, a sixth of the time went
// there.
const garbage = 256 << 20

// waitToCollect tells Go to collect garbage less often where few records are kept,
// unless the environment says when to.
func waitToCollect(cache int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt(cache))
	}
}

// collectAt returns by how many hundredths memory may grow, if records take as much as
// cache says. Go's own 100 is the least.
func collectAt(cache int64) int {
	const others = 16 << 20 // what is in use beside records
	return int(min(400, max(100, 100*garbage/(cache+others))))
}
