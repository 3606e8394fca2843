package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestFrozen: an archive refuses every operation that changes something or needs a user, whatever credentials come with it, and answers the
// others.
func TestFrozen(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Frozen = stele.Frozen("names.example.org/.log", time.Now()) })
	refused := 0
	for _, op := range s.handler.operations() {
		if op.asks == anyone && op.method == http.MethodGet {
			continue
		}
		path := strings.NewReplacer("{id}", "ark:12345/x1", "{prefix}", "ark:12345", "{", "", "}", "").Replace(op.path)
		for _, who := range []string{"", theAdmin} {
			if a := s.ask(who, op.method, Root+"/"+path, "{}"); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "registry.frozen-archive") {
				t.Errorf("%s by %q: %d %s", op.name, who, a.StatusCode, a.body)
			}
		}
		refused++
	}
	if refused < 50 {
		t.Errorf("%d operations are refused", refused)
	}
	s.ask("", "GET", Root+"/records/ark:12345/x1", "").want(t, http.StatusOK)
	s.ask("", "GET", Root+"/history/ark:12345/x1", "").want(t, http.StatusOK)
}
