package apijson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestProblems: what a server writes about problems, a client reads, with codes, parameters
// and paths, and without what a terminal would obey.
func TestProblems(t *testing.T) {
	want := stele.Problems{
		{Path: "targets[0].url", Err: stele.Messagef("target.host-not-allowed", "the host {host} is not allowed", "evil.example")},
		{Path: "metadata", Err: errors.New("a\x1b[31mb\xff")},
	}
	text, err := json.Marshal(Problem{Problems: FaultsOf(want)})
	if err != nil {
		t.Fatal(err)
	}
	var p Problem
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	got := ProblemsOf(p.Problems)
	if len(got) != 2 || got[0].Path != want[0].Path || got[0].Err.Error() != "the host evil.example is not allowed" {
		t.Fatalf("got %v", got)
	}
	if code, params := stele.CodeOf(got[0].Err); code != "target.host-not-allowed" || len(params) != 1 || params[0] != (stele.Param{Name: "host", Value: "evil.example"}) {
		t.Errorf("got %s, %v", code, params)
	}
	if text := got[1].Err.Error(); text != "a [31mb\uFFFD" {
		t.Errorf("got %q", text)
	}
	if err := (Coded{Code: "restored"}).Message("x"); !errors.Is(err, stele.ErrRestored) {
		t.Errorf("got %v", err)
	}
}

// TestKinds: every kind has a name of its own, which leads back to it.
func TestKinds(t *testing.T) {
	for kind := stele.Internal; !strings.HasPrefix(kind.String(), "Kind("); kind++ {
		name := KindName(kind)
		p := Problem{Type: "/api/v1#" + name}
		if got, ok := p.Kind(); !ok || got != kind || name != strings.ReplaceAll(kind.String(), " ", "-") {
			t.Errorf("%s is named %q, which is %v", kind, name, got)
		}
	}
	for name, want := range map[string]string{"": "false", "teapot": "false", PreconditionFailed: "true"} {
		p := Problem{Type: "/api/v1#" + name}
		if _, ok := p.Kind(); fmt.Sprint(ok) != want {
			t.Errorf("%q: %v", name, ok)
		}
	}
}
