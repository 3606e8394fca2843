package fetch

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestPart: what is written is there the next time, with its digest, and has its final name
// in the end.
func TestPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole")
	p := openPart(t, path)
	if err := p.begin(note{"http://h/a", mark{ETag: `"1"`, Size: 5}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("he")); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openPart(t, path)
	if from, m := p.resumable("http://h/a"); from != 2 || m.ETag != `"1"` {
		t.Errorf("from %d, %+v", from, m)
	}
	if from, _ := p.resumable("http://h/b"); from != 0 {
		t.Errorf("from %d", from)
	}
	if _, err := p.Write([]byte("llo")); err != nil {
		t.Fatal(err)
	}
	if p.SHA256() != sha256.Sum256([]byte("hello")) || p.Size() != 5 {
		t.Errorf("%x of %d bytes", p.SHA256(), p.Size())
	}
	if err := p.Place(false); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	text, _ := os.ReadFile(path)
	if err != nil || len(left) != 1 || string(text) != "hello" {
		t.Errorf("%v with %q, %v", left, text, err)
	}
}

// TestPartAlone: only one process has a part at a time.
func TestPartAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole")
	p := openPart(t, path)
	if _, err := OpenPart(path, true); err == nil || stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "is fetching") {
		t.Errorf("%v", err)
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	openPart(t, path)
}

// TestPartOverwrites: an existing file stays, unless it may be overwritten.
func TestPartOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "whole")
	place := func(force bool) error {
		p := openPart(t, path)
		if err := p.begin(note{}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		if err := p.Place(force); err != nil {
			return err
		}
		return nil
	}
	writeFile(t, path, []byte("old"))
	if err := place(false); err == nil || stele.KindOf(err) != stele.Conflict {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "old" {
		t.Errorf("%q", text)
	}
	if err := os.Remove(path + partSuffix); err != nil {
		t.Fatal(err)
	}
	if err := place(true); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(path); string(text) != "new" {
		t.Errorf("%q", text)
	}
}

// TestPartOfOthers: files of that name that are not ours are left alone, and links are
// not followed, forced or not.
func TestPartOfOthers(t *testing.T) {
	part := func(path string, suffix string, change func(name string) error) error {
		for name, text := range map[string]string{path + partSuffix: "x", path + noteSuffix: "{}"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return change(path + suffix)
	}
	writable := func(name string) error { return os.Chmod(name, 0o666) }
	cases := map[string]func(path, other string) error{
		"a part that others write to": func(path, _ string) error { return part(path, partSuffix, writable) },
		"a note that others write to": func(path, _ string) error { return part(path, noteSuffix, writable) },
		"another name of a file": func(path, other string) error {
			return part(path, partSuffix, func(name string) error { return errors.Join(os.Remove(name), os.Link(other, name)) })
		},
		"a file":              func(path, _ string) error { return os.WriteFile(path+partSuffix, []byte("mine"), 0o600) },
		"a link":              func(path, other string) error { return os.Symlink(other, path+partSuffix) },
		"a link to nothing":   func(path, other string) error { return os.Symlink(other+"-none", path+partSuffix) },
		"a folder":            func(path, _ string) error { return os.Mkdir(path+partSuffix, 0o700) },
		"a note":              func(path, _ string) error { return os.WriteFile(path+noteSuffix, []byte("mine"), 0o600) },
		"a link for a note":   func(path, other string) error { return os.Symlink(other, path+noteSuffix) },
		"a folder for a note": func(path, _ string) error { return os.Mkdir(path+noteSuffix, 0o700) },
	}
	if os.Geteuid() == 0 { // only root can give files away
		given := func(name string) error { return os.Chown(name, 65534, 65534) }
		cases["somebody else's part"] = func(path, _ string) error { return part(path, partSuffix, given) }
		cases["somebody else's note"] = func(path, _ string) error { return part(path, noteSuffix, given) }
	}
	for about, make := range cases {
		t.Run(about, func(t *testing.T) {
			folder := t.TempDir()
			path, other := filepath.Join(folder, "whole"), filepath.Join(folder, "precious")
			writeFile(t, other, []byte("precious"))
			if err := make(path, other); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(folder)
			if _, err := OpenPart(path, false); err == nil || stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "--force") {
				t.Errorf("%v", err)
			}
			if after, _ := os.ReadDir(folder); len(after) != len(before) {
				t.Errorf("%v are there, and %v were", after, before)
			}
			p, err := OpenPart(path, true)
			if err == nil {
				if err := p.begin(note{}); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Write([]byte("new")); err != nil {
					t.Fatal(err)
				}
				if err := p.Place(true); err != nil {
					t.Fatal(err)
				}
				if text, _ := os.ReadFile(path); string(text) != "new" {
					t.Errorf("%q", text)
				}
				if info, err := os.Stat(path); err != nil || checkOwn(info) != nil {
					t.Errorf("%v, %v", info, err)
				}
			}
			if text, _ := os.ReadFile(other); string(text) != "precious" {
				t.Errorf("somebody else's file has %q", text)
			}
			if _, err := os.Lstat(other + "-none"); err == nil {
				t.Error("a link was followed to nothing")
			}
		})
	}
}
