package minting

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

func TestQueue(t *testing.T) {
	q := &queue{size: 2}
	join := func(back bool) place {
		t.Helper()
		p, err := q.join(back)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := join(false).wait(context.Background()); err != nil || q.length() != 1 {
		t.Fatal(err, q.length())
	}
	gone, cancel := context.WithCancel(context.Background())
	second, third := join(false), join(false)
	if _, err := q.join(false); !errors.Is(err, stele.Exhausted) {
		t.Fatalf("a full queue: %v", err)
	}
	fourth := join(true)
	if q.length() != 4 {
		t.Errorf("%d in the queue, want 4", q.length())
	}
	cancel()
	if err := second.wait(gone); !errors.Is(err, stele.Unavailable) {
		t.Fatalf("a caller that gave up: %v", err)
	}
	q.leave()
	if err := third.wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	q.leave() // to the fourth, whose context has ended by now
	if err := fourth.wait(gone); err == nil {
		q.leave()
	} else if !errors.Is(err, stele.Unavailable) {
		t.Fatal(err)
	}
	if q.length() != 0 {
		t.Errorf("%d in an empty queue", q.length())
	}
	if p := join(false); p.at != nil {
		t.Error("a caller waits in an empty queue")
	}
}

// TestQueueIsOneAtATime: however many callers come and give up, one has the turn, and
// each of the others gets it.
func TestQueueIsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{size: 1000}
		turns, gaveUp := 0, 0
		var mu sync.Mutex // held by the caller that has the turn
		var count sync.Mutex
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				time.Sleep(time.Duration(rand.N(1000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
				defer cancel()
				p, err := q.join(false)
				if err != nil {
					t.Error(err)
					return
				}
				if p.wait(ctx) != nil {
					count.Lock()
					gaveUp++
					count.Unlock()
					return
				}
				if !mu.TryLock() {
					t.Error("two have the turn")
				}
				time.Sleep(10 * time.Millisecond)
				turns++
				mu.Unlock()
				q.leave()
			})
		}
		wg.Wait()
		if turns+gaveUp != 500 || turns == 0 || gaveUp == 0 || q.length() != 0 {
			t.Errorf("%d turns, %d gave up, %d are left", turns, gaveUp, q.length())
		}
	})
}
