package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
)

// garbage is how much memory what is not used any more may take, about, before it is
// collected. Each time all that is in use must be looked at, and all that was kept in
// the processor's cache is pushed out of it.
const garbage = 192 << 20

// weight is how much more seems to be in use than is. A server that has just begun has
// hardly anything in use, and with Go's way of counting it would be allowed hardly any
// garbage. Memory that nobody writes to is not taken from the system.
const weight = 64 << 20

// waitToCollect tells Go to collect garbage less often, unless the environment says
// when to, until done is called.
func waitToCollect(cache int64) (done func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(collectAt(cache))
	unused := make([]byte, weight)
	return func() { runtime.KeepAlive(unused) }
}

// collectAt returns by how many hundredths memory may grow, if records take as much as
// cache says. Go's own 100 is the least.
func collectAt(cache int64) int { return int(max(100, 100*garbage/(cache+weight))) }

// learnRedirects reads where all names lead, once, and again when everything was
// forgotten. Requests are answered meanwhile, and if it fails: it is about time only.
func (s *server) learnRedirects(ctx context.Context, r *registry) {
	for {
		if err := r.resolver.Load(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("not all names are kept in memory; redirects take longer", "error", err.Error())
		}
		if r.follower == nil {
			return
		}
		select {
		case <-r.follower.forgotten:
		case <-ctx.Done():
			return
		}
	}
}
