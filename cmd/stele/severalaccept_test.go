package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/desk"
)

// TestServersShareAcceptance has a server accept new addresses of many names, kills it in the middle, and sees another one
// finish: each name has its new address, and was changed once.
func TestServersShareAcceptance(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--job-lease", "2s")
	key := c.namespace("ark:12345/x5", stele.Minter{}, stele.Publication{})
	u := c.deskUser()
	const count = 4000
	var file strings.Builder
	for n := range count {
		fmt.Fprintf(&file, `{"id":"ark:12345/x5k%04d","url":"https://old.example.org/%d","metadata":{"what":"Known %d"}}`+"\n", n, n, n)
	}
	name := filepath.Join(t.TempDir(), "names.jsonl")
	if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runStele(t, "import", name, "--store", c.url)

	// What a checker has found out.
	store := newDatabaseStore(t, c.url)
	for from := 0; from < count; from += 500 {
		var changes []stele.CellChange
		for n := from; n < from+500; n++ {
			id := fmt.Sprintf("ark:12345/x5k%04d", n)
			value, err := json.Marshal(apijson.LinkFinding{ID: id, URL: fmt.Sprintf("https://old.example.org/%d", n), Host: "old.example.org", State: "moved", Cause: "redirected", Status: 200,
				Final: fmt.Sprintf("https://new.example.org/%d", n), Since: time.Now().UTC()})
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, stele.CellChange{Name: registrar.CheckCells + "f ark\t" + id + "\t0", After: value})
		}
		if err := store.Apply(t.Context(), &stele.Commit{Cells: changes}); err != nil {
			t.Fatal(err)
		}
	}

	path := desk.Root + "links/accept"
	page := u.get(c.servers[0], path+"?host=old.example.org&namespace="+url.QueryEscape(key.String()))
	form := url.Values{"namespace": {key.String()}, "host": {"old.example.org"}, "number": {fmt.Sprint(count)}}
	for _, field := range []string{"digest", "once"} {
		found := regexp.MustCompile(`name="` + field + `" value="([^"]+)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s:\n%s", field, page)
		}
		form.Set(field, found[1])
	}
	c.signal(1, syscall.SIGSTOP) // so that only the first server can take the job
	job := u.post(c.servers[0], path, form)
	u.killAmid(c, 0, job)
	c.signal(1, syscall.SIGCONT)
	wantText(t, u.ends(c.servers[1], job), "4,000 of 4,000", "Went on after an interruption", "<b>4,000</b>")
	if again := u.post(c.servers[1], path, form); again != job {
		t.Errorf("the form that is sent again leads to %s", again)
	}
	c.servers[1].hasVersions(t, key, map[string]int{"Known": 2}, count)
	for rec, err := range c.servers[1].Export(t.Context(), key, false) {
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Targets) != 1 || !strings.HasPrefix(rec.Targets[0].URL, "https://new.example.org/") {
			t.Errorf("%s leads to %+v", rec.ID, rec.Targets)
		}
	}
}
