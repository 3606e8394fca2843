package api

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/mem"
)

// keep makes a site's registry one that can be copied and restored.
func (s *site) keep(o *Options) {
	dir := s.t.TempDir()
	o.Upkeep.Backup = func(ctx context.Context) (fs.FS, uint64, func() error, error) {
		folder := filepath.Join(dir, fmt.Sprint("backup-", time.Now().UnixNano()))
		if err := s.store.Backup(ctx, folder); err != nil {
			return nil, 0, nil, err
		}
		last, err := s.store.LastChange(ctx)
		return os.DirFS(folder), last, func() error { return os.RemoveAll(folder) }, err
	}
	o.Upkeep.Stage = func(_ context.Context, confirm string) (Staging, error) {
		if confirm != "registry" {
			return nil, &stele.Error{Op: "restore", Kind: stele.Conflict, Err: errors.New("the registry is not called so")}
		}
		folder := filepath.Join(dir, fmt.Sprint("staged-", time.Now().UnixNano()))
		if err := os.Mkdir(folder, 0o777); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(folder)
		return &stagedFolder{s, folder, root}, err
	}
	s.t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			s.t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// stagedFolder is a backup that takes the place of a site's registry.
type stagedFolder struct {
	site   *site
	folder string
	root   *os.Root
}

func (f *stagedFolder) Folder() *os.Root { return f.root }
func (f *stagedFolder) Room() uint64     { return 1 << 20 }
func (f *stagedFolder) Remove() error    { return errors.Join(f.root.Close(), os.RemoveAll(f.folder)) }

func (f *stagedFolder) Restore(ctx context.Context, step func(string)) (Restored, error) {
	step("checking the backup")
	store, err := mem.Open(f.folder, f.site.now)
	if err != nil {
		return Restored{}, err
	}
	f.site.store = store
	last, err := store.LastChange(ctx)
	return Restored{Kept: "registry.before", Changes: last, Shut: []string{"ark:12345/x5"}}, err
}

func TestBackupAndRestore(t *testing.T) {
	s := newSite(t)
	o := s.handler.o
	s.keep(&o)
	s.handler = New(o)
	tarred := s.ask(theAdmin, "GET", Root+"/backup", "").want(t, 200)
	if got := tarred.get("Content-Type"); got != tarType {
		t.Errorf("type %s", got)
	}
	names := entries(t, tarred.body)
	if len(names) < 2 || names[len(names)-1] != completeEntry {
		t.Errorf("got %q", names)
	}
	s.ask(theAdmin, "HEAD", Root+"/backup", "").want(t, 200)
	for _, who := range []string{theOwner, theEditor} {
		s.ask(who, "GET", Root+"/backup", "").want(t, 403)
		s.ask(who, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", tarType).want(t, 403)
	}
	s.handler.duties.copy.Lock()
	if a := s.ask(theAdmin, "GET", Root+"/backup", "").want(t, 429); a.get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	s.ask(theAdmin, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", tarType).want(t, 429)
	s.handler.duties.copy.Unlock()

	before, err := s.store.LastChange(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	s.add(`{"id":"ark:12345/later","url":"https://example.org/later"}`)
	s.ask(theAdmin, "POST", Root+"/restore", tarred.body, "Content-Type", tarType).want(t, 400)
	s.ask(theAdmin, "POST", Root+"/restore?confirm=other", tarred.body, "Content-Type", tarType).want(t, 409)
	a := s.ask(theAdmin, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", tarType).want(t, 200)
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	var done restoredDocument
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &done); err != nil || !done.Done || *done.Changes != before || done.Kept == "" || len(done.Shut) != 1 {
		t.Errorf("got %s", a.body)
	}
	if !strings.Contains(lines[0], "checking") {
		t.Errorf("got %s", a.body)
	}
	if _, err := s.store.Record(s.admin, s.id("ark:12345/later")); !errors.Is(err, stele.NotFound) {
		t.Errorf("what came after the backup is there: %v", err)
	}
	if cell, err := s.store.Cell(s.admin, "user "+theAdmin); err != nil || cell == nil {
		t.Errorf("the backup has no users: %v", err)
	}
}

// entries returns the names in a tar.
func entries(t *testing.T, text string) (names []string) {
	t.Helper()
	in := tar.NewReader(strings.NewReader(text))
	for {
		head, err := in.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
	}
}

// tarOf makes a tar of headers; each has its name as content unless it has a size.
func tarOf(heads ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range heads {
		content := h.Name
		if h.Name == completeEntry && h.Linkname != "" {
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

// complete returns the last entry of a backup of so many files.
func complete(files, size int) tar.Header {
	return tar.Header{Name: completeEntry, Linkname: fmt.Sprintf(`{"files":%d,"bytes":%d}`, files, size)}
}

func TestUnpackBackup(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name} }
	good := tarOf(file("a"), file("b/c"), complete(2, 4))
	for name, tt := range map[string]struct {
		tar  []byte
		room uint64
		kind stele.Kind // Internal: it is good
	}{
		"good":              {good, 4, stele.Internal},
		"empty":             {nil, 100, stele.Invalid},
		"no tar":            {[]byte(strings.Repeat("x", 2000)), 100, stele.Invalid},
		"no end":            {tarOf(file("a")), 100, stele.Invalid},
		"cut in a file":     {good[:512+1], 100, stele.Invalid},
		"cut behind a file": {good[:1024], 100, stele.Invalid},
		"too few files":     {tarOf(file("a"), complete(2, 4)), 100, stele.Invalid},
		"too few bytes":     {tarOf(file("a"), complete(1, 4)), 100, stele.Invalid},
		"no count":          {tarOf(file("a"), tar.Header{Name: completeEntry, Linkname: "nonsense"}), 100, stele.Invalid},
		"more behind":       {tarOf(file("a"), complete(1, 1), file("b")), 100, stele.Invalid},
		"no room":           {good, 3, stele.Unavailable},
		"above":             {tarOf(file("../a"), complete(1, 4)), 100, stele.Invalid},
		"deep above":        {tarOf(file("a/../../b"), complete(1, 9)), 100, stele.Invalid},
		"absolute":          {tarOf(file("/etc/passwd"), complete(1, 11)), 100, stele.Invalid},
		"itself":            {tarOf(file("."), complete(1, 1)), 100, stele.Invalid},
		"odd name":          {tarOf(file("a\x00b"), file("a\nb"), complete(2, 6)), 100, stele.Invalid},
		"very deep":         {tarOf(file("a/a/a/a/a"), complete(1, 9)), 100, stele.Invalid},
		"twice":             {tarOf(file("a"), file("a"), complete(2, 2)), 100, stele.Invalid},
		"file as folder":    {tarOf(file("a"), file("a/b"), complete(2, 4)), 100, stele.Invalid},
		"link":              {tarOf(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("l/x"), complete(2, 3)), 100, stele.Invalid},
		"hard link":         {tarOf(file("a"), tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}, complete(2, 1)), 100, stele.Invalid},
		"folder":            {tarOf(tar.Header{Name: "d/", Typeflag: tar.TypeDir}, complete(1, 0)), 100, stele.Invalid},
		"device":            {tarOf(tar.Header{Name: "d", Typeflag: tar.TypeChar}, complete(1, 0)), 100, stele.Invalid},
		"pipe":              {tarOf(tar.Header{Name: "d", Typeflag: tar.TypeFifo}, complete(1, 0)), 100, stele.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			root, folder := stagingFolder(t, outside)
			err := unpackBackup(t.Context(), iotest.HalfReader(bytes.NewReader(tt.tar)), root, tt.room)
			switch {
			case tt.kind == stele.Internal && err != nil:
				t.Fatal(err)
			case tt.kind != stele.Internal && stele.KindOf(err) != tt.kind:
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
				t.Errorf("outside is %v, %v", left, err)
			}
			if tt.kind != stele.Internal {
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
	if err := unpackBackup(ctx, bytes.NewReader(good), root, 100); err == nil {
		t.Error("it went on when nobody waited any more")
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

// FuzzUnpackBackup: whatever comes, unpacking writes nothing outside the folder, and never
// accepts a backup without its end.
func FuzzUnpackBackup(f *testing.F) {
	f.Add(tarOf(tar.Header{Name: "a"}, tar.Header{Name: "b/c"}, complete(2, 4)))
	f.Add(tarOf(tar.Header{Name: "../a"}, complete(1, 4)))
	f.Add(tarOf(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, tar.Header{Name: "l/x"}, complete(2, 3)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		outside := t.TempDir()
		root, _ := stagingFolder(t, outside)
		err := unpackBackup(t.Context(), bytes.NewReader(data), root, 1<<20)
		if err == nil && !bytes.Contains(data, []byte(completeEntry)) {
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
