package resolver

import (
	"net/http"
	"testing"

	"github.com/stele-id/stele"
)

func TestResolveVersion(t *testing.T) {
	r := newRegistry(t, Options{})
	id := r.id("ark:12345/x1/page")
	version := &stele.Record{ID: r.id("ark:12345/x1"), State: stele.Active,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/then", Partial: true}}}
	res, err := r.ResolveVersion(t.Context(), version, "ark:12345/x1", Request{ID: id, Query: "q=1"})
	if err != nil || res.Kind != Redirect || res.URL != "https://example.org/then/page?q=1" || res.Status != http.StatusFound || res.ID != id || res.Matched != "ark:12345/x1" {
		t.Errorf("%v, %+v", err, res)
	}
	for name, change := range map[string]func(*stele.Record){
		"reserved":   func(v *stele.Record) { v.State = stele.Reserved },
		"restricted": func(v *stele.Record) { v.Readers = []string{"user:ann"} },
	} {
		hidden := *version
		change(&hidden)
		if _, err := r.ResolveVersion(t.Context(), &hidden, "ark:12345/x1", Request{ID: id}); stele.KindOf(err) != stele.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	withdrawn := *version
	withdrawn.State, withdrawn.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "wrong"}
	if res, err := r.ResolveVersion(t.Context(), &withdrawn, "ark:12345/x1", Request{ID: id}); err != nil || res.Kind != Tombstone || res.Tombstone.Reason != "wrong" {
		t.Errorf("withdrawn: %v, %+v", err, res)
	}
}

func TestMatchMedia(t *testing.T) {
	liked, err := ParseAccept("text/html, application/json;q=0.5, image/*;q=0.2, */*;q=0.1, text/csv;q=0")
	if err != nil {
		t.Fatal(err)
	}
	for media, want := range map[string]struct {
		fit   Fit
		q     int
		named bool
	}{
		"text/html":        {Asked, 1000, true},
		"application/json": {Asked, 500, true},
		"image/png":        {Asked, 200, true},
		"video/mp4":        {Asked, 100, false},
		"":                 {Asked, 100, false},
		"text/csv":         {Refused, 0, false},
	} {
		if fit, q, named := Match(media, liked); fit != want.fit || q != want.q || named != want.named {
			t.Errorf("%s: %s, %d, %t", media, fit, q, named)
		}
	}
	if fit, q, named := Match("text/csv", nil); fit != Asked || q != 1000 || named {
		t.Errorf("where nothing is wanted: %s, %d, %t", fit, q, named)
	}
}
