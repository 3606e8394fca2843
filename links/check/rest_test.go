package check

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
)

// A user who waits for a target whose site wants to be left alone is told so at once, and does not wait until the site may be asked.
func TestToldToWait(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	works := g.register("ark:12345/x5w", "https://b.example/1")
	if err := c.Ask(g.as("ed"), works); err != nil {
		t.Fatal(err)
	}
	g.work(c)
	g.pass(time.Hour)
	first, second, third := g.register("ark:12345/x5a", "https://a.b.example/1"), g.register("ark:12345/x5b", "https://a.b.example/2"), g.register("ark:12345/x5c", "https://a.b.example/3")
	g.status["https://a.b.example/1"] = 429
	g.on(nil)
	since := g.clock()
	if err := c.Ask(g.as("ed"), first, second); err != nil {
		t.Fatal(err)
	}
	w := g.newWork(c)
	task, _, ok := w.line.Next(g.clock())
	if !ok || task.URL != "https://a.b.example/1" {
		t.Fatalf("%s is next", task.URL)
	}
	answer, report := g.ask(t.Context(), task.URL, ask.Known{})
	if err := w.take(t.Context(), answered{task: task, answer: answer, report: report}); err != nil {
		t.Fatal(err)
	}
	g.pass(time.Minute)
	if err := c.Ask(g.as("ed"), third, works); err != nil { // while the domain rests
		t.Fatal(err)
	}
	g.look(w)
	list, waiting, err := c.Check(g.as("ed"), []stele.ID{first, second, third, works}, since)
	if err != nil || waiting > 0 {
		t.Fatalf("a user waits for %d targets, %v", waiting, err)
	}
	for _, f := range list {
		if f.ID == works.String() {
			if f.State != "ok" || f.Cause != "answered" || !f.Waits() {
				t.Errorf("%s is %s (%s), checked %s, good %s", f.ID, f.State, f.Cause, f.Checked, f.Good)
			}
		} else if f.State != "unchecked" || f.Cause != links.AskedToWait.String() {
			t.Errorf("%s is %s (%s)", f.ID, f.State, f.Cause)
		}
		if f.Next.Sub(g.clock()) < 30*time.Minute {
			t.Errorf("%s is asked again at %s", f.ID, f.Next)
		}
	}
	if len(w.pending) > 0 || g.asked["https://a.b.example/2"] > 0 {
		t.Errorf("%d wait; asked: %v", len(w.pending), g.asked)
	}
	clear(g.status)
	for range 3 {
		g.pass(40 * time.Minute)
		if err := w.lease.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	g.look(w)
	if len(w.pending) == 0 {
		t.Error("none of them is asked later")
	}
}
