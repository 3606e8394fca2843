package job

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/store/mem"
)

// TestRulesGoOn ends the process of a job that writes rules before and after each of its commits, and lets another server go on; then
// the same of the job that undoes it. Each namespace is counted once, and has its former rules in the end.
func TestRulesGoOn(t *testing.T) {
	const folders = 3
	space := func(n int) stele.NamespaceKey {
		return stele.NamespaceKey{Scheme: "purl", Prefix: fmt.Sprintf("https://w3id.org/f%d/", n)}
	}
	for _, late := range []bool{false, true} {
		for step, undoing := 0, false; ; step++ {
			now := new(atomic.Int64)
			now.Store(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC).Unix())
			store := mem.New(func() time.Time { return time.Unix(now.Load(), 0) })
			first := server(t, store, now)
			setUp(t, first)
			admin := auth.With(t.Context(), auth.Local())
			add := func(ns *stele.Namespace) {
				if _, err := first.registrar.AddNamespace(admin, ns); err != nil {
					t.Fatal(err)
				}
			}
			add(&stele.Namespace{Scheme: "purl", Prefix: "https://w3id.org/", Owner: "ed"})
			old := []stele.Rule{{Pattern: "old/{n:digit}", Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/old/{n}"}}, Examples: []stele.RuleExample{{Name: space(0).Prefix + "old/1", Want: "https://example.org/old/1"}}}}
			add(&stele.Namespace{Scheme: "purl", Prefix: space(0).Prefix, Title: "kept", Rules: old})
			u, err := first.board.UploadFiles(first.user, Settings{System: "w3id", Update: true, Spaces: true, Encoding: bulk.Auto}, folderFiles(folders))
			if err != nil {
				t.Fatal(err)
			}
			job, err := first.board.Start(first.user, &u, folders)
			if err != nil {
				t.Fatal(err)
			}
			if undoing {
				if err := first.runner.work(t.Context(), job.ID); err != nil {
					t.Fatal(err)
				}
				if job, err = first.board.StartRevert(first.user, job.ID, folders); err != nil {
					t.Fatal(err)
				}
			}
			first.store.late = late
			first.store.left.Store(int64(step))
			err = first.runner.work(t.Context(), job.ID)
			ended := err == nil && first.store.left.Load() >= 0
			now.Add(int64(DefaultLease/time.Second) + 1)
			second := server(t, store, now)
			if err := second.runner.work(t.Context(), job.ID); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("undoing=%v late=%v step=%d", undoing, late, step)
			done, err := second.board.Get(second.user, job.ID)
			if err != nil {
				t.Fatal(err)
			}
			for i := range folders {
				ns, err := second.registrar.Namespace(admin, space(i))
				if err != nil {
					t.Fatal(what, err)
				}
				want := fmt.Sprintf("https://example.org/%d/", i)
				switch {
				case undoing && i == 0:
					want = "https://example.org/old/"
				case undoing:
					want = ""
				}
				got := ""
				if len(ns.Rules) > 0 {
					got = ns.Rules[0].Targets[0].URL
				}
				if want == "" && got != "" || !strings.HasPrefix(got, want) || i == 0 && ns.Title != "kept" {
					t.Fatalf("%s: namespace %d leads to %q", what, i, got)
				}
			}
			counts := Counts{New: folders - 1, Changed: 1}
			if undoing {
				counts = Counts{Changed: folders}
			}
			if done.State != Done || done.Counts != counts {
				t.Fatalf("%s: %s, %+v", what, done.State, done.Counts)
			}
			if ended {
				t.Logf("%s: %d commits", what, step)
				if undoing {
					break
				}
				step, undoing = -1, true
			}
			if step > 100 {
				t.Fatal("the job never ends by itself")
			}
		}
	}
}

// folderFiles returns the files of a folder, as a browser sends them. Each has a rule.
func folderFiles(folders int) func() (string, io.Reader, error) {
	n := 0
	return func() (string, io.Reader, error) {
		if n++; n > folders {
			return "", nil, io.EOF
		}
		return fmt.Sprintf("w3id/f%d/.htaccess", n-1), strings.NewReader(fmt.Sprintf("RewriteEngine on\nRewriteRule ^T_([0-9]+)$ https://example.org/%d/$1 [R=303,L]\n", n-1)), nil
	}
}
