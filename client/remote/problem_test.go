package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// TestRequestIDs: where the server is at fault, the error has the id by which its operator finds the request.
func TestRequestIDs(t *testing.T) {
	for _, tt := range []struct {
		status          int
		media, body, id string
		want            bool
	}{
		{500, apijson.ProblemJSON, `{"type":"/api/v1#internal","title":"t","status":500,"detail":"it broke"}`, "4bf92f3577b34da6", true},
		{503, apijson.ProblemJSON, `{"type":"/api/v1#unavailable","title":"t","status":503,"detail":"away","code":"store.away"}`, "4bf92f3577b34da6", true},
		{502, "text/html", "<h1>Bad gateway</h1>", "4bf92f3577b34da6", true},
		{500, apijson.ProblemJSON, `{"type":"/api/v1#internal","title":"t","status":500,"detail":"it broke"}`, "forged words", false},
		{500, apijson.ProblemJSON, `{"type":"/api/v1#internal","title":"t","status":500,"detail":"it broke"}`, "", false},
		{409, apijson.ProblemJSON, `{"type":"/api/v1#conflict","title":"t","status":409,"detail":"no"}`, "4bf92f3577b34da6", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.media)
			w.Header().Set("X-Request-Id", tt.id)
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		r := openRegistry(t, schemes(t), server.URL, "secret")
		r.o.Patience = -1
		err := r.fetch(t.Context(), "read", &ask{method: http.MethodGet, path: "me"}, nil)
		server.Close()
		if err == nil || strings.Contains(err.Error(), "request 4bf92f3577b34da6") != tt.want || strings.Contains(err.Error(), "forged") {
			t.Errorf("%d with %q: %v", tt.status, tt.id, err)
		}
		if code, _ := stele.CodeOf(err); tt.status == 503 && code != "store.away" {
			t.Errorf("the code is %q", code)
		}
	}
}
