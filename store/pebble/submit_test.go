package pebble

import (
	"context"
	"testing"
	"testing/synctest"
)

// A caller whose context ends while its commit is on the way to the disk learns what becomes of it. If it left before that, it would have
// caches forget what they keep before the commit can be read, and they would keep the same again.
func TestSubmitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{queue: make(chan *request), closing: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		q := &request{done: make(chan error, 1)}
		ended := make(chan error, 1)
		go func() { ended <- s.submit(ctx, "commit", q) }()
		if <-s.queue; !q.state.CompareAndSwap(requestWaits, requestTaken) {
			t.Fatal("the request does not wait")
		}
		cancel()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it ends before it is known what becomes of the commit: %v", err)
		default:
		}
		q.done <- nil
		if err := <-ended; err != nil {
			t.Errorf("it was committed, and the caller hears %v", err)
		}
	})
}
