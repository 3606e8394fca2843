package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/registrar"
)

// manyLinks has many findings, of which a person should look at the last one.
type manyLinks struct {
	LinkChecker
	read *int
}

func (m manyLinks) Findings(_ context.Context, _ stele.NamespaceKey, after string) iter.Seq2[apijson.LinkFinding, error] {
	return func(yield func(apijson.LinkFinding, error) bool) {
		const count = maxScanned + 100
		for i := range count {
			f := apijson.LinkFinding{ID: fmt.Sprintf("ark:12345/%06d", i), Look: i == count-1}
			if f.ID+"\t0" <= after {
				continue
			}
			if *m.read++; !yield(f, nil) {
				return
			}
		}
	}
}

// A page reads no more findings than a request may, however few of them it shows.
func TestLookListIsBounded(t *testing.T) {
	read := 0
	s := newSite(t, func(o *Options) { o.Links = manyLinks{o.Links, &read} })
	s.ask(theReader, "GET", Root+"/linkfindings?prefix=ark:12345&look=true", "").want(t, 200)
	if read > maxScanned+1 {
		t.Errorf("%d findings were read for a page", read)
	}
	if names := s.all(theReader, "/linkfindings?prefix=ark:12345&look=true"); len(names) != 1 || names[0] != fmt.Sprintf("ark:12345/%06d", maxScanned+99) {
		t.Errorf("%q", names)
	}
}

// checked has a target found not to lead anywhere, and returns the request of a person who sees that it does.
func (s *site) checked(id, url string) string {
	s.t.Helper()
	status := links.Status{URL: links.Hash(url), State: links.Failing, Cause: links.NotFound, Code: 404, Since: s.now(), Checked: s.now(), Next: s.now().Add(time.Hour)}
	cells, _ := check.StateCells([]check.Known{{ID: stele.StoredID("ark", id), Status: status}}, "", true)
	for _, c := range cells {
		if err := s.registry.KeepChecks(s.admin, stele.CellChange{Name: c.Name, After: c.Value}); err != nil {
			s.t.Fatal(err)
		}
	}
	f := apijson.LinkFinding{URL: url, Cause: links.NotFound.String(), Status: 404}
	return fmt.Sprintf(`{"target":0,"works":true,"answer":%q}`, f.Sight())
}

// move has a target found to have moved, and returns the request that accepts that.
func (s *site) move(id, from, to string) string {
	s.t.Helper()
	value, err := json.Marshal(apijson.LinkFinding{ID: id, URL: from, Host: "example.org", State: "moved", Cause: "redirected", Status: 200, Final: to})
	if err == nil {
		err = s.registry.KeepChecks(s.admin, stele.CellChange{Name: registrar.CheckCells + "f ark\t" + id + "\t0", After: value})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf(`{"prefix":"ark:12345","host":"example.org","digest":%q}`, bulk.Digest([]bulk.Move{{ID: id, Old: from, New: to}}))
}

// Only what the caller has seen is accepted.
func TestAcceptMoved(t *testing.T) {
	s := newSite(t)
	seen := s.move("ark:12345/x1", "https://example.org/1", "https://new.example.org/1")
	judge := func() (last apijson.Replaced) {
		a := s.ask(theEditor, "POST", Root+"/acceptmoved", `{"prefix":"ark:12345","host":"Example.org"}`).want(t, 200)
		lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		return last
	}
	if last := judge(); !last.Done || last.Changed != 1 || last.Import != 0 || !strings.Contains(seen, last.Digest) || last.Digest == "" {
		t.Errorf("%+v", last)
	}
	for _, wrong := range []string{`{"prefix":"ark:12345","host":""}`, `{"prefix":"ark:12345","host":" "}`, `{"prefix":"ark:12345"}`} {
		if a := s.ask(theEditor, "POST", Root+"/acceptmoved", wrong); a.StatusCode != 400 && a.StatusCode != 422 {
			t.Errorf("%s: %d %s", wrong, a.StatusCode, a.body)
		}
	}
	s.ask(theEditor, "POST", Root+"/acceptmoved", strings.Replace(seen, `"digest":"`, `"digest":"0`, 1)).want(t, 409)
	s.ask(theEditor, "POST", Root+"/acceptmoved", seen).want(t, 200)
	if rec, err := s.registry.Get(s.admin, stele.StoredID("ark", "ark:12345/x1")); err != nil || rec.Targets[0].URL != "https://new.example.org/1" {
		t.Errorf("%+v, %v", rec, err)
	}
	s.ask(theEditor, "POST", Root+"/acceptmoved", seen).want(t, 409)
}
