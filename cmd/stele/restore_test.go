package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceFolderTwice: two restores in one second have the same time in their names. Both
// registries that they replace are kept, and the last one that was staged is in place.
func TestReplaceFolderTwice(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	stage := func(text string) string {
		t.Helper()
		folder := freeName(filepath.Join(home, "staged"))
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
		kept, err := replaceFolder(stage(text), data, data+".before")
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
