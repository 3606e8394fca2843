package api

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/backuptar"
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
	if got := tarred.get("Content-Type"); got != apijson.Tar {
		t.Errorf("type %s", got)
	}
	names := entries(t, tarred.body)
	if len(names) < 2 || names[len(names)-1] != backuptar.EndEntry {
		t.Errorf("got %q", names)
	}
	s.ask(theAdmin, "HEAD", Root+"/backup", "").want(t, 200)
	for _, who := range []string{theOwner, theEditor} {
		s.ask(who, "GET", Root+"/backup", "").want(t, 403)
		s.ask(who, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", apijson.Tar).want(t, 403)
	}
	s.handler.duties.copy.Lock()
	if a := s.ask(theAdmin, "GET", Root+"/backup", "").want(t, 429); a.get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	s.ask(theAdmin, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", apijson.Tar).want(t, 429)
	s.handler.duties.copy.Unlock()

	before, err := s.store.LastChange(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	s.add(`{"id":"ark:12345/later","url":"https://example.org/later"}`)
	s.ask(theAdmin, "POST", Root+"/restore", tarred.body, "Content-Type", apijson.Tar).want(t, 400)
	s.ask(theAdmin, "POST", Root+"/restore?confirm=other", tarred.body, "Content-Type", apijson.Tar).want(t, 409)
	a := s.ask(theAdmin, "POST", Root+"/restore?confirm=registry", tarred.body, "Content-Type", apijson.Tar).want(t, 200)
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	var done apijson.Restored
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

// TestUnpackBackup holds what a caller is told of a tar that is not a whole backup.
func TestUnpackBackup(t *testing.T) {
	tarOf := func(entries ...string) string {
		var b strings.Builder
		w := tar.NewWriter(&b)
		for i := 0; i < len(entries); i += 2 {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: entries[i], Size: int64(len(entries[i+1])), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, entries[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	good := tarOf("a", "abc", backuptar.EndEntry, `{"files":1,"bytes":3}`)
	for _, tt := range []struct {
		tar  string
		room uint64
		kind stele.Kind
		text string
	}{
		{good, 3, 0, ""},
		{good, 2, stele.Unavailable, "the disk has no room"},
		{good[:512+1], 9, stele.Invalid, "it ends before its end; send all of it"},
		{strings.Repeat("x", 2000), 9, stele.Invalid, "this is not a backup"},
		{tarOf("a", "abc", backuptar.EndEntry, `{"files":2,"bytes":3}`), 9, stele.Invalid, "it has 1 files of 3 bytes, which is not what its end says"},
		{tarOf("../a", "abc", backuptar.EndEntry, `{"files":1,"bytes":3}`), 9, stele.Invalid, `"../a" is not a file of a backup`},
	} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = unpackBackup(t.Context(), strings.NewReader(tt.tar), root, tt.room)
		if cerr := root.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		if tt.text == "" && err != nil || tt.text != "" && (err == nil || stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text)) {
			t.Errorf("got %v, want %q", err, tt.text)
		}
	}
	closed, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unpackBackup(t.Context(), strings.NewReader(good), closed, 9); stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "can't be written here") {
		t.Errorf("got %v", err)
	}
}
