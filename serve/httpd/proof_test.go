package httpd

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// Mementos and pages lead to the proofs of their versions, where the API has some.
func TestLinksToProofs(t *testing.T) {
	proves := true
	s := newPast(t)
	for _, h := range []**Handler{&s.handler, &s.learned} {
		o := (*h).o
		o.API, o.Proofs = http.NotFoundHandler(), func(context.Context) bool { return proves }
		*h = New(o)
	}
	const link = `<https://id.example.org/api/v1/proof/ark:12345/x1?version=1>; rel="describedby https://c2sp.org/tlog-proof"; type="text/plain"`
	a := s.ask("GET", "/.memento/20260101000000/ark:12345/x1")
	if !strings.Contains(a.get("Link"), link) || !strings.Contains(a.get("Link"), `rel="first memento"`) {
		t.Errorf("the memento has the links %s", a.get("Link"))
	}
	if a := s.ask("GET", "/.memento/20260101120000/ark:12345/x1"); strings.Contains(a.get("Link"), "/proof/") {
		t.Errorf("what is not a memento has the links %s", a.get("Link"))
	}
	a = s.ask("GET", "/.memento/20260101000000/20.500.12345/A%3FB")
	if want := "/api/v1/proof/20.500.12345/A%3FB?version=1>"; !strings.Contains(a.get("Link"), want) {
		t.Errorf("%s is not in %s", want, a.get("Link"))
	}
	page := func(path string) string { return s.ask("GET", path, "Accept", "text/html").body }
	if body := page("/.info/ark:12345/x1"); !strings.Contains(body, `href="https://id.example.org/api/v1/proof/ark:12345/x1?version=3"`) {
		t.Errorf("the page does not lead to the proof: %s", body)
	}
	if body := page("/.info/ark:12345/x1?version=2"); !strings.Contains(body, "/api/v1/proof/ark:12345/x1?version=2") {
		t.Errorf("the page of version 2 does not lead to its proof: %s", body)
	}
	proves = false
	if a := s.ask("GET", "/.memento/20260101000000/ark:12345/x1"); strings.Contains(a.get("Link"), "/proof/") {
		t.Errorf("without a checkpoint the memento has the links %s", a.get("Link"))
	}
	if body := page("/.info/ark:12345/x1"); strings.Contains(body, "/proof/") {
		t.Error("without a checkpoint the page leads to a proof")
	}
}
