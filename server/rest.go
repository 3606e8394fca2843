package server

import (
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/stele-id/stele"
)

// When the server is at rest, garbage and what was freed go back to the system: a burst of
// requests leaves up to [garbage] bytes of it, and Go collects none of them until the next burst.
// The store releases the blocks of its files that it read meanwhile.
const (
	restEvery  = 5 * time.Second
	restBusy   = 8 << 20  // bytes that are allocated meanwhile if the server is not at rest
	restUnused = 32 << 20 // bytes that are worth a collection
	restPart   = 4        // of a large heap, the part that is: to collect goes through all that is live
)

// rest is what is known of the heap at one time.
type rest struct {
	allocated uint64 // since the start of the process
	unused    uint64 // garbage, and memory that was freed and not returned
	live      uint64 // what the last collection found in use
}

// readRest reads it. The garbage is what was allocated since the last collection; what is unused
// in pages that have something in use can't be returned.
func readRest() rest {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	runtimemetrics.Read(samples)
	var n [4]uint64
	for i, s := range samples {
		if s.Value.Kind() == runtimemetrics.KindUint64 {
			n[i] = s.Value.Uint64()
		}
	}
	return rest{allocated: n[0], unused: max(n[1], n[2]) - n[2] + n[3], live: n[2]}
}

// isQuiet reports whether the server is at rest, where before is what was known the last time.
func (r rest) isQuiet(before rest) bool { return r.allocated-before.allocated < restBusy }

// isDue reports whether memory should be returned when the server is at rest.
func (r rest) isDue() bool { return r.unused >= max(restUnused, r.live/restPart) }

// returnAtRest returns memory to the system whenever the server is at rest, until done is closed.
// release has others release what they keep; it returns how many bytes that was.
func returnAtRest(every time.Duration, release func() int64, done <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for before := readRest(); ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		now := readRest()
		if now.isQuiet(before) && (release() > 0 || now.isDue()) {
			debug.FreeOSMemory()
			now = readRest()
		}
		before = now
	}
}

// release releases what the store of the present registry keeps in memory of its files.
func (s *server) release() int64 {
	if g := s.generation.Load(); g != nil {
		if r, ok := g.registry.Store.(stele.Releaser); ok {
			return r.Release()
		}
	}
	return 0
}
