package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/storetest"
)

// TestStoreCopyKilled kills the program again and again while it copies, a little later
// each time, and lets it go on. In the end the copy is what it should be; before, it
// can't be opened.
func TestStoreCopyKilled(t *testing.T) {
	server := lazyPostgres(t)
	for _, kind := range []string{"folder", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			home := t.TempDir()
			from, to := filepath.Join(home, "from"), filepath.Join(home, "to")
			flag := []string{"--data", to}
			if kind == "PostgreSQL" {
				to = server().Database(t)
				flag = []string{"--store", to}
				runStele(t, append([]string{"store", "migrate"}, flag...)...)
			}
			runStele(t, "import", manyRecords(t, home, copiedRecords), "--data", from)
			runStele(t, "ns", "add", "ark:12345/x5", "--minter", "noid", "--template", ".zd", "--data", from)
			killed := 0
			for wait := 30 * time.Millisecond; killed < 6; wait += 30 * time.Millisecond {
				if !killLate(t, wait, "store", "copy", from, to) {
					break
				}
				killed++
				wantUnusable(t, flag)
			}
			t.Logf("killed %d times", killed)
			if killed < 3 {
				t.Errorf("it was killed %d times before it was done", killed)
			}
			if out, err := steleCommand(t, "store", "copy", from, to).CombinedOutput(); err != nil && !strings.Contains(string(out), "has a registry already") {
				t.Fatalf("%v\n%s", err, out)
			}
			if out := runStele(t, append([]string{"verify"}, flag...)...); !strings.Contains(out, "all is well: "+grouped(copiedRecords+1)+" changes") {
				t.Error(out)
			}
			compareExports(t, []string{"--data", from}, flag)
			if kind == "folder" {
				wantSameFolders(t, from, to)
			}
		})
	}
}

// copiedRecords is how many records are copied. The last one is looked for in a copy: it is
// there if the copy was finished when the program was killed.
const copiedRecords = 12_000

// manyRecords writes a file of records.
func manyRecords(t *testing.T, folder string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"ark:12345/x5%d","url":"https://example.org/%d"}`+"\n", i, i)
	}
	file := filepath.Join(folder, "many.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// killLate runs the program and kills it after a while. It returns false if it was done
// before.
func killLate(t *testing.T, wait time.Duration, args ...string) bool {
	t.Helper()
	cmd := steleCommand(t, args...)
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() }) // it may be over
	err := cmd.Wait()
	timer.Stop()
	exit, ok := err.(*exec.ExitError)
	switch {
	case err == nil:
		return false
	case ok && exit.ExitCode() == -1:
		return true
	case strings.Contains(out.String(), "has a registry already"):
		return false // it was killed when all was done
	}
	t.Fatalf("stele %q: %v\n%s", args, err, out)
	return false
}

// wantUnusable makes sure that a copy that may be unfinished is not taken for a registry:
// it is refused, or is not there yet, or has everything.
func wantUnusable(t *testing.T, flag []string) {
	t.Helper()
	out, err := steleCommand(t, append([]string{"show", fmt.Sprint("ark:12345/x5", copiedRecords-1)}, flag...)...).CombinedOutput()
	text := string(out)
	if err != nil && !strings.Contains(text, "is not finished; go on with") && !strings.Contains(text, "there is no registry") &&
		!strings.Contains(text, "nothing is registered under this name") {
		t.Errorf("an unfinished copy: %v\n%s", err, text)
	}
	if strings.Contains(text, "nothing is registered") {
		// Then it was killed before the copy had its mark, and has nothing.
		if status := runStele(t, append([]string{"store", "status"}, flag...)...); !strings.Contains(status, "changes       0\n") {
			t.Errorf("an unfinished copy can be used:\n%s\n%s", text, status)
		}
	}
}

// compareExports compares what two registries export, with all history.
func compareExports(t *testing.T, a, b []string) {
	t.Helper()
	var texts [2][]byte
	for i, flag := range [][]string{a, b} {
		var err error
		if texts[i], err = steleCommand(t, append([]string{"export", "--history"}, flag...)...).Output(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) || len(texts[0]) == 0 {
		t.Errorf("what is exported differs: %d bytes and %d", len(texts[0]), len(texts[1]))
	}
}

// wantSameFolders compares two folders.
func wantSameFolders(t *testing.T, from, to string) {
	t.Helper()
	a, err := pebble.Open(t.Context(), from, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := pebble.Open(t.Context(), to, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	storetest.WantSame(t, a, b)
}
