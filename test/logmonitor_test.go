package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/store/pebble"
)

// watched is a registry that its own program serves, and that a monitor follows from outside.
type watched struct {
	t     *testing.T
	home  string
	state string // of the monitor
	key   string // file of the public key
}

// environ gives all copies of the registry the same secret key, which encrypts that of the log.
func (w *watched) environ() []string {
	return []string{"HOME=" + w.home, "STELE_SECRET_KEY_FILE=" + filepath.Join(w.home, "secret.key")}
}

// stele runs the program, and returns its exit code and what it prints.
func (w *watched) stele(args ...string) (code int, said string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), stele(w.t), args...)
	cmd.Env = w.environ()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.t.Fatal(err)
	} else if ok {
		code = exit.ExitCode()
	}
	return code, string(out)
}

func (w *watched) must(args ...string) string {
	w.t.Helper()
	code, said := w.stele(args...)
	if code != 0 {
		w.t.Fatalf("stele %q: exit %d\n%s", args, code, said)
	}
	return said
}

// copied returns a copy of a registry.
func (w *watched) copied(data string) string {
	w.t.Helper()
	folder := filepath.Join(w.t.TempDir(), "data")
	if err := os.CopyFS(folder, os.DirFS(data)); err != nil {
		w.t.Fatal(err)
	}
	return folder
}

// serve serves a registry while do runs, which gets its URL. The log has so many leaves, or more, and is signed, when do is called.
func (w *watched) serve(data string, leaves int, do func(url string)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	cmd := exec.CommandContext(ctx, stele(w.t), "serve", "--json", "--data", data, "--http", "127.0.0.1:0", "--dns", "", "--log-interval", "1s")
	cmd.Env = w.environ()
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	var at struct{ HTTP string }
	if err != nil || json.Unmarshal([]byte(line), &at) != nil {
		cancel()
		_ = cmd.Wait()
		w.t.Fatalf("the server says %q, %v\n%s", line, err, said.String())
	}
	for deadline := time.Now().Add(time.Minute); signedLeaves(at.HTTP) < leaves; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Errorf("there is no checkpoint of %d leaves\n%s", leaves, said.String())
			return
		}
	}
	do(at.HTTP)
}

// signedLeaves returns the size of the log that a server shows; -1 if it shows none.
func signedLeaves(url string) int {
	a, err := http.Get(url + "/.log/checkpoint")
	if err != nil {
		return -1
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	lines := strings.Split(string(text), "\n")
	if err != nil || a.StatusCode != http.StatusOK || len(lines) < 3 {
		return -1
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil {
		return -1
	}
	return n
}

// look has the monitor look at a registry that is served.
func (w *watched) look(data, state string, leaves int) (code int, said string) {
	w.t.Helper()
	w.serve(data, leaves, func(url string) {
		code, said = w.stele("log", "monitor", url, "--key", w.key, "--state", state, "--allow", "127.0.0.1", "--pause", "0s", "--watch", "ark:12345")
	})
	return code, said
}

// Bytes of a leaf in the cell of a tile, after one byte for the form: flags, hash and seed.
const keptLeaf = 1 + 32 + 16

// rewrite changes the leaves of a registry that is not served, as its operator can, and makes the server sign what is there.
func (w *watched) rewrite(data string, change func(leaves [][]byte)) {
	w.t.Helper()
	store, err := pebble.Open(w.t.Context(), data, pebble.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Existing: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Close()
	const tile, checkpoint = "log tile 0 0000000000", "log checkpoint"
	before, err := store.Cell(w.t.Context(), tile)
	if err != nil || len(before)%keptLeaf != 1 {
		w.t.Fatalf("the tile has %d bytes: %v", len(before), err)
	}
	after := bytes.Clone(before)
	var leaves [][]byte
	for at := 1; at < len(after); at += keptLeaf {
		leaves = append(leaves, after[at:at+keptLeaf])
	}
	change(leaves)
	note, err := store.Cell(w.t.Context(), checkpoint)
	if err == nil {
		err = store.Apply(w.t.Context(), &vocabulary.Commit{Cells: []vocabulary.CellChange{{Name: tile, Before: before, After: after}, {Name: checkpoint, Before: note}}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A registry that a monitor follows is served by the program itself, whose operator then changes its history, and has the server sign it with the
// registry's own key. The monitor exits with 1 for each of these, and with 0 for what is honest.
func TestLogMonitor(t *testing.T) {
	w := &watched{t: t, home: t.TempDir()}
	data := filepath.Join(t.TempDir(), "data")
	w.state, w.key = filepath.Join(w.home, "seen.json"), filepath.Join(w.home, "log.pub")
	register := func(data, name string) {
		t.Helper()
		w.must("register", "ark:12345/"+name, "--to", "https://example.org/"+name, "--data", data)
	}
	w.must("secret", "keygen", filepath.Join(w.home, "secret.key"))
	w.must("ns", "add", "ark:12345", "--listed", "--data", data)
	for _, name := range []string{"a", "b", "c"} {
		register(data, name)
	}
	w.must("log", "key", "--origin", "names.example.org/.log", "--data", data)
	keys := w.must("log", "key", "--data", data)
	if err := os.WriteFile(w.key, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	code, said := w.look(data, w.state, 4)
	if code != 0 || !strings.Contains(said, "4 entries, 4 of them new") || !strings.Contains(said, "change 3: record ark:12345/b, version 1") {
		t.Fatalf("exit %d\n%s", code, said)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	w.must("backup", backup, "--data", data)
	register(data, "d")
	seen, err := os.ReadFile(w.state)
	if err != nil {
		t.Fatal(err)
	}
	fork := w.copied(data)
	for name, tt := range map[string]struct {
		make func() (data string)
		code int
		says string
	}{
		"honest": {func() string { return w.copied(data) }, 0, "change 5: record ark:12345/d"},
		"rewritten": {func() string {
			other := w.copied(data)
			w.rewrite(other, func(leaves [][]byte) { leaves[2][7] ^= 1 })
			return other
		}, 1, "the first 4 entries of the log are not those that its registry signed before"},
		"dropped": {func() string {
			other := w.copied(data)
			w.rewrite(other, func(leaves [][]byte) {
				for i := 1; i+1 < len(leaves); i++ {
					copy(leaves[i], leaves[i+1])
				}
			})
			return other
		}, 1, "the first 4 entries of the log are not those"},
		"reordered": {func() string {
			other := w.copied(data)
			w.rewrite(other, func(leaves [][]byte) {
				first := bytes.Clone(leaves[1])
				copy(leaves[1], leaves[2])
				copy(leaves[2], first)
			})
			return other
		}, 1, "the first 4 entries of the log are not those"},
		"restored": {func() string {
			other := w.copied(data)
			w.must("restore", backup, "--data", other)
			register(other, "e")
			return other
		}, 0, "restored from a backup: no change that was seen is gone"},
	} {
		state := filepath.Join(t.TempDir(), "seen.json")
		if err := os.WriteFile(state, seen, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, said := w.look(tt.make(), state, 5); code != tt.code || !strings.Contains(said, tt.says) {
			t.Errorf("%s: exit %d\n%s", name, code, said)
		}
	}
	// Two readers are shown two histories, and the second one is shown to the first, too.
	register(data, "f")
	register(fork, "g")
	if code, said := w.look(data, w.state, 6); code != 0 {
		t.Errorf("exit %d\n%s", code, said)
	}
	if code, said := w.look(fork, w.state, 6); code != 1 || !strings.Contains(said, "two histories were shown") {
		t.Errorf("forked: exit %d\n%s", code, said)
	}
}
