package check

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
)

// putting is a store that counts how often targets were made due.
type putting struct {
	stele.Store
	due *int
}

func (p putting) Apply(ctx context.Context, c *stele.Commit) error {
	for _, change := range c.Cells {
		if strings.HasPrefix(change.Name, dueCells) && change.After != nil {
			*p.due++
		}
	}
	return p.Store.Apply(ctx, c)
}

// Targets beyond a quota are put off to the day that has room for them, and not all of them again on each day.
func TestQuotaPutsOffOnce(t *testing.T) {
	g := newRegistry(t)
	due := 0
	g.store = putting{g.store, &due}
	g.r = registrar.New(g.store, g.names, registrar.Options{Now: g.clock})
	c := g.checker(time.Hour)
	const names, most = 100, 10
	for i := range names {
		g.register(fmt.Sprintf("ark:12345/x5%02d", i), fmt.Sprintf("https://h%d.example/", i))
	}
	g.on(func(l *registrar.LinkChecks) { l.Quota = most })
	for n := range names / most {
		g.work(c) // each day with a worker that knows only what is kept
		if want := (n + 1) * most; len(g.asked) != want {
			t.Errorf("%d are asked in %d days, want %d", len(g.asked), n+1, want)
		}
		g.pass(day)
	}
	if due > 2*names+names/2 { // once each as never checked, once each put off, and some of those whose turn comes again meanwhile
		t.Errorf("%d targets are made due %d times", names, due)
	}
}

// What is spent of a quota is not given again to a server that starts, or that takes the lease.
func TestQuotaAfterRestart(t *testing.T) {
	g := newRegistry(t)
	for i := range 12 {
		g.register(fmt.Sprintf("ark:12345/x5%02d", i), fmt.Sprintf("https://h%d.example/", i))
	}
	g.on(func(l *registrar.LinkChecks) { l.Quota = 4 })
	for range 3 {
		g.work(g.checker(time.Hour))
	}
	if len(g.asked) != 4 {
		t.Errorf("%d are asked in a day: %v", len(g.asked), g.asked)
	}
	g.pass(day)
	g.work(g.checker(time.Hour))
	if len(g.asked) != 8 {
		t.Errorf("%d are asked in two days: %v", len(g.asked), g.asked)
	}
}

// A larger quota is not of use a year later only; and what failed comes back on the next day.
func TestQuotaFar(t *testing.T) {
	q := &quota{Day: 100}
	days := make(map[int64]int)
	for range 1000 {
		days[q.book(3, links.Routine)]++
	}
	if len(days) != farDays || days[101] < 3 || days[100+farDays] < 3 || days[101] > 60 {
		t.Errorf("targets are put off to %v", days)
	}
	if got := q.book(3, links.Retried); got != 101 {
		t.Errorf("what failed is put off to day %d", got)
	}
}

// Targets of a pause come back one after the other.
func TestPauseSpreads(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	l := &registrar.LinkChecks{Scheme: "ark", Namespace: "ark:12345/x5", On: true, Pauses: []registrar.HostPause{{Until: g.clock().Add(300 * day)}}}
	w := g.newWork(c)
	count := make(map[time.Time]int)
	for range 10 * pausedAMinute {
		until, err := w.putOffUntil(t.Context(), l, &links.Task{Host: "a.example"})
		if err != nil || until.Before(g.clock().Add(day)) || until.After(g.clock().Add(day+time.Hour)) {
			t.Fatalf("put off until %s, %v", until, err)
		}
		count[until]++
	}
	for at, n := range count {
		if n > pausedAMinute {
			t.Errorf("%d come back at %s", n, at)
		}
	}
}
