package desk

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/trace"
)

// TestRequestID: a page of an error has the id of its request in the header, and where the server is to blame also in the text.
func TestRequestID(t *testing.T) {
	s := newSite(t)
	for kind, shown := range map[stele.Kind]bool{stele.NotFound: false, stele.Internal: true, stele.Unavailable: true} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, Root, nil)
		s.handler.answer(func(*call) error { return stele.Errorf("show page", stele.ID{}, kind, "x.y", "why") }, false)(w, r.WithContext(trace.WithRequest(r.Context(), "req-1")))
		if w.Header().Get(trace.Header) != "req-1" || strings.Contains(w.Body.String(), "req-1") != shown {
			t.Errorf("%v: %d %v\n%s", kind, w.Code, w.Header(), w.Body)
		}
	}
}
