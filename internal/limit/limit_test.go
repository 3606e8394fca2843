package limit

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

func TestRate(t *testing.T) {
	now := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	l := NewRate(10, 20)
	take := func(who string, n int) (granted int, after time.Duration) {
		for range n {
			err := l.Take(who, 1, now)
			if err == nil {
				granted++
				continue
			}
			refused := err.(*Refusal)
			if refused.Kind != stele.Exhausted || refused.After <= 0 || refused.Message.Code != "limit.rate" {
				t.Fatalf("got %+v", refused)
			}
			after = refused.After
		}
		return granted, after
	}
	if n, after := take("ann", 30); n != 20 || after != 100*time.Millisecond {
		t.Errorf("a burst of %d, and then after %s", n, after)
	}
	if n, _ := take("bob", 1); n != 1 {
		t.Error("one takes what is another's")
	}
	now = now.Add(time.Second)
	if n, _ := take("ann", 30); n != 10 {
		t.Errorf("%d after a second", n)
	}
	now = now.Add(-time.Hour) // a clock that steps back gives nothing
	if n, _ := take("ann", 30); n != 0 {
		t.Errorf("%d after no time", n)
	}
	now = now.Add(10 * time.Hour)
	if n, _ := take("ann", 30); n != 20 {
		t.Errorf("%d after a long time", n)
	}
	l.Spend("ann", 100, now) // which it has not
	if wait := l.Debt("ann", now); wait != 10*time.Second {
		t.Errorf("a debt of %s", wait)
	}
	now = now.Add(10 * time.Second)
	if n, _ := take("ann", 30); n != 0 || l.Debt("ann", now) != 0 {
		t.Errorf("%d when the debt is paid", n)
	}
	if err := NewRate(0, 0).Take("ann", 1, now); err != nil {
		t.Errorf("without a rate: %v", err)
	}
}

// TestRateForgets: memory is bounded, however many clients come.
func TestRateForgets(t *testing.T) {
	now := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	l := NewRate(1, 1)
	for i := range 3 * MaxBuckets {
		if err := l.Take(strconv.Itoa(i), 1, now); err != nil {
			t.Fatal(err)
		}
		_ = l.Take("regular", 1, now) // is not forgotten
	}
	if len(l.buckets) != MaxBuckets || l.recent.Len() != MaxBuckets {
		t.Errorf("%d and %d are remembered", len(l.buckets), l.recent.Len())
	}
	if err := l.Take("regular", 1, now); err == nil {
		t.Error("who comes all the time was forgotten")
	}
}

// The server holds no more answers for a client that does not read, and goes on for others;
// when all clients together hold what the server may hold, it refuses all.
func TestHeld(t *testing.T) {
	h := NewHeld(100<<10, 40<<10)
	take := func(client string, n int64, code string) func() {
		t.Helper()
		release, err := h.Take(client, n)
		got, _ := stele.CodeOf(err)
		if got != code {
			t.Fatalf("%d bytes for %s: %v", n, client, err)
		}
		return release
	}
	first := take("ann", 30<<10, "")
	take("ann", 30<<10, "limit.unread-client")
	take("ann", Small, "")  // is not counted
	take("bob", 60<<10, "") // more than a client may, and nothing else
	take("eve", 20<<10, "limit.unread-total")
	first()
	first() // which does no harm
	if got := h.Bytes(); got != 60<<10 {
		t.Errorf("%d bytes are held", got)
	}
	take("eve", 20<<10, "")
	release := h.Add("bob", 1<<20)
	if got := h.Bytes(); got != 1<<20+80<<10 {
		t.Errorf("%d bytes are held", got)
	}
	release()
	if len(h.by) != 2 {
		t.Errorf("%d clients are remembered", len(h.by))
	}
	var none *Held
	if _, err := none.Take("ann", 1<<40); err != nil {
		t.Error(err)
	}
}

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2, 2, time.Second)
		enter := func() (func(), error) { return turns.Enter(t.Context()) }
		first, _ := enter()
		second, _ := enter()
		results := make(chan error, 3)
		for range 2 {
			go func() {
				leave, err := enter()
				if err == nil {
					leave()
				}
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := enter(); !errors.Is(err, stele.Unavailable) {
			t.Errorf("beside those that wait: %v", err)
		}
		first()
		first()
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		third, _ := enter()
		if _, err := enter(); !errors.Is(err, stele.Unavailable) {
			t.Errorf("after a second: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turns.Enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client that is gone: %v", err)
		}
		second()
		third()
		if len(turns.taken) != 0 || turns.waiting.Load() != 0 {
			t.Error("something is left")
		}
	})
}

func TestClient(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1:2:3:4": "2001:db8::", "fe80::1%eth0": "fe80::",
	} {
		if got := Client(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is counted as %s", address, got)
		}
	}
}
