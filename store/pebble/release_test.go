package pebble

import (
	"slices"
	"testing"
)

// TestRelease has a store release the blocks that it read, and read the same from its files again.
func TestRelease(t *testing.T) {
	const names = 60_000
	s := openBench(t, t.TempDir())
	defer s.Close()
	fillBench(t, s, names, names, true)
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

// readAllBench reads all records that fillBench ingested, and returns where they lead.
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
