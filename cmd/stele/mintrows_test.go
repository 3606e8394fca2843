package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMintFromKilled kills 'mint --from' again and again, a little later each time, and
// gives the same command again. In the end each row of the sheet has one name, no two
// rows have the same, and the registry has as many records as the sheet has rows, each
// with what its row says: so no row ever got two names.
func TestMintFromKilled(t *testing.T) {
	server := lazyPostgres(t)
	for _, kind := range []string{"folder", "PostgreSQL", "server"} {
		t.Run(kind, func(t *testing.T) {
			home := t.TempDir()
			where := []string{"--data", filepath.Join(home, "data")}
			switch kind {
			case "PostgreSQL":
				where = []string{"--store", server().Database(t)}
				runStele(t, append([]string{"store", "migrate"}, where...)...)
			case "server":
				where = serverFlags(t, filepath.Join(home, "data"))
			}
			runStele(t, append([]string{"ns", "add", "ark:12345/x5", "--minter", "noid", "--template", ".reedeedk"}, where...)...)
			const rows = 2_000
			file, want := manyRows(t, home, rows)
			command := append([]string{"mint", "ark", "--naan", "12345", "--shoulder", "x5", "--from", file}, where...)
			killed := 0
			for _, size := range []int64{1, 4_000, 20_000, 60_000, 100_000} {
				at := func() bool { return sizeOf(file+".names") >= size }
				if killWhen(t, at, command...) {
					killed++
				}
				wantSheet(t, file, want, killed) // the file has all names or none
			}
			for range 2 {
				if killWhen(t, func() bool { return sizeOf(file+".part") >= 0 }, command...) {
					killed++
				}
				wantSheet(t, file, want, killed)
			}
			t.Logf("killed %d times", killed)
			if killed == 0 {
				t.Error("it was never killed")
			}
			runStele(t, command...)
			names := wantSheet(t, file, want, -1)
			if out := runStele(t, append([]string{"export", "ark:12345/x5"}, where...)...); strings.Count(out, "\n") != rows {
				t.Errorf("the registry has %d records, and the sheet %d rows", strings.Count(out, "\n"), rows)
			} else {
				for name, row := range names {
					if !strings.Contains(out, `{"id":"`+name+`","targets":[{"url":"`+row[1]+`"}],"metadata":{"what":"`+row[0]+`"}`) {
						t.Fatalf("%s is not registered with what its row says, %q", name, row)
					}
				}
			}
			for _, rest := range []string{".names", ".part"} {
				if _, err := os.Stat(file + rest); err == nil {
					t.Errorf("%s is left", file+rest)
				}
			}
		})
	}
}

// killWhen runs the program and kills it when something is true. It returns false if the
// program was done before.
func killWhen(t *testing.T, is func() bool, args ...string) bool {
	t.Helper()
	cmd := steleCommand(t, args...)
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil && cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("stele %q: %v\n%s", args, err, out)
			}
			return err != nil
		case <-time.After(time.Millisecond):
			if is() {
				_ = cmd.Process.Kill() // it may be over
			}
		}
	}
}

// sizeOf returns the size of a file; -1 if there is none.
func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return -1
	}
	return info.Size()
}

// manyRows writes a sheet of rows without names.
func manyRows(t *testing.T, folder string, n int) (file string, rows [][]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("title;url\r\n")
	for i := range n {
		rows = append(rows, []string{fmt.Sprintf("Sheet %d", i), fmt.Sprintf("https://example.org/%d", i)})
		b.WriteString(strings.Join(rows[i], ";") + "\r\n")
	}
	file = filepath.Join(folder, "sheet.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, rows
}

// wantSheet makes sure that a sheet has all its rows, with a name each or, if it was
// killed, as they were. It returns the rows by their names.
func wantSheet(t *testing.T, file string, want [][]string, killed int) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), "\r\n") != len(want)+1 {
		t.Fatalf("the sheet has %d lines, want %d", strings.Count(string(data), "\r\n"), len(want)+1)
	}
	in := csv.NewReader(strings.NewReader(string(data)))
	in.Comma = ';'
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string][]string)
	for i, row := range rows[1:] {
		if !slices.Equal(row[:2], want[i]) {
			t.Fatalf("row %d is %q, want %q", i, row, want[i])
		}
		if len(row) == 3 && row[2] != "" {
			names[row[2]] = row
		}
	}
	if len(names) != len(want) && (killed < 0 || len(names) > 0) {
		t.Fatalf("%d rows have %d names", len(want), len(names))
	}
	return names
}

// serverFlags starts a server on a folder, and returns the flags that lead to it.
func serverFlags(t *testing.T, folder string) []string {
	t.Helper()
	runStele(t, "user", "add", "ana", "--admin", "--data", folder)
	token, err := steleCommand(t, "token", "create", "ana", "--data", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, token, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--data", folder, "--http", "127.0.0.1:0")
	return []string{"--server", p.http, "--token-file", file}
}
