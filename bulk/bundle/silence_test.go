package bundle

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
)

const silentDays = 180

// silentGiver returns a registry that names an heir of its namespaces, and a bundle of it.
func silentGiver(t *testing.T, days int) (*house, []byte) {
	g := newGiver(t, 30)
	for _, p := range givenPrefixes {
		_, err := g.r.SetNamespace(g.ctx, g.key(p), 0, func(ns *stele.Namespace) error {
			ns.Heirs = []stele.Heir{{Registry: "first.example.org/.log", Address: "https://first.example.org/", Days: 30}, {Registry: heirOrigin, Address: "https://heir.example.org/", Days: days}}
			return nil
		})
		g.must(err)
	}
	// One below has the same heirs, and names of the minter above it.
	_, err := g.r.AddNamespace(g.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/y6"})
	g.must(err)
	g.put("ark:12345/y6one")
	return g, g.bundle(g.job(givenPrefixes...))
}

// silently returns how h adopts a bundle of a giver that was silent for so many days.
func (h *house) silently(giver *house, days int) *Adoption {
	a := h.adoption(giver)
	a.Silence = func(_ context.Context, from string) (registrar.Silence, error) {
		if from != giver.keys.Origin {
			h.Errorf("%s is asked", from)
		}
		return registrar.Silence{Days: days}, nil
	}
	return a
}

// later returns an heir, so many days after the giver's last change.
func later(t *testing.T, days int) *house {
	h := newHeir(t)
	h.now = h.now.Add(time.Duration(days) * 24 * time.Hour)
	return h
}

func (h *house) code(want string, err error) {
	h.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if got, _ := stele.CodeOf(e); got == want {
			return
		}
	}
	h.Errorf("the error is %v, want %s", err, want)
}

// After a silence that the giver has agreed to, its heir resolves and changes the records. Names it makes in a new namespace alone.
func TestSilent(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	for name, open := range adoptStores(t) {
		t.Run(name, func(t *testing.T) {
			h := later(t, 200)
			h.over(open(h))
			done, err := h.silently(g, silentDays).Run(h.ctx, bytes.NewReader(data))
			h.must(err)
			for _, sp := range done.Spaces {
				if sp.Reading || sp.Silent != heirOrigin {
					t.Errorf("%+v", sp)
				}
			}
			ns, err := h.r.Namespace(h.ctx, h.key("ark:12345"))
			h.must(err)
			if a := ns.Adoptions; !ns.IsSilent() || len(a) != 1 || a[0].To != heirOrigin || !a[0].Silent || a[0].Reading || len(ns.Heirs) != 1 || ns.Heirs[0].Registry != "first.example.org/.log" {
				t.Errorf("the namespace is %+v", ns)
			}
			again, err := h.adoption(g).Run(h.ctx, bytes.NewReader(data))
			if h.must(err); !again.Done {
				t.Errorf("a second run: %+v", again)
			}
			h.changesOnly()
			h.newShoulder()
			h.cleanly()
			h.ends(g)
			h.cleanly()
		})
	}
}

// changesOnly makes sure that records are changed, and that no name is made.
func (h *house) changesOnly() {
	h.Helper()
	h.put("ark:12345/x3") // a new version
	_, err := h.r.Withdraw(h.ctx, h.id("ark:12345/x4"), 0, "gone", stele.ID{})
	h.must(err)
	_, err = h.r.Update(h.ctx, h.id("ark:12345/alias"), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{"what": "with its aliases"}; return nil })
	h.must(err)
	target := []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}
	_, err = h.r.Register(h.ctx, &stele.Record{ID: h.id("ark:12345/new"), Targets: target})
	h.code("record.namespace-silent", err)
	_, err = h.r.Register(h.ctx, &stele.Record{ID: h.id("ark:12345/y6new"), Targets: target})
	h.code("record.namespace-silent", err)
	_, err = h.r.Update(h.ctx, h.id("ark:12345/x3"), 0, func(r *stele.Record) error { r.Aliases = []stele.ID{h.id("ark:99999/new")}; return nil })
	h.code("record.namespace-silent", err)
	_, err = h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "urn", Prefix: "urn:own"})
	h.must(err)
	_, err = h.r.Register(h.ctx, &stele.Record{ID: h.id("urn:own:1"), Aliases: []stele.ID{h.id("ark:12345/new")}, Targets: target})
	h.code("record.namespace-silent", err)
	_, err = h.r.Mint(h.ctx, h.key("ark:99999"), 1)
	h.code("mint.namespace-silent", err)
	_, err = h.r.SetNamespace(h.ctx, h.key("ark:99999"), 0, func(ns *stele.Namespace) error { ns.Minter.Template = "n.reedk"; return nil })
	h.code("record.namespace-silent", err)
	_, err = h.r.SetNamespace(h.ctx, h.key("ark:99999"), 0, func(ns *stele.Namespace) error { ns.Title = "Adopted"; return nil })
	h.must(err)
	_, err = h.r.OfferNamespace(h.ctx, h.key("ark:12345"), "third.example.org/.log", "https://third.example.org/")
	h.must(err)
	_, err = h.r.SealNamespace(h.ctx, h.key("ark:12345"))
	h.code("record.namespace-silent", err)
	_, err = h.r.CancelHandOver(h.ctx, h.key("ark:12345"), false)
	h.must(err)
}

// newShoulder makes sure that names are made in a new namespace which the giver can't make names in, and in no other.
func (h *house) newShoulder() {
	h.Helper()
	add := func(prefix string, m stele.Minter) error {
		key := h.key(prefix)
		_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: m})
		return err
	}
	h.code("silence.named-there", add("ark:12345/x2", stele.Minter{}))
	h.code("silence.named-there", add("ark:12345/al", stele.Minter{}))
	h.code("silence.named-there", add("20.500.1/al", stele.Minter{})) // which is an alias of a record elsewhere
	h.code("silence.made-there", add("ark:99999/m", stele.Minter{}))
	h.code("silence.made-there", add("ark:99999/mb1", stele.Minter{}))
	h.must(add("ark:99999/q7", stele.Minter{Kind: stele.MinterNOID, Template: ".reedk"}))
	names, err := h.r.Mint(h.ctx, h.key("ark:99999/q7"), 3)
	h.must(err)
	h.put(names[0].ID.String())
	h.put("ark:99999/q7byhand")
	h.must(add("ark:99999/q7/sub", stele.Minter{}))
}

// ends makes sure that names are made once the giver has ended, and not those that it gave, also after the bundle.
func (h *house) ends(g *house) {
	h.Helper()
	late, err := g.r.Mint(g.ctx, g.key("ark:99999"), 5) // and not registered: no log has them
	g.must(err)
	asked := 0
	quiet := func(_ context.Context, giver string, spaces []registrar.AdoptedSpace) error {
		if asked++; giver != g.keys.Origin || len(spaces) != 1 || len(spaces[0].Others) != 1 || spaces[0].Others[0].Registry != "first.example.org/.log" {
			h.Errorf("%s is asked for %+v", giver, spaces)
		}
		return nil
	}
	_, err = h.r.EndGiver(h.ctx, h.key("ark:99999"), false, quiet)
	h.code("silence.end-unconfirmed", err)
	_, err = h.r.EndGiver(auth.With(h.ctx, auth.Principal{Name: "bruno"}), h.key("ark:99999"), true, quiet)
	if stele.KindOf(err) != stele.Forbidden {
		h.Errorf("as a user: %v", err)
	}
	_, err = h.r.EndGiver(h.ctx, h.key("urn:own"), true, quiet)
	h.code("silence.none", err)
	if asked != 0 {
		h.Errorf("the giver was asked %d times", asked)
	}
	_, err = h.r.EndGiver(h.ctx, h.key("ark:99999"), true, func(context.Context, string, []registrar.AdoptedSpace) error {
		return refusef(stele.Conflict, "adopt.giver-answers", "it is not silent")
	})
	h.code("adopt.giver-answers", err)
	_, err = h.r.Mint(h.ctx, h.key("ark:99999"), 1)
	h.code("mint.namespace-silent", err)
	list, err := h.r.EndGiver(h.ctx, h.key("ark:99999"), true, quiet)
	h.must(err)
	if len(list) != 3 || list[0].IsSilent() || list[0].Adoptions[0].Ended.IsZero() || list[1].Key() != h.key("ark:99999/q7") || len(list[1].Adoptions) != 0 || asked != 1 {
		h.Errorf("the namespaces are %+v; the giver was asked %d times", list, asked)
	}
	_, err = h.r.EndGiver(h.ctx, h.key("ark:99999"), true, quiet)
	h.must(err)
	_, err = h.r.Mint(h.ctx, h.key("ark:99999"), 1)
	h.code("mint.counter-from-backup", err)
	_, err = h.r.Mint(h.ctx, h.key("ark:99999/q7"), 1) // which is not the giver's
	h.must(err)
	before, err := g.r.MinterStatus(g.ctx, g.key("ark:99999"))
	h.must(err)
	h.must(h.r.SkipCounter(h.ctx, h.key("ark:99999"), before.Given))
	_, err = h.r.EndGiver(h.ctx, h.key("ark:99999"), true, quiet) // which shuts nothing again
	h.must(err)
	names, err := h.r.Mint(h.ctx, h.key("ark:99999"), 20)
	h.must(err)
	for _, n := range names {
		if _, err := g.store.Record(g.ctx, n.ID); stele.KindOf(err) != stele.NotFound || err == nil {
			h.Errorf("%s was given before: %v", n.ID, err)
		}
		if slices.ContainsFunc(late, func(l minting.Label) bool { return l.ID == n.ID }) {
			h.Errorf("the giver has made %s after the bundle", n.ID)
		}
	}
	h.put("ark:99999/byhand")
	_, err = h.r.Register(h.ctx, &stele.Record{ID: h.id("ark:12345/new"), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/"}}})
	h.code("record.namespace-silent", err) // of the other namespace it was not said
}

// Of a giver that has ended, templates of earlier settings are shut, too, and dates go on from now.
func TestEndedMinters(t *testing.T) {
	g, _ := silentGiver(t, silentDays)
	dated, once := g.key("sid.inpe.br/mtc-m18"), g.key("urn:once")
	heirs := []stele.Heir{{Registry: heirOrigin, Address: "https://heir.example.org/", Days: silentDays}}
	for _, ns := range []*stele.Namespace{
		{Scheme: dated.Scheme, Prefix: dated.Prefix, Heirs: heirs, Minter: stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, Granularity: "1s"}},
		{Scheme: once.Scheme, Prefix: once.Prefix, Heirs: heirs, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}},
	} {
		_, err := g.r.AddNamespace(g.ctx, ns)
		g.must(err)
		_, err = g.r.Mint(g.ctx, ns.Key(), 1)
		g.must(err)
	}
	_, err := g.r.SetNamespace(g.ctx, once, 0, func(ns *stele.Namespace) error { ns.Minter.Template = "b.zd"; return nil })
	g.must(err)
	data := g.bundle(g.job("sid.inpe.br/mtc-m18", "urn:once"))

	h := later(t, 200)
	_, err = h.silently(g, silentDays).Run(h.ctx, bytes.NewReader(data))
	h.must(err)
	ended := h.clock()
	for _, key := range []stele.NamespaceKey{dated, once} {
		_, err = h.r.EndGiver(h.ctx, key, true, func(context.Context, string, []registrar.AdoptedSpace) error { return nil })
		h.must(err)
	}
	status, err := h.r.MinterStatus(h.ctx, dated)
	if h.must(err); status.Last.Before(ended) {
		t.Errorf("dates go on from %s, and it ended at %s", status.Last, ended)
	}
	for _, template := range []string{"b.zd", ".zd"} {
		_, err := h.r.SetNamespace(h.ctx, once, 0, func(ns *stele.Namespace) error { ns.Minter.Template = template; return nil })
		h.must(err)
		_, err = h.r.Mint(h.ctx, once, 1)
		h.code("mint.counter-from-backup", err)
	}
}

// A bundle is not adopted by the rule if the rule does not say so, and nothing is written then.
func TestSilentRefused(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	for what, c := range map[string]struct {
		heir   *house
		code   string
		change func(a *Adoption)
	}{
		"too few days": {later(t, 200), "adopt.silence-too-short", func(a *Adoption) {
			a.Silence = func(context.Context, string) (registrar.Silence, error) {
				return registrar.Silence{Days: silentDays - 1}, nil
			}
		}},
		"a young bundle": {later(t, 170), "adopt.bundle-in-silence", func(*Adoption) {}},
		"not an heir":    {later(t, 200), "adopt.not-an-heir", func(a *Adoption) { a.Heir = "other.example.org/.log" }},
		"without a name": {later(t, 200), "adopt.not-an-heir", func(a *Adoption) { a.Heir = "" }},
		"it answers": {later(t, 200), "adopt.giver-answers", func(a *Adoption) {
			a.Silence = func(context.Context, string) (registrar.Silence, error) {
				return registrar.Silence{}, refusef(stele.Conflict, "adopt.giver-answers", "it is not silent")
			}
		}},
	} {
		a := c.heir.silently(g, silentDays)
		c.change(a)
		_, err := a.Run(c.heir.ctx, bytes.NewReader(data))
		c.heir.code(c.code, err)
		if last, err := c.heir.store.LastChange(c.heir.ctx); err != nil || last != 0 {
			t.Errorf("%s: change %d was made, %v", what, last, err)
		}
	}
	// One that is sealed for another registry is that one's.
	g.seal("third.example.org/.log", givenPrefixes...)
	h := later(t, 200)
	_, err := h.silently(g, silentDays).Run(h.ctx, bytes.NewReader(g.bundle(g.job(givenPrefixes...))))
	h.code("adopt.silent-not-giver", err)
}

// A giver that turns up may have added a namespace that takes names over from the one above it. What is there came from the giver, unless it was changed here.
func TestSilentThenBelow(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	adopted := func() *house {
		h := later(t, 200)
		_, err := h.silently(g, silentDays).Run(h.ctx, bytes.NewReader(data))
		h.must(err)
		return h
	}
	quiet, edited, shoulder := adopted(), adopted(), adopted()
	edited.put("ark:12345/x2")
	shoulder.namespace("ark:12345/x2q")
	shoulder.put("ark:12345/x2q1")
	g.namespace("ark:12345/x2")
	g.put("ark:12345/x2")
	g.put("ark:12345/x2new")
	g.seal(heirOrigin, givenPrefixes...)
	sealed := g.bundle(g.job(givenPrefixes...))
	_, err := quiet.adoption(g).Run(quiet.ctx, bytes.NewReader(sealed))
	quiet.must(err)
	for _, prefix := range []string{"ark:12345", "ark:12345/x2"} {
		if ns, err := quiet.r.Namespace(quiet.ctx, quiet.key(prefix)); err != nil || ns.IsSilent() || ns.IsRead() {
			t.Errorf("the namespace is %+v, %v", ns, err)
		}
	}
	quiet.inherits(g, "ark:12345")
	quiet.put("ark:12345/x2")
	quiet.cleanly()
	_, err = edited.adoption(g).Run(edited.ctx, bytes.NewReader(sealed))
	edited.code("adopt.changed-in-silence", err)
	_, err = shoulder.adoption(g).Run(shoulder.ctx, bytes.NewReader(sealed))
	shoulder.code("adopt.own-names", err)
}

// A giver that turns up and seals is adopted from as usual, as long as no record was changed here meanwhile. Names of new namespaces here stay.
func TestSilentThenSealed(t *testing.T) {
	g, data := silentGiver(t, silentDays)
	adopted := func() *house {
		h := later(t, 200)
		_, err := h.silently(g, silentDays).Run(h.ctx, bytes.NewReader(data))
		h.must(err)
		return h
	}
	quiet, edited, shoulder, other := adopted(), adopted(), adopted(), adopted()
	edited.put("ark:12345/x3")
	_, err := shoulder.r.AddNamespace(shoulder.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/q7"})
	shoulder.must(err)
	shoulder.put("ark:12345/q7one")
	_, err = other.r.AddNamespace(other.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/z8"})
	other.must(err)

	g.put("ark:12345/x5")
	g.put("ark:12345/z8one")
	plain := g.bundle(g.job(givenPrefixes...))
	_, err = quiet.adoption(g).Run(quiet.ctx, bytes.NewReader(plain))
	quiet.code("adopt.silent-here", err)
	g.seal(heirOrigin, givenPrefixes...)
	sealed := g.bundle(g.job(givenPrefixes...))

	_, err = edited.adoption(g).Run(edited.ctx, bytes.NewReader(sealed))
	edited.code("adopt.changed-in-silence", err)
	edited.put("ark:12345/x3") // as before
	_, err = other.adoption(g).Run(other.ctx, bytes.NewReader(sealed))
	other.code("adopt.name-in-own-namespace", err)
	for _, h := range []*house{quiet, shoulder} {
		done, err := h.adoption(g).Run(h.ctx, bytes.NewReader(sealed))
		h.must(err)
		ns, err := h.r.Namespace(h.ctx, h.key("ark:12345"))
		h.must(err)
		if ns.IsSilent() || ns.IsRead() || len(ns.Adoptions) != 2 || done.Written < 2 {
			t.Errorf("%+v, %+v", ns, done.Adopted)
		}
		h.inherits(g, "ark:12345")
		h.put("ark:12345/byhand")
		h.cleanly()
	}
	shoulder.put("ark:12345/q7two")
	_, err = quiet.adoption(g).Run(quiet.ctx, bytes.NewReader(data))
	quiet.code("adopt.written-here", err)
}
