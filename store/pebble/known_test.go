package pebble

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// TestNameFilter: a filter never denies a name that it has, and seldom claims one that
// it has not, even when it is full.
func TestNameFilter(t *testing.T) {
	const names = 1 << 16
	f := newNameFilter(names)
	rng := rand.New(rand.NewPCG(1, 1))
	hashes := make([]uint64, names)
	for i := range hashes {
		hashes[i] = rng.Uint64()
		f.add(hashes[i])
	}
	if f.room != 0 {
		t.Errorf("room for %d more, want none", f.room)
	}
	for _, h := range hashes {
		if !f.mayHave(h) {
			t.Fatalf("%x was added, and is denied", h)
		}
	}
	wrong := 0
	for range names {
		if f.mayHave(rng.Uint64()) {
			wrong++
		}
	}
	if wrong > names/100 {
		t.Errorf("%d of %d are claimed", wrong, names)
	}
}

// TestKnownGrows: with the names of many ingests it has several filters, and ends when
// there would be too many.
func TestKnownGrows(t *testing.T) {
	k := &known{seed: maphash.MakeSeed(), filters: []nameFilter{newNameFilter(32)}}
	in := &ingest{build: &build{}}
	for _, r := range numbered(t, "k", 100) {
		in.names = append(in.names, nameEntry{sortKey: sortKey{key: nameKey(r.ID)}, record: int32(len(in.names))})
		in.build.accepted++
	}
	in.refused = make([]error, len(in.names))
	in.refused[7] = errors.New("it is not taken in")
	in.build.accepted--
	in.last = in.build.accepted
	if !k.learn(in) || k.seq != in.last || len(k.filters) != 2 {
		t.Fatalf("after %d changes, with %d filters", k.seq, len(k.filters))
	}
	for i := range in.names {
		if !k.mayHave(in.names[i].key) && i != 7 {
			t.Fatalf("%q was learnt, and is denied", in.names[i].key)
		}
	}
	for len(k.filters) < maxFilters {
		k.filters = append(k.filters, nameFilter{})
	}
	k.filters[maxFilters-1].room = 0
	in.last += in.build.accepted
	if k.learn(in) {
		t.Error("it knows more names than it has room for")
	}
	if !(*known)(nil).mayHave(nil) {
		t.Error("who knows nothing denies a name")
	}
}

// TestKnown: what an ingest knows of names without looking is true, whatever is written
// between ingests and whatever happens to the store.
func TestKnown(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, "db")
	defer func() { mustClose(t, s) }()
	refused := func(want []bool, records ...*stele.Record) {
		t.Helper()
		errs, err := s.Ingest(t.Context(), records, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, err := range errs {
			if err != nil && !errors.Is(err, stele.Conflict) {
				t.Fatal(err)
			}
			got = append(got, err != nil)
		}
		if !slices.Equal(got, want) {
			t.Errorf("refused: %v, want %v", got, want)
		}
	}
	refused([]bool{false, false}, sample(t, "a", 1, ark(t, "a2")), sample(t, "b", 1))
	if s.known == nil {
		t.Fatal("the names of a store that was empty are not known")
	}
	refused([]bool{true, true, false}, sample(t, "a", 1), sample(t, "x", 1, ark(t, "a2")), sample(t, "c", 1))
	if s.known == nil {
		t.Fatal("the names are not known after two ingests")
	}
	if _, err := s.Ingest(cancelled(t), numbered(t, "z", 3), nil, nil, nil); err == nil {
		t.Error("an ingest whose context has ended is done")
	}
	mustApply(t, s, &stele.Commit{Records: []*stele.Record{sample(t, "d", 1)}})
	refused([]bool{true, false}, sample(t, "d", 1), sample(t, "e", 1))
	if s.known != nil {
		t.Error("all names are known, though a commit was not told")
	}
	mustClose(t, s)
	s = openOn(t, fs, "db")
	refused([]bool{true, true, true, true, false}, sample(t, "a2", 1), sample(t, "c", 1), sample(t, "d", 1), sample(t, "e", 1), sample(t, "f", 1))
	wantSound(t, s)
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
