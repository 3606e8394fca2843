package postgres

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// filesWith returns the files of tables and indexes of all databases that hold a text,
// as it is or in the order of bytes that PostgreSQL's compression leaves alone.
func filesWith(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // it was removed meanwhile
		}
		data, err := os.ReadFile(name)
		if err == nil && bytes.Contains(data, []byte(text)) {
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEraseFiles: after Purge no file of a table or index holds what was erased, in the
// table itself, in TOAST, or in an index, and in cells.
func TestEraseFiles(t *testing.T) {
	s := opened(t, migrated(t, server), Options{})
	const secret = "kolibri-geheimnis"
	database := databaseOf(t, s.reads.Config().ConnString())
	look := func() []string {
		server.Exec(t, database, `CHECKPOINT`)
		return filesWith(t, filepath.Join(server.Data(), "base"), secret)
	}
	noise := func(n int) string { // that does not compress
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%x", rand.Uint64())
		}
		return b.String()
	}
	r := record1(t, "erased")
	r.Targets = []stele.Target{{Service: stele.N2L, URL: "https://" + secret + ".example.org/" + secret}}
	r.Metadata = stele.Metadata{"what": secret + noise(2000), "who": secret}
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r = withVersion(r)
		r.Metadata = stele.Metadata{"what": secret + noise(10), "when": fmt.Sprint(i)}
		if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	cell := stele.CellChange{Name: "proposal", After: []byte(secret + noise(10))} // of the record, or what the log keeps of it
	if err := s.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{cell}}); err != nil {
		t.Fatal(err)
	}
	if len(look()) < 3 { // names, places, history or TOAST
		t.Fatalf("the text is in %v only; the test does not look where it is kept", look())
	}
	blank := *withVersion(r)
	blank.Targets, blank.Metadata = nil, nil
	blank.Withheld = stele.Withheld{Redacted: blank.Version, Erased: blank.Version - 1}
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{&blank}, Cells: []stele.CellChange{{Name: cell.Name, Before: cell.After}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := look(); len(found) > 0 {
		t.Errorf("the text that was erased is in %v", found)
	}
	if err := s.Verify(t.Context(), func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}

func withVersion(r *stele.Record) *stele.Record {
	n := *r
	n.Version++
	return &n
}
