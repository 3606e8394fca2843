package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The locations of a handle share its visitors by their weight.
func TestServeShares(t *testing.T) {
	const locations = `<locations><location href="https://a.example.org/" weight="1"/><location href="https://b.example.org/" weight="1"/></locations>`
	folder := t.TempDir()
	file := filepath.Join(folder, "handles.jsonl")
	record, err := json.Marshal(map[string]any{"id": "20.500.12345/SHARED", "values": []any{
		map[string]any{"index": 1, "type": "10320/loc", "data": base64.StdEncoding.EncodeToString([]byte(locations)), "ttl": 60}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, record, 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	runStele(t, "ns", "add", "20.500.12345/", "--data", data)
	runStele(t, "import", file, "--data", data)
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0")
	seen := map[string]bool{}
	for range 100 { // with equal weights all lead to one of them once in 2^99 runs
		res, _ := httpGet(t, p.http+"/20.500.12345/SHARED")
		seen[res.Header.Get("Location")] = true
	}
	if !seen["https://a.example.org/"] || !seen["https://b.example.org/"] || len(seen) != 2 {
		t.Errorf("visitors are led to %v", seen)
	}
	if code := p.end(t, os.Interrupt); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}
