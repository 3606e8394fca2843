package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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

// A server warns of a data folder that others may reach, and says what to do.
func TestWideFolderIsToldOf(t *testing.T) {
	for mode, told := range map[os.FileMode]bool{0o700: false, 0o750: true, 0o755: true} {
		data := filepath.Join(t.TempDir(), "registry")
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s := &server{program: &program{data: data}, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.warnWide()
		if strings.Contains(log.String(), "chmod 700 "+data) != told {
			t.Errorf("mode %04o: %q", mode, &log)
		}
	}
}
