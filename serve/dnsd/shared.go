package dnsd

import (
	"context"
	"time"
)

// InvalidateAll says that nobody knows what other processes have committed: everything
// is read again. See Invalidate.
func (z *Zones) InvalidateAll() {
	z.mu.Lock()
	z.last, z.chains = nil, nil
	z.mu.Unlock()
	z.applied.end()
	z.InvalidateNamespaces()
}

// end ends keeping track: there are no chains any more of which something is known.
func (a *applied) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on, a.upTo, a.done, a.older, a.by, a.since = false, 0, nil, nil, 0, 0
}

// serialWait is how long an answer waits for a serial that may have grown.
const serialWait = time.Second

// renewSerial asks for the serial. As long as the store does not answer the zones have
// the one that they had, and so do their answers: they are of that state, since nothing
// newer can be read. One at a time waits for it.
func (z *Zones) renewSerial(ctx context.Context) error {
	if z.serial.Load() == 0 {
		return z.readSerial(ctx)
	}
	if !z.asking.CompareAndSwap(false, true) {
		return nil
	}
	defer z.asking.Store(false)
	ctx, cancel := context.WithTimeout(ctx, serialWait)
	defer cancel()
	_ = z.readSerial(ctx) // it stays stale, and is asked for again
	return nil
}
