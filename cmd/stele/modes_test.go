package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
