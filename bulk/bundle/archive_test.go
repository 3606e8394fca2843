package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"

	"github.com/stele-id/stele"
)

// An archive that is made of files is the one that was written at once, also if its making was interrupted after a file.
func TestArchive(t *testing.T) {
	h := newHouse(t)
	h.fill(60)
	for _, packed := range []bool{false, true} {
		job := func() *Job {
			j := h.job()
			j.fileLines, j.Gzip = 5, packed
			j.held, j.Temp = 100, TempFile // usage.jsonl is not in memory
			j.Usage = func(_ context.Context, prefix stele.NamespaceKey, until string) iter.Seq2[Usage, error] {
				return func(yield func(Usage, error) bool) {
					for i := range 40 {
						id := h.id(fmt.Sprintf("ark:12345/x%d", 10+i))
						if prefix.Scheme == "ark" && !yield(Usage{Scheme: "ark", Name: id.String(), Month: until, Counts: map[string]uint64{"regular": uint64(i + 1)}}, nil) {
							return
						}
					}
				}
			}
			return j
		}
		want := h.bundle(job())
		type kept struct {
			name string
			data []byte
		}
		var files []kept
		done, err := job().Files(h.ctx, func(name string, size int64, in io.Reader) error {
			data, err := io.ReadAll(in)
			if int64(len(data)) != size {
				t.Errorf("%s has %d bytes, and %d are said", name, len(data), size)
			}
			files = append(files, kept{name, data})
			return err
		})
		h.must(err)
		var out bytes.Buffer
		a := NewArchive(&out, &done.Head, packed, 0)
		for i, f := range files {
			if i == 20 {
				a = NewArchive(&out, &done.Head, packed, a.Size())
			}
			h.must(a.Begin(f.name, int64(len(f.data))))
			for part := range bytes.SplitAfterSeq(f.data, []byte("\n")) {
				_, err := a.Write(part)
				h.must(err)
			}
		}
		h.must(a.End())
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("compressed %v: it is another archive: %d bytes and %d", packed, out.Len(), len(want))
		}
		if a.Size() != int64(len(want)) || !packed && done.Bytes != int64(len(want)) {
			t.Errorf("it says %d bytes, and %d were written, of %d", done.Bytes, a.Size(), len(want))
		}
	}
	a := NewArchive(io.Discard, new(Head), false, 0)
	for _, name := range []string{"", "x", "../data/bundle.json", "/etc/passwd", "data/log/tile/" + string(make([]byte, 100)), `data/records-\`} {
		if err := a.Begin(name, 1); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := a.Begin(fileHead, maxSmall+1); stele.KindOf(err) != stele.Invalid {
		t.Errorf("too long: %v", err)
	}
	h.must(a.Begin(fileHead, 3))
	if _, err := a.Write([]byte("four")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("more than its size: %v", err)
	}
}

func TestTileOf(t *testing.T) {
	for name, want := range map[string]struct {
		level string
		n     uint64
		ok    bool
	}{
		"data/log/tile/0/000":           {"0", 0, true},
		"data/log/tile/2/x001/x234/067": {"2", 1234067, true},
		"data/log/tile/0/x001/067.p/12": {"0", 0, false},
		"data/log/tile/0":               {"0", 0, false},
		"data/log/checkpoint":           {"", 0, false},
	} {
		level, n, ok := TileOf(name)
		if ok != want.ok || ok && (level != want.level || n != want.n) {
			t.Errorf("%s: %s, %d, %v", name, level, n, ok)
		}
	}
}
