package frozen

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

// giver is a registry of which a bundle is made.
type giver struct {
	*testing.T
	ctx  context.Context
	now  time.Time
	r    *registry.Registry
	keys *transparency.Keys
	file string // the bundle
}

func (g *giver) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func newSchemes(t testing.TB) *stele.Schemes {
	t.Helper()
	s, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newTree(t testing.TB) *namespaces.Tree { return namespaces.New(newSchemes(t)) }

func (g *giver) clock() time.Time { g.now = g.now.Add(time.Millisecond); return g.now }

func (g *giver) id(text string) stele.ID {
	g.Helper()
	id, err := g.r.Schemes.Parse(text)
	g.must(err)
	return id
}

// put registers a name, or makes a new version of it.
func (g *giver) put(name string, change ...func(*stele.Record)) {
	g.Helper()
	rec := &stele.Record{ID: g.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + name, Order: 100, Preference: 10}}}
	for _, c := range change {
		c(rec)
	}
	_, err := g.r.Registrar.Register(g.ctx, rec)
	if stele.KindOf(err) == stele.Conflict {
		_, err = g.r.Registrar.Update(g.ctx, rec.ID, 0, func(r *stele.Record) error {
			r.Metadata = stele.Metadata{"what": "Version " + strconv.FormatUint(r.Version+1, 10)}
			return nil
		})
	}
	g.must(err)
}

// newGiver makes a registry with something of all, and a bundle of it.
func newGiver(t *testing.T) *giver {
	g := &giver{T: t, ctx: auth.With(t.Context(), auth.Local()), now: time.Date(2021, 5, 2, 10, 0, 0, 0, time.UTC)}
	g.r = registry.New(mem.New(g.clock), newSchemes(t), registry.Options{Now: g.clock, Log: slog.New(slog.DiscardHandler)})
	_, private, err := ed25519.GenerateKey(rand.Reader)
	g.must(err)
	g.keys = &transparency.Keys{Origin: "names.example.org/.log", List: []transparency.SigningKey{{Private: private, Created: g.now}}}
	for _, n := range []*stele.Namespace{{Scheme: "ark", Prefix: "ark:12345", Title: "Rivers", Listed: true}, {Scheme: "hdl", Prefix: "20.500.1/"}} {
		_, err := g.r.Registrar.AddNamespace(g.ctx, n)
		g.must(err)
	}
	for range 3 {
		_, err = g.r.Registrar.SetNamespace(g.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, 0, func(n *stele.Namespace) error {
			n.Title += "!"
			return nil
		})
		g.must(err)
	}
	for i := range 300 {
		g.put(fmt.Sprintf("ark:12345/x%d", i))
	}
	for range 5 {
		g.put("ark:12345/x7")
		g.put("ark:12345/erased", func(r *stele.Record) { r.Metadata = stele.Metadata{"who": "Erasmus"} })
	}
	for range stele.MaxEarlier + 20 { // more than one commit may have
		g.put("ark:12345/busy")
	}
	g.put("ark:99999/nowhere") // it belongs to no namespace
	_, err = g.r.Registrar.AddHosts(g.ctx, "purl.example.org")
	g.must(err)
	g.put("http://purl.example.org/a/b")
	g.put("ark:12345/alias", func(r *stele.Record) { r.Aliases = []stele.ID{g.id("20.500.1/also"), g.id("ark:54321/also")} })
	g.put("ark:12345/hidden", func(r *stele.Record) { r.Readers = []string{"user:anna"} })
	g.put("ark:12345/reserved", func(r *stele.Record) { r.State = stele.Reserved })
	_, err = g.r.Registrar.Redact(g.ctx, g.id("ark:12345/erased"), 0, "a court order")
	g.must(err)
	_, err = g.r.Registrar.Withdraw(g.ctx, g.id("ark:12345/x1"), 0, "it was wrong", g.id("ark:12345/x2"))
	g.must(err)
	rec, err := g.r.Store.Record(g.ctx, g.id("ark:12345/x3"))
	g.must(err)
	_, err = g.r.Registrar.FixData(g.ctx, rec, registrar.FixedData{SHA256: strings.Repeat("0f", 32), Size: 7})
	g.must(err)
	g.file = g.bundle()
	return g
}

func (g *giver) bundle() string {
	g.Helper()
	from, err := g.r.Registrar.Bundling(g.ctx)
	g.must(err)
	name := filepath.Join(g.TempDir(), "b.tar")
	_, _, err = (&bundle.Job{From: from, Log: g.r.Log, Keys: g.keys, Now: g.now}).WriteFile(g.ctx, name, false)
	g.must(err)
	return name
}

func options(t testing.TB, keys ...transparency.PublicKey) Options {
	t.Helper()
	schemes := newSchemes(t)
	return Options{
		Registry: registry.OpenOptions{Options: registry.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}},
		Bundle:   bundle.Options{Schemes: schemes, Keys: keys, Now: time.Now()},
	}
}

// compare makes sure that an archive has what the giver has, and takes nothing.
func (g *giver) compare(a *Archive) {
	g.Helper()
	o := options(g)
	r, err := registry.Open(g.ctx, a.Place, o.Bundle.Schemes, o.Registry)
	g.must(err)
	defer func() { g.must(r.Close()) }()
	versions := 0
	for s := range g.r.Schemes.All() {
		for rec, err := range g.r.Store.Scan(g.ctx, s.Name(), "", "") {
			g.must(err)
			var want, got []*stele.Record
			for v, err := range g.r.Store.History(g.ctx, rec.ID) {
				g.must(err)
				want = append(want, v)
			}
			for v, err := range r.Store.History(g.ctx, rec.ID) {
				g.must(err)
				got = append(got, v)
			}
			if len(got) != len(want) {
				g.Fatalf("%s has %d versions, and had %d", rec.ID, len(got), len(want))
			}
			for i := range want {
				if versions++; !got[i].Equal(want[i]) {
					g.Errorf("%s: version %d is another one", rec.ID, want[i].Version)
				}
			}
			for _, name := range rec.Names() {
				if found, err := r.Store.Record(g.ctx, name); err != nil || found.ID != rec.ID {
					g.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if uint64(versions) != a.Counts.Versions {
		g.Errorf("%d versions of %d", versions, a.Counts.Versions)
	}
	if d, err := r.Registrar.FixedData(g.ctx, g.id("ark:12345/x3")); err != nil || d == nil || d.SHA256 != strings.Repeat("0f", 32) || d.Size != 7 {
		g.Errorf("a name stands for %+v: %v", d, err)
	}
	n, err := r.Store.Namespace(g.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"})
	if err != nil || n.Title != "Rivers!!!" || n.Version != 4 {
		g.Errorf("the namespace is %+v: %v", n, err)
	}
	if count, err := r.Store.Count(g.ctx, n.Key()); err != nil || count != 305 {
		g.Errorf("%d names count: %v", count, err)
	}
	if _, err := r.Schemes.Parse("http://purl.example.org/a/c"); err != nil {
		g.Errorf("a host is not known: %v", err)
	}
	_, err = r.Registrar.Withdraw(g.ctx, g.id("ark:12345/x2"), 0, "no", stele.ID{})
	if !errors.Is(err, stele.ErrSealed) || !strings.Contains(err.Error(), "a frozen archive of names.example.org/.log as of 2021-05-02T") {
		g.Errorf("it is written to: %v", err)
	}
	g.must(r.Store.Verify(g.ctx, func(problem *stele.Message) { g.Errorf("damaged: %v", problem) }))
}

func TestArchive(t *testing.T) {
	g := newGiver(t)
	folder := filepath.Join(t.TempDir(), "archives")
	loaded := 0
	o := options(t)
	o.Loading = func(int64) func(int) { return func(n int) { loaded += n } }
	a, err := Open(g.ctx, g.file, folder, o)
	g.must(err)
	if !a.Fresh || a.Trusted || uint64(loaded) != a.Counts.Versions || a.Head.Origin != "names.example.org/.log" {
		t.Errorf("%+v, %d loaded", a, loaded)
	}
	g.compare(a)

	// The log is the giver's.
	status, err := a.Log.Status(g.ctx)
	g.must(err)
	shown, err := a.Log.Shown(g.ctx)
	g.must(err)
	if c, _, err := transparency.OpenCheckpoint([]byte(shown.Note), g.keys.Public()); err != nil || c.Size != status.Size {
		t.Errorf("the checkpoint: %v", err)
	}
	for n := uint64(0); n*transparency.TileWidth < status.Size; n++ {
		id := transparency.TileOf(n*transparency.TileWidth, status.Size)
		want, err := g.r.Log.Tile(g.ctx, 0, n, id.Width)
		g.must(err)
		if got, err := a.Log.Tile(g.ctx, 0, n, id.Width); err != nil || !bytes.Equal(got, want) {
			t.Errorf("tile %d: %v", n, err)
		}
		if got, err := a.Log.Tile(g.ctx, 0, n, 1); err != nil || !bytes.Equal(got, want[:32]) {
			t.Errorf("the first hash of tile %d: %v", n, err)
		}
	}
	if _, err := a.Log.Tile(g.ctx, 0, 99, 256); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a tile that is not there: %v", err)
	}

	// The next start finds it. With a key it is checked again, and not made anew.
	for _, keys := range [][]transparency.PublicKey{nil, g.keys.Public(), g.keys.Public()} {
		o := options(t, keys...)
		o.Loading = func(int64) func(int) { t.Error("it is made again"); return func(int) {} }
		again, err := Open(g.ctx, g.file, folder, o)
		g.must(err)
		if again.Fresh || again.Trusted != (keys != nil) || again.Place != a.Place {
			t.Errorf("%+v", again)
		}
	}
	other := newGiver(t)
	if _, err := Open(g.ctx, g.file, folder, options(t, other.keys.Public()...)); err == nil {
		t.Error("a bundle passes that another registry made")
	}
	// Another bundle gets another folder, beside it.
	if b, err := Open(g.ctx, other.file, folder, options(t)); err != nil || !b.Fresh || b.Place == a.Place {
		t.Errorf("%+v: %v", b, err)
	}
	// A part of a registry, below a namespace, has no namespace.
	from, err := g.r.Registrar.Bundling(g.ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x1"})
	g.must(err)
	part := filepath.Join(t.TempDir(), "part.tgz")
	_, _, err = (&bundle.Job{From: from, Log: g.r.Log, Keys: g.keys, Now: g.now, Gzip: true}).WriteFile(g.ctx, part, false)
	g.must(err)
	b, err := Open(g.ctx, part, folder, options(t))
	g.must(err)
	if b.Counts.Records != 111 || b.Counts.Namespaces != 0 {
		t.Errorf("%+v", b.Counts)
	}
}

// The archive answers itself for names that another registry has taken over since.
func TestHandedOver(t *testing.T) {
	n := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Version: 3, HandOver: stele.HandOver{State: stele.Forwarded, Heir: "heir.example.org/.log", Address: "https://heir.example.org/"}}
	store := mem.New(time.Now)
	l := &loader{store: store, tree: newTree(t)}
	if err := l.namespaces(t.Context(), []*bundle.NamespaceVersion{{Namespace: n, Current: true}}); err != nil {
		t.Fatal(err)
	}
	got, err := store.Namespace(t.Context(), n.Key())
	if err != nil || got.Version != 3 || got.IsSealed() {
		t.Errorf("%+v: %v", got, err)
	}
}

// One flipped bit, and nothing is made.
func TestFlippedBit(t *testing.T) {
	g := newGiver(t)
	data, err := os.ReadFile(g.file)
	g.must(err)
	for _, at := range []int{600, len(data) / 2, len(data) - 2000} {
		bad := bytes.Clone(data)
		bad[at] ^= 4
		name := filepath.Join(t.TempDir(), "bad.tar")
		g.must(os.WriteFile(name, bad, 0o600))
		folder := t.TempDir()
		if _, err := Open(g.ctx, name, folder, options(t)); stele.KindOf(err) != stele.Invalid {
			t.Errorf("byte %d: %v", at, err)
		}
		if list, _ := filepath.Glob(filepath.Join(folder, "*", registryFolder)); len(list) > 0 {
			t.Errorf("byte %d: %v", at, list)
		}
	}
}

const killedAt = "STELE_TEST_KILLED_AT"

// TestKilled kills a process that makes an archive, with SIGKILL. The next one makes it anew.
func TestKilled(t *testing.T) {
	if step := os.Getenv(killedAt); step != "" {
		o := options(t)
		kill := func(now string) {
			if now == step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		o.Loading = func(int64) func(int) {
			kill("checked")
			return func(int) { kill("loaded") }
		}
		_, err := Open(t.Context(), os.Getenv("STELE_TEST_BUNDLE"), os.Getenv("STELE_TEST_FOLDER"), o)
		t.Fatal("it was not killed", err)
	}
	g := newGiver(t)
	folder := t.TempDir()
	for _, step := range []string{"checked", "loaded"} {
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), killedAt+"="+step, "STELE_TEST_BUNDLE="+g.file, "STELE_TEST_FOLDER="+folder)
		out, err := child.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || !exit.Sys().(syscall.WaitStatus).Signaled() {
			t.Fatalf("%s: %v: %s", step, err, out)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, "*", registryFolder)); len(left) != 1 {
			t.Fatalf("%s: nothing was begun: %v", step, left)
		}
	}
	a, err := Open(g.ctx, g.file, folder, options(t))
	g.must(err)
	if !a.Fresh {
		t.Error("what was not made to its end is used")
	}
	g.compare(a)
}

// Two processes do not make the same archive at a time.
func TestLocked(t *testing.T) {
	g := newGiver(t)
	folder := t.TempDir()
	o := options(t)
	o.Loading = func(int64) func(int) {
		if _, err := Open(g.ctx, g.file, folder, options(t)); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("a second one: %v", err)
		}
		return func(int) {}
	}
	_, err := Open(g.ctx, g.file, folder, o)
	g.must(err)
}
