package check

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

// reading is a store that counts the cells that are read one by one.
type reading struct {
	stele.Store
	cells *int
}

func (r reading) Cell(ctx context.Context, name string) ([]byte, error) {
	*r.cells++
	return r.Store.Cell(ctx, name)
}

// A worker with nothing to do reads no cell for each namespace whose targets are checked.
func TestIdle(t *testing.T) {
	g := newRegistry(t)
	read := 0
	g.store = reading{g.store, &read}
	g.r = registrar.New(g.store, g.names, registrar.Options{Now: g.clock})
	c := g.checker(time.Hour)
	const spaces = 20
	g.on(nil)
	for i := range spaces {
		key := stele.NamespaceKey{Scheme: "ark", Prefix: fmt.Sprintf("ark:12345/x6%02d", i)}
		if _, err := g.r.AddNamespace(g.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Owner: "olga"}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.r.SetLinkChecks(g.as("olga"), key, func(l *registrar.LinkChecks) { l.On = true }); err != nil {
			t.Fatal(err)
		}
	}
	w := g.newWork(c)
	for range spaces + 2 {
		g.look(w)
	}
	before := read
	for range 10 {
		g.look(w)
	}
	if n := read - before; n >= spaces {
		t.Errorf("it reads %d cells in ten looks", n)
	}
	// A cell that was removed, since what is known is damaged, is noticed in the end.
	cell := enrolCells + "ark\tark:12345/x600"
	value, err := g.store.Cell(t.Context(), cell)
	if err != nil || value == nil {
		t.Fatalf("%q, %v", value, err)
	}
	if err := g.r.KeepChecks(asServer(t.Context()), stele.CellChange{Name: cell, Before: value}); err != nil {
		t.Fatal(err)
	}
	g.pass(readEvery)
	g.look(w)
	if again, err := g.store.Cell(t.Context(), cell); err != nil || again == nil {
		t.Errorf("the namespace is not read again: %q, %v", again, err)
	}
}

// positions is a store that counts how often its position is asked for: once for each look at what is due.
type positions struct {
	stele.Store
	asked *atomic.Int32
}

func (p positions) Position(ctx context.Context) (stele.Position, error) {
	p.asked.Add(1)
	return p.Store.Position(ctx)
}

// A server looks at what is due once a second, and not after each answer.
func TestLookOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRegistry(t)
		var asked atomic.Int32
		c := g.checker(time.Hour)
		c.o.Store = positions{g.store, &asked}
		c.o.Now = func() time.Time { return time.Now().UTC() }
		const names = 60
		for i := range names {
			g.register(fmt.Sprintf("ark:12345/x5%02d", i), fmt.Sprintf("https://h%d.example/", i))
		}
		c.o.Ask = func(ctx context.Context, url string, k ask.Known) (*links.Answer, links.Report) {
			a, _ := g.ask(ctx, url, k)
			return a, links.Report{Address: url} // of its own, so that they need not wait for each other
		}
		g.on(nil)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		time.Sleep(20*time.Second + time.Millisecond)
		stop()
		running.Wait()
		if len(g.asked) != names || asked.Load() > 25 {
			t.Errorf("%d of %d were asked, with %d looks in 20 seconds", len(g.asked), names, asked.Load())
		}
	})
}
