package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync/atomic"
)

// garbage is how much memory unused data may take, about, before Go collects it. Each
// collection reads all that is in use, and evicts the processor's cache.
const garbage = 192 << 20

// weight is how much more seems to be in use than is. A server that has just begun has hardly
// anything in use, and with Go's way of counting it would be allowed hardly any garbage. The
// system gives no pages to memory that is never written.
const weight = 64 << 20

// waitToCollect tells Go to collect garbage less often, unless the environment says
// when to, until done is called. What may be left uncollected depends on how much is in
// use: a share that is right for a small heap would be gigabytes of garbage when many
// large answers are in memory. So it is set anew whenever garbage was collected. When the server is
// at rest, release has others release what they keep; it returns how many bytes that was.
func waitToCollect(cache int64, release func() int64) (done func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collecting{at: collectAt(cache + weight), limited: os.Getenv("GOMEMLIMIT") == ""}
	debug.SetGCPercent(c.at)
	c.limit(cache + weight)
	c.await()
	unused := make([]byte, weight)
	ended := make(chan struct{})
	go returnAtRest(restEvery, release, ended)
	return func() {
		close(ended)
		c.done.Store(true)
		if c.limited {
			debug.SetMemoryLimit(math.MaxInt64)
		}
		runtime.KeepAlive(unused)
	}
}

// collectAt returns by how many hundredths memory may grow, if so many bytes are in use.
// Half is the least, not Go's own 100: what is in use while many large answers are made
// is several hundred megabytes, and a server should not take as much again for garbage.
func collectAt(live int64) int { return int(max(50, 100*garbage/max(live, 1))) }

// collecting sets how much garbage there may be.
type collecting struct {
	at      int  // the present share, in hundredths
	limited bool // the environment sets no limit of its own
	done    atomic.Bool
}

// apart is what the process takes beside the heap and its garbage: stacks, what the
// collector itself keeps, and gaps between what is in use.
const apart = 128 << 20

// limit has the collector begin early if what is in use grows fast. The share that is set
// was right for what was in use before, and on a busy machine adjust comes late: a
// heap that has become five times as large meanwhile would be allowed to grow by five times as
// much garbage. A share that was set in time stays below this limit.
func (c *collecting) limit(live int64) {
	if c.limited {
		debug.SetMemoryLimit(2*live + garbage + apart)
	}
}

// await calls adjust after the next collection, which cleans up an unreferenced mark.
func (c *collecting) await() {
	mark := new([16]byte)
	runtime.AddCleanup(mark, func(c *collecting) { c.adjust() }, c)
}

// adjust sets the share for what is in use now.
func (c *collecting) adjust() {
	if c.done.Load() {
		return
	}
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	if sample[0].Value.Kind() == runtimemetrics.KindUint64 {
		live := int64(min(sample[0].Value.Uint64(), 1<<50))
		c.limit(live)
		if at := collectAt(live); at > c.at+c.at/4 || at < c.at-c.at/4 {
			c.at = at
			debug.SetGCPercent(at)
		}
	}
	c.await()
}
