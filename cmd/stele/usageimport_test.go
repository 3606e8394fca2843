package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUsageImportKilled kills the program again and again while it counts a log file, and repeats the command: in the end the figures are those of a run
// that was not killed.
func TestUsageImportKilled(t *testing.T) {
	folder := t.TempDir()
	file, records := filepath.Join(folder, "access.log"), filepath.Join(folder, "records.jsonl")
	var log, lines bytes.Buffer
	const names = 3000
	for n := range names {
		fmt.Fprintf(&lines, "{\"id\":\"ark:12345/x%d\",\"url\":\"https://example.org/%d\"}\n", n, n)
	}
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for n := range 60_000 { // two weeks; every fifth line is a double click
		at := begin.Add(time.Duration(n-n%5) * 20 * time.Second)
		if n%5 == 4 {
			at = at.Add(-10 * time.Second)
		}
		fmt.Fprintf(&log, "192.0.2.%d - - [%s] \"GET /ark:12345/x%d HTTP/1.1\" 302 0 \"-\" \"Mozilla/5.0 Firefox/140.0\"\n", n%200/5, at.Format("02/Jan/2006:15:04:05 -0700"), (n-n%5/4)*7919%names)
	}
	for path, text := range map[string][]byte{file: log.Bytes(), records: lines.Bytes()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	figures := func(data string) string {
		t.Helper()
		var all string
		for _, by := range []string{"name", "day"} {
			all += runStele(t, "usage", "ark:12345/", "--by", by, "--from", "2026-01", "--until", "2026-12", "--csv", "--data", data)
		}
		return all
	}
	clean, killed := filepath.Join(folder, "clean"), filepath.Join(folder, "killed")
	for _, data := range []string{clean, killed} {
		runStele(t, "ns", "add", "ark:12345", "--data", data)
		runStele(t, "import", records, "--data", data)
	}
	runStele(t, "usage", "import", file, "--data", clean)
	kills := 0
	for wait := 150 * time.Millisecond; killLate(t, wait, "usage", "import", file, "--data", killed); wait = wait * 4 / 3 {
		kills++
	}
	t.Logf("killed %d times", kills)
	runStele(t, "usage", "import", file, "--data", killed) // it was done, and counts nothing again
	if want, have := figures(clean), figures(killed); want != have || len(want) < names*20 {
		t.Errorf("after %d kills the figures differ: %d bytes and %d", kills, len(want), len(have))
	}
}
