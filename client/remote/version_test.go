package remote

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// TestVersion: each request names the latest state that earlier answers named, in their
// headers or in their trailers.
func TestVersion(t *testing.T) {
	o := newTestServer(t)
	var sent []string
	versions := []string{"7", "", "5", "nonsense", "12"}
	r := o.open(o.token, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = append(sent, r.Header.Get(stele.VersionHeader))
			i := len(sent) - 1
			r.Header.Del(stele.VersionHeader)
			if i < len(versions) && versions[i] != "" {
				w.Header().Set(stele.VersionHeader, versions[i])
			}
			next.ServeHTTP(w, r)
			if i >= len(versions) {
				w.Header().Set(http.TrailerPrefix+stele.VersionHeader, strconv.Itoa(100+i))
			}
		})
	})
	for range versions {
		if _, err := r.Get(t.Context(), mustID(t, o, "ark:12345/x1")); stele.KindOf(err) != stele.NotFound {
			t.Fatal(err)
		}
	}
	rec := &stele.Record{ID: mustID(t, o, "ark:12345/x1"), Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}}, State: stele.Active}
	for range 2 {
		if _, err := r.Ingest(t.Context(), []*stele.Record{rec}, registrar.ImportOptions{Update: true}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"", "7", "7", "7", "7", "12", "105"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

func mustID(t *testing.T, o *testServer, text string) stele.ID {
	t.Helper()
	id, err := o.schemes.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
