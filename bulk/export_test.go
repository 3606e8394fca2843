package bulk_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
)

// source is a registrar as exports read it, without old versions.
type source struct{ *registrar.Registrar }

func (s source) Export(ctx context.Context, key stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return s.Scan(ctx, key, "")
}

// TestImportExport imports a file, exports it in both forms, and imports these elsewhere.
func TestImportExport(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	keys := []stele.NamespaceKey{{Scheme: "ark"}, {Scheme: "urn"}}
	exported := func(r *registrar.Registrar, ctx context.Context, o bulk.ExportOptions) string {
		var b bytes.Buffer
		rows := 0
		o.Progress = func(n int) { rows += n }
		if err := bulk.Export(ctx, source{r}, keys, &b, o); err != nil || rows != 3 {
			t.Errorf("%d rows, %v", rows, err)
		}
		return b.String()
	}
	imported := func(r *registrar.Registrar, ctx context.Context, name, text string, o bulk.FileOptions) *bulk.FileImport {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := bulk.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		o.MaxErrors, o.ChunkRows, o.Encoding = -1, 2, bulk.Auto
		im, err := bulk.NewFileImport(ctx, r, schemes, f, o)
		if err != nil {
			t.Fatal(err)
		}
		if !im.Mark.Done {
			if err := im.Run(ctx, func() bulk.Progress { return ticks{} }); err != nil {
				t.Fatal(err)
			}
		}
		return im
	}
	r, ctx := newRegistry(schemes)
	if _, err := r.AddNamespace(ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Title: "Reports"}); err != nil {
		t.Fatal(err)
	}
	text := `{"id":"ark:12345/x1","url":"https://a.example/1","metadata":{"what":"=1+1"}}
{"id":"ark:12345/x2","url":"https://a.example/2"}
not JSON
{"id":"urn:x1:a","url":"https://a.example/3"}
`
	im := imported(r, ctx, "records.jsonl", text, bulk.FileOptions{})
	if c := im.Mark.Counts; c.New != 3 || c.Rejected != 1 || im.Label != "records.jsonl" {
		t.Errorf("%+v of %q", c, im.Label)
	}
	if rejects, err := os.ReadFile(im.File.Path + ".rejects"); err != nil || !strings.Contains(string(rejects), "not JSON") {
		t.Errorf("%q, %v", rejects, err)
	}
	lines, csv := exported(r, ctx, bulk.ExportOptions{}), exported(r, ctx, bulk.ExportOptions{CSV: true})
	if strings.Contains(lines, `"version"`) || strings.Contains(lines, "namespace") || !strings.Contains(csv, "'=1+1") {
		t.Errorf("%s%s", lines, csv)
	}
	if whole := exported(r, ctx, bulk.ExportOptions{Namespaces: true, History: true}); !strings.HasPrefix(whole, `{"namespace":{"scheme":"ark","prefix":"ark:12345"`) || !strings.Contains(whole, `"version":1`) {
		t.Error(whole)
	}
	for name, text := range map[string]string{"a.jsonl": lines, "a.csv": csv} {
		other, ctx := newRegistry(schemes)
		imported(other, ctx, name, text, bulk.FileOptions{})
		if got := exported(other, ctx, bulk.ExportOptions{}); got != lines {
			t.Errorf("by %s:\n%s, want\n%s", name, got, lines)
		}
	}
}

type ticks struct{}

func (ticks) Add(int) {}
func (ticks) Tick()   {}

// TestBookmark: a file that is imported is imported once, in each way of importing it.
func TestBookmark(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := newRegistry(schemes)
	path := filepath.Join(t.TempDir(), "records.csv")
	if err := os.WriteFile(path, []byte("id,url\nark:12345/x1,https://a.example/1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		o    bulk.FileOptions
		done bool // by an earlier one
	}{
		{bulk.FileOptions{DryRun: true}, false}, // it leaves no bookmark
		{bulk.FileOptions{}, false},
		{bulk.FileOptions{}, true},
		{bulk.FileOptions{Again: true}, false},
		{bulk.FileOptions{Update: true}, false},
		{bulk.FileOptions{Update: true, Replace: true}, false},
		{bulk.FileOptions{Update: true, EmptyClears: true}, false},
		{bulk.FileOptions{Update: true}, true},
		{bulk.FileOptions{Fresh: true}, false},
		{bulk.FileOptions{Columns: []string{"url=url"}}, false},
	} {
		f, err := bulk.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tt.o.MaxErrors, tt.o.ChunkRows, tt.o.Encoding = -1, 100, bulk.Auto
		im, err := bulk.NewFileImport(ctx, r, schemes, f, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if im.Mark.Done != tt.done {
			t.Errorf("%d, %+v: done is %t", i, tt.o, im.Mark.Done)
		}
		if !im.Mark.Done {
			if err := im.Run(ctx, func() bulk.Progress { return ticks{} }); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		f.Close()
	}
}

func TestOutput(t *testing.T) {
	folder := t.TempDir()
	read := map[string]func(io.Reader) (io.Reader, error){
		"a.jsonl":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"a.jsonl.gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"a.jsonl.zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	}
	for name, open := range read {
		path := filepath.Join(folder, name)
		out, err := bulk.CreateOutput(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(out, "hello")
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there before it is complete", name)
		}
		if err := out.End(nil); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := open(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "hello" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		// What fails leaves what was there.
		if out, err = bulk.CreateOutput(path, nil); err != nil {
			t.Fatal(err)
		}
		io.WriteString(out, "half")
		broken := errors.New("broken")
		if err := out.End(broken); !errors.Is(err, broken) {
			t.Error(err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, raw) {
			t.Errorf("%s is %q, %v", name, now, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.part")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	var b strings.Builder
	out, err := bulk.CreateOutput("", &b)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(out, "hello")
	if err := out.End(nil); err != nil || b.String() != "hello" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if _, err := bulk.CreateOutput(filepath.Join(folder, "none", "a"), nil); !errors.Is(err, stele.NotFound) {
		t.Error(err)
	}
}
