package transparency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// A proof of a record that the caller has read is made without reading it again. One that is not what was logged makes no difference.
func TestProveGivenRecord(t *testing.T) {
	source := new(counted)
	h := newHouse(t, func(now func() time.Time) stele.Store { source.Store = inFolder(t)(now); return source })
	for _, name := range []string{"ark:12345/x1", "ark:99999/x1"} { // listed and blinded
		h.put(name, "https://example.org/1")
		h.put(name, "https://example.org/2")
	}
	h.catchUp()
	for _, name := range []string{"ark:12345/x1", "ark:99999/x1"} {
		for version := uint64(1); version <= 2; version++ {
			want := h.prove(name, version, true)
			rec, err := h.store.Version(h.ctx, h.id(name), version)
			h.must(err)
			other := *rec
			other.Metadata = stele.Metadata{"what": "What nobody registered"}
			older := *rec
			older.Version++
			for given, reads := range map[*stele.Record]bool{rec: false, &other: true, &older: true, nil: true} {
				before := source.read.Load()
				p, err := h.log.Prove(h.ctx, Wanted{ID: h.id(name), Version: version, Record: given, Full: true})
				h.must(err)
				if got, text := string(mustText(t, p)), string(mustText(t, want)); got != text {
					t.Errorf("with %+v given the proof is\n%s, want\n%s", given, got, text)
				}
				if read := source.read.Load() > before; read != reads {
					t.Errorf("with %+v given it is %t that a record was read", given, read)
				}
			}
		}
	}
}

// What was redacted after the caller had read it is not in the proof.
func TestProveGivenRedacted(t *testing.T) {
	h := newHouse(t, inFolder(t))
	for _, name := range []string{"ark:12345/x1", "ark:99999/x1"} {
		h.put(name, "https://example.org/1")
		h.put(name, "https://example.org/2")
		h.sign()
		var given []*stele.Record
		for version := uint64(1); version <= 2; version++ {
			rec, err := h.store.Version(h.ctx, h.id(name), version)
			h.must(err)
			given = append(given, rec)
			p, err := h.log.Prove(h.ctx, Wanted{ID: rec.ID, Version: version, Record: rec, Full: true})
			h.must(err)
			if p.Document == nil {
				t.Fatalf("version %d of %s has no document", version, name)
			}
		}
		_, err := h.r.Redact(h.ctx, h.id(name), 0, "a court order")
		h.must(err)
		for _, rec := range given {
			p, err := h.log.Prove(h.ctx, Wanted{ID: rec.ID, Version: rec.Version, Record: rec, Full: true})
			h.must(err)
			if p.Document != nil || p.Salt != (Key{}) || p.Full {
				t.Errorf("the proof of version %d of %s has what was redacted", rec.Version, name)
			}
			shown, err := p.Check(h.keys.Public())
			h.must(err)
			if shown.Leaf.Version != rec.Version {
				t.Errorf("the proof is of version %d, want %d", shown.Leaf.Version, rec.Version)
			}
		}
	}
}

// A server that goes on after its registry was restored from a backup keeps nothing of what the log had after the backup: the same
// places of the index and of tiles have other leaves then.
func TestProveAfterRestore(t *testing.T) {
	var store *mem.Store
	h := newHouse(t, func(now func() time.Time) stele.Store { store = mem.New(now); return store })
	h.importAll(0, 100)
	h.sign()
	backup := t.TempDir() + "/backup"
	h.must(store.Backup(h.ctx, backup))
	prove := func(n int, found bool) {
		t.Helper()
		p, err := h.log.Prove(h.ctx, Wanted{ID: h.id(fmt.Sprintf("ark:%d/i%d", 12345+n%2*87654, n)), Version: 1})
		if !found {
			if stele.KindOf(err) != stele.Unavailable {
				t.Errorf("name %d, which was registered after the backup: %v", n, err)
			}
			return
		}
		h.must(err)
		_, err = p.Check(h.keys.Public())
		h.must(err)
	}
	h.importAll(10_000, 2*blockLeaves)
	h.sign()
	for n := range 300 {
		prove(n%100, true)
		prove(10_000+n*27, true) // parts of the index, and tiles, are kept
	}
	running := h.log
	h.restore(backup)
	running.o.Source, running.o.Cells, running.index.cells = h.log.o.Source, h.log.o.Cells, h.log.index.cells
	running.o.Listed, h.log = h.log.o.Listed, running
	h.importAll(30_000, 2*blockLeaves)
	h.sign()
	for n := range 300 {
		prove(n%100, true)
		prove(30_000+n*27, true)
		prove(10_000+n*27, false)
	}
}

// What is disclosed is the same however the feed is divided, and an error in a part is told.
func TestDiscloseInParts(t *testing.T) {
	h := newHouse(t, inFolder(t))
	h.importAll(0, 700)
	h.catchUp()
	p, err := h.log.load(h.ctx)
	h.must(err)
	wants := func(c *stele.Change) bool { return c.Seq%3 != 0 && (c.Seq < 300 || c.Seq > 600) }
	for _, size := range []uint64{1, 255, 256, 257, 511, 512, 513, 640, p.Size - 1, p.Size} {
		h.log.disclosed = 0
		want, err := h.log.Disclose(h.ctx, size, wants)
		h.must(err)
		for _, part := range []uint64{1, 7, 128, 256, 640} {
			h.log.disclosed = part
			got, err := h.log.Disclose(h.ctx, size, wants)
			h.must(err)
			if len(got.list) != len(want.list) || !slices.Equal(got.tiles, want.tiles) {
				t.Fatalf("of %d leaves, %d at a time: %d are disclosed, want %d", size, part, len(got.list), len(want.list))
			}
			for i := range got.list {
				if g, w := got.list[i], want.list[i]; g.leaf != w.leaf || g.at != w.at || g.seed != w.seed {
					t.Fatalf("of %d leaves, %d at a time: the %d-th is %+v, want %+v", size, part, i, g, w)
				}
			}
		}
	}
	if _, err := h.log.Disclose(h.ctx, p.Size+1, wants); stele.KindOf(err) != stele.Internal {
		t.Errorf("a log that is larger than the feed is disclosed: %v", err)
	}
	ctx, cancel := context.WithCancel(h.ctx)
	asked := 0
	h.log.disclosed = 0
	if _, err := h.log.Disclose(ctx, p.Size, func(*stele.Change) bool {
		if asked++; asked == 100 {
			cancel()
		}
		return true
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("Disclose was cancelled and says %v", err)
	}
}

func mustText(t *testing.T, p *Proof) []byte {
	t.Helper()
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A proof does not share memory with what makes the next one.
func TestProofsStay(t *testing.T) {
	h := newHouse(t, inFolder(t))
	h.importAll(0, 20)
	h.catchUp()
	_, err := h.log.Sign(h.ctx, h.keys)
	h.must(err)
	var proofs []*Proof
	var texts [][]byte
	for i := range 20 {
		p, err := h.log.Prove(h.ctx, Wanted{ID: h.id(fmt.Sprintf("ark:%d/i%d", 12345+i%2*87654, i)), Version: 1})
		h.must(err)
		proofs, texts = append(proofs, p), append(texts, mustText(t, p))
	}
	for i, p := range proofs {
		if !bytes.Equal(mustText(t, p), texts[i]) {
			t.Fatalf("proof %d changed after others were made", i)
		}
	}
}

// What was read of one era is not used in another, in which the same places may have other leaves, and no more is kept than there is room for.
func TestShelf(t *testing.T) {
	s := newShelf[int, string](3)
	one, two := stele.GenerationID{1}, stele.GenerationID{2}
	for i := range 10 {
		s.put(one, i, fmt.Sprint(i))
	}
	if v, ok := s.get(one, 9); !ok || v != "9" || len(s.kept) != 3 {
		t.Errorf("%q (%t) is kept as one of %d", v, ok, len(s.kept))
	}
	if v, ok := s.get(two, 9); ok {
		t.Errorf("%q is kept of another era", v)
	}
	s.put(two, 9, "other")
	if v, ok := s.get(one, 9); ok || len(s.kept) != 1 {
		t.Errorf("%q (%t) is kept as one of %d", v, ok, len(s.kept))
	}
}
