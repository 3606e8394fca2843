package minting_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// TestPool: ten servers with a date a second give ten labels a second, and the one
// that is free first serves.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var pool []stele.NamespaceKey
		for i := range 10 {
			host := fmt.Sprintf("s%d.example.org", i)
			pool = append(pool, f.space("example.org/s"+fmt.Sprint(i), minter(rep(host, "1s"))))
		}
		start := time.Now()
		seen := make(map[stele.ID]bool)
		for i := range 10 {
			for _, l := range must(f.MintPool(f.admin, pool, 10))(t) {
				seen[l.ID] = true
			}
			if d := time.Since(start); d != time.Duration(i)*time.Second {
				t.Fatalf("%d labels after %v", len(seen), d)
			}
		}
		if len(seen) != 100 {
			t.Errorf("%d different labels of 100", len(seen))
		}
		// After a pause each server has a date of this minute and one of this second; the
		// other 80 labels take eight seconds if they are shared evenly. A caller that comes
		// while another is served can't know whether that one takes the last date of now,
		// so one server may get one caller too many, but not two.
		time.Sleep(time.Minute)
		start = time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := f.MintPool(f.admin, pool, 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d < 8*time.Second || d > 9*time.Second {
			t.Errorf("100 callers took %v", d)
		}
	})
}

// TestPoolLeavesOutWhoIsAhead: a server whose last date is in the future does not
// stop the others.
func TestPoolLeavesOutWhoIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		a := f.space("example.org/a", minter(rep("a.example.org", "1s")))
		b := f.space("example.org/b", minter(rep("b.example.org", "1s")))
		f.jump(time.Hour)
		f.first(a)
		f.jump(-time.Hour)
		f.start() // nothing is known of either
		for range 3 {
			l := must(f.MintPool(f.admin, []stele.NamespaceKey{a, b}, 1))(t)
			if !strings.HasPrefix(l[0].ID.String(), "example.org/b/") {
				t.Errorf("got %s", l[0].ID)
			}
			rec := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), a, b))(t)
			if !strings.HasPrefix(rec.ID.String(), "example.org/b/") {
				t.Errorf("got %s", rec.ID)
			}
		}
	})
}

// TestManyNamesTakeTurns: a caller that wants a hundred names returns to the end of the
// queue after each, and does not block other callers.
func TestManyNamesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.QueueSize = 1 })
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1s")))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			// It enters the queue again though the queue is full.
			if labels, err := f.Mint(f.admin, key, 100); err != nil || len(labels) != 100 {
				t.Errorf("%d labels, %v", len(labels), err)
			}
		})
		for i := range 20 {
			time.Sleep(1500 * time.Millisecond)
			before := time.Now()
			f.first(key)
			if d := time.Since(before); d > 2*time.Second {
				t.Errorf("caller %d waited for %v", i, d)
			}
		}
		wg.Wait()
		if d := time.Since(start); d != 119*time.Second {
			t.Errorf("120 labels took %v", d)
		}
	})
}
