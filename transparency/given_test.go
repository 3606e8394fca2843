package transparency

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
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
