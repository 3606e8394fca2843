package transparency

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stele-id/stele"
)

// meanwhile is a registry that changes while it is read.
type meanwhile struct {
	Source
	Keeper
	onRecord func()
	onCell   func(name string)
	spaces   atomic.Int64 // versions of namespaces that were read
}

func (m *meanwhile) Record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	if do := m.onRecord; do != nil {
		m.onRecord = nil
		do()
	}
	return m.Source.Record(ctx, id)
}

func (m *meanwhile) LogCell(ctx context.Context, name string) ([]byte, error) {
	if m.onCell != nil {
		m.onCell(name)
	}
	return m.Keeper.LogCell(ctx, name)
}

func (m *meanwhile) NamespaceHistory(ctx context.Context, key stele.NamespaceKey) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		for ns, err := range m.Source.NamespaceHistory(ctx, key) {
			m.spaces.Add(1)
			if !yield(ns, err) {
				return
			}
		}
	}
}

func (h *house) meanwhile() (*Log, *meanwhile) {
	m := &meanwhile{Source: h.store, Keeper: h.r}
	return New(Options{
		Source: m, Cells: m, Random: rand.Reader, Now: h.clock, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (Listed, error) { return h.r.Public(ctx) },
	}), m
}

// A redaction that comes while a leaf is read is not damage.
func TestRedactedMeanwhile(t *testing.T) {
	for name, read := range map[string]func(h *house, l *Log) error{
		"entries": func(h *house, l *Log) error {
			_, err := l.Entries(h.ctx, 0, 5)
			return err
		},
		"proof": func(h *house, l *Log) error {
			p, err := l.Prove(h.ctx, Wanted{ID: h.id("ark:99999/x"), Version: 2})
			if err == nil {
				var shown *Proved
				if shown, err = p.Check(h.keys.Public()); err == nil && shown.Document != nil {
					h.Error("the proof has what was redacted")
				}
			}
			return err
		},
		"verify": func(h *house, l *Log) error {
			return l.Verify(h.ctx, func(m *stele.Message) { h.Error(m) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, nil)
			h.put("ark:99999/x", "https://example.org/1")
			h.put("ark:99999/x", "https://example.org/2")
			h.put("ark:12345/y", "https://example.org/3")
			h.sign()
			l, m := h.meanwhile()
			m.onRecord = func() {
				_, err := h.r.Redact(h.ctx, h.id("ark:99999/x"), 0, "a court order")
				h.must(err)
			}
			if err := read(h, l); err != nil {
				t.Error(err)
			}
			if m.onRecord != nil {
				t.Error("nothing was redacted meanwhile")
			}
		})
	}
}

// A log that grows and is signed while it is verified is sound.
func TestGrownMeanwhile(t *testing.T) {
	h := newHouse(t, nil)
	h.put("ark:12345/x", "https://example.org/1")
	h.sign()
	l, m := h.meanwhile()
	grown := false
	m.onCell = func(name string) {
		if !grown && name == checkpointCell {
			grown = true
			h.put("ark:12345/y", "https://example.org/1")
			h.sign()
		}
	}
	h.must(l.Verify(h.ctx, func(problem *stele.Message) { t.Error(problem) }))
	if !grown {
		t.Error("the checkpoint was not read")
	}
}

// If runs of the index are merged while the log is verified, nothing is missing.
func TestMergedMeanwhile(t *testing.T) {
	h := newHouse(t, nil)
	h.ingest("ark:12345/i", runsAbove*blockLeaves-100)
	h.catchUp()
	l := h.newLog()
	p, err := l.load(h.ctx)
	h.must(err)
	h.ingest("ark:12345/j", 200)
	h.catchUp()
	h.must(l.verifyGroup(h.ctx, p, blockLeaves/tileWidth, 2*blockLeaves/tileWidth, func(problem *stele.Message) { t.Error(problem) }))
}

// The entries of a tile that are about one namespace need its history once.
func TestNamespaceHistoryIsReadOnce(t *testing.T) {
	h := newHouse(t, nil)
	const versions = 60
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	for i := range versions {
		_, err := h.r.SetNamespace(h.ctx, key, 0, func(ns *stele.Namespace) error { ns.Title = strings.Repeat("x", i+1); return nil })
		h.must(err)
	}
	l, m := h.meanwhile()
	h.must(l.CatchUp(h.ctx, nil))
	m.spaces.Store(0)
	_, err := l.Entries(h.ctx, 0, versions)
	h.must(err)
	if n := m.spaces.Load(); n > 3*versions {
		t.Errorf("%d versions were read for %d", n, versions)
	}
	h.wantSound()
}

// What a bundle discloses of a version that is redacted while the bundle is written is the leaf itself.
func TestDisclosedMeanwhile(t *testing.T) {
	h := newHouse(t, nil)
	for _, name := range []string{"ark:99999/x", "ark:12345/x"} {
		h.put(name, "https://example.org/1")
		h.put(name, "https://example.org/2")
		h.catchUp()
		p, err := h.log.load(h.ctx)
		h.must(err)
		d, err := h.log.Disclose(h.ctx, p.Size, func(*stele.Change) bool { return true })
		h.must(err)
		_, err = h.r.Redact(h.ctx, h.id(name), 0, "a court order")
		h.must(err)
		for version := uint64(1); version <= 2; version++ {
			logged, err := h.store.Version(h.ctx, h.id(name), version)
			h.must(err)
			s, ok, err := d.Record(h.ctx, logged, false)
			h.must(err)
			leaf, err := s.RecordLeaf(logged)
			h.must(err)
			kept, err := h.log.kept(h.ctx, s.Index)
			h.must(err)
			if !ok || leaf.Hash() != kept.hash || s.Seed != (Key{}) {
				t.Errorf("version %d of %s: %+v", version, name, s)
			}
		}
	}
}
