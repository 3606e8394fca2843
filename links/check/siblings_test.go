package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// Names of one URL cost one request in a turn, and all of them know what was seen.
func TestSameTarget(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const url, names = "https://a.example/home", 40
	var ids []stele.ID
	for i := range names {
		ids = append(ids, g.register(fmt.Sprintf("ark:12345/x5%02d", i), url))
	}
	if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x6", Owner: "olga"}); err != nil {
		t.Fatal(err)
	}
	unchecked := g.register("ark:12345/x6a", url)
	g.on(nil)
	run := func(days int) {
		for range days * 8 {
			g.pass(3 * time.Hour)
			g.work(c)
		}
	}
	run(120)
	if n := g.asked[url]; n < 4 || n > 6 { // one at once, one in the first turn of them all, and then one in 30 days
		t.Errorf("it was asked %d times in 120 days", n)
	}
	for _, id := range ids {
		g.want(c, id, "ok")
		found, err := c.Show(g.as("olga"), id)
		if err != nil || g.clock().Sub(found[0].Checked) > 31*day {
			t.Errorf("%s was checked on %s, %v", id, found[0].Checked, err)
		}
	}
	if found, err := c.Show(g.as("olga"), unchecked); err != nil || found[0].State != "unchecked" {
		t.Errorf("a name that is not checked: %+v, %v", found, err)
	}

	// A new name of the URL is known after the next answer at the latest, and what goes away does so for all.
	late := g.register("ark:12345/x5z", url)
	g.status[url] = 404
	before := g.asked[url]
	run(12)
	for _, id := range append(ids, late) {
		g.want(c, id, "broken")
	}
	if n := g.asked[url] - before; n > 12 {
		t.Errorf("it was asked %d times until it was broken", n)
	}
	clear(g.status)
	run(8)
	for _, id := range append(ids, late) {
		g.want(c, id, "ok")
	}
}

// If the name that is asked first is not there any more, another one takes its place.
func TestSiblingTakesOver(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const url = "https://a.example/home"
	first, second := g.register("ark:12345/x5a", url), g.register("ark:12345/x5b", url)
	g.on(nil)
	for range 70 {
		g.work(c)
		g.pass(12 * time.Hour)
	}
	for _, id := range []stele.ID{first, second} {
		found, err := c.Show(g.as("olga"), id)
		if err != nil {
			t.Fatal(err)
		}
		if found[0].Next.Sub(g.clock()) < 32*day { // it is the first one
			if _, err := g.r.Withdraw(g.admin, id, 0, "a test", stele.ID{}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	before := g.asked[url]
	for range 2 * 62 {
		g.pass(12 * time.Hour)
		g.work(c)
	}
	if g.asked[url] == before {
		t.Error("the other name was not asked in 62 days")
	}
}

// What is promised not to change is asked for itself.
func TestUnchangingSibling(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const url = "https://a.example/home"
	usual := g.register("ark:12345/x5a", url)
	g.on(nil)
	g.work(c)
	if _, err := g.r.Register(g.admin, &stele.Record{ID: g.id("ark:12345/x5b"), State: stele.Active, Persistence: stele.Persistence{Level: stele.Unchanging},
		Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}}}); err != nil {
		t.Fatal(err)
	}
	w := g.newWork(c)
	seen := &sight{answered: &answered{}}
	seen.task.URL = url
	list, err := w.siblings(t.Context(), g.id("ark:12345/x5b"), seen)
	if err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err = w.siblings(t.Context(), usual, seen); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
