package api

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

type mintReply struct {
	Items []struct {
		ID      string
		Aliases []string
		Record  *struct {
			ID, By  string
			Version int
			Targets []struct{ URL string }
		}
	}
}

func (m mintReply) ids() (list []string) {
	for _, item := range m.Items {
		list = append(list, item.ID)
	}
	return list
}

func TestMint(t *testing.T) {
	s := newSite(t)
	const at = Root + "/mint"
	var made mintReply
	s.ask(theEditor, "POST", at, `{"namespace":"ark:12345/x5"}`).want(t, 201).read(t, &made)
	if len(made.Items) != 1 || !strings.HasPrefix(made.Items[0].ID, "ark:12345/x5") || made.Items[0].Record != nil {
		t.Errorf("got %+v", made)
	}
	s.ask(theEditor, "POST", at, `{"namespaces":["ark:/12345/x5"],"count":1000}`).want(t, 201).read(t, &made)
	if ids := made.ids(); len(ids) != 1000 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 1000 {
		t.Errorf("%d names", len(ids))
	}
	body := `{"namespace":"ark:12345/x5","count":3,"record":{"url":"https://example.org/m","metadata":{"what":"M"}}}`
	s.ask(theOwner, "POST", at, body).want(t, 201).read(t, &made)
	for _, item := range made.Items {
		if r := item.Record; r == nil || r.ID != item.ID || r.By != theOwner || r.Version != 1 || r.Targets[0].URL != "https://example.org/m" {
			t.Errorf("got %+v", item)
		}
		s.ask("", "GET", records+item.ID, "").want(t, 200)
	}
	for body, path := range map[string]string{
		`{}`: "namespace",
		`{"namespace":"ark:1","namespaces":["ark:2"]}`:                               "namespace",
		`{"namespace":"?"}`:                                                          "namespace",
		`{"namespaces":["ark:12345/x5","?"]}`:                                        "namespaces[1]",
		`{"namespace":"ark:12345/x5","count":0}`:                                     "count",
		`{"namespace":"ark:12345/x5","count":1001}`:                                  "count",
		`{"namespace":"ark:12345/x5","count":"1"}`:                                   "count",
		`{"namespace":"ark:12345/x5","cuont":1}`:                                     "cuont",
		`{"namespace":"ark:12345/x5","record":{"id":"ark:12345/x5a"}}`:               "record.id",
		`{"namespace":"ark:12345/x5","record":{"targets":[{"url":"x"}]}}`:            "record.targets[0].url",
		`{"namespace":"ark:12345/x5","record":{"url":"https://example.org/","x":1}}`: "record.x",
		`{"namespace":"ark:12345/x5","record":[]}`:                                   "record",
	} {
		p := s.ask(theEditor, "POST", at, body).want(t, 400).problem(t)
		if len(p.Problems) == 0 || p.Problems[0].Path != path || p.ID != "" {
			t.Errorf("%s: %+v", body, p)
		}
	}
	s.ask(theEditor, "POST", at, `{"namespace":"ark:12345"}`).want(t, 400) // it has no minter
	s.ask("", "POST", at, `{"namespace":"ark:12345/x5"}`).want(t, 401)
	for who, status := range map[string]int{theReader: 403, theAdmin: 201} {
		s.ask(who, "POST", at, `{"namespace":"ark:12345/x5"}`).want(t, status)
	}
	// A user without a role there may not mint.
	if a := s.ask(theStranger, "POST", at, `{"namespace":"ark:12345/x5"}`); a.StatusCode != 403 && a.StatusCode != 404 {
		t.Errorf("got %d", a.StatusCode)
	}
}

func TestMintAgain(t *testing.T) {
	s := newSite(t)
	const at = Root + "/mint"
	for i, body := range []string{`{"namespace":"ark:12345/x5","count":2}`, `{"namespace":"ark:12345/x5","count":2,"record":{"url":"https://example.org/m"}}`} {
		key := fmt.Sprint("key-", i)
		first := s.ask(theEditor, "POST", at, body, "Idempotency-Key", key).want(t, 201)
		again := s.ask(theEditor, "POST", at, body, "Idempotency-Key", key).want(t, 201)
		if first.body != again.body || first.get("Idempotency-Replayed") != "" || again.get("Idempotency-Replayed") != "true" {
			t.Errorf("got %s, and then %s", first.body, again.body)
		}
		s.ask(theEditor, "POST", at, body+" ", "Idempotency-Key", key).want(t, 422).problem(t)
		if other := s.ask(theOwner, "POST", at, body, "Idempotency-Key", key).want(t, 201); other.body == first.body {
			t.Error("somebody else got the same answer")
		}
	}
	for _, key := range []string{"", "a b", "é", strings.Repeat("k", 256), "a\x01"} {
		s.ask(theEditor, "POST", at, `{"namespace":"ark:12345/x5"}`, "Idempotency-Key", key).want(t, 400)
	}
	// What was refused may be asked for again, rightly.
	s.ask(theEditor, "POST", at, `{"namespace":"ark:12345/x5","count":0}`, "Idempotency-Key", "k").want(t, 400)
	s.ask(theEditor, "POST", at, `{"namespace":"ark:12345/x5","count":1}`, "Idempotency-Key", "k").want(t, 201)

	bodies := make([]string, 50)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			bodies[i] = s.ask(theEditor, "POST", at, `{"namespace":"ark:12345/x5"}`, "Idempotency-Key", "many").want(t, 201).body
		})
	}
	wg.Wait()
	if len(slices.Compact(bodies)) != 1 {
		t.Errorf("answers differ: %q", bodies)
	}
}
