package main

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
)

// TestForeignFiles checks that every file of another system that imports are measured with gives a record for each of its names.
func TestForeignFiles(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: purl.DefaultHosts()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range foreignFiles() {
		var text bytes.Buffer
		w := bufio.NewWriter(&text)
		f.write(w, inOrder(3))
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		in, err := bulk.NewFile("it", &text)
		if err != nil {
			t.Fatal(err)
		}
		o := foreign.Options{System: f.args[1], Schemes: schemes, TempDir: t.TempDir()}
		if len(f.args) > 2 {
			o.Prefix = f.args[3]
		}
		s, err := foreign.Open([]*bulk.File{in}, o)
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		records := 0
		for row, err := range bulk.All(s) {
			if err != nil || row.Err != nil {
				t.Fatalf("%s: %v, %+v", f.name, err, row)
			}
			if row.Record != nil && len(row.Record.Targets) == 1 {
				records++
			}
		}
		if records != 3 {
			t.Errorf("%s: %d records, want 3", f.name, records)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
