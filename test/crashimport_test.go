package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImportCrash kills the real program while it imports, again and again, and lets it
// go on each time. In the end the registry is exactly what the file says, and the bad
// lines of the file are reported once.
func TestImportCrash(t *testing.T) {
	t.Parallel()
	const records = 150_000
	folder := t.TempDir()
	file, data := filepath.Join(folder, "records.jsonl"), filepath.Join(folder, "data")
	want, bad := writeImport(t, file, records)
	program := stele(t)

	done, kills := false, 0
	for !done {
		cmd := exec.CommandContext(t.Context(), program, "--data", data, "import", file)
		var out, failure bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &failure
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kills < 8 { // the last one may end
			timer := time.AfterFunc(time.Duration(100+rand.IntN(900))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		_ = cmd.Wait() // how it ended is asked for below
		switch code := cmd.ProcessState.ExitCode(); code {
		case -1:
			kills++
		case 1: // bad lines make it fail
			done = true
			if !strings.Contains(out.String(), fmt.Sprintf(" %d rejected", len(bad))) {
				t.Errorf("the last run says %q", out.String())
			}
		default:
			t.Fatalf("exit %d: %s", code, failure.String())
		}
	}
	t.Logf("%d kills", kills)

	got, err := runIn(folder, program, "--data", data, "export")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the registry has %d bytes, and should have %d; they differ at byte %d", len(got), len(want), differ(got, want))
	}
	rejects, err := os.ReadFile(file + ".rejects")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(rejects)) {
		if !strings.HasPrefix(line, "#") {
			told = append(told, strings.TrimSuffix(line, "\n"))
		}
	}
	if strings.Join(told, "\n") != strings.Join(bad, "\n") {
		t.Errorf("rejected are %q, want %q", told, bad)
	}
	if out, err := runIn(folder, program, "--data", data, "verify"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// writeImport writes a file to import. It returns what an export of it is, and its bad
// lines.
func writeImport(t *testing.T, file string, records int) (want []byte, bad []string) {
	t.Helper()
	var text bytes.Buffer
	for i := range records {
		line := fmt.Sprintf(`{"id":"ark:12345/x%07d","targets":[{"url":"https://example.org/items/%d"}],`+
			`"metadata":{"what":"Sheet %d"},"created":"2020-01-02T03:04:05Z","modified":"2021-01-02T03:04:05Z","by":"ann"}`+"\n", i, i, i)
		text.WriteString(line)
		want = append(want, line...)
		if i%(records/5) == 777 {
			bad = append(bad, fmt.Sprintf(`{"id":"nonsense %d"}`, i))
			text.WriteString(bad[len(bad)-1] + "\n")
		}
		if i%(records/5) == 888 { // the same name again, with something else
			bad = append(bad, strings.TrimSuffix(strings.Replace(line, "Sheet", "Page", 1), "\n"))
			text.WriteString(bad[len(bad)-1] + "\n")
		}
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return want, bad
}

// differ returns where two texts differ first.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
