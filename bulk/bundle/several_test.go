package bundle

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
)

// beside returns another process over the registry of a house.
func (h *house) beside(store stele.Store) *house {
	other := *h
	other.over(store)
	return &other
}

// mint makes names until it is refused, or there are so many.
func (h *house) mint(prefix string, most int) (list []stele.ID) {
	h.Helper()
	for len(list) < most {
		labels, err := h.r.Mint(h.ctx, h.key(prefix), 1)
		if stele.KindOf(err) == stele.Conflict && err != nil {
			break
		}
		h.must(err)
		for _, l := range labels {
			list = append(list, l.ID)
		}
	}
	return list
}

func (h *house) distinct(lists ...[]stele.ID) {
	h.Helper()
	seen := map[stele.ID]bool{}
	for _, id := range slices.Concat(lists...) {
		if seen[id] {
			h.Errorf("%s is given twice", id)
		}
		seen[id] = true
	}
}

// A server of the giver that does not know of the seal yet may give names that it had reserved. The heir never gives these.
func TestAdoptLateServer(t *testing.T) {
	g, h := newGiver(t, 30), newHeir(t)
	late := g.beside(g.store)
	before := late.mint("ark:99999", 3)
	g.seal(heirOrigin, givenPrefixes...)
	after := late.mint("ark:99999", 2000)
	if _, err := late.r.Register(late.ctx, &stele.Record{ID: late.id("ark:99999/late")}); stele.KindOf(err) != stele.Conflict {
		t.Errorf("the late server registers: %v", err)
	}
	data := g.bundle(g.job(givenPrefixes...))
	after = append(after, late.mint("ark:99999", 2000)...)
	h.adopt(g, data)
	if again := late.mint("ark:99999", 1); len(again) > 0 {
		t.Errorf("%v is given after the server has heard of the seal", again)
	}
	h.distinct(before, after, h.mint("ark:99999", 2000))
}

// A bundle that was sealed for one heir lets no other registry give names, whether that has a name of its own or not.
func TestAdoptSecondHeir(t *testing.T) {
	g := newGiver(t, 30)
	minted := g.mint("ark:99999", 10)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	var given [][]stele.ID
	for _, name := range []string{"second.example.org/.log", "", heirOrigin} {
		h := newHeir(t)
		a := h.adoption(g)
		a.Heir = name
		done, err := a.Run(h.ctx, bytes.NewReader(data))
		h.must(err)
		for _, sp := range done.Spaces {
			if sp.Reading != (name != heirOrigin) {
				t.Errorf("%q adopts %+v", name, sp)
			}
		}
		if name != heirOrigin {
			h.refusesAll("ark:99999", "ark:99999/x0")
			h.refusesAll("ark:12345", "ark:12345/x2")
		}
		given = append(given, h.mint("ark:99999", 50))
	}
	g.distinct(append(given, minted)...)
	if len(given[2]) != 50 {
		t.Errorf("the heir has given %d names", len(given[2]))
	}
}

// Two processes that adopt one bundle at once, over one database, do what one of them does. A server of the heir works there meanwhile, and
// gives no name before all is there.
func TestAdoptTwice(t *testing.T) {
	g := newGiver(t, 200)
	minted := g.mint("ark:99999", 40)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	for name, open := range adoptStores(t) {
		t.Run(name, func(t *testing.T) {
			h := newHeir(t)
			store := open(h)
			h.over(store)
			var adopting, serving sync.WaitGroup
			over := make(chan struct{})
			var given []stele.ID
			server := h.beside(store)
			serving.Go(func() { given = server.serveMeanwhile(over, store) })
			for range 2 {
				one := h.beside(store)
				adopting.Go(func() {
					for attempt := 0; ; attempt++ {
						job := one.adoption(g)
						job.versions = 20
						_, err := job.Run(one.ctx, bytes.NewReader(data))
						if err == nil {
							return
						}
						code, _ := stele.CodeOf(err)
						if k := stele.KindOf(err); attempt == 20 || code == "adopt.names-differ" || k != stele.Conflict && k != stele.Unavailable {
							t.Errorf("attempt %d: %v", attempt, err)
							return
						}
					}
				})
			}
			adopting.Wait()
			close(over)
			serving.Wait()
			for _, p := range givenPrefixes {
				h.inherits(g, p)
			}
			h.must(h.r.Reload(h.ctx))
			h.distinct(minted, given, h.mint("ark:99999", 50))
			h.cleanly()
		})
	}
}

// serveMeanwhile mints and registers as soon as it may, and makes sure that all was adopted then.
func (h *house) serveMeanwhile(over chan struct{}, store stele.Store) (given []stele.ID) {
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:99999"}
	for {
		select {
		case <-over:
			return given
		default:
		}
		if err := h.r.Reload(h.ctx); err != nil {
			h.Error(err)
		}
		labels, err := h.r.Mint(h.ctx, key, 1)
		if err != nil {
			continue
		}
		given = append(given, labels[0].ID)
		if _, err := h.r.Register(h.ctx, &stele.Record{ID: labels[0].ID}); err != nil {
			h.Errorf("it mints, and does not register: %v", err)
		}
		if len(given) == 1 {
			for _, name := range []string{"ark:99999/reserved", "ark:99999/x2", "ark:99999/wrong", "20.500.1/secret", "ark:12345/x199"} {
				if _, err := store.Record(h.ctx, h.id(name)); err != nil {
					h.Errorf("%s is given, and %s is not here: %v", labels[0].ID, name, err)
				}
			}
		}
	}
}

// An adoption does not open a namespace in which a later bundle has begun to be adopted: what that adds may not be there yet. Here the giver
// has cancelled its seal, gone on, and sealed again; the later adoption is cut off after each of its commits.
func TestAdoptOvertaken(t *testing.T) {
	g := newGiver(t, 30)
	g.seal(heirOrigin, givenPrefixes...)
	first := g.bundle(g.job(givenPrefixes...))
	for _, p := range givenPrefixes {
		_, err := g.r.CancelHandOver(g.ctx, g.key(p), true)
		g.must(err)
	}
	minted := g.mint("ark:99999", 40)
	g.put("ark:99999/later")
	g.seal(heirOrigin, givenPrefixes...)
	second := g.bundle(g.job(givenPrefixes...))
	refused := 0
	for left := 0; ; left++ {
		h := newHeir(t)
		store := h.store
		var late error
		h.over(&meanwhile{Store: store, do: func() {
			other := h.beside(&breaking{store, left, false})
			job := other.adoption(g)
			job.versions = 20
			_, late = job.Run(other.ctx, bytes.NewReader(second))
		}})
		job := h.adoption(g)
		job.versions = 20
		_, err := job.Run(h.ctx, bytes.NewReader(first))
		h.over(store)
		if err != nil && stele.KindOf(err) != stele.Conflict {
			t.Fatalf("after %d commits: %v", left, err)
		}
		if err != nil {
			refused++
		}
		ns, nerr := h.r.Namespace(h.ctx, h.key("ark:99999"))
		h.must(nerr)
		if len(ns.Adoptions) > 1 && !ns.IsRead() {
			h.distinct(minted, h.mint("ark:99999", 60))
			if h.inherits(g, "ark:99999"); t.Failed() {
				t.Fatalf("after %d commits of a later bundle the namespace is open", left)
			}
		}
		if _, err := h.adoption(g).Run(h.ctx, bytes.NewReader(second)); err == nil {
			h.distinct(minted, h.mint("ark:99999", 60))
			h.inherits(g, "ark:99999")
		} else if isOpen(h) && !strings.Contains(err.Error(), "for good") {
			t.Errorf("after %d commits: %v", left, err)
		}
		if late == nil || t.Failed() {
			break
		}
	}
	if refused < 3 && !t.Failed() {
		t.Errorf("it was overtaken %d times", refused)
	}
}

// meanwhile is a store in which something happens before the first records are written.
type meanwhile struct {
	stele.Store
	once sync.Once
	do   func()
}

func (m *meanwhile) Apply(ctx context.Context, c *stele.Commit) error {
	if len(c.Records) > 0 {
		m.once.Do(m.do)
	}
	return m.Store.Apply(ctx, c)
}

func (m *meanwhile) Ingest(ctx context.Context, records []*stele.Record, count stele.NamespaceCounter, touch *stele.Touch, state *stele.MinterState, entries ...*stele.AuditEntry) ([]error, error) {
	m.once.Do(m.do)
	return m.Store.Ingest(ctx, records, count, touch, state, entries...)
}
