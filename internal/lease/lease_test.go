package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestIsFree(t *testing.T) {
	now := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		server string
		until  time.Time
		want   bool
	}{
		{"", time.Time{}, true},
		{"", now.Add(time.Minute), true},
		{"a", now.Add(time.Minute), false},
		{"a", now, true},
		{"a", now.Add(-time.Second), true},
		{"a", now.Add(Longest), false},
		{"a", now.Add(Longest + 30*time.Minute), false}, // its clock is ahead a little
		{"a", now.Add(48 * time.Hour), true},            // its clock was ahead
	} {
		if got := IsFree(tt.server, tt.until, now); got != tt.want {
			t.Errorf("%q until %v: %t", tt.server, tt.until, got)
		}
	}
}

// TestKeep holds that a lease is renewed as long as the work lasts, and that work ends whose lease is lost.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewed atomic.Int32
		lost := Keep(t.Context(), time.Minute, func(context.Context) (bool, error) { renewed.Add(1); return true, nil }, func(context.Context) { time.Sleep(90 * time.Second) })
		if n := renewed.Load(); lost || n < 3 || n > 5 {
			t.Errorf("renewed %d times in 90 seconds, lost %t", n, lost)
		}
		began := time.Now()
		lost = Keep(t.Context(), time.Minute, func(context.Context) (bool, error) { return false, nil }, func(ctx context.Context) { <-ctx.Done() })
		if took := time.Since(began); !lost || took != 20*time.Second {
			t.Errorf("lost %t after %v", lost, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		lost = Keep(ctx, time.Minute, func(context.Context) (bool, error) { return true, nil }, func(ctx context.Context) { cancel(); <-ctx.Done() })
		if lost {
			t.Error("the end of the server is taken for a lost lease")
		}
	})
}

// TestKeepUnrenewed holds that work ends when its lease does, whether renewals fail or take too long, and that each of them starts the life of
// the lease anew from when it began.
func TestKeepUnrenewed(t *testing.T) {
	away := errors.New("the store is away")
	for name, tt := range map[string]struct {
		good  int // how many renewals succeed
		renew func(ctx context.Context) error
		want  time.Duration
	}{
		"all fail":       {0, func(context.Context) error { return away }, time.Minute},
		"some fail":      {2, func(context.Context) error { return away }, 40*time.Second + time.Minute},
		"slow":           {2, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 40*time.Second + time.Minute},
		"without an end": {1, func(context.Context) error { time.Sleep(time.Hour); return nil }, 20*time.Second + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), 0
				var took time.Duration
				lost := Keep(t.Context(), time.Minute, func(ctx context.Context) (bool, error) {
					if n++; n <= tt.good {
						return true, nil
					}
					err := tt.renew(ctx)
					return err == nil, err
				}, func(ctx context.Context) { <-ctx.Done(); took = time.Since(began) })
				if !lost || took != tt.want {
					t.Errorf("lost %t, after %v", lost, took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		lost := Keep(t.Context(), time.Minute, func(context.Context) (bool, error) {
			if n++; n%3 != 0 { // two of three fail
				return false, away
			}
			time.Sleep(time.Second)
			return true, nil
		}, func(ctx context.Context) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
		})
		if !lost { // the third comes as the life ends
			t.Error("a lease of a minute is kept that was renewed after 61 seconds")
		}
		n = 1
		lost = Keep(t.Context(), time.Minute, func(context.Context) (bool, error) {
			if n++; n%2 != 0 {
				return false, away
			}
			time.Sleep(15 * time.Second)
			return true, nil
		}, func(ctx context.Context) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
		})
		if lost || n < 100 {
			t.Errorf("lost %t after %d renewals, of which each second succeeds", lost, n)
		}
	})
}

func TestOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		n := 0
		Often(ctx, 30*time.Second, func(context.Context) { n++ })
		if n != 4 {
			t.Errorf("looked %d times", n)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 5 * time.Minute, 1: 5 * time.Minute, 2: 10 * time.Minute, 4: 40 * time.Minute, 12: 24 * time.Hour, 1 << 40: 24 * time.Hour} {
		if got := RetryAfter(failures); got != want {
			t.Errorf("%d failures: %v", failures, got)
		}
	}
}
