package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestBundle(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	data := h.bundle(h.job())
	report := h.check(data)
	if !report.Trusted || report.Counts.Records != 300+101+4 || report.Counts.Namespaces != 3 || report.Counts.Kept != 4 || report.Counts.Minters == 0 {
		t.Errorf("report %+v", report)
	}
	if again := h.bundle(h.job()); !bytes.Equal(again, data) {
		t.Error("the same state gives other bytes")
	}
	seen := map[string]uint64{}
	o := h.options()
	o.Visit.Record = func(v *RecordVersion) error {
		if seen[v.Record.ID.String()]++; v.Record.Version != seen[v.Record.ID.String()] {
			t.Errorf("%s: version %d", v.Record.ID, v.Record.Version)
		}
		if v.Current {
			now, err := h.store.Record(h.ctx, v.Record.ID)
			h.must(err)
			if !now.Equal(v.Record) {
				t.Errorf("%s is another record in the bundle", now.ID)
			}
		}
		return nil
	}
	_, err := Read(h.ctx, bytes.NewReader(data), o)
	h.must(err)
	if len(seen) != 405 || seen["ark:99999/erased"] != 4 {
		t.Errorf("%d records", len(seen))
	}
	if bytes.Contains(data, []byte("Erasmus")) {
		t.Error("the bundle has what was erased")
	}
}

func TestBundleOfPrefix(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	data := h.bundle(h.job("ark:12345"))
	report := h.check(data)
	if report.Counts.Records != 302 || report.Counts.Namespaces != 1 || report.OutsideCount != 1 || report.Outside[0].Alias != h.id("20.500.1/also") {
		t.Errorf("report %+v", report)
	}
	if bytes.Contains(data, []byte("ark:99999")) {
		t.Error("the bundle has names of others")
	}
	both := h.bundle(h.job("ark:99999", "ark:12345/"))
	if report := h.check(both); len(report.Head.Prefixes) != 2 || report.Counts.Namespaces != 2 {
		t.Errorf("report %+v", report.Head)
	}
}

// An archive is one that others read: Go's tar and the system's.
func TestBundleIsTar(t *testing.T) {
	h := newHouse(t)
	h.fill(30)
	for _, packed := range []bool{false, true} {
		j := h.job()
		j.Gzip = packed
		folder := t.TempDir()
		name := filepath.Join(folder, "b.tar")
		done, resumed, err := j.WriteFile(h.ctx, name, false)
		h.must(err)
		if resumed || done.Counts.Records == 0 {
			t.Errorf("written %+v", done)
		}
		data, err := os.ReadFile(name)
		h.must(err)
		h.check(data)
		if done.Bytes != int64(len(data)) {
			t.Errorf("%d bytes, said %d", len(data), done.Bytes)
		}
		if out, err := exec.Command("tar", "-xf", name, "-C", folder).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("tar: %v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(folder, "names.example.org-.log", "data", "bundle.json"))
		h.must(err)
		if !strings.Contains(string(text), `"form":1`) {
			t.Errorf("bundle.json: %s", text)
		}
		plain, err := decompress(bytes.NewReader(data))
		h.must(err)
		files := 0
		for r := tar.NewReader(plain); ; files++ {
			_, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			h.must(err)
		}
		if files < 15 {
			t.Errorf("%d files", files)
		}
		// RFC 8493: other programs check a bag by its manifests and its Payload-Oxum.
		for _, manifest := range []string{"manifest-sha256.txt", "tagmanifest-sha256.txt"} {
			check := exec.Command("sha256sum", "--check", "--strict", "--quiet", manifest)
			check.Dir = filepath.Join(folder, "names.example.org-.log")
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("sha256sum: %v: %s", err, out)
			}
		}
		leftovers, err := filepath.Glob(name + ".*")
		h.must(err)
		if len(leftovers) > 0 {
			t.Errorf("left: %v", leftovers)
		}
	}
}

// full is a disk without room for more than so many bytes.
type full struct{ left int }

var errFull = errors.New("the disk is full")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// An error of the file, or of the registry, ends a bundle, wherever it comes, and is told as it is: records are read ahead of those that are
// written.
func TestBundleFails(t *testing.T) {
	h := newHouse(t)
	h.fill(2000)
	size := len(h.bundle(h.job()))
	for left := size / 3; left < size; left += size / 5 {
		if _, err := h.job().Write(h.ctx, &full{left}); !errors.Is(err, errFull) {
			t.Errorf("after %d of %d bytes: %v", left, size, err)
		}
	}
	whole := h.store
	for _, after := range []int{0, 1, 700, 2500} {
		h.over(&unreadable{whole, after})
		if _, err := h.job().Write(h.ctx, io.Discard); !errors.Is(err, errBroken) {
			t.Errorf("after %d records: %v", after, err)
		}
	}
}

// unreadable is a store that breaks after some records.
type unreadable struct {
	stele.Store
	left int
}

func (u *unreadable) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range u.Store.Scan(ctx, scheme, prefix, after) {
			if u.left--; u.left < 0 {
				rec, err = nil, errBroken
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func TestSign(t *testing.T) {
	h := newHouse(t)
	h.fill(30)
	for _, packed := range []bool{false, true} {
		j := h.job()
		j.Gzip = packed
		name := filepath.Join(t.TempDir(), "b.tar")
		_, _, err := j.WriteFile(h.ctx, name, false)
		h.must(err)
		before, err := os.ReadFile(name)
		h.must(err)
		for range 2 {
			made, err := Sign(h.ctx, name, h.signer, h.options())
			h.must(err)
			if len(made) != 1 || made[0].Namespace != "ark:12345" {
				t.Errorf("signed %+v", made)
			}
			after, err := os.ReadFile(name)
			h.must(err)
			report := h.check(after)
			if len(report.Signatures) != 1 {
				t.Errorf("signatures %+v", report.Signatures)
			}
			was, err := Read(h.ctx, bytes.NewReader(before), h.options())
			h.must(err)
			if !bytes.HasPrefix(after, before[:was.tail]) || was.Manifest != report.Manifest {
				t.Error("more than the end of the file has changed")
			}
		}
		other := newHouse(t)
		other.fill(3)
		if _, err := Sign(h.ctx, name, other.signer, h.options()); stele.KindOf(err) != stele.NotFound {
			t.Errorf("a strange key signs: %v", err)
		}
	}
}
