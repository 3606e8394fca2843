package registrar

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

func TestRoom(t *testing.T) {
	m := &room{size: 2}
	first := must(m.join(false))(t)
	if err := first.wait(context.Background()); err != nil || m.inside() != 1 {
		t.Fatal(err, m.inside())
	}
	gone, cancel := context.WithCancel(context.Background())
	second, third := must(m.join(false))(t), must(m.join(false))(t)
	_, err := m.join(false)
	want(t, err, stele.Exhausted)
	fourth := must(m.join(true))(t)
	if m.inside() != 4 {
		t.Errorf("%d inside, want 4", m.inside())
	}
	cancel()
	want(t, second.wait(gone), stele.Unavailable)
	m.leave()
	if err := third.wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.leave() // to the fourth, who is gone by now
	if err := fourth.wait(gone); err != nil {
		want(t, err, stele.Unavailable)
	} else {
		m.leave()
	}
	if m.inside() != 0 {
		t.Errorf("%d inside an empty room", m.inside())
	}
	if p := must(m.join(false))(t); p.at != nil {
		t.Error("an empty room makes one wait")
	}
}

// TestRoomIsOneAtATime: however many come and give up, one has the turn, and
// nobody is forgotten.
func TestRoomIsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &room{size: 1000}
		turns, gaveUp := 0, 0
		var mu sync.Mutex // held by who has the turn
		var count sync.Mutex
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				time.Sleep(time.Duration(rand.N(1000)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
				defer cancel()
				p, err := m.join(false)
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
				m.leave()
			})
		}
		wg.Wait()
		if turns+gaveUp != 500 || turns == 0 || gaveUp == 0 || m.inside() != 0 {
			t.Errorf("%d turns, %d gave up, %d are left", turns, gaveUp, m.inside())
		}
	})
}
