package check

import (
	"sync/atomic"

	"github.com/stele-id/stele/links"
)

// Stats are counts since the checker was made. With several servers one of them works, and has them.
type Stats struct {
	Works   uint64 // answers that say that the target is there
	Unsure  uint64 // answers that may be of another page
	Fails   uint64 // answers that say that it is not there, and missing answers
	Unknown uint64 // answers that say nothing: the server keeps programs out, or asks to wait
	Waiting int64  // targets that are to be checked now, as far as they are read
	Working bool   // this server is the one that checks
}

// Stats returns what was counted so far.
func (c *Checker) Stats() Stats {
	t := &c.tally
	return Stats{
		Works: t.weights[links.Good].Load(), Unsure: t.weights[links.Weak].Load(), Fails: t.weights[links.Bad].Load(), Unknown: t.weights[links.Nothing].Load(),
		Waiting: t.waiting.Load(), Working: t.working.Load(),
	}
}

type tally struct {
	weights [links.Bad + 1]atomic.Uint64
	waiting atomic.Int64
	working atomic.Bool
}

func (t *tally) count(e *links.Evidence) {
	if int(e.Weight) < len(t.weights) {
		t.weights[e.Weight].Add(1)
	}
}
