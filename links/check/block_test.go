package check

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/registrar"
)

// blocks reads all blocks, and makes sure that each goes on where the one before ends.
func (g *registry) blocks() (states []state) {
	g.t.Helper()
	low, last := "", ""
	for cell, err := range g.store.Cells(g.t.Context(), blockCells, "") {
		if err != nil {
			g.t.Fatal(err)
		}
		from, some, ok := readBlock(cell.Value)
		last = strings.TrimPrefix(cell.Name, blockCells)
		if !ok || from != low || len(cell.Value) > maxBlock && len(some) > 1 {
			g.t.Fatalf("the block %q of %d bytes begins at %q, want %q", last, len(cell.Value), from, low)
		}
		for _, s := range some {
			if s.place < low || s.place >= last {
				g.t.Errorf("%q stands in the block from %q to %q", s.place, low, last)
			}
		}
		states, low = append(states, some...), last
	}
	if len(states) > 0 && last != lastBlock {
		g.t.Errorf("the last block is %q", last)
	}
	return states
}

// Many writers change many states: nothing is lost, and nothing stands twice.
func TestBlocks(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const writers, names, turns = 4, 120, 400
	want := make([]map[key][]byte, writers)
	var all sync.WaitGroup
	for w := range writers {
		want[w] = make(map[key][]byte)
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range turns {
				next := make(map[key][]byte)
				for range 1 + r.IntN(8) {
					k := keyOf(stele.StoredID("ark", fmt.Sprintf("ark:12345/x5%d-%d", w, r.IntN(names))), r.IntN(2))
					next[k] = bytes.Repeat([]byte{byte(i)}, 20+r.IntN(100))
					if r.IntN(5)*turns < 4*i { // in the end nearly all are removed
						next[k] = nil
					}
				}
				for {
					err := c.keep(t.Context(), nil, func(b *batch) error {
						for k, value := range next {
							if err := b.setState(t.Context(), k, value); err != nil {
								return err
							}
						}
						return nil
					})
					if errors.Is(err, stele.Conflict) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					break
				}
				for k, value := range next {
					if want[w][k] = value; value == nil {
						delete(want[w], k)
					}
				}
			}
		})
	}
	all.Wait()
	check := func() {
		t.Helper()
		states, count := g.blocks(), 0
		for w := range want {
			count += len(want[w])
			for k, value := range want[w] {
				if i := slices.IndexFunc(states, func(s state) bool { return s.key() == k }); i < 0 || !bytes.Equal(states[i].value, value) {
					t.Errorf("the state of %q is lost", k)
				}
			}
		}
		if len(states) != count {
			t.Errorf("there are %d states, want %d", len(states), count)
		}
	}
	check()
	err := c.keep(t.Context(), nil, func(b *batch) error {
		for w := range want {
			for k := range want[w] {
				if err := b.setState(t.Context(), k, nil); err != nil {
					return err
				}
			}
			clear(want[w])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check()
	for cell, err := range g.store.Cells(t.Context(), blockCells, "") {
		t.Errorf("%q is left, %v", cell.Name, err)
	}
}

// What a later version of the program keeps is refused, and stays as it is.
func TestLaterForm(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	id := g.register("ark:12345/x51", "https://a.example/1")
	g.on(nil)
	w := g.newWork(c)
	later := append([]byte{lastForm}, "what is not known yet"...)
	admin := asServer(t.Context())
	for cell, err := range g.store.Cells(t.Context(), blockCells, "") {
		if err == nil {
			err = g.r.KeepChecks(admin, stele.CellChange{Name: cell.Name, Before: cell.Value})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := g.r.KeepChecks(admin, stele.CellChange{Name: blockCells + lastBlock, After: later}); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if code, _ := stele.CodeOf(err); code != "links.later-form" || stele.KindOf(err) != stele.Unavailable || !endsWork(t.Context(), err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a look", c.Look(g.as("ed"), id, 0, true, "x"))
	_, err := c.CountDue(t.Context(), g.clock(), g.clock().Add(time.Hour))
	refused("to count", err)
	task, _, ok := w.line.Next(g.clock())
	if !ok {
		t.Fatal("nothing is next")
	}
	answer, report := g.ask(t.Context(), task.URL, ask.Known{})
	refused("an answer", w.take(t.Context(), answered{task: task, answer: answer, report: report}))
	if value, err := g.r.CheckCell(admin, blockCells+lastBlock); err != nil || !bytes.Equal(value, later) {
		t.Errorf("the block is %q, %v", value, err)
	}
}

// FuzzBlock reads any bytes: a block that is read can be written, and is the same then.
func FuzzBlock(f *testing.F) {
	f.Add(appendBlock(nil, "", nil))
	f.Add(appendBlock(nil, "0a00ark\tark:12345/x\t0!", []state{{"0a01ark\tark:12345/x5a\t0", []byte("abc")}, {"0a01ark\tark:12345/x5b\t0", nil}, {"0b01ark\tark:12345/x5a\t1", []byte{0}}}))
	f.Add([]byte{1, 4, '0', '0', '0', '1', 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		low, states, ok := readBlock(b)
		if !ok {
			return
		}
		again, list, ok := readBlock(appendBlock(nil, low, states))
		if !ok || again != low || !slices.EqualFunc(list, states, func(a, b state) bool { return a.place == b.place && bytes.Equal(a.value, b.value) }) {
			t.Errorf("%q is read as %q %q, and then as %q %q", b, low, states, again, list)
		}
	})
}

// What an earlier version kept, in a cell for each target, is known before and after it is converted.
func TestConvert(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const count = 1200
	var changes []stele.CellChange
	for i := range count {
		id := g.register(fmt.Sprintf("ark:12345/x5%04d", i), fmt.Sprintf("https://a%d.example/1", i))
		s := links.Status{URL: links.Hash(fmt.Sprintf("https://a%d.example/1", i)), State: links.Blocked, Cause: links.Forbidden, Code: 403, Since: g.clock(), Checked: g.clock(), Next: round(links.Slot(keyOf(id, 0).hash(), g.clock()))}
		changes = append(changes, stele.CellChange{Name: keyOf(id, 0).state(), After: s.Append(nil)})
	}
	changes = append(changes, stele.CellChange{Name: stateCells + "0000nothing", After: []byte("x")})
	if err := g.r.KeepChecks(g.admin, changes...); err != nil {
		t.Fatal(err)
	}
	first, second := g.id("ark:12345/x50000"), g.id("ark:12345/x50001")
	g.want(c, first, "blocked")
	if err := g.sayLooked(c, "ed", first, 0, true); err != nil {
		t.Fatal(err)
	}
	g.want(c, first, "ok")
	// A server of the earlier version is at work, too, and finds out less than is known.
	s := links.Status{URL: links.Hash("https://a0.example/1"), State: links.Failing, Checked: g.clock().Add(-time.Hour)}
	if err := g.r.KeepChecks(g.admin, stele.CellChange{Name: keyOf(first, 0).state(), After: s.Append(nil)}); err != nil {
		t.Fatal(err)
	}
	g.on(func(l *registrar.LinkChecks) { l.Pauses = []registrar.HostPause{{Until: g.clock().Add(300 * day)}} })
	g.work(c)
	for cell, err := range g.store.Cells(t.Context(), stateCells, "") {
		t.Errorf("%q is left, %v", cell.Name, err)
	}
	if got := len(g.blocks()); got != count {
		t.Errorf("there are %d states, want %d", got, count)
	}
	g.want(c, first, "ok")
	g.want(c, second, "blocked")
	if len(g.asked) > 0 {
		t.Errorf("what is known was asked for: %d", len(g.asked))
	}
}

// A block that is damaged is written anew with what can be read, and the others of its names are checked again.
func TestDamagedBlock(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	const count = 60
	for i := range count {
		g.register(fmt.Sprintf("ark:12345/x5%04d", i), fmt.Sprintf("https://a%d.example/1", i))
	}
	g.on(nil)
	g.work(c)
	if got := len(g.blocks()); got != count || len(g.asked) != count {
		t.Fatalf("there are %d states of %d", got, len(g.asked))
	}
	n := 0
	for cell, err := range g.store.Cells(t.Context(), blockCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		after := cell.Value[:len(cell.Value)/2]
		if n++; n%2 == 0 {
			after = []byte("\x00damaged")
		}
		if err := g.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value, After: after}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n < 2 {
		t.Fatalf("there are %d blocks", n)
	}
	for range 31 * 4 {
		g.pass(6 * time.Hour)
		g.work(c)
	}
	if got := len(g.blocks()); got != count {
		t.Errorf("there are %d states, want %d", got, count)
	}
	for i := range count {
		g.want(c, g.id(fmt.Sprintf("ark:12345/x5%04d", i)), "ok")
	}
}

// TestDamagedPlace: the place of a damaged block is told, though nothing of it can be read and sound ones stand before it.
func TestDamagedPlace(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	for i := range 60 {
		g.register(fmt.Sprintf("ark:12345/x5%04d", i), fmt.Sprintf("https://a%d.example/1", i))
	}
	g.on(nil)
	g.work(c)
	var cells []stele.Cell
	for cell, err := range g.store.Cells(t.Context(), blockCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, cell)
	}
	if len(cells) < 3 {
		t.Fatalf("there are %d blocks", len(cells))
	}
	if err := g.store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{{Name: cells[1].Name, Before: cells[1].Value, After: []byte("\x00damaged")}}}); err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, err := range c.states(t.Context(), "", "\xff", func(place string) { places = append(places, place) }) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.TrimPrefix(cells[0].Name, blockCells); len(places) != 1 || places[0] != want {
		t.Errorf("the places are %q, want %q", places, want)
	}
}
