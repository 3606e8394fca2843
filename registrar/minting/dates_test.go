package minting_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

// The bubble's clock begins at 2000-01-01T00:00:00Z.

func TestMintIBIBothForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1s")))
		time.Sleep(72 * time.Second)
		labels := must(f.Mint(f.admin, key, 2))(t)
		want := []string{
			"sid.inpe.br/mtc-m18/2000/01.01.00.01.12", "8JMKD3MGP8W/BMCNUL",
			"sid.inpe.br/mtc-m18/2000/01.01.00.01.13", "8JMKD3MGP8W/BMCNUM",
		}
		var got []string
		for _, l := range labels {
			got = append(got, l.ID.String())
			for _, a := range l.Aliases {
				got = append(got, a.String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		// Both are of one date, and belong to the namespace.
		for _, l := range labels {
			x, err := f.schemes.Explain(l.ID.String())
			y, err2 := f.schemes.Explain(l.Aliases[0].String())
			if err != nil || err2 != nil || x.Parts.Get("time") != y.Parts.Get("time") {
				t.Errorf("%v and %v: %v, %v", x.Parts, y.Parts, err, err2)
			}
			if ns := must(f.FindNamespace(f.admin, l.Aliases[0]))(t); ns.Key() != key {
				t.Errorf("%s belongs to %s", l.Aliases[0], ns.Key())
			}
		}
	})
}

// TestMintShortens follows the report: the first after a pause is short.
func TestMintShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1us")))
		time.Sleep(5*time.Minute + 12345678*time.Microsecond)
		f.first(key)
		time.Sleep(5 * time.Minute)
		got := texts(must(f.Mint(f.admin, key, 1))(t))
		for _, wait := range []time.Duration{0, 0, 2 * time.Second, 200 * time.Millisecond} {
			time.Sleep(wait)
			got = append(got, texts(must(f.Mint(f.admin, key, 1))(t))...)
		}
		for i, want := range []string{"00.10", "00.10.12", "00.10.12.3", "00.10.14", "00.10.14.5"} {
			if !strings.HasSuffix(got[i], "2000/01.01."+want) {
				t.Errorf("label %d is %s, want ...%s", i, got[i], want)
			}
		}
	})
}

// first mints one name.
func (f *fixture) first(key stele.NamespaceKey) string {
	f.t.Helper()
	return must(f.Mint(f.admin, key, 1))(f.t)[0].ID.String()
}

// TestSecondCallerWaitsAMinute: at r = 60 s that is right.
func TestSecondCallerWaitsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1m")))
		start := time.Now()
		for i := range 4 {
			name := f.first(key)
			if d := time.Since(start); d != time.Duration(i)*time.Minute {
				t.Errorf("%s came after %v", name, d)
			}
			if want := fmt.Sprintf("01.01.00.0%d", i); !strings.HasSuffix(name, want) {
				t.Errorf("%s, want ...%s", name, want)
			}
		}
	})
}

// TestOrderOfArrival: 50 callers get dates in the order in which they came, and
// each waits for its own only.
func TestOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1s")))
		start := time.Now()
		var mu sync.Mutex
		var order []int
		for i := range 50 {
			go func() {
				labels, err := f.Mint(f.admin, key, 1)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				if d := time.Since(start); err != nil || d != time.Duration(i)*time.Second {
					t.Errorf("caller %d got %v, %v after %v", i, labels, err, d)
				}
			}()
			synctest.Wait() // it has its place
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 50 || !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// TestCallersGiveUp: a caller that leaves the queue takes no date, and no other caller waits
// for it.
func TestCallersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1m")))
		f.first(key)
		impatient, cancel := context.WithTimeout(f.admin, 90*time.Second)
		defer cancel()
		errs := make(chan error, 20)
		for range 20 { // the first of them gets a date, 19 give up
			go func() {
				_, err := f.Mint(impatient, key, 1)
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		name := f.first(key) // the last in the queue
		if d := time.Since(start); d != 2*time.Minute || !strings.HasSuffix(name, "01.01.00.02") {
			t.Errorf("%s came after %v, want the date of 2 minutes after", name, d)
		}
		failed := 0
		for range 20 {
			if err := <-errs; err != nil {
				failed++
				want(t, err, stele.Unavailable)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		}
		if failed != 19 {
			t.Errorf("%d gave up, want 19", failed)
		}
		// No caller is left in the queue that would get the next date.
		start = time.Now()
		if f.first(key); time.Since(start) != time.Minute {
			t.Errorf("the next caller waited for %v", time.Since(start))
		}
	})
}

func TestQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *registrar.Options) { o.QueueSize = 3 })
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1m")))
		f.first(key)
		for range 4 { // one has the turn, three wait
			go f.Mint(f.admin, key, 1)
		}
		synctest.Wait()
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Exhausted, "3 callers")
		time.Sleep(5 * time.Minute)
		f.first(key)
	})
}

func TestClockStepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		last := f.first(key)

		// By an hour: no caller waits so long, and the error says how far it is.
		f.jump(-time.Hour)
		start := time.Now()
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Unavailable, "1h0m0s behind", "2000-01-01T00:00:00")
		if d := time.Since(start); d != 0 {
			t.Errorf("the refusal took %v", d)
		}
		// A new process does not forget. It begins after the reserved dates, too.
		f.start()
		_, err = f.Mint(f.admin, key, 1)
		want(t, err, stele.Unavailable, "1h0m0.05s behind")

		// By two seconds: one waits.
		f.jump(time.Hour - 2*time.Second)
		start = time.Now()
		name := f.first(key)
		if d := time.Since(start); d < 2*time.Second || d > 2100*time.Millisecond {
			t.Errorf("waited for %v", d)
		}
		if name <= last {
			t.Errorf("%s came after %s", name, last)
		}
		if d := f.dateOf(name); d.After(f.clock()) {
			t.Errorf("%s is in the future of %s", name, f.clock())
		}
	})
}

// dateOf returns the date in a label.
func (f *fixture) dateOf(name string) time.Time {
	f.t.Helper()
	x, err := f.schemes.Explain(name)
	if err != nil {
		f.t.Fatal(err)
	}
	d, err := time.Parse(time.RFC3339Nano, x.Parts.Get("time").(string))
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// TestClockStandsStill: a wait for it is bounded though no date ever comes.
func TestClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1s")))
		f.first(key)
		stopped := time.Now()
		f.options.Now = func() time.Time { return stopped }
		f.start()
		start := time.Now()
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Unavailable)
		if d := time.Since(start); d > 7*time.Second {
			t.Errorf("waited for %v", d)
		}
	})
}

// TestClockStepsBackWhileWaiting: a small step does not fail a caller that waits, and a
// large one does not keep it waiting.
func TestClockStepsBackWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1m")))
		f.first(key)
		time.AfterFunc(10*time.Second, func() { f.jump(-3 * time.Second) })
		start := time.Now()
		f.first(key)
		if d := time.Since(start); d != 63*time.Second {
			t.Errorf("waited for %v, want a minute and the step", d)
		}
		time.AfterFunc(10*time.Second, func() { f.jump(-time.Hour) })
		start = time.Now()
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Unavailable, "behind")
		if d := time.Since(start); d != 60*time.Second {
			t.Errorf("waited for %v, want a minute", d)
		}
	})
}

// TestClockJumpsForward: the minter accepts a jump of a year, and after the jump back
// no name is minted twice.
func TestClockJumpsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(ibi("1ms")))
		names := map[string]bool{f.first(key): true}
		const year = 366 * 24 * time.Hour
		f.jump(year)
		for range 10 {
			names[f.first(key)] = true
		}
		f.jump(-year)
		_, err := f.Mint(f.admin, key, 1)
		want(t, err, stele.Unavailable, "8784h0m0")
		time.Sleep(year + time.Second)
		for range 10 {
			names[f.first(key)] = true
		}
		if len(names) != 21 {
			t.Errorf("%d different names, want 21", len(names))
		}
	})
}

// TestGranularityChanges: a caller that waits for a date of the old grid gets one of
// the new.
func TestGranularityChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("sid.inpe.br/mtc-m18", minter(rep("mtc-m18.sid.inpe.br", "1m")))
		set := func(g string) {
			if _, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter.Granularity = g; return nil }); err != nil {
				t.Error(err)
			}
		}
		f.first(key)
		time.AfterFunc(10*time.Second, func() { set("1s") })
		start := time.Now()
		names := []string{f.first(key)}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("waited for %v, want the 10 s until r changed", d)
		}
		for _, g := range []string{"1ms", "1us", "1ns", "1as", "10ms", "1m", "1s"} {
			set(g)
			for range 3 {
				names = append(names, f.first(key))
			}
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("not in order: %q", names)
		}
	})
}

// TestNoDateInTheFuture: the reserve is ahead of the clock, dates never are.
func TestNoDateInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for host, g := range map[string]string{"a.example.org": "1us", "b.example.org": "1ms", "c.example.org": "100ms", "d.example.org": "1s"} {
			key := f.space("example.org/"+host[:1], minter(rep(host, g)))
			for i := range 200 {
				name := f.first(key)
				if d, now := f.dateOf(name), f.clock(); d.After(now) {
					t.Fatalf("r = %s: %s is in the future of %s", g, name, now)
				}
				time.Sleep(time.Duration(i*i) * time.Microsecond)
			}
			status := must(f.MinterStatus(f.admin, key))(t)
			if over := status.Last.Sub(f.clock()); over > minting.DefaultAhead || g == "1s" && over > 0 {
				t.Errorf("r = %s: dates are reserved %v ahead", g, over)
			}
		}
	})
}

// TestPILIN: each millisecond once, none shortened, the grid used fully.
func TestPILIN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		key := f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
		time.Sleep(10 * 366 * 24 * time.Hour) // there was no PILIN before 2005
		start := time.Now()
		var mu sync.Mutex
		seen := make(map[stele.ID]bool)
		take := func(n int) {
			labels, err := f.Mint(f.admin, key, n)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, l := range labels {
				seen[l.ID] = true
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { take(1000) })
		for range 10 {
			wg.Go(func() {
				for range 100 {
					take(1)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); len(seen) != 2000 || d != 1999*time.Millisecond {
			t.Errorf("%d names in %v, want 2000 in 1999 ms", len(seen), d)
		}
		for id := range seen {
			x := must(f.schemes.Explain(id.String()))(t)
			d, err := time.Parse(time.RFC3339Nano, fmt.Sprint(x.Parts.Get("pilin")))
			if err != nil || d.Before(start) || d.After(time.Now()) {
				t.Fatalf("%s: %v, %v", id, d, err)
			}
		}
	})
}
