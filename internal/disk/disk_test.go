package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

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

// vanishing is a tree from which files and folders vanish after their folder was read.
type vanishing struct {
	fstest.MapFS
	gone map[string]bool
}

func (v vanishing) ReadDir(name string) ([]fs.DirEntry, error) {
	if v.gone[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	list, err := v.MapFS.ReadDir(name)
	for i, d := range list {
		if v.gone[d.Name()] && !d.IsDir() {
			list[i] = goneEntry{d}
		}
	}
	return list, err
}

type goneEntry struct{ fs.DirEntry }

func (goneEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

func TestFolderSize(t *testing.T) {
	tree := fstest.MapFS{"a.sst": {Data: make([]byte, 10)}, "b.log": {Data: make([]byte, 7)}, "in/c.sst": {Data: make([]byte, 5)}}
	for _, tt := range []struct {
		gone    map[string]bool
		endings []string
		want    int64
	}{
		{nil, nil, 22},
		{nil, []string{".sst"}, 15},
		{map[string]bool{"a.sst": true}, nil, 12},
		{map[string]bool{"in": true}, nil, 17},
	} {
		if size, err := treeSize(vanishing{tree, tt.gone}, tt.endings); size != tt.want || err != nil {
			t.Errorf("without %v, %v: %d, %v, want %d", tt.gone, tt.endings, size, err, tt.want)
		}
	}
	if _, err := FolderSize(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
