package bundle

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
	"github.com/stele-id/stele/transparency"
)

const heirOrigin = "heir.example.org/.log"

// newHeir returns a registry without names, with a log of another name.
func newHeir(t *testing.T) *house {
	h := newHouse(t)
	h.now = h.now.Add(24 * time.Hour)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	h.must(err)
	h.keys = &transparency.Keys{Origin: heirOrigin, List: []transparency.SigningKey{{Private: private, Created: h.now}}}
	return h
}

var givenPrefixes = []string{"ark:12345", "ark:99999", "20.500.1/"}

// giver returns a registry with something of all, of which the prefixes are given.
func newGiver(t *testing.T, records int) *house {
	g := newHouse(t)
	g.fill(records)
	g.put("ark:99999/reserved", func(r *stele.Record) { r.State = stele.Reserved })
	for range 3 {
		g.put("ark:99999/wrong")
	}
	_, err := g.r.Disavow(g.ctx, g.id("ark:99999/wrong"), 0, 1, 2, "an intruder")
	g.must(err)
	g.put("ark:99999/wrong")
	g.fixed("ark:99999/fixed", registrar.FixedData{SHA256: digestOf("bytes"), Size: 5})
	g.fixed("ark:99999/nothing", registrar.FixedData{Absent: true})
	g.put("20.500.1/admin", func(r *stele.Record) {
		r.Values = []stele.HandleValue{{Index: 100, Type: "HS_ADMIN", Data: []byte("x"), TTL: 86400, Permissions: stele.DefaultPermissions}}
	})
	return g
}

// fixed registers a name, and says which bytes it stands for.
func (h *house) fixed(name string, d registrar.FixedData) {
	h.Helper()
	h.put(name)
	rec, err := h.store.Record(h.ctx, h.id(name))
	h.must(err)
	_, err = h.r.FixData(h.ctx, rec, d)
	h.must(err)
}

func digestOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func (h *house) key(prefix string) stele.NamespaceKey {
	h.Helper()
	key, err := h.r.ParsePrefix(prefix)
	h.must(err)
	return key
}

// seal seals namespaces for an heir.
func (h *house) seal(heir string, prefixes ...string) {
	h.Helper()
	for _, p := range prefixes {
		_, err := h.r.OfferNamespace(h.ctx, h.key(p), heir, "https://heir.example.org/")
		h.must(err)
		_, err = h.r.SealNamespace(h.ctx, h.key(p))
		h.must(err)
	}
}

// adoption returns how h adopts a bundle of a giver.
func (h *house) adoption(giver *house) *Adoption {
	o := h.options()
	o.Schemes, o.Keys = newSchemes(h.T), giver.keys.Public()
	return &Adoption{To: h.r, Heir: h.keys.Origin, Options: o, Label: "test.tar"}
}

func (h *house) adopt(giver *house, data []byte) *Inheritance {
	h.Helper()
	done, err := h.adoption(giver).Run(h.ctx, bytes.NewReader(data))
	h.must(err)
	return done
}

// cleanly makes sure that nothing is wrong with a registry and its log.
func (h *house) cleanly() {
	h.Helper()
	report := func(m *stele.Message) { h.Helper(); h.Errorf("%s", m.Error()) }
	h.must(h.store.Verify(h.ctx, report))
	h.must(h.r.Verify(h.ctx, report))
	h.must(h.log.CatchUp(h.ctx, nil))
	h.must(h.log.Verify(h.ctx, report))
}

// inherits makes sure that the heir has all versions of all records that the giver has below a prefix, and returns how many.
func (h *house) inherits(giver *house, prefix string) (versions int) {
	h.Helper()
	key := giver.key(prefix)
	for rec, err := range giver.store.Scan(giver.ctx, key.Scheme, key.Prefix, "") {
		giver.must(err)
		for want, err := range giver.store.History(giver.ctx, rec.ID) {
			giver.must(err)
			versions++
			got, err := h.store.Version(h.ctx, rec.ID, want.Version)
			if err != nil {
				h.Errorf("version %d of %s: %v", want.Version, rec.ID, err)
				continue
			}
			w := *want
			w.Readers = nil
			for _, who := range want.Readers {
				w.Readers = append(w.Readers, who+"@"+giver.keys.Origin)
			}
			if w.Import = got.Import; got.Import == 0 && !isBare(got) || !got.Equal(&w) {
				h.Errorf("version %d of %s is\n%+v, and the giver's\n%+v", want.Version, rec.ID, got, &w)
			}
		}
		want, err := giver.r.FixedData(giver.ctx, rec.ID)
		giver.must(err)
		if got, err := h.r.FixedData(h.ctx, rec.ID); err != nil || (got == nil) != (want == nil) || got != nil && (got.SHA256 != want.SHA256 || got.Absent != want.Absent || !got.At.Equal(want.At)) {
			h.Errorf("%s stands for %+v, and at the giver for %+v, %v", rec.ID, got, want, err)
		}
		for _, alias := range rec.Aliases {
			if got, err := h.store.Record(h.ctx, alias); err != nil || got.ID != rec.ID {
				h.Errorf("alias %s: %v", alias, err)
			}
		}
	}
	return versions
}

func isBare(rec *stele.Record) bool { return rec.Redacted && rec.Equal(rec.Entry()) }

func adoptStores(t *testing.T) map[string]func(h *house) stele.Store {
	return map[string]func(h *house) stele.Store{
		"mem": func(h *house) stele.Store { return h.store },
		"pebble": func(h *house) stele.Store {
			s, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{Now: h.clock, Log: slog.New(slog.DiscardHandler)})
			h.must(err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"postgres": func(h *house) stele.Store {
			url := postgrestest.Start(t, postgrestest.Options{}).Database(t)
			o := postgres.Options{Now: h.clock}
			h.must(postgres.Migrate(t.Context(), url, o, nil))
			s, err := postgres.Open(t.Context(), url, o)
			h.must(err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
}

// What a giver has sealed for an heir, the heir has with all versions, and goes on with: names that it mints are new.
func TestAdopt(t *testing.T) {
	g := newGiver(t, 300)
	minted, err := g.r.Mint(g.ctx, g.key("ark:99999"), 40)
	g.must(err)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	for name, open := range adoptStores(t) {
		t.Run(name, func(t *testing.T) {
			h := newHeir(t)
			h.over(open(h))
			dry := h.adoption(g)
			dry.DryRun = true
			_, err := dry.Run(h.ctx, bytes.NewReader(data))
			h.must(err)
			if last, err := h.store.LastChange(h.ctx); err != nil || last != 0 {
				t.Fatalf("a dry run makes change %d, %v", last, err)
			}
			job := h.adoption(g)
			job.versions, job.Owner = 50, "hedda"
			done, err := job.Run(h.ctx, bytes.NewReader(data))
			h.must(err)
			if len(done.Spaces) != 3 || done.Spaces[0].Reading || !done.Spaces[0].New || done.Administered != 1 || done.Present != 0 {
				t.Errorf("done %+v", done)
			}
			versions := 0
			for _, p := range givenPrefixes {
				versions += h.inherits(g, p)
			}
			if versions != done.Written || versions < 600 {
				t.Errorf("%d versions, and %d were written", versions, done.Written)
			}
			ns, err := h.r.Namespace(h.ctx, h.key("ark:12345"))
			h.must(err)
			if a := ns.Adoptions; len(a) != 1 || a[0].Reading || a[0].From != g.keys.Origin || a[0].To != heirOrigin || ns.Owner != "hedda" || ns.HandOver.State != "" || len(ns.Keys) != 1 || ns.Title != "Archive of Rivers" {
				t.Errorf("the namespace is %+v", ns)
			}
			h.cleanly()
			fresh, err := h.r.Mint(h.ctx, h.key("ark:99999"), 50)
			h.must(err)
			for _, l := range fresh {
				if slices.ContainsFunc(minted, func(m minting.Label) bool { return m.ID == l.ID }) {
					t.Errorf("%s was given before", l.ID)
				}
			}
			h.put("ark:12345/x3")
			if again := h.adopt(g, data); !again.Done {
				t.Error("it is adopted again")
			}
			_, err = h.r.RevertImport(h.ctx, done.Import, registrar.RevertOptions{}, func(registrar.RevertStep) error { return nil })
			if stele.KindOf(err) != stele.Conflict {
				t.Errorf("the adoption is reverted: %v", err)
			}
			h.cleanly()
		})
	}
}

// refusesAll makes sure that nothing can be written in a namespace, whatever the way.
func (h *house) refusesAll(prefix, name string) {
	h.Helper()
	for what, write := range map[string]func() error{
		"mint": func() error {
			if prefix == "ark:12345" { // it has no minter
				_, err := h.r.Register(h.ctx, &stele.Record{ID: h.id(name + "minted")})
				return err
			}
			_, err := h.r.Mint(h.ctx, h.key(prefix), 1)
			return err
		},
		"register": func() error { _, err := h.r.Register(h.ctx, &stele.Record{ID: h.id(name + "new")}); return err },
		"update": func() error {
			_, err := h.r.Update(h.ctx, h.id(name), 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{"what": "other"}; return nil })
			return err
		},
		"below": func() error {
			_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: prefix + "/y5"})
			return err
		},
		"import": func() error {
			errs, err := h.r.Ingest(h.ctx, []*stele.Record{{ID: h.id(name + "more")}}, registrar.ImportOptions{})
			return errors.Join(append(errs, err)...)
		},
	} {
		if err := write(); stele.KindOf(err) != stele.Conflict {
			h.Errorf("%s: %v", what, err)
		}
	}
}

// Names that the giver has not sealed, or has sealed for another heir, are for reading only. A later bundle adds what is new, erases
// what the giver has erased since, and opens them.
func TestAdoptLater(t *testing.T) {
	g, h := newGiver(t, 60), newHeir(t)
	first := g.bundle(g.job(givenPrefixes...))
	h.adopt(g, first)
	h.inherits(g, "ark:99999")
	h.refusesAll("ark:99999", "ark:99999/x0")
	g.put("ark:99999/x0", func(r *stele.Record) { r.Aliases = append(r.Aliases, g.id("ark:99999/later")) })
	g.put("ark:12345/brandnew")
	for range 2 {
		g.put("ark:99999/x2")
	}
	_, err := g.r.Redact(g.ctx, g.id("ark:99999/x1"), 0, "a court order")
	g.must(err)
	_, err = g.r.AddNamespace(g.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:99999/x1", Owner: "bruno"})
	g.must(err)
	second := g.bundle(g.job(givenPrefixes...))
	h.adopt(g, second)
	_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(first))
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "later bundle") {
		t.Errorf("an older bundle: %v", err)
	}
	_, err = g.r.Mint(g.ctx, g.key("ark:99999"), 5)
	g.must(err)
	g.seal("other.example.org/.log", "ark:12345")
	g.seal(heirOrigin, "ark:99999") // and 20.500.1/ stays the giver's: a record of ark:12345 has an alias there
	third := g.bundle(g.job(givenPrefixes...))
	done := h.adopt(g, third)
	if done.Present == 0 {
		t.Errorf("done %+v", done)
	}
	for _, p := range givenPrefixes {
		h.inherits(g, p)
	}
	h.refusesAll("ark:12345", "ark:12345/x2")
	h.put("ark:99999/x0")
	if _, err = h.r.Mint(h.ctx, h.key("ark:99999"), 1); err != nil {
		t.Error(err)
	}
	h.cleanly()
	for v, err := range h.store.History(h.ctx, h.id("ark:99999/x1")) {
		h.must(err)
		if len(v.Metadata) > 0 || len(v.Targets) > 0 {
			t.Errorf("version %d has content: %+v", v.Version, v)
		}
	}
	_, err = h.adoption(g).Run(h.ctx, bytes.NewReader(g.bundle(g.job("ark:99999"))))
	if stele.KindOf(err) != stele.Conflict {
		t.Errorf("another bundle of what is written here: %v", err)
	}
}

// A bundle that can't be adopted as a whole is not adopted in part.
func TestAdoptRefused(t *testing.T) {
	g := newGiver(t, 60)
	g.seal(heirOrigin, givenPrefixes...)
	whole := g.bundle(g.job(givenPrefixes...))
	part := g.bundle(g.job("ark:12345"))
	for name, tt := range map[string]struct {
		prepare func(h *house, a *Adoption)
		data    []byte
		want    string
	}{
		"a bit":        {nil, flip(whole, len(whole)*2/3), ""},
		"the end":      {nil, whole[:len(whole)-4096], ""},
		"no key":       {func(h *house, a *Adoption) { a.Options.Keys = nil }, whole, "--key"},
		"another key":  {func(h *house, a *Adoption) { a.Options.Keys[0].Key = h.keys.Public()[0].Key }, whole, "no key that you trust"},
		"own names":    {func(h *house, _ *Adoption) { h.put("ark:12345/own") }, whole, "did not come from"},
		"a namespace":  {func(h *house, _ *Adoption) { h.namespace("ark:12345/x5") }, whole, "does not have it"},
		"aliases":      {nil, part, "--split-aliases"},
		"no right":     {func(h *house, _ *Adoption) { h.ctx = h.T.Context() }, whole, "say who you are"},
		"no namespace": {nil, g.bundle(g.job("ark:12345/x1")), "does not have the namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeir(t)
			a := h.adoption(g)
			if tt.prepare != nil {
				tt.prepare(h, a)
			}
			before, err := h.store.LastChange(t.Context())
			h.must(err)
			_, err = a.Run(h.ctx, bytes.NewReader(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err %v", err)
			}
			if last, err := h.store.LastChange(t.Context()); err != nil || last != before {
				t.Errorf("%d changes, %v", last-before, err)
			}
		})
	}
}

func (h *house) namespace(prefix string) {
	h.Helper()
	key := h.key(prefix)
	_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix})
	h.must(err)
}

func flip(data []byte, at int) []byte {
	data = slices.Clone(data)
	data[at] ^= 1
	return data
}

// A seal that does not hold any more opens nothing: neither before anything is written, nor when it was cancelled while the bundle was adopted.
func TestAdoptUnsealed(t *testing.T) {
	g := newGiver(t, 30)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	h := newHeir(t)
	key := h.key(givenPrefixes[0])
	gone := refusef(stele.Conflict, "adopt.seal-cancelled", "it is not sealed any more")
	times, after := 0, 0
	run := func() error {
		times = 0
		a := h.adoption(g)
		a.Sealed = func(_ context.Context, from string, spaces []registrar.AdoptedSpace) ([]stele.NamespaceKey, error) {
			if from != g.keys.Origin || len(spaces) != len(givenPrefixes) || spaces[0].HandOver.Heir != heirOrigin || spaces[0].HandOver.Since.IsZero() {
				t.Errorf("%s is asked for %+v", from, spaces)
			}
			if times++; times > after {
				return nil, gone
			}
			return nil, nil
		}
		_, err := a.Run(h.ctx, bytes.NewReader(data))
		return err
	}
	h.code("adopt.seal-cancelled", run())
	if last, err := h.store.LastChange(h.ctx); err != nil || last != 0 {
		t.Errorf("change %d was made, %v", last, err)
	}
	after = 1
	h.code("adopt.seal-cancelled", run())
	if ns, err := h.r.Namespace(h.ctx, key); err != nil || !ns.IsRead() || ns.Adoptions[0].To != heirOrigin {
		t.Errorf("the namespace is %+v, %v", ns, err)
	}
	after = 2
	h.must(run())
	if ns, err := h.r.Namespace(h.ctx, key); err != nil || ns.IsRead() || times != 2 {
		t.Errorf("the namespace is %+v, %v; asked %d times", ns, err, times)
	}
	after = 0
	if h.must(run()); times != 0 {
		t.Errorf("what is open is asked for %d times", times)
	}
}

// Aliases of other namespaces are left out if that is wanted, and named.
func TestAdoptSplit(t *testing.T) {
	g, h := newGiver(t, 60), newHeir(t)
	g.seal(heirOrigin, "ark:12345")
	a := h.adoption(g)
	a.Split = true
	var told []string
	a.Outside = func(id, alias stele.ID) error { told = append(told, alias.String()+" of "+id.String()); return nil }
	_, err := a.Run(h.ctx, bytes.NewReader(g.bundle(g.job("ark:12345"))))
	h.must(err)
	if len(told) != 1 || told[0] != "20.500.1/ALSO of ark:12345/alias" {
		t.Errorf("told %q", told)
	}
	rec, err := h.store.Record(h.ctx, h.id("ark:12345/also"))
	h.must(err)
	if len(rec.Aliases) != 1 {
		t.Errorf("aliases %v", rec.Aliases)
	}
	h.cleanly()
}

// breaking is a store that breaks before, or after, a commit.
type breaking struct {
	stele.Store
	left  int
	after bool // the commit is made, and its caller does not learn of it
}

var errBroken = &stele.Error{Op: "commit", Kind: stele.Unavailable, Err: errors.New("the store broke")}

func (b *breaking) Apply(ctx context.Context, c *stele.Commit) error {
	if b.left--; b.left < 0 {
		if b.after && b.left == -1 {
			_ = b.Store.Apply(ctx, c)
		}
		return errBroken
	}
	return b.Store.Apply(ctx, c)
}

// An adoption that was cut off at any commit goes on when it is repeated. Until its end, nothing is minted.
func TestAdoptCutOff(t *testing.T) {
	g := newGiver(t, 30)
	minted, err := g.r.Mint(g.ctx, g.key("ark:99999"), 40)
	g.must(err)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	for _, after := range []bool{false, true} {
		rounds, cut := 0, 0
		for left := 0; ; left++ {
			h := newHeir(t)
			whole := h.store
			h.over(&breaking{whole, left, after})
			job := h.adoption(g)
			job.versions = 20
			_, err := job.Run(h.ctx, bytes.NewReader(data))
			h.over(whole)
			if err != nil {
				cut++
				if labels, merr := h.r.Mint(h.ctx, h.key("ark:99999"), 1); merr == nil && !isOpen(h) {
					t.Fatalf("after %d commits %s is minted", left, labels[0].ID)
				}
				job = h.adoption(g)
				job.versions = 20
				if _, again := job.Run(h.ctx, bytes.NewReader(data)); again != nil {
					t.Fatalf("after %d commits (%v): %v", left, err, again)
				}
			}
			for _, p := range givenPrefixes {
				h.inherits(g, p)
			}
			labels, merr := h.r.Mint(h.ctx, h.key("ark:99999"), 3)
			h.must(merr)
			for _, l := range labels {
				if slices.ContainsFunc(minted, func(m minting.Label) bool { return m.ID == l.ID }) {
					t.Errorf("%s was given before", l.ID)
				}
			}
			h.cleanly()
			if rounds++; err == nil || t.Failed() {
				break
			}
		}
		if cut < 10 && !t.Failed() {
			t.Errorf("it was cut off %d times", cut)
		}
	}
}

func isOpen(h *house) bool {
	ns, err := h.r.Namespace(h.ctx, h.key("ark:99999"))
	return err == nil && len(ns.Adoptions) > 0 && !ns.IsRead()
}

// A redaction by the heir itself stays, whatever the giver says later. A name that did not come from the giver is found all the same.
func TestAdoptRedactedHere(t *testing.T) {
	for what, stray := range map[string]bool{"as it is": false, "with another name": true} {
		t.Run(what, func(t *testing.T) {
			g, h := newGiver(t, 30), newHeir(t)
			g.put("ark:12345/x2", func(r *stele.Record) { r.Aliases = []stele.ID{g.id("ark:12345/x2also"), g.id("20.500.1/x2")} })
			h.adopt(g, g.bundle(g.job(givenPrefixes...)))
			_, err := h.r.Redact(h.ctx, h.id("ark:12345/x2"), 0, "an order to the heir")
			h.must(err)
			g.put("ark:12345/x2")
			g.put("ark:12345/x2", func(r *stele.Record) { r.Aliases = append(r.Aliases, g.id("ark:12345/x2later")) })
			g.seal(heirOrigin, givenPrefixes...)
			data := g.bundle(g.job(givenPrefixes...))
			a := h.adoption(g)
			if stray { // judged by another server before the namespace was for reading only
				h.must(h.store.Apply(h.ctx, &stele.Commit{
					Records: []*stele.Record{{ID: h.id("ark:12345/stray"), State: stele.Active, Version: 1, Created: h.clock(), Modified: h.clock()}},
					Counter: func(stele.ID) (stele.NamespaceKey, uint64) { return h.key("ark:12345"), 0 },
				}))
				_, err = a.Run(h.ctx, bytes.NewReader(data))
				h.code("adopt.names-differ", err)
				if ns, err := h.r.Namespace(h.ctx, h.key("ark:12345")); err != nil || !ns.IsRead() {
					t.Errorf("the namespace is %+v, %v", ns, err)
				}
				return
			}
			a.versions = 2 // so that the versions of the record are in several lists
			done, err := a.Run(h.ctx, bytes.NewReader(data))
			h.must(err)
			if len(done.Left) != 1 || done.Left[0] != h.id("ark:12345/x2") {
				t.Errorf("left %v", done.Left)
			}
			rec, err := h.store.Record(h.ctx, h.id("ark:12345/x2"))
			h.must(err)
			if !rec.Redacted || len(rec.Targets) > 0 {
				t.Errorf("it is %+v", rec)
			}
			// Otherwise the heir could give this name to another thing.
			if later, err := h.store.Record(h.ctx, h.id("ark:12345/x2later")); err != nil || later.ID != rec.ID || !later.Redacted {
				t.Errorf("the alias that the giver added leads to %+v, %v", later, err)
			}
			h.put("ark:12345/x3")
			h.cleanly()
		})
	}
}

// A file that is replaced between the check and the writing is not adopted.
func TestAdoptReplaced(t *testing.T) {
	g, h := newGiver(t, 30), newHeir(t)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	a := h.adoption(g)
	a.Checked = func(*Inheritance) error {
		at := bytes.Index(data, []byte("Ein Titel"))
		data[at] ^= 1
		return nil
	}
	_, err := a.Run(h.ctx, bytes.NewReader(data))
	if stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("err %v", err)
	}
	if isOpen(h) {
		t.Error("the namespace is open")
	}
}
