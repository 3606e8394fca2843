package lsid

import (
	"context"
	"testing"
	"testing/synctest"
)

// Hosts that are slow do not take all places, and those that wait are bounded.
func TestPlacesOfHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContents(1)
		enter := func(host string) (leave func()) {
			t.Helper()
			leave, err := c.enter(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		first := enter("a")
		leave := []func(){enter("a"), enter("b")}
		ctx, cancel := context.WithCancel(t.Context())
		refused := 0
		for range maxWaitingOfHost + 3 {
			go func() {
				if _, err := c.enter(ctx, "b"); err != nil && ctx.Err() == nil {
					refused++
				}
			}()
			synctest.Wait()
		}
		if refused != 3 || c.taken != maxFetches-1 {
			t.Errorf("%d were refused, and %d places are taken", refused, c.taken)
		}
		enter("c")() // the last place is for a host that has none
		cancel()
		synctest.Wait()
		if c.waiting.Len() != 0 {
			t.Errorf("%d wait", c.waiting.Len())
		}
		var last func()
		go func() { last, _ = c.enter(t.Context(), "b") }()
		synctest.Wait()
		if last != nil {
			t.Error("a host got the last place, and had one already")
		}
		first()
		synctest.Wait()
		if last == nil {
			t.Fatal("a place was given back, and the one that waits did not get it")
		}
		last()
		for _, f := range leave {
			f()
		}
		if c.taken != 0 || len(c.hosts) != 0 {
			t.Errorf("%d places are taken, by %v", c.taken, c.hosts)
		}
	})
}
