package foreign_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// archived returns a tar archive with one file.
func archived(t *testing.T, name, text string, records map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg, PAXRecords: records}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBudget: reading ends where the text, decompressed as it is, is longer than allowed, also within an archive and before
// anything was handed over.
func TestBudget(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	for i := range 1000 {
		fmt.Fprintf(z, `{"DOI":"10.5072/%d","title":["%s"]}`+"\n", i, strings.Repeat("x", 2000))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	logged := "CREATE 20.500.12345/1\n1 URL 86400 1110 UTF8 https://example.org/\n\n"
	for system, text := range map[string][]byte{
		"crossref": archived(t, "part.jsonl.gz", zipped.String(), nil),
		"handle":   []byte(strings.Repeat(logged, 20_000)),
	} {
		o := foreign.Options{System: system, Schemes: known, TempDir: t.TempDir(), Budget: bulk.NewBudget(t.Context(), 1<<20)}
		if len(text) < 1<<19 == (system == "handle") {
			t.Fatalf("the file of %s has %d bytes", system, len(text))
		}
		s, err := foreign.Open(opened(t, text), o)
		if err == nil {
			_, _, err = rowsOf(t, s)
		}
		if err == nil || !strings.Contains(err.Error(), "there are more than 1048576 bytes in it") {
			t.Errorf("%s: %v", system, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		o.Budget = bulk.NewBudget(ctx, 1<<30)
		if s, err = foreign.Open(opened(t, text), o); err != nil {
			t.Fatal(err)
		}
		stop()
		if _, _, err = rowsOf(t, s); system == "handle" && !errors.Is(err, context.Canceled) || err == nil {
			t.Errorf("%s after the end of its context: %v", system, err)
		}
	}
}

// TestSparse: a file of an archive that is stored without its holes is left out, and told.
func TestSparse(t *testing.T) {
	text := archived(t, "part.jsonl", "0\n"+strings.Repeat("\x00", 510), map[string]string{"VND.sparse.major": "1", "VND.sparse.minor": "0", "VND.sparse.realsize": "1099511627776"})
	text = bytes.ReplaceAll(text, []byte("VND.sparse"), []byte("GNU.sparse"))
	rows, report, err := readDOIs(t, "crossref", foreign.Options{Format: foreign.CrossrefTar}, text)
	if err != nil || len(rows) != 0 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), "part.jsonl is left out: it is stored as a sparse file") {
		t.Errorf("%v: %d rows, %q", err, len(rows), report.Notes)
	}
}
