package deposit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/transparency"
)

// house is a registry with a log.
type house struct {
	*testing.T
	ctx     context.Context
	now     time.Time
	schemes *stele.Schemes
	r       *registrar.Registrar
	log     *transparency.Log
	keys    *transparency.Keys
}

func (h *house) clock() time.Time { h.now = h.now.Add(time.Millisecond); return h.now }

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, now: time.Date(2021, 5, 2, 10, 0, 0, 0, time.UTC), ctx: auth.With(t.Context(), auth.Local())}
	var err error
	h.schemes, err = all.New(all.Config{Now: time.Now})
	h.must(err)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	h.must(err)
	h.keys = &transparency.Keys{Origin: "names.example.org/.log", List: []transparency.SigningKey{{Private: private, Created: h.now}}}
	store := mem.New(h.clock)
	h.r = registrar.New(store, h.schemes, registrar.Options{Now: h.clock, Log: slog.New(slog.DiscardHandler)})
	h.log = transparency.New(transparency.Options{
		Source: store, Cells: h.r, Random: rand.Reader, Now: h.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (transparency.Listed, error) { return h.r.Public(ctx) },
	})
	for _, prefix := range []string{"ark:12345", "ark:99999"} {
		_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "anna"})
		h.must(err)
	}
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// put registers names, or makes new versions of them.
func (h *house) put(names ...string) {
	h.Helper()
	for _, name := range names {
		id, err := h.schemes.Parse(name)
		h.must(err)
		rec := &stele.Record{ID: id, State: stele.Active, Metadata: stele.Metadata{"what": "A Title"},
			Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + name, Order: 100, Preference: 10}}}
		_, err = h.r.Register(h.ctx, rec)
		if stele.KindOf(err) == stele.Conflict {
			_, err = h.r.Update(h.ctx, id, 0, func(r *stele.Record) error {
				r.Metadata = stele.Metadata{"what": fmt.Sprintf("Version %d", r.Version+1)}
				return nil
			})
		}
		h.must(err)
	}
}

// fill registers many names.
func (h *house) fill(n int) {
	h.Helper()
	for i := range n {
		h.put(fmt.Sprintf("ark:12345/x%d", i))
	}
}

func (h *house) job(prefixes ...string) *bundle.Job {
	h.Helper()
	var keys []stele.NamespaceKey
	for _, p := range prefixes {
		keys = append(keys, stele.NamespaceKey{Scheme: "ark", Prefix: p})
	}
	from, err := h.r.Bundling(h.ctx, keys...)
	h.must(err)
	return &bundle.Job{From: from, Log: h.log, Keys: h.keys, Now: h.now}
}

// bundle returns the bundle as one file.
func (h *house) bundle(packed bool) []byte {
	h.Helper()
	j := h.job()
	j.Gzip = packed
	var b bytes.Buffer
	_, err := j.Write(h.ctx, &b)
	h.must(err)
	return b.Bytes()
}

func (h *house) deposit(to Destination, prefixes ...string) *Made {
	h.Helper()
	h.now = h.now.Add(time.Hour)
	made, err := (&Job{Bundle: h.job(prefixes...), To: to, Now: h.now}).Make(h.ctx)
	h.must(err)
	return made
}

func (h *house) options() bundle.Options {
	return bundle.Options{Schemes: h.schemes, Keys: h.keys.Public(), Now: h.now}
}

func (h *house) last(from Destination) *List {
	h.Helper()
	l, err := Last(h.ctx, from, time.Time{})
	h.must(err)
	return l
}

// check checks the last deposit.
func (h *house) check(from Destination) error {
	h.Helper()
	l, err := Last(h.ctx, from, time.Time{})
	if err != nil {
		return err
	}
	_, err = (&Rebuild{From: from, List: l}).Check(h.ctx, h.options())
	return err
}

func newFolder(t *testing.T) (Destination, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vault")
	place, err := ParsePlace("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := place.Open(Access{Wait: noWait})
	if err != nil {
		t.Fatal(err)
	}
	return d, path
}

func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// filesIn returns the files of a folder, with what they have.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		list[strings.TrimPrefix(path, folder+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// faulty fails, or ends the context, at a Put.
type faulty struct {
	Destination
	put func(name string) error
}

func (f *faulty) Put(ctx context.Context, name string, data []byte) error {
	if err := f.put(name); err != nil {
		return err
	}
	return f.Destination.Put(ctx, name, data)
}
