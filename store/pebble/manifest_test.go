package pebble

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// A damaged list of tables is found before Pebble takes it to end there, which would
// lose what was written since. One that a crash cut off is read as far as it goes.
func TestDamagedManifest(t *testing.T) {
	disk := vfs.NewMem()
	s := openOn(t, disk, "store")
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Ingest(t.Context(), []*stele.Record{sample(t, name, 1)}, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	name := manifestOf(t, disk)
	whole := readFile(t, disk, name)
	for n := range whole {
		if err := checkChunks(whole[:n]); err != nil {
			t.Errorf("cut off at byte %d: %v", n, err)
		}
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/2] ^= 0x40
	if err := writeFile(disk, name, string(damaged)); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), "store", Options{Now: time.Now, FS: disk}); err == nil {
		mustClose(t, s)
		t.Error("a store with a damaged list of tables was opened")
	} else if !errors.Is(err, stele.Internal) || !strings.Contains(err.Error(), disk.PathBase(name)) {
		t.Errorf("%v; the file is not named", err)
	}
	if err := writeFile(disk, name, string(whole)); err != nil {
		t.Fatal(err)
	}
	s = openOn(t, disk, "store")
	wantSound(t, s)
	mustClose(t, s)
}

func manifestOf(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("store")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") {
			return fs.PathJoin("store", name)
		}
	}
	t.Fatal("there is no manifest")
	return ""
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	return text
}
