package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTwoProcesses: one process has the folder, and the error of a second names it.
func TestTwoProcesses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := exec.CommandContext(t.Context(), stele(t), "--data", data, "import", "-")
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, `{"id":"urn:x1:first"}`); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(data, "HOLDER"))
	for _, args := range [][]string{{"ls"}, {"register", "urn:x1:a", "--to", "https://example.org/"}, {"backup", data + "2"}, {"verify"}, {"restore", data + "3"}} {
		if args[0] == "restore" { // something that could be a backup
			writeFile(t, filepath.Join(data+"3", "MANIFEST-000001"), "x", 0o600)
		}
		cmd := exec.CommandContext(t.Context(), stele(t), append([]string{"--data", data}, args...)...)
		out, err := cmd.CombinedOutput()
		want := fmt.Sprintf("is in use by process %d since ", first.Process.Pid)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 5 || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s; want exit 5 and %q", args, err, out, want)
		}
	}
	if err := errors.Join(in.Close(), first.Wait()); err != nil {
		t.Error(err)
	}
	if out, err := runIn(data, stele(t), "--data", data, "verify"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func waitFor(t *testing.T, name string) {
	t.Helper()
	for range 1000 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("there is no %s", name)
}

// TestDamage damages each file of a registry in turn. The program detects that and names
// the file; what is not damaged can be read.
func TestDamage(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	file := filepath.Join(folder, "records.jsonl")
	writeImport(t, file, 20_000)
	if _, err := runIn(folder, stele(t), "--data", data, "import", file); err == nil {
		t.Fatal("the bad lines were not told")
	}
	names, err := filepath.Glob(filepath.Join(data, "*"))
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		base := filepath.Base(name)
		damages := map[string]func(text []byte) []byte{}
		switch {
		case filepath.Ext(base) == ".sst":
			tables++
			damages["a byte"] = func(text []byte) []byte { text[len(text)/2] ^= 0x40; return text }
			damages["truncated"] = func(text []byte) []byte { return text[:len(text)/2] }
			damages["empty"] = func([]byte) []byte { return nil }
		case strings.HasPrefix(base, "MANIFEST-"):
			damages["a byte"] = func(text []byte) []byte { text[len(text)/2] ^= 0x40; return text }
			damages["empty"] = func([]byte) []byte { return nil }
		}
		for what, damage := range damages {
			t.Run(filepath.Ext(base)+strings.TrimRight(strings.TrimSuffix(base, ".sst"), "0123456789")+" "+what, func(t *testing.T) {
				broken := filepath.Join(t.TempDir(), "data")
				copyTree(t, data, broken)
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(broken, base), damage(bytes.Clone(text)), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := exec.CommandContext(t.Context(), stele(t), "--data", broken, "verify").CombinedOutput()
				if err == nil || !strings.Contains(string(out), base) {
					t.Errorf("%s, %s: %v; the file is not named:\n%.2000s", base, what, err, out)
				}
			})
		}
	}
	if tables == 0 {
		t.Errorf("there is no table among %q", names)
	}
}

// copyTree copies the files of a folder.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
