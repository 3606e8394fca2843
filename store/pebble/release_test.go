package pebble

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stele-id/stele"
)

// TestRelease has a store release the blocks that it read, and read the same from its files again.
func TestRelease(t *testing.T) {
	const names = 2500
	s := openBench(t, t.TempDir())
	defer s.Close()
	fillLong(t, s, names)
	before := readAllBench(t, s, names)
	size := s.cache.Size()
	if size < releaseKept+releaseWorth {
		t.Fatalf("%d names are %d bytes of blocks; the test needs more", names, size)
	}
	released := s.Release()
	if left := s.cache.Size(); released < releaseWorth || left > releaseKept+size/4 || released != size-left {
		t.Errorf("of %d bytes %d were released, and %d are left", size, released, left)
	}
	if again := s.Release(); again != 0 {
		t.Errorf("%d bytes were released that are not worth it", again)
	}
	if after := readAllBench(t, s, names); !slices.Equal(before, after) {
		t.Error("other records are read than before")
	}
	if now := s.cache.Size(); now < size/4*3 {
		t.Errorf("what was read again takes %d bytes, and took %d before", now, size)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if released := s.Release(); released != 0 {
		t.Errorf("a closed store released %d bytes", released)
	}
}

// fillLong ingests records of 6 KB that can't be compressed.
func fillLong(t *testing.T, s *Store, names int) {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{1})
	text := make([]byte, 3000)
	var records []*stele.Record
	for i := range names {
		r := benchRecord(t, i, true)
		_, _ = rnd.Read(text) // it never fails
		r.Metadata["what"] = hex.EncodeToString(text)
		records = append(records, r)
	}
	errs, err := s.Ingest(t.Context(), records, countRoot, nil, nil)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

// readAllBench reads all records that fillLong ingested, and returns where they lead.
func readAllBench(t *testing.T, s *Store, names int) (urls []string) {
	t.Helper()
	for i := range names {
		r, err := s.Record(t.Context(), benchID(t, i, true))
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, r.Targets[0].URL)
	}
	return urls
}
