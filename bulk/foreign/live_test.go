package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/wire/hdl"
)

// fakeServer is a Handle server with some names, and what it answers for those that it does not just have.
type fakeServer struct {
	names []string
	errs  map[string]error

	mu    sync.Mutex
	asked map[string]int
}

func (f *fakeServer) List(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if prefix == "20.500.2" {
			yield("", &stele.Error{Kind: stele.Forbidden, Err: errors.New("not yours")})
			return
		}
		for _, name := range f.names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (f *fakeServer) Read(_ context.Context, handle string) ([]hdl.Value, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = make(map[string]int)
	}
	f.asked[handle]++
	if err := f.errs[handle]; err != nil {
		return nil, err
	}
	return []hdl.Value{{Index: 1, Type: []byte("URL"), Data: []byte("https://example.org/" + handle), TTL: 60, Timestamp: 7, Permissions: 14}}, nil
}

// listOf writes and opens the list of a server.
func listOf(t *testing.T, f *fakeServer) *bulk.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	if err := foreign.WriteList(t.Context(), path, foreign.ListHead{Server: "test", Prefixes: []string{"20.500.1"}}, f, func() {}); err != nil {
		t.Fatal(err)
	}
	return openList(t, path)
}

func openList(t *testing.T, path string) *bulk.File {
	t.Helper()
	file, err := bulk.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func openLive(t *testing.T, list *bulk.File, f *fakeServer) *foreign.Source {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s, err := foreign.OpenLive(t.Context(), list, foreign.LiveOptions{Server: f, Parallel: 2, Waits: []time.Duration{time.Millisecond}}, foreign.Options{Schemes: schemes})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain reads all blocks, and returns what became of each row, and where it ended.
func drain(t *testing.T, s *foreign.Source) (rows []string, end int64, line int, err error) {
	t.Helper()
	for {
		b, err := s.Next()
		if err == io.EOF {
			err = nil
		}
		if err != nil || b == nil {
			return rows, end, line, err
		}
		s.Parse(b)
		for i := range b.Rows {
			if r := &b.Rows[i]; r.Err != nil {
				rows = append(rows, "- "+stele.Reason(r.Err).Error())
			} else {
				rows = append(rows, r.Record.ID.String())
			}
		}
		end, line = b.End, b.Next
	}
}

// TestLive: each handle is read once, what can't be read is rejected with its reason, and names of other prefixes are not
// asked for.
func TestLive(t *testing.T) {
	f := &fakeServer{errs: map[string]error{
		"20.500.1/B":    &stele.Error{Kind: stele.Forbidden, Err: errors.New("not permitted")},
		"20.500.1/C":    &stele.Error{Kind: stele.Unavailable, Err: errors.New("broken")},
		"0.NA/20.500.1": &stele.Error{Kind: stele.NotFound, Err: errors.New("not here")},
	}}
	f.names = []string{"20.500.1/A", "20.500.1/B", "20.500.9/X", "20.500.1/C", "20.500.1/new\nline", "20.500.1/D"}
	s := openLive(t, listOf(t, f), f)
	rows, _, _, err := drain(t, s)
	want := []string{"20.500.1/A", `- "20.500.1/B" can't be read: not permitted`, `- "20.500.9/X" can't be read: the server lists "20.500.9/X", which does not belong to the prefixes that are imported`,
		`- "20.500.1/C" can't be read: broken`, "", "20.500.1/D"}
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%q, %v", rows, err)
	}
	for i := range want {
		if want[i] != "" && rows[i] != want[i] {
			t.Errorf("row %d is %q, want %q", i, rows[i], want[i])
		}
	}
	if f.asked["20.500.1/A"] != 1 || f.asked["20.500.9/X"] != 0 || f.asked["20.500.1/C"] != 2 {
		t.Errorf("asked %v", f.asked)
	}
	if r := s.Report(); len(r.Notes) != 1 || !strings.Contains(r.Notes[0].Error(), "0.NA/20.500.1 was not read") || !slices.Equal(r.Missing, []string{"20.500.1/"}) {
		t.Errorf("%+v", r)
	}
}

// TestLiveSilence: when the server does not answer any more the import ends before the first handle to which no answer came,
// and goes on there; no handle is rejected for it.
func TestLiveSilence(t *testing.T) {
	f := &fakeServer{errs: make(map[string]error)}
	const handles, good = 200, 75
	silent := &stele.Error{Kind: stele.Unavailable, Err: errors.New("no answer")}
	for i := range handles {
		name := fmt.Sprintf("20.500.1/%03d", i)
		f.names = append(f.names, name)
		if i >= good {
			f.errs[name] = silent
		}
	}
	list := listOf(t, f)
	rows, end, line, err := drain(t, openLive(t, list, f))
	if len(rows) != good+1 || stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "give the same command again") {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	clear(f.errs)
	f.asked = nil
	s := openLive(t, openList(t, list.Path), f)
	if err := s.SkipTo(end, line); err != nil {
		t.Fatal(err)
	}
	rest, _, _, err := drain(t, s)
	if err != nil || len(rest) != handles-good || rest[0] != fmt.Sprintf("20.500.1/%03d", good) {
		t.Errorf("%d rows, %v", len(rest), err)
	}
	if f.asked["20.500.1/000"] != 0 {
		t.Error("a handle was read twice")
	}
}

// TestLiveLists: what is not a list of handles is refused, and a listing that fails leaves no list.
func TestLiveLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	err := foreign.WriteList(t.Context(), path, foreign.ListHead{Server: "test", Prefixes: []string{"20.500.2"}}, &fakeServer{}, func() {})
	if stele.KindOf(err) != stele.Forbidden || !strings.Contains(err.Error(), "not yours") {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if h, err := foreign.ReadListHead(path); h != nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
	for _, text := range []string{"", "\n", "{}\n", `{"id":"x"}` + "\n", `{"handlesOf":"x","prefixes":[]}` + "\n", "\xff\xfe\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.ReadListHead(path); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	good := `{"handlesOf":"x","prefixes":["20.500.1"],"listed":"2026-01-01T00:00:00Z"}` + "\n"
	for _, line := range []string{"20.500.1/A", `""`, `"a`, "`raw`", "'a'", "??\"a\""} {
		if err := os.WriteFile(path, []byte(good+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := drain(t, openLive(t, openList(t, path), &fakeServer{})); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %v", line, err)
		}
	}
}
