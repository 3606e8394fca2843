package transparency

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// forgetful is a store of an earlier program, which kept the current version of a namespace alone.
type forgetful struct{ stele.Store }

func (f forgetful) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		for ns, err := range f.Store.NamespaceHistory(ctx, key) {
			yield(ns, err)
			return
		}
	}
}

// A registry from before the log gets its log; versions of namespaces that were never kept are leaves without digests.
func TestLogOfEarlierRegistry(t *testing.T) {
	h := newHouse(t, func(now func() time.Time) stele.Store { return forgetful{mem.New(now)} })
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	for _, title := range []string{"One", "Two"} {
		_, err := h.r.SetNamespace(h.ctx, key, 0, func(ns *stele.Namespace) error { ns.Title = title; return nil })
		h.must(err)
	}
	h.put("ark:12345/x1", "https://example.org/1")
	h.put("ark:12345/x1", "https://example.org/2")

	// What is not logged yet is not a problem.
	h.wantSound()
	h.catchUp()
	h.wantSound()
	want := map[uint64]bool{1: true, 2: true, 3: false} // by version: the leaf has no digests
	leaves := 0
	for leaf := range uint64(6) {
		k, err := h.log.kept(h.ctx, leaf)
		h.must(err)
		c, err := h.log.change(h.ctx, leaf)
		h.must(err)
		if kind, name := subject(&c); kind != KindNamespace || name != key.String() {
			continue
		}
		leaves++
		if bare := k.flags&flagNoted == 0; bare != want[c.Version] {
			t.Errorf("the leaf of version %d of the namespace has no digests: %v", c.Version, bare)
		}
	}
	if leaves != 3 {
		t.Errorf("the namespace has %d leaves", leaves)
	}

	// The cells are lost, and the log is made again: with other seeds, so that the last checkpoint is not one of it. It is not signed, since two
	// checkpoints of one size and two roots would be evidence against the registry.
	before := h.prove("ark:12345/x1", 1, false)
	for c, err := range h.store.Cells(h.ctx, Cells, "") {
		h.must(err)
		if !strings.HasPrefix(c.Name, checkpointCell) {
			h.must(h.store.Apply(h.ctx, &stele.Commit{Cells: []stele.CellChange{{Name: c.Name, Before: c.Value}}}))
		}
	}
	h.r, h.log = h.server(nil)
	h.catchUp()
	if problems := h.verify(); len(problems) != 1 || !strings.Contains(problems[0], "checkpoint") {
		t.Errorf("verify reports %q", problems)
	}
	for range 2 {
		if _, err := h.log.Sign(h.ctx, h.keys); code(err) != "log.other-than-signed" {
			t.Errorf("another log is signed: %v", err)
		}
		h.put("ark:12345/x2", "https://example.org/1")
		h.catchUp()
	}
	// After a restore it has another name, and is signed.
	list, err := h.store.Generations(h.ctx)
	h.must(err)
	last, err := h.store.LastChange(h.ctx)
	h.must(err)
	h.must(h.store.SetGenerations(h.ctx, list.Last().ID, list.Next(h.clock(), last, list, last)))
	h.r, h.log = h.server(nil)
	h.catchUp()
	if _, err := h.log.Shown(h.ctx); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("the checkpoint of the former generation is shown: %v", err)
	}
	after := h.prove("ark:12345/x1", 1, false)
	if p, err := h.log.Shown(h.ctx); err != nil || p.Note != after.Note {
		t.Errorf("%q is shown, %v", p.Note, err)
	}
	for _, p := range []*Proof{before, after} {
		if _, err := p.Check(h.keys.Public()); err != nil {
			t.Error(err)
		}
	}
	if string(before.Document) != string(after.Document) || string(before.Leaf) == string(after.Leaf) {
		t.Error("the log made again does not have new salts for the same documents")
	}
}
