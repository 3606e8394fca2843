package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

// newWork returns a worker that has looked once.
func (g *registry) newWork(c *Checker) *worker {
	g.t.Helper()
	l, err := c.take(g.t.Context())
	if err != nil || l == nil {
		g.t.Fatalf("no lease: %v", err)
	}
	w := newWorker(c, l)
	if err := w.begin(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	g.look(w)
	return w
}

func (g *registry) look(w *worker) {
	g.t.Helper()
	if err := w.look(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

// A host that does not answer must not fill the memory of the worker, nor hold its turn.
func TestDeadHostMakesRoom(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	for i := range 60 {
		url := fmt.Sprintf("https://dead.example/%d", i)
		g.register(fmt.Sprintf("ark:12345/x5%d", i), url)
		g.status[url] = 0
	}
	g.on(nil)
	w := g.newWork(c)
	if len(w.pending) != 60 {
		t.Fatalf("%d wait", len(w.pending))
	}
	for range 5 {
		task, again, ok := w.line.Next(g.clock())
		if !ok {
			g.pass(again.Sub(g.clock()))
			task, _, ok = w.line.Next(g.clock())
		}
		if !ok {
			t.Fatal("nothing is next")
		}
		answer, report := g.ask(t.Context(), task.URL, ask.Known{})
		if err := w.take(t.Context(), answered{task: task, answer: answer, report: report}); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.pending) > 0 || w.line.Len() > 0 || len(w.wheel) > 0 {
		t.Errorf("%d wait, %d in the line, %d of the turn", len(w.pending), w.line.Len(), len(w.wheel))
	}
	due := make(map[time.Time]int)
	for cell, err := range g.r.CheckList(asServer(t.Context()), dueCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := parseDue(cell.Name)
		if err != nil || !at.After(g.clock()) {
			t.Errorf("%q is due, %v", cell.Name, err)
		}
		due[at]++
	}
	total := 0
	for at, n := range due {
		if total += n; n > 15 { // they are kept to the minute
			t.Errorf("%d are due at %s", n, at)
		}
	}
	if total != 60 {
		t.Errorf("%d of 60 are due", total)
	}
}

// A user who asks for a check comes first, also if the target waits for its turn already.
func TestUrgentFirst(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	var last stele.ID
	for i := range 20 {
		last = g.register(fmt.Sprintf("ark:12345/x5%02d", i), fmt.Sprintf("https://a.example/%d", i))
	}
	g.on(nil)
	w := g.newWork(c)
	if err := c.Ask(g.as("ed"), last); err != nil {
		t.Fatal(err)
	}
	for i := range maxPending { // as if much more waited
		w.pending[key(fmt.Sprintf("ark\tark:12345/other%d\t0", i))] = &waiting{}
	}
	g.look(w)
	if task, _, ok := w.line.Next(g.clock()); !ok || task.URL != "https://a.example/19" {
		t.Errorf("%s is next", task.URL)
	}
	added := g.register("ark:12345/x5added", "https://b.example/1")
	if err := c.Ask(g.as("ed"), added); err != nil {
		t.Fatal(err)
	}
	g.look(w)
	if task, _, ok := w.line.Next(g.clock()); !ok || task.URL != "https://b.example/1" {
		t.Errorf("%s is next", task.URL)
	}
}

// A clock that was ahead must not stop the checks until that time comes.
func TestClockWasAhead(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Minute)
	g.register("ark:12345/x5a", "https://a.example/1")
	g.on(nil)
	g.pass(400 * day)
	w := g.newWork(c) // it dies, and does not give the lease back
	w.place.Wheel = g.clock()
	if err := w.keep(t.Context(), w.lease, func(b *batch) error { return b.setJSON(t.Context(), placeCell, &w.place) }); err != nil {
		t.Fatal(err)
	}
	g.pass(-400 * day)
	again := g.newWork(c)
	if again.place.Wheel.After(g.clock()) {
		t.Errorf("the turn is at %s", again.place.Wheel)
	}
}

// What an owner paused can go on before the pause was to end.
func TestPauseEndsEarly(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.on(func(l *registrar.LinkChecks) { l.Pauses = []registrar.HostPause{{Until: g.clock().Add(300 * day)}} })
	g.work(c)
	g.want(c, id, "unchecked")
	g.on(func(l *registrar.LinkChecks) { l.Pauses = nil })
	g.pass(day + time.Hour)
	g.work(c)
	g.want(c, id, "ok")
}

// A time in the future would have the targets checked again with each request.
func TestFutureSince(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	if _, _, err := c.Check(g.as("ed"), []stele.ID{id}, g.clock().Add(time.Hour)); stele.KindOf(err) != stele.Invalid {
		t.Errorf("%v", err)
	}
	if _, n, err := c.Check(g.as("ed"), []stele.ID{id}, g.clock().Add(time.Second)); err != nil || n != 1 {
		t.Errorf("a clock that is a little ahead: %d, %v", n, err)
	}
}

// Targets that users wait for do not keep others from being checked, however many they are.
func TestManyUrgent(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	other := g.register("ark:12345/x50", "https://other.example/1")
	var ids []stele.ID
	for i := range maxPending + 50 {
		ids = append(ids, g.register(fmt.Sprintf("ark:12345/x51%d", i), fmt.Sprintf("https://slow%d.example/%d", i%40, i)))
	}
	if err := c.Ask(g.as("ed"), ids...); err != nil {
		t.Fatal(err)
	}
	g.on(nil)
	w := g.newWork(c)
	wanted, _ := w.waits()
	if wanted != maxPending || w.pending[keyOf(other, 0)] == nil {
		t.Errorf("%d of %d that users wait for are in memory; the other one: %v", wanted, len(ids), w.pending[keyOf(other, 0)])
	}
}

// Users who wait for many targets of a domain do not fill the line with them, and all of them are checked in the end.
func TestUrgentOfOneDomain(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const count = 2 * maxUrgent
	for i := range count {
		if err := c.Ask(g.as("ed"), g.register(fmt.Sprintf("ark:12345/x5%04d", i), fmt.Sprintf("https://a%d.big.example/%d", i%3, i))); err != nil {
			t.Fatal(err)
		}
	}
	other := g.register("ark:12345/x5z", "https://small.example/1")
	if err := c.Ask(g.as("ed"), other); err != nil {
		t.Fatal(err)
	}
	l, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(c, l)
	if err := w.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.look(w)
	if len(w.pending) != maxUrgent+1 || w.pending[keyOf(other, 0)] == nil {
		t.Errorf("%d targets wait in the line", len(w.pending))
	}
	l.leave(t.Context())
	for range 10 {
		g.work(c)
		g.pass(5 * time.Minute)
	}
	if len(g.asked) != count+1 {
		t.Errorf("%d targets were asked", len(g.asked))
	}
}

// A user who asks for more names of one domain than the worker reads at once does not keep out users who ask for names that come after these.
func TestManyAskedOfOneDomain(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	var many []stele.ID
	for i := range 2*maxPending + 200 {
		many = append(many, g.register(fmt.Sprintf("ark:12345/x5a%05d", i), fmt.Sprintf("https://busy.example/%d", i)))
	}
	last := g.register("ark:12345/x5z", "https://other.example/1")
	if err := c.Ask(g.as("ed"), many...); err != nil {
		t.Fatal(err)
	}
	w := g.newWork(c)
	if err := c.Ask(g.as("ed"), last); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g.look(w)
	}
	if p := w.pending[keyOf(last, 0)]; p == nil || !p.urgent {
		t.Errorf("%s does not wait in the line, after %q", last, w.asked)
	}
	first := false // what was read first comes again
	for range 3 {
		g.look(w)
		first = first || w.asked == ""
	}
	if !first {
		t.Errorf("it reads on after %q", w.asked)
	}
}
