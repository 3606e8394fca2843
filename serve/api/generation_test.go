package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestRestored: after a restore, what was noted before it is refused and never meets
// other contents: cursors of every list, numbers of changes, entity tags. Before, all of
// them are good, also those that programs before generations gave.
func TestRestored(t *testing.T) {
	var s *site
	generations := func() stele.Generations {
		list, err := s.store.Generations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	s = newSite(t, func(o *Options) { o.Generations = func() stele.Generations { return generations() } })
	for _, name := range []string{"ark:12345/g1", "ark:12345/g2", "ark:12345/g3"} {
		for i := range 3 {
			match := "If-None-Match"
			if i > 0 {
				match = "If-Match"
			}
			if a := s.ask(theAdmin, "PUT", Root+"/records/"+name, `{"url":"https://example.org/`+strings.Repeat("x", i+1)+`"}`, match, "*"); a.StatusCode/100 != 2 {
				t.Fatalf("%d: %s", a.StatusCode, a.body)
			}
		}
	}
	page := func(target string) (next, generation string) {
		t.Helper()
		a := s.ask(theAdmin, "GET", Root+target, "")
		var p struct{ Next, Generation string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", target, a.StatusCode, a.body)
		}
		return p.Next, p.Generation
	}
	// What is asked before the restore, and again after it.
	asks := make(map[string]string) // target by what it is
	for _, list := range []string{"/records?prefix=ark:12345", "/history/ark:12345/g1?", "/users?", "/tokens?", "/namespaces?"} {
		next, _ := page(strings.Replace(list+"&limit=1", "?&", "?", 1))
		if next == "" {
			t.Fatalf("%s has one page", list)
		}
		old, err := base64.RawURLEncoding.DecodeString(next)
		if err != nil {
			t.Fatal(err)
		}
		bare := base64.RawURLEncoding.EncodeToString(old[17:]) // as it was before generations
		asks["a cursor of "+list] = strings.Replace(list+"&limit=1&cursor="+next, "?&", "?", 1)
		asks["a bare cursor of "+list] = strings.Replace(list+"&limit=1&cursor="+bare, "?&", "?", 1)
	}
	_, first := page("/changes?limit=1")
	asks["a change"] = "/changes?limit=1&after=1&generation=" + first
	asks["a bare change"] = "/changes?limit=1&after=1"
	tag := s.ask(theAdmin, "GET", Root+"/records/ark:12345/g2", "").Header.Get("ETag")
	for what, target := range asks {
		if a := s.ask(theAdmin, "GET", Root+target, ""); a.StatusCode != http.StatusOK {
			t.Errorf("%s, before: %d %s", what, a.StatusCode, a.body)
		}
	}
	if a := s.ask(theAdmin, "GET", Root+"/records/ark:12345/g2", "", "If-None-Match", tag); a.StatusCode != http.StatusNotModified {
		t.Errorf("the tag %s, before: %d", tag, a.StatusCode)
	}

	list := generations()
	if err := s.store.SetGenerations(t.Context(), list.Last().ID, list.Next(time.Now(), 5, list, 9)); err != nil {
		t.Fatal(err)
	}
	for what, target := range asks {
		a := s.ask(theAdmin, "GET", Root+target, "")
		if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, `"code":"restored"`) || !strings.Contains(a.body, "restored from a backup") {
			t.Errorf("%s, after: %d %s", what, a.StatusCode, a.body)
		}
	}
	if a := s.ask(theAdmin, "GET", Root+"/records/ark:12345/g2", "", "If-None-Match", tag); a.StatusCode != http.StatusOK || a.Header.Get("ETag") == tag {
		t.Errorf("the tag %s, after: %d, now %s", tag, a.StatusCode, a.Header.Get("ETag"))
	}
	if a := s.ask(theAdmin, "PUT", Root+"/records/ark:12345/g2", `{"url":"https://example.org/late"}`, "If-Match", tag); a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("a write by who saw the version with this number before the restore: %d %s", a.StatusCode, a.body)
	}
	now := s.ask(theAdmin, "GET", Root+"/records/ark:12345/g2", "").Header.Get("ETag")
	if a := s.ask(theAdmin, "PUT", Root+"/records/ark:12345/g2", `{"url":"https://example.org/late"}`, "If-Match", now); a.StatusCode != http.StatusOK {
		t.Errorf("a write by who looked again: %d %s", a.StatusCode, a.body)
	}
	// What is noted now is good.
	next, _ := page("/records?prefix=ark:12345&limit=1")
	page("/records?prefix=ark:12345&limit=1&cursor=" + next)
	_, second := page("/changes?limit=1")
	if second == first {
		t.Error("the list of changes has the same generation")
	}
	page("/changes?limit=1&after=1&generation=" + second)
	if a := s.ask(theAdmin, "GET", Root+"/changes?generation=x", ""); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a generation that is none: %d", a.StatusCode)
	}
}
