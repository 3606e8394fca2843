package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele/audit"
)

// TestAuditRemote: what the API refuses and does is in the trail, and in the file that the
// settings name, in order, and goes on after a restart.
func TestAuditRemote(t *testing.T) {
	data, file := newRegistry(t), filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--audit-file", file)
		if code := p.end(t, syscall.SIGTERM); code != 0 {
			t.Fatalf("the server ended with %d", code)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		var d audit.Document
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.Number != uint64(i)+1 {
			t.Errorf("line %d has the number %d: %v", i+1, d.Number, err)
		}
	}
	if !bytes.Contains(text, []byte(`"operation":"add user"`)) {
		t.Errorf("the first administrator is not in the trail:\n%s", text)
	}
}
