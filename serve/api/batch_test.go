package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

type batchReply struct {
	Created, Updated, Unchanged, Refused int
	Items                                []struct {
		ID, Status string
		Version    int
		Problem    *apijson.Problem
	}
}

// statuses returns what became of the records, in a word each.
func (b batchReply) statuses() string {
	var words []string
	for _, item := range b.Items {
		words = append(words, fmt.Sprintf("%s:%s:%d", strings.TrimPrefix(item.ID, "ark:12345/"), item.Status, item.Version))
	}
	return strings.Join(words, " ")
}

func TestBatch(t *testing.T) {
	s := newSite(t)
	const at = Root + "/records"
	lines := []string{
		`{"id":"ark:/12345/b1","url":"https://example.org/b1"}`,
		`{"id":"ark:12345/x1","url":"https://example.org/other"}`,
		`{"id":"ark:12345/x2","url":"https://example.org/2"}`,
		`{"id":"ark:99999/z","url":"https://example.org/z"}`,
		`{"id":"ark:12345/b2","url":"nonsense"}`,
		`{"nonsense":1}`,
		`{"id":"ark:12345/b3","state":"withdrawn","tombstone":{"reason":"Old"},"version":9,"by":"eve"}`,
	}
	list := "[" + strings.Join(lines, " ,\n") + "]"
	var got batchReply
	s.ask(theEditor, "POST", at, list).want(t, 200).read(t, &got)
	want := "b1:created:1 x1:refused:0 x2:unchanged:1 ark:99999/z:refused:0 b2:refused:0 :refused:0 b3:created:1"
	if got.statuses() != want || got.Created != 2 || got.Unchanged != 1 || got.Refused != 4 || got.Updated != 0 {
		t.Errorf("got %s, %+v", got.statuses(), got)
	}
	for i, status := range map[int]int{1: 409, 3: 403, 4: 400, 5: 400} {
		if p := got.Items[i].Problem; p == nil || p.Status != status {
			t.Errorf("item %d: %+v", i, p)
		}
	}
	if p := got.Items[4].Problem; p.Problems[0].Path != "url" {
		t.Errorf("got %+v", p)
	}
	// The same as lines, and again: nothing is written twice.
	s.ask(theEditor, "POST", at, strings.Join(lines, "\r\n")+"\n\n", "Content-Type", apijson.Lines).want(t, 200).read(t, &got)
	if got.Unchanged != 3 || got.Created != 0 {
		t.Errorf("got %s", got.statuses())
	}
	s.ask(theEditor, "POST", at+"?update=true", list).want(t, 200).read(t, &got)
	if got.Updated != 1 || got.Items[1].Version != 2 {
		t.Errorf("got %s", got.statuses())
	}
	// A record that comes again is changed again.
	s.ask(theEditor, "POST", at+"?update=true", `[{"id":"ark:12345/x1","url":"https://example.org/a"},{"id":"ark:12345/x1","url":"https://example.org/b"},{"id":"ark:12345/x1","url":"https://example.org/b"}]`).want(t, 200).read(t, &got)
	if got.statuses() != "x1:updated:3 x1:updated:4 x1:unchanged:4" {
		t.Errorf("got %s", got.statuses())
	}
	s.ask(theEditor, "POST", at, `[]`).want(t, 200).read(t, &got)
	if got.Items == nil || len(got.Items) != 0 {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{`{}`, `[`, `]`, `[{}`, `[{},]`, `[,{}]`, `[{}]x`, `[{}}`, `"x"`, `null`, ` `} {
		s.ask(theEditor, "POST", at, bad).want(t, 400)
	}
	s.ask(theEditor, "POST", at, "["+strings.Repeat("{},", 1000)+"{}]").want(t, 413)
	s.ask(theEditor, "POST", at, "["+strings.Repeat(" ", maxBatch)+"]").want(t, 413)
	s.ask(theReader, "POST", at, `[{"id":"ark:12345/b9","url":"https://example.org/b9"}]`).want(t, 200).read(t, &got)
	if got.Refused != 1 || got.Items[0].Problem.Status != 403 {
		t.Errorf("got %+v", got.Items)
	}
	s.ask("", "POST", at, list).want(t, 401)
}
