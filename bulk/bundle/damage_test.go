package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// member is a file in an archive: where its header begins.
type member struct {
	name string
	at   int64
	size int64
}

func members(t testing.TB, data []byte) (list []member) {
	t.Helper()
	r := tarReader{in: bytes.NewReader(data)}
	for {
		name, size, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if name == "" {
			return list
		}
		list = append(list, member{name, r.offset - blockSize, size})
	}
}

// signedBundle returns a bundle with all parts.
func signedBundle(t *testing.T) (*house, []byte) {
	h := newHouse(t)
	h.fill(9)
	name := filepath.Join(t.TempDir(), "b.tar")
	_, _, err := h.job().WriteFile(h.ctx, name, false)
	h.must(err)
	_, err = Sign(h.ctx, name, h.signer, h.options())
	h.must(err)
	data, err := os.ReadFile(name)
	h.must(err)
	return h, data
}

// One flipped bit anywhere is refused, and the error names the file in the bundle or the byte of the archive.
func TestFlippedBits(t *testing.T) {
	h, data := signedBundle(t)
	list := members(t, data)
	flip := func(at int64, bit int, place string) {
		t.Helper()
		bad := bytes.Clone(data)
		bad[at] ^= 1 << bit
		_, err := Read(h.ctx, bytes.NewReader(bad), h.options())
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), place) {
			t.Errorf("bit %d of byte %d is flipped, in %s: %v", bit, at, place, err)
		}
	}
	// placeOf returns what the error names for a byte: the file whose content it is in, or else where it is in the archive.
	placeOf := func(at int64) string {
		for _, m := range list {
			if begin := m.at + blockSize; at >= begin && at < begin+m.size {
				return m.name
			}
		}
		return "at byte "
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, m := range list {
		for range 4 { // of the header, the content and what follows it
			flip(m.at+random.Int64N(blockSize), random.IntN(8), "at byte ")
			if m.size > 0 {
				flip(m.at+blockSize+random.Int64N(m.size), random.IntN(8), m.name)
			}
			if pad := padding(m.size); pad > 0 {
				flip(m.at+blockSize+m.size+random.Int64N(pad), random.IntN(8), "at byte ")
			}
		}
	}
	for range 600 {
		at := random.Int64N(int64(len(data)))
		flip(at, random.IntN(8), placeOf(at))
	}
	for _, n := range []int{0, 1, blockSize, len(data) / 2, len(data) - blockSize, len(data) - 1} {
		if _, err := Read(h.ctx, bytes.NewReader(data[:n]), h.options()); stele.KindOf(err) != stele.Invalid {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	if _, err := Read(h.ctx, bytes.NewReader(append(bytes.Clone(data), 0)), h.options()); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a byte follows: %v", err)
	}
}

// A flipped bit of a compressed bundle is refused with the place, or is one that its compression ignores: all that it has is the same then,
// to the last bit.
func TestFlippedBitsCompressed(t *testing.T) {
	h := newHouse(t)
	h.fill(9)
	j := h.job()
	j.Gzip = true
	data := h.bundle(j)
	want := h.check(data)
	random := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 200 {
		bad := bytes.Clone(data)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		got, err := Read(h.ctx, bytes.NewReader(bad), h.options())
		switch {
		case stele.KindOf(err) == stele.Invalid:
			if refused++; !hasPlace(err) {
				t.Errorf("the place is missing: %v", err)
			}
		case err != nil || got.Manifest != want.Manifest:
			t.Errorf("a flipped bit: %v", err)
		}
	}
	if refused < 190 {
		t.Errorf("%d of 200 were refused", refused)
	}
}

// hasPlace reports whether an error says where something is wrong.
func hasPlace(err error) bool {
	for _, place := range []string{"byte ", "data/", "signatures/", "bagit.txt", "README", "manifest-sha256.txt", "bag-info.txt"} {
		if strings.Contains(err.Error(), place) {
			return true
		}
	}
	return false
}

// Archives that other programs make are refused whatever they have.
func TestHostileArchives(t *testing.T) {
	h, data := signedBundle(t)
	first := members(t, data)[0]
	entry := func(header tar.Header, content string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		header.Size = int64(len(content))
		h.must(w.WriteHeader(&header))
		_, err := io.WriteString(w, content)
		h.must(err)
		h.must(w.Flush())
		return b.Bytes()
	}
	folder := "names.example.org-.log/"
	own := func(name, content string) []byte {
		head := tarHeader(name, int64(len(content)), 1619949600)
		b := append(head[:], content...)
		return append(b, make([]byte, padding(int64(len(content))))...)
	}
	huge := tarHeader(folder+fileBagit, 1<<33-1, 1619949600)
	bad := map[string][]byte{
		"nothing":       nil,
		"zeroes":        make([]byte, 2*blockSize),
		"a link":        entry(tar.Header{Name: folder + fileBagit, Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, ""),
		"a folder":      entry(tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: 0o755}, ""),
		"another mode":  entry(tar.Header{Name: folder + fileBagit, Typeflag: tar.TypeReg, Mode: 0o777}, bagit),
		"absolute":      own("/etc/"+fileBagit, bagit),
		"parent":        own("../"+fileBagit, bagit),
		"deep":          own(folder+"../../"+fileBagit, bagit),
		"unknown":       own(folder+"evil.txt", bagit),
		"huge":          huge[:],
		"twice":         append(bytes.Clone(data[:first.at+2*blockSize]), data...),
		"PAX":           entry(tar.Header{Name: folder + fileBagit + strings.Repeat("x", 300), Typeflag: tar.TypeReg, Mode: 0o644}, bagit),
		"out of order":  own(folder+fileManifest, ""),
		"gzip of zeros": zeros(t),
	}
	for name, archive := range bad {
		if _, err := Read(h.ctx, bytes.NewReader(archive), h.options()); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zeros returns a small file that becomes a large one.
func zeros(t *testing.T) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	head := tarHeader("x/"+fileBagit, 1<<33-1, 0)
	_, err := w.Write(head[:])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zero{}, 100<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A bundle that a registry signed once can't be changed by one that has not its key.
func TestForged(t *testing.T) {
	h := newHouse(t)
	h.fill(9)
	other := newHouse(t)
	other.fill(9)
	data := h.bundle(h.job())
	if _, err := Read(h.ctx, bytes.NewReader(data), other.options()); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), fileCheckpoint) {
		t.Errorf("with another key: %v", err)
	}
	o := h.options()
	o.Keys = nil
	report, err := Read(h.ctx, bytes.NewReader(data), o)
	h.must(err)
	if report.Trusted {
		t.Error("a bundle is trusted by its own key")
	}
	// The operator of the registry itself leaves out a version, and signs.
	for name, spoil := range map[string]func(lines []string) []string{
		"drops a version": func(l []string) []string {
			at := slices.IndexFunc(l, func(line string) bool { return strings.Contains(line, "ark:99999/erased") })
			return slices.Delete(l, at, at+1)
		},
		"drops a record": func(l []string) []string { return l[:len(l)-1] },
		"swaps two":      func(l []string) []string { l[0], l[1] = l[1], l[0]; return l },
		"changes one":    func(l []string) []string { l[2] = strings.Replace(l[2], "Ein Titel", "Mein Titel", 1); return l },
		"repeats one":    func(l []string) []string { return append(l, l[len(l)-1]) },
	} {
		_, err := Read(h.ctx, bytes.NewReader(h.forge(data, spoil)), h.options())
		if stele.KindOf(err) != stele.Invalid {
			t.Errorf("an operator %s: %v", name, err)
		}
		if name != "drops a record" && !strings.Contains(fmt.Sprint(err), "records-00001.jsonl") {
			t.Errorf("an operator %s, and the place is not told: %v", name, err)
		}
	}
}

// forge writes a bundle again with other records, and signs it.
func (h *house) forge(data []byte, spoil func([]string) []string) []byte {
	h.Helper()
	report := h.check(data)
	var b bytes.Buffer
	from, err := h.r.Bundling(h.ctx)
	h.must(err)
	w := &writer{job: &Job{From: from, Keys: h.keys, Now: h.now}, out: &outCounter{w: &b}, head: report.Head, counts: report.Counts}
	r := tarReader{in: bytes.NewReader(data)}
	for {
		name, _, err := r.next()
		h.must(err)
		content, err := io.ReadAll(&r)
		h.must(err)
		if name == fileCounts {
			break
		}
		if strings.HasPrefix(name, "data/records-") {
			content = []byte(strings.Join(spoil(strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")), ""))
			if !bytes.HasSuffix(content, []byte("\n")) {
				content = append(content, '\n')
			}
		}
		if name != fileUsage {
			h.must(w.put(name, content))
		}
	}
	_, err = w.back(h.ctx)
	h.must(err)
	return b.Bytes()
}
