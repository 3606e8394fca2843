package transparency

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// house is a registry with a log, and a clock that a test sets.
type house struct {
	testing.TB
	ctx     context.Context
	mu      sync.Mutex
	now     time.Time
	store   stele.Store
	schemes *stele.Schemes
	r       *registrar.Registrar
	log     *Log
	keys    *Keys
}

func newHouse(t testing.TB, store func(now func() time.Time) stele.Store) *house {
	t.Helper()
	h := &house{TB: t, now: time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC), ctx: auth.With(t.Context(), auth.Local())}
	if store == nil {
		store = func(now func() time.Time) stele.Store { return mem.New(now) }
	}
	h.store = store(h.clock)
	var err error
	if h.schemes, err = all.New(all.Config{Now: h.clock}); err != nil {
		t.Fatal(err)
	}
	h.r, h.log = h.server(nil)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h.keys = &Keys{Origin: "names.example.org/.log", List: []SigningKey{{Private: private, Created: h.now}}}
	h.space("ark:12345", true)
	h.space("ark:99999", false)
	return h
}

// clock returns the time, a little later at each call.
func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

// server returns a registrar and a log over the store, as a server of its own has them. fail makes commits of the log fail; it may
// be nil.
func (h *house) server(fail func() (before, after bool)) (*registrar.Registrar, *Log) {
	var log *Log
	r := registrar.New(h.store, h.schemes, registrar.Options{Now: h.clock, OnErase: func(ctx context.Context, id stele.ID, upTo uint64) ([]stele.CellChange, error) {
		return log.Erase(ctx, id, upTo)
	}})
	var cells Keeper = r
	if fail != nil {
		cells = &faulty{Keeper: r, fail: fail}
	}
	log = New(Options{
		Source: h.store, Cells: cells, Random: rand.Reader, Now: h.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (Listed, error) { return r.Public(ctx) },
	})
	return r, log
}

func (h *house) newLog() *Log {
	_, log := h.server(nil)
	return log
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) space(prefix string, listed bool) {
	h.Helper()
	_, err := h.r.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "anna", Listed: listed})
	h.must(err)
}

func (h *house) id(text string) stele.ID {
	h.Helper()
	id, err := h.schemes.Parse(text)
	h.must(err)
	return id
}

// put registers a name, or makes a new version of it.
func (h *house) put(name, url string) {
	h.Helper()
	targets := []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}}
	_, err := h.r.Register(h.ctx, &stele.Record{ID: h.id(name), State: stele.Active, Targets: targets, Metadata: stele.Metadata{"what": "Ein Titel"}})
	if stele.KindOf(err) == stele.Conflict {
		_, err = h.r.Update(h.ctx, h.id(name), 0, func(r *stele.Record) error {
			r.Metadata = stele.Metadata{"what": "Version " + strconv.FormatUint(r.Version+1, 10)}
			return nil
		})
	}
	h.must(err)
}

func (h *house) catchUp() {
	h.Helper()
	h.must(h.log.CatchUp(h.ctx, nil))
}

func (h *house) verify() (problems []string) {
	h.Helper()
	h.must(h.newLog().Verify(h.ctx, func(m *stele.Message) { problems = append(problems, m.Error()) }))
	return problems
}

func (h *house) wantSound() {
	h.Helper()
	if problems := h.verify(); problems != nil {
		h.Fatalf("verify reports %q", problems)
	}
}

func (h *house) prove(name string, version uint64, full bool) *Proof {
	h.Helper()
	_, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
	p, err := h.newLog().Prove(h.ctx, Wanted{ID: h.id(name), Version: version, Full: full})
	h.must(err)
	return p
}

func TestLogFollows(t *testing.T) {
	h := newHouse(t, nil)
	for i := range 300 {
		h.put(fmt.Sprintf("ark:12345/x%d", i), "https://example.org/1")
		h.put(fmt.Sprintf("ark:99999/x%d", i%100), "https://example.org/2")
		if i%50 == 7 {
			h.catchUp()
		}
	}
	h.catchUp()
	h.wantSound()
	status, err := h.log.Status(h.ctx)
	h.must(err)
	if status.Size != 602 || status.Changes != 602 {
		t.Errorf("status %+v, want 602 leaves", status)
	}
	for _, one := range []struct {
		name    string
		version uint64
	}{{"ark:12345/x7", 1}, {"ark:99999/x7", 1}, {"ark:99999/x7", 3}} {
		for _, full := range []bool{false, true} {
			p := h.prove(one.name, one.version, full)
			text, err := p.MarshalText()
			h.must(err)
			if extra := len(text) - len(p.Document); extra > 4096 {
				t.Errorf("the proof has %d bytes beside the document", extra)
			}
			var again Proof
			h.must(again.UnmarshalText(text))
			shown, err := again.Check(h.keys.Public())
			h.must(err)
			if shown.Name != one.name || shown.Leaf.Version != one.version {
				t.Errorf("proved %s version %d", shown.Name, shown.Leaf.Version)
			}
		}
	}
}

// A redacted record stays provable as an entry, and nothing proves any more what it said.
func TestLogErases(t *testing.T) {
	h := newHouse(t, nil)
	for _, name := range []string{"ark:99999/secret", "ark:12345/secret"} {
		h.put(name, "https://example.org/1")
		h.put(name, "https://example.org/2")
		h.put(name, "https://example.org/3")
		before := h.prove2(name, 2)
		if before.Document == nil {
			t.Fatal("the proof has no document")
		}
		if _, err := h.r.Redact(h.ctx, h.id(name), 0, "a court order"); err != nil {
			t.Fatal(err)
		}
		h.catchUp()
		h.wantSound()
		for version := range uint64(4) {
			p := h.prove2(name, version+1)
			shown, err := p.Check(h.keys.Public())
			h.must(err)
			if has := p.Document != nil; has != (version == 3) || shown.Name != name {
				t.Errorf("version %d of %s: document %v", version+1, shown.Name, has)
			}
		}
		// What was proved before still is, to those who kept the proof.
		if _, err := before.Check(h.keys.Public()); err != nil {
			t.Error(err)
		}
	}
	// No cell holds a seed of an erased leaf.
	for leaf := range uint64(8) {
		k, err := h.log.kept(h.ctx, leaf+2)
		h.must(err)
		if erased := k.flags&flagErased != 0; erased != (leaf%4 != 3) || erased != (k.seed == seed{}) {
			t.Errorf("leaf %d: erased %v, seed %x", leaf+2, erased, k.seed)
		}
	}
}

func (h *house) prove2(name string, version uint64) *Proof {
	h.Helper()
	h.catchUp()
	return h.prove(name, version, false)
}

// TestVerifyPanics: a panic while leaves are checked is an error, and not the end of the server.
func TestVerifyPanics(t *testing.T) {
	h := newHouse(t, nil)
	h.put("ark:99999/x", "https://example.org/1")
	h.sign()
	l, m := h.meanwhile()
	m.onRecord = func() { panic("lost") }
	err := l.Verify(h.ctx, func(*stele.Message) {})
	if stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), "lost, at log_test.go:") {
		t.Error(err)
	}
}
