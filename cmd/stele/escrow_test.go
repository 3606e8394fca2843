package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEscrowLarge: of 80,000 records one is changed, and a few objects are brought to the place. A deposit that is killed is not seen, and what
// it has brought is not brought again.
func TestEscrowLarge(t *testing.T) {
	const escrowed = 80_000
	folder := t.TempDir()
	data, vault := filepath.Join(folder, "data"), ""
	lines := filepath.Join(folder, "records.jsonl")
	f, err := os.Create(lines)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range escrowed {
		fmt.Fprintf(w, `{"id":"ark:12345/x%06d","url":"https://example.org/things/%d"}`+"\n", i, i*7919)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	runStele(t, "ns", "add", "ark:12345", "--data", data)
	runStele(t, "import", lines, "--data", data)
	// Killed as soon as some objects are there; at another place if it was faster than the test.
	var deposit []string
	for attempt := 1; ; attempt++ {
		vault = filepath.Join(folder, fmt.Sprint("vault", attempt))
		deposit = []string{"escrow", "deposit", "--to", "file://" + vault, "--data", data, "--origin", "names.example.org/.log", "--json"}
		killed := steleCommand(t, deposit...)
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = killed.Wait()
			close(ended)
		}()
		for n := 0; n < 3; time.Sleep(time.Millisecond) {
			list, _ := filepath.Glob(filepath.Join(vault, "objects", "*", "*"))
			if n = len(list); isClosed(ended) {
				break
			}
		}
		_ = killed.Process.Kill() // it may have ended
		<-ended
		if list, _ := filepath.Glob(filepath.Join(vault, "deposits", "*.jsonl")); len(list) == 0 {
			break
		}
		if attempt == 20 {
			t.Fatal("it was faster than the test each time")
		}
	}
	objects := func() map[string]time.Time {
		list, _ := filepath.Glob(filepath.Join(vault, "objects", "*", "*"))
		times := map[string]time.Time{}
		for _, name := range list {
			if info, err := os.Stat(name); err == nil && !strings.HasPrefix(filepath.Base(name), ".part-") {
				times[name] = info.ModTime()
			}
		}
		return times
	}
	before := objects()
	var made depositMade
	read := func(text string) {
		made = depositMade{}
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	out, err := steleCommand(t, deposit...).Output()
	if err != nil {
		t.Fatal(err)
	}
	read(string(out))
	after := objects()
	if made.Records != escrowed || made.Sent+len(before) != len(after) {
		t.Errorf("made %+v after %d of %d objects were there", made, len(before), len(after))
	}
	for name, when := range before {
		if !after[name].Equal(when) {
			t.Errorf("%s was brought a second time", name)
		}
	}
	whole := made.Sent + len(before)
	runStele(t, "update", "ark:12345/x056789", "--title", "Changed", "--data", data)
	if out, err = steleCommand(t, deposit...).Output(); err != nil {
		t.Fatal(err)
	}
	read(string(out))
	t.Logf("of %d objects %d were new, with %d bytes", whole, made.Sent, made.Bytes)
	if made.Sent < 5 || made.Sent > 12 || made.Bytes > 2<<20 {
		t.Errorf("one of 80,000 records is changed, and %d objects were brought, with %d bytes", made.Sent, made.Bytes)
	}
	if said := runStele(t, "escrow", "check", "file://"+vault); !strings.Contains(said, "80,000 in 80,001 versions") {
		t.Error(said)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
