package backuptar

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// tarOf makes a tar of headers; each has its name as content unless it has a size.
func tarOf(heads ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range heads {
		content := h.Name
		if h.Name == EndEntry && h.Linkname != "" {
			content, h.Linkname = h.Linkname, ""
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		h.Mode = 0o4777
		if w.WriteHeader(&h) == nil && h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, content)
		}
	}
	_ = w.Close()
	return b.Bytes()
}

// errMalformed stands for a MalformedError.
var errMalformed = errors.New("malformed")

// complete returns the last entry of a backup of so many files.
func complete(files, size int) tar.Header {
	return tar.Header{Name: EndEntry, Linkname: fmt.Sprintf(`{"files":%d,"bytes":%d}`, files, size)}
}

func TestUnpack(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name} }
	good := tarOf(file("a"), file("b/c"), complete(2, 4))
	for name, tt := range map[string]struct {
		tar  []byte
		room uint64
		want error // nil: it is good
	}{
		"good":             {good, 4, nil},
		"empty":            {nil, 100, ErrCutOff},
		"no tar":           {[]byte(strings.Repeat("x", 2000)), 100, errMalformed},
		"no end":           {tarOf(file("a")), 100, ErrCutOff},
		"cut in a file":    {good[:512+1], 100, ErrCutOff},
		"cut after a file": {good[:1024], 100, ErrCutOff},
		"too few files":    {tarOf(file("a"), complete(2, 4)), 100, ErrIncomplete},
		"too few bytes":    {tarOf(file("a"), complete(1, 4)), 100, ErrIncomplete},
		"no count":         {tarOf(file("a"), tar.Header{Name: EndEntry, Linkname: "nonsense"}), 100, ErrIncomplete},
		"more after":       {tarOf(file("a"), complete(1, 1), file("b")), 100, errMalformed},
		"no room":          {good, 3, ErrTooLarge},
		"above":            {tarOf(file("../a"), complete(1, 4)), 100, errMalformed},
		"deep above":       {tarOf(file("a/../../b"), complete(1, 9)), 100, errMalformed},
		"absolute":         {tarOf(file("/etc/passwd"), complete(1, 11)), 100, errMalformed},
		"itself":           {tarOf(file("."), complete(1, 1)), 100, errMalformed},
		"odd name":         {tarOf(file("a\x00b"), file("a\nb"), complete(2, 6)), 100, errMalformed},
		"very deep":        {tarOf(file("a/a/a/a/a"), complete(1, 9)), 100, errMalformed},
		"twice":            {tarOf(file("a"), file("a"), complete(2, 2)), 100, errMalformed},
		"file as folder":   {tarOf(file("a"), file("a/b"), complete(2, 4)), 100, errMalformed},
		"link":             {tarOf(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("l/x"), complete(2, 3)), 100, errMalformed},
		"hard link":        {tarOf(file("a"), tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}, complete(2, 1)), 100, errMalformed},
		"folder":           {tarOf(tar.Header{Name: "d/", Typeflag: tar.TypeDir}, complete(1, 0)), 100, errMalformed},
		"device":           {tarOf(tar.Header{Name: "d", Typeflag: tar.TypeChar}, complete(1, 0)), 100, errMalformed},
		"pipe":             {tarOf(tar.Header{Name: "d", Typeflag: tar.TypeFifo}, complete(1, 0)), 100, errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			root, folder := stagingFolder(t, outside)
			_, err := Unpack(t.Context(), iotest.HalfReader(bytes.NewReader(tt.tar)), root, tt.room)
			_, isMalformed := errors.AsType[*MalformedError](err)
			if (tt.want == errMalformed) != isMalformed || tt.want != errMalformed && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
				t.Errorf("outside is %v, %v", left, err)
			}
			if tt.want != nil {
				return
			}
			for _, name := range []string{"a", "b/c"} {
				data, err := os.ReadFile(filepath.Join(folder, name))
				info, serr := os.Stat(filepath.Join(folder, name))
				if err != nil || serr != nil || string(data) != name || info.Mode()&^0o777 != 0 || info.Mode()&0o111 != 0 {
					t.Errorf("%s: %q, %v, %v", name, data, info.Mode(), err)
				}
			}
		})
	}
	root, _ := stagingFolder(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Unpack(ctx, bytes.NewReader(good), root, 100); err == nil {
		t.Error("it went on after its context ended")
	}
}

func stagingFolder(t *testing.T, dir string) (*os.Root, string) {
	t.Helper()
	folder := filepath.Join(dir, "staged")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, folder
}

// FuzzUnpack: whatever comes, unpacking writes nothing outside the folder, and never
// accepts a backup without its end.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(tar.Header{Name: "a"}, tar.Header{Name: "b/c"}, complete(2, 4)))
	f.Add(tarOf(tar.Header{Name: "../a"}, complete(1, 4)))
	f.Add(tarOf(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, tar.Header{Name: "l/x"}, complete(2, 3)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		outside := t.TempDir()
		root, _ := stagingFolder(t, outside)
		_, err := Unpack(t.Context(), bytes.NewReader(data), root, 1<<20)
		if err == nil && !bytes.Contains(data, []byte(EndEntry)) {
			t.Errorf("%d bytes without an end are whole", len(data))
		}
		var files []string
		werr := filepath.WalkDir(outside, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() && !d.Type().IsRegular() {
				return errors.Join(err, errors.New(path))
			}
			files = append(files, path)
			return nil
		})
		if werr != nil || len(files) < 2 || !slices.IsSorted(files) || !strings.HasSuffix(files[1], "staged") {
			t.Errorf("there are %q, %v", files, werr)
		}
	})
}

// TestPack: what Pack writes, Unpack reads, with all bytes told.
func TestPack(t *testing.T) {
	from := t.TempDir()
	for name, text := range map[string]string{"a": "abc", "b/c": strings.Repeat("x", 100_000), "empty": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	sent := int64(0)
	if err := Pack(t.Context(), &b, os.DirFS(from), 42, time.Time{}, func(n int64) { sent += n }); err != nil {
		t.Fatal(err)
	}
	root, folder := stagingFolder(t, t.TempDir())
	end, err := Unpack(t.Context(), &b, root, 100_003)
	if err != nil || end != (End{Files: 3, Bytes: 100_003, Changes: 42}) || sent != end.Bytes {
		t.Errorf("%+v, %v; %d bytes were told", end, err, sent)
	}
	if data, err := os.ReadFile(filepath.Join(folder, "b", "c")); err != nil || len(data) != 100_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err := os.Symlink("/etc", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Pack(t.Context(), io.Discard, os.DirFS(from), 0, time.Time{}, nil); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Pack(ctx, io.Discard, os.DirFS(from), 0, time.Time{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
