package witness_test

import (
	"path/filepath"
	"slices"
	"testing"
)

// An operator who rewrites, drops, puts in or reorders what was co-signed gets no co-signature for it, with whichever proof of its own tree.
func TestRewriting(t *testing.T) {
	key := newKey(t, origin)
	s := newStand(t, "witness.example/w1", filepath.Join(t.TempDir(), "state"), logKey(key))
	all := leaves("a", 300)
	var right tree
	right.grow(t, all[:100]...)
	if status, _, text := s.add(t, right.request(t, key, origin, 0, "")); status != 200 {
		t.Fatal(status, text)
	}
	for _, at := range []int{0, 1, 63, 64, 98} {
		swapped := slices.Clone(all)
		swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
		for name, list := range map[string][]string{
			"one is rewritten":  slices.Replace(slices.Clone(all), at, at+1, "other"),
			"one is dropped":    slices.Delete(slices.Clone(all), at, at+1),
			"one is put in":     slices.Insert(slices.Clone(all), at, "other"),
			"two are reordered": swapped,
		} {
			for _, size := range []int{100, 101, 128, 257} {
				var forged tree
				forged.grow(t, list[:size]...)
				for _, old := range []int64{0, 64, 99, 100} {
					if status, _, text := s.add(t, forged.request(t, key, origin, old, "")); status != 409 && status != 422 {
						t.Errorf("%s, leaf %d, %d leaves, from %d: %d %s", name, at, size, old, status, text)
					}
				}
			}
		}
	}
	// The history that was co-signed goes on.
	right.grow(t, all[100:]...)
	if status, _, text := s.add(t, right.request(t, key, origin, 100, "")); status != 200 {
		t.Error(status, text)
	}
}
