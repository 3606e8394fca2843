package bulk_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk"
)

// zipped returns a zip file of files with a text each.
func zipped(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			io.WriteString(w, "the text")
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	good := zipped(t, "folder/", "../../etc/passwd")
	path := filepath.Join(t.TempDir(), "it.zip")
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile, err := bulk.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fromMemory, err := bulk.NewFile("it", bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*bulk.File{fromFile, fromMemory} {
		text, err := io.ReadAll(f.Text())
		if err != nil || string(text) != "the text" || f.Read.Load() == 0 || f.Close() != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if _, err := bulk.NewFile("it", io.LimitReader(bytes.NewReader(good), 1<<20)); err == nil || !strings.Contains(err.Error(), "unpack it with 'unzip -p'") {
		t.Error(err)
	}
	for want, text := range map[string][]byte{
		"has several files":       zipped(t, "a", "b"),
		"has no file in it":       zipped(t, "a/")[0:],
		"is not a whole zip file": good[:len(good)-30],
		"more than 1000 files":    zipped(t, strings.Split(strings.Repeat("a,", 1500), ",")[:1500]...),
	} {
		if _, err := bulk.NewFile("it", bytes.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
