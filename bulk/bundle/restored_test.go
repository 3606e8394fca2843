package bundle

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/store/mem"
)

// backUp makes a backup of a registry, and returns what restores it: the registry begins another generation.
func (h *house) backUp() (restore func()) {
	h.Helper()
	folder := filepath.Join(h.TempDir(), "backup")
	h.must(h.store.Backup(h.ctx, folder))
	return func() {
		h.Helper()
		present, err := h.store.Generations(h.ctx)
		h.must(err)
		last, err := h.store.LastChange(h.ctx)
		h.must(err)
		store, err := mem.Open(folder, h.clock)
		h.must(err)
		list, err := store.Generations(h.ctx)
		h.must(err)
		change, err := store.LastChange(h.ctx)
		h.must(err)
		h.must(store.SetGenerations(h.ctx, list.Last().ID, list.Next(h.clock(), change, present, last)))
		h.over(store)
	}
}

// elsewhere makes changes in no namespace of a bundle.
func (h *house) elsewhere(changes int) {
	h.Helper()
	_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "urn", Prefix: "urn:elsewhere"})
	h.must(err)
	for range changes {
		h.put("urn:elsewhere:1")
	}
}

// A giver that was restored from a backup counts its changes anew. An heir that had adopted a bundle from before it adopts a later one all the same, and none of the
// earlier generation after that.
func TestAdoptRestoredGiver(t *testing.T) {
	g := newGiver(t, 30)
	restore := g.backUp()
	g.elsewhere(40)
	before := g.bundle(g.job(givenPrefixes...))
	restore()
	between := g.bundle(g.job(givenPrefixes...))
	g.put("ark:12345/x3")
	changed := g.bundle(g.job(givenPrefixes...))
	g.seal(heirOrigin, givenPrefixes...)
	after := g.bundle(g.job(givenPrefixes...))
	if was, is := g.check(before).Head, g.check(after).Head; was.Changes <= is.Changes || was.Generation == is.Generation {
		t.Fatalf("the bundles end with changes %d and %d, in generations %s and %s", was.Changes, is.Changes, was.Generation, is.Generation)
	}

	for _, known := range []bool{true, false} { // whether the adoption has the generation
		h := newHeir(t)
		_, err := h.adoption(g).Run(h.ctx, bytes.NewReader(before))
		h.must(err)
		if !known {
			h.forgetGenerations(givenPrefixes...)
		}
		_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(after))
		h.must(err)
		ns, err := h.r.Namespace(h.ctx, h.key("ark:12345"))
		h.must(err)
		if a := ns.Adoptions; len(a) != 2 || ns.IsRead() || a[1].Generation != g.check(after).Head.Generation || known != (a[0].Generation != "") {
			t.Errorf("the adoptions are %+v", a)
		}
		h.inherits(g, "ark:12345")
		h.cleanly()
	}

	h := newHeir(t)
	for _, data := range [][]byte{before, between} {
		_, err := h.adoption(g).Run(h.ctx, bytes.NewReader(data))
		h.must(err)
	}
	_, err := h.adoption(g).Run(h.ctx, bytes.NewReader(before))
	h.code("adopt.older-bundle", err)

	// Of generations that do not know each other the later bundle is the one with the later change.
	h = newHeir(t)
	_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(changed))
	h.must(err)
	_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(before))
	h.code("adopt.older-bundle", err)
}

// forgetGenerations makes adoptions look like those that were made before generations were kept.
func (h *house) forgetGenerations(prefixes ...string) {
	h.Helper()
	for _, p := range prefixes {
		ns, err := h.r.Namespace(h.ctx, h.key(p))
		h.must(err)
		for i := range ns.Adoptions {
			ns.Adoptions[i].Generation = ""
		}
		ns.Version++
		h.must(h.store.Apply(h.ctx, &stele.Commit{Namespaces: []*stele.Namespace{ns}}))
	}
	h.must(h.r.Reload(h.ctx))
}

// What a giver has lost by its restore, and the heir has adopted before, is not opened: two histories can't be joined.
func TestAdoptLostByGiver(t *testing.T) {
	for what, c := range map[string]struct {
		name, code string
	}{
		"a version": {"ark:12345/x3", "adopt.version-not-in-bundle"},
		"a name":    {"ark:12345/late", "adopt.names-differ"},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGiver(t, 30)
			restore := g.backUp()
			g.put(c.name)
			before := g.bundle(g.job(givenPrefixes...))
			restore()
			g.seal(heirOrigin, givenPrefixes...)
			h := newHeir(t)
			_, err := h.adoption(g).Run(h.ctx, bytes.NewReader(before))
			h.must(err)
			_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(g.bundle(g.job(givenPrefixes...))))
			h.code(c.code, err)
			ns, err := h.r.Namespace(h.ctx, h.key("ark:12345"))
			if h.must(err); !ns.IsRead() {
				t.Error("the namespace is open")
			}
		})
	}
}

// An heir that has lost the registry which opened a namespace, and adopts the bundle again, makes none of the names again that it made there.
func TestAdoptRestoredHeir(t *testing.T) {
	g := newGiver(t, 30)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	key := g.key("ark:99999")
	redirects := func(a *Adoption) {
		a.Sealed = func(_ context.Context, _ string, spaces []registrar.AdoptedSpace) (list []stele.NamespaceKey, err error) {
			for _, sp := range spaces {
				list = append(list, sp.Key)
			}
			return list, nil
		}
	}
	for what, c := range map[string]struct {
		restored bool // from a backup of before the adoption
		prepare  func(a *Adoption)
		shut     bool
	}{
		"from a backup":                    {true, func(*Adoption) {}, true},
		"from a backup, and forwarded":     {true, redirects, true},
		"not from a backup, and forwarded": {false, redirects, true},
		"for the first time":               {false, func(*Adoption) {}, false},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHeir(t)
			h.now = h.now.AddDate(6, 0, 0) // after the seal
			restore := h.backUp()
			h.adopt(g, data)
			lost, err := h.r.Mint(h.ctx, key, 500)
			h.must(err)
			if c.restored {
				restore()
			} else {
				h = newHeir(t)
				h.now = h.now.AddDate(6, 0, 0)
			}
			a := h.adoption(g)
			c.prepare(a)
			done, err := a.Run(h.ctx, bytes.NewReader(data))
			h.must(err)
			if ns, err := h.r.Namespace(h.ctx, key); err != nil || ns.IsRead() || (len(done.Shut) == 1 && done.Shut[0] == key) != c.shut {
				t.Errorf("shut are %v; the namespace is %+v, %v", done.Shut, ns, err)
			}
			if !c.shut {
				_, err = h.r.Mint(h.ctx, key, 1)
				h.must(err)
				return
			}
			_, err = h.r.Mint(h.ctx, key, 1)
			h.code("mint.counter-from-backup", err)
			status, err := h.r.MinterStatus(h.ctx, key)
			h.must(err)
			h.must(h.r.SkipCounter(h.ctx, key, status.Given+500))
			made, err := h.r.Mint(h.ctx, key, 500)
			h.must(err)
			for _, l := range made {
				if slices.ContainsFunc(lost, func(m minting.Label) bool { return m.ID == l.ID }) {
					t.Fatalf("%s is made twice", l.ID)
				}
			}
			if again := h.adopt(g, data); !again.Done || len(again.Shut) != 0 {
				t.Errorf("a second run: %+v", again)
			}
			h.cleanly()
		})
	}
}

// A restore of before the seal lost nothing that an adoption brought.
func TestAdoptEarlierRestored(t *testing.T) {
	h := newHeir(t)
	h.now = h.now.AddDate(0, -2, 0)
	h.backUp()()
	g := newGiver(t, 30)
	g.seal(heirOrigin, givenPrefixes...)
	done := h.adopt(g, g.bundle(g.job(givenPrefixes...)))
	if len(done.Shut) != 0 {
		t.Errorf("shut are %v", done.Shut)
	}
	_, err := h.r.Mint(h.ctx, h.key("ark:99999"), 1)
	h.must(err)
}
