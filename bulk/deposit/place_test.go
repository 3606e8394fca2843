package deposit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
)

func TestParsePlace(t *testing.T) {
	for _, text := range []string{"file:///srv/vault", "sftp://ana@vault.example.org/srv/x", "sftp://ana@vault.example.org:2222/x", "s3://bucket", "s3://bucket/a/b?endpoint=https%3A%2F%2Fs3.example.org&region=eu-central-1"} {
		p, err := ParsePlace(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %s, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "/srv/vault", "file:vault", "file://host/srv", "https://example.org/", "sftp://vault.example.org/x", "sftp://ana@vault.example.org", "sftp://ana@/x", "s3:///x", "s3://b?secret=x",
		"s3://b?endpoint=ftp://x", "s3://b?endpoint=https://u:p@x", "s3://b?region=", "s3://b?region=a&region=b", "file:///srv/vault#x", "file:///srv/va ult\n"} {
		if _, err := ParsePlace(text); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParsePlace("sftp://ana:s3cret@vault.example.org/x"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a password: %v", err)
	}
}

// testDestination is what every place has to do.
func testDestination(t *testing.T, d Destination) {
	ctx := t.Context()
	if _, err := d.Get(ctx, "objects/aa/missing", 10); stele.KindOf(err) != stele.NotFound {
		t.Errorf("missing: %v", err)
	}
	none := func(string, int64) error { t.Error("it is not empty"); return nil }
	if err := d.List(ctx, "objects", none); err != nil {
		t.Errorf("an empty place: %v", err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	content := map[string][]byte{"objects/aa/one": []byte("one"), "objects/bb/two": []byte("two"), "objects/bb/large": large, "objects/cc/empty": {}, "deposits/a-list.jsonl": []byte("list\n")}
	for name, data := range content {
		if err := d.Put(ctx, name, data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := d.Put(ctx, "objects/aa/one", []byte("other")); err != nil {
		t.Errorf("put twice: %v", err)
	}
	for name, want := range content {
		data, err := d.Get(ctx, name, int64(len(want)))
		if err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s: %.20q, %v", name, data, err)
		}
	}
	if _, err := d.Get(ctx, "objects/bb/large", int64(len(large))-1); stele.KindOf(err) != stele.Invalid {
		t.Errorf("too long: %v", err)
	}
	got := map[string]int64{}
	if err := d.List(ctx, "objects", func(name string, size int64) error { got[name] = size; return nil }); err != nil {
		t.Error(err)
	}
	for name, data := range content {
		if size, ok := got[name]; strings.HasPrefix(name, "objects/") && (!ok || size != int64(len(data))) {
			t.Errorf("%s is listed with %d bytes", name, size)
		}
	}
	if len(got) != 4 {
		t.Errorf("listed: %v", got)
	}
	enough := errors.New("enough")
	if err := d.List(ctx, "objects", func(string, int64) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the error of the caller: %v", err)
	}
	// Of several who put at once one is first, and all are told that something is there.
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := d.Put(ctx, "objects/dd/race", bytes.Repeat([]byte{byte('a' + i)}, 100_000)); err != nil {
				t.Error(err)
			}
			if err := d.Put(ctx, fmt.Sprintf("objects/ee/%d", i), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := d.Get(ctx, "objects/dd/race", 1<<20)
	if err != nil || len(data) != 100_000 || len(bytes.Trim(data, string(data[:1]))) != 0 {
		t.Errorf("it is a mixture: %d bytes, %v", len(data), err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.List(ended, "objects", func(string, int64) error { return nil }); err == nil {
		t.Error("it lists after the end")
	}
}

func TestFolder(t *testing.T) {
	d, path := newFolder(t)
	testDestination(t, d)
	for name := range filesIn(t, path) {
		if isPartial(filepath.Base(name)) {
			t.Errorf("%s is left", name)
		}
	}
	// What an interrupted Put has left is not an object.
	if err := os.WriteFile(filepath.Join(path, "objects", "aa", partial+"123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := d.List(t.Context(), "objects", func(name string, _ int64) error {
		if strings.Contains(name, partial) {
			t.Errorf("%s is listed", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// The folder that the place is in is missing: a disk is not mounted.
	far, err := ParsePlace("file://" + filepath.Join(path, "disk", "vault"))
	if err != nil {
		t.Fatal(err)
	}
	d2, err := far.Open(Access{Wait: noWait})
	if err != nil {
		t.Fatal(err)
	}
	if err := d2.Put(t.Context(), "objects/aa/x", nil); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a folder that is missing: %v", err)
	}
	// A file where a folder should be.
	if err := os.WriteFile(filepath.Join(path, "objects", "ff"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), "objects/ff/x", nil); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a file is there: %v", err)
	}
}
