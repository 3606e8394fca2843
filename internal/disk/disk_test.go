package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stele-id/stele"
)

func TestCreatePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := CreatePrivate(path, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := CreatePrivate(path, []byte("other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it is there already: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadSome(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{3: "1234", 5: "12345", 9: "12345"} {
		if text, err := ReadSome(path, most); err != nil || string(text) != want {
			t.Errorf("at most %d: %q, %v", most, text, err)
		}
	}
	if _, err := ReadSome(filepath.Join(folder, "none"), 3); !errors.Is(err, stele.NotFound) {
		t.Error(err)
	}
	if _, err := ReadSome(folder, 3); !errors.Is(err, stele.Invalid) {
		t.Errorf("a folder: %v", err)
	}
	if size, err := FolderSize(folder); err != nil || size != 5 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if _, err := FolderSize(filepath.Join(folder, "none")); err == nil {
		t.Error("a folder that is not there has a size")
	}
}
