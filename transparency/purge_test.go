package transparency

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/pebble"
)

// inFiles returns the files below a folder that have some bytes.
func inFiles(t *testing.T, folder string, wanted []byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, wanted) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// After a redaction and a purge no file of the store has the seeds of what was erased, and others are still there.
func TestLogPurges(t *testing.T) {
	folder := t.TempDir()
	h := newHouse(t, func(now func() time.Time) stele.Store {
		s, err := pebble.Open(t.Context(), folder, pebble.Options{Now: now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
	h.put("ark:99999/secret", "https://example.org/1")
	h.put("ark:99999/secret", "https://example.org/2")
	h.put("ark:99999/other", "https://example.org/3")
	h.catchUp()
	var seeds [3]seed
	for i := range seeds {
		k, err := h.log.kept(h.ctx, uint64(i)+2) // after two namespaces
		h.must(err)
		seeds[i] = k.seed
		if inFiles(t, folder, k.seed[:]) == nil {
			t.Fatalf("the seed of leaf %d is in no file", i+2)
		}
	}
	if _, err := h.r.Redact(h.ctx, h.id("ark:99999/secret"), 0, "a court order"); err != nil {
		t.Fatal(err)
	}
	h.catchUp()
	h.must(h.store.Purge(h.ctx))
	for i, want := range []bool{false, false, true} {
		if found := inFiles(t, folder, seeds[i][:]); (found != nil) != want {
			t.Errorf("the seed of leaf %d is in %q", i+2, found)
		}
	}
	h.wantSound()
}
