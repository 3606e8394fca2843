package registry

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stele-id/stele/internal/disk"
)

// TestReplaceFolderTwice: two restores in one second have the same time in their names. Both
// registries that they replace are kept, and the last one that was staged is in place.
func TestReplaceFolderTwice(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	stage := func(text string) string {
		t.Helper()
		folder := disk.FreeName(filepath.Join(home, "staged"))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "which"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	where := map[string]string{"third": data}
	for i, text := range []string{"first", "second", "third"} {
		kept, err := ReplaceFolder(stage(text), data, "now")
		if err != nil || (kept == "") != (i == 0) {
			t.Fatalf("%s: kept in %q, %v", text, kept, err)
		}
		if i > 0 {
			where[[]string{"first", "second"}[i-1]] = kept
		}
	}
	for text, folder := range where {
		if got, err := os.ReadFile(filepath.Join(folder, "which")); err != nil || string(got) != text {
			t.Errorf("%s has %q, %v; want %q", folder, got, err, text)
		}
	}
}

// What a restore copies is private, whatever the umask is.
func TestCopiesArePrivate(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(filepath.Join(from, "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copyFolder(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{to: 0o700, filepath.Join(to, "a"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
