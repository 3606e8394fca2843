package access

import (
	"context"
	"sync"
)

// FollowLog lets the transparency log keep up with what is committed from now on, if this process has the registry open in a folder. The function that it returns
// waits until all of that is logged, or its context ends; the log then follows later. It does nothing where servers keep the log.
func (l *Registry) FollowLog(ctx context.Context) (finish func(context.Context) error) {
	f, near := l.Backend.(*Local)
	if !near || f.Registry.Place().Folder == "" {
		return func(context.Context) error { return nil }
	}
	log := f.Registry.Log
	running, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { _ = log.KeepUp(running) }) // what it misses is logged at the end
	return func(ctx context.Context) error {
		cancel()
		work.Wait()
		return log.CatchUp(ctx, nil)
	}
}
