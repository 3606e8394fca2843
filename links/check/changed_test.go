package check

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

func (g *registry) setURL(id stele.ID, url string) {
	g.t.Helper()
	if _, err := g.r.Update(g.admin, id, 0, func(rec *stele.Record) error { rec.Targets[0].URL = url; return nil }); err != nil {
		g.t.Fatal(err)
	}
}

// A target that changes while it is asked is asked at its new address.
func TestChangedMeanwhile(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/old")
	g.on(nil)
	g.during = func(url string) {
		if url == "https://a.example/old" {
			g.setURL(id, "https://a.example/new")
		}
	}
	l, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(c, l)
	if err := w.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	task, _, ok := w.line.Next(g.clock())
	if !ok {
		t.Fatal("nothing is due")
	}
	answer, report := g.ask(t.Context(), task.URL, ask.Known{})
	if err := w.follow(t.Context()); err != nil { // the feed is read before the answer is taken
		t.Fatal(err)
	}
	if err := w.take(t.Context(), answered{task: task, answer: answer, report: report}); err != nil {
		t.Fatal(err)
	}
	l.leave(t.Context())
	g.work(c)
	if g.asked["https://a.example/new"] != 1 {
		t.Errorf("asked: %v", g.asked)
	}
	g.want(c, id, "ok")
}

// What waits is not asked if its target changes, or if its namespace is switched off.
func TestChangedBefore(t *testing.T) {
	for name, change := range map[string]func(g *registry, id stele.ID){
		"target": func(g *registry, id stele.ID) { g.setURL(id, "https://a.example/new") },
		"settings": func(g *registry, _ stele.ID) {
			g.on(func(l *registrar.LinkChecks) { l.On = false })
		},
	} {
		g := newRegistry(t)
		c := g.checker(time.Hour)
		id := g.register("ark:12345/x5a", "https://a.example/old")
		g.on(nil)
		l, err := c.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := newWorker(c, l)
		if err := w.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		change(g, id)
		g.pass(spacesEvery)
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		task, _, ok := w.line.Next(g.clock())
		if !ok {
			t.Fatal("nothing is due")
		}
		if _, err := w.prepare(t.Context(), &task); err != nil || len(task.Keys) > 0 || len(w.pending) > 0 {
			t.Errorf("%s: it is asked: %q, %v", name, task.Keys, err)
		}
	}
}

// What is told about a target ends with the target.
func TestOldFindings(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x5a", "https://a.example/1")
	g.status["https://a.example/1"] = 404
	g.on(nil)
	g.work(c)
	if got := g.findings(c, "ruth"); len(got) != 1 {
		t.Fatalf("findings: %v", got)
	}
	k := keyOf(id, 0)
	told, err := g.r.CheckCell(asServer(t.Context()), k.found())
	if err != nil {
		t.Fatal(err)
	}
	g.setURL(id, "https://a.example/2")
	if got := g.findings(c, "ruth"); len(got) != 0 {
		t.Errorf("of the former target: %v", got)
	}
	g.work(c)
	g.want(c, id, "ok")
	// A backup, or an answer that came late, may have left the cell.
	if err := c.keep(t.Context(), nil, func(b *batch) error { return b.set(t.Context(), k.found(), told) }); err != nil {
		t.Fatal(err)
	}
	g.pass(2 * day)
	g.work(c)
	if value, err := g.r.CheckCell(asServer(t.Context()), k.found()); value != nil || err != nil {
		t.Errorf("%s is left, %v", value, err)
	}
}
