package digest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// TestLinks: owners are told of links that broke since the last letter, whole hosts first. What can't be checked is a number, and never
// makes a letter.
func TestLinks(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	s.links = apijson.LinkOverview{Counts: map[string]int{"blocked": 12}}
	must(s.r.SetLinkChecks(s.admin, key, func(l *registrar.LinkChecks) { l.On = true }))(t)
	s.send()
	s.set(monday)
	if got := s.send(); len(got) != 0 {
		t.Errorf("of what can't be checked: %v", got)
	}
	s.links.Hosts = []*apijson.LinkHost{{Host: "dead.example.org", Down: monday, First: monday.Add(-day), Cause: "no-name", Count: 40}, {Host: "big.example.org", Names: 5000, Share: 10}}
	s.links.Moved = []apijson.LinkMoved{{Host: "old.example.org", Count: 312, Last: monday}}
	s.links.First = map[string][]apijson.LinkFinding{
		"drifted": {{ID: "ark:12345/x5d", Scheme: "ark", URL: "https://example.org/d", State: "ok", Drift: "text-changed", Since: monday}},
		"broken":  {{ID: "ark:12345/x5a", Scheme: "ark", URL: "https://example.org/a", State: "broken", Cause: "not-found", Status: 404, Since: monday, First: monday.Add(-9 * day), Fails: 5}},
	}
	s.set(monday.Add(week))
	got := s.send()
	if len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	l := got["olga"]
	has(t, l, "Names that lead nowhere, or elsewhere", "- dead.example.org does not answer; 40 names lead there\n  the host does not exist any more · since 15 November 2026\n  https://id.example.org/.desk/links?host=dead.example.org&namespace=",
		"- ark:12345/x5a: broken\n  the site says that there is no such page (404) · since 7 November 2026 · 5 failed checks in a row · https://example.org/a\n  https://id.example.org/.desk/record?id=ark%3A12345%2Fx5a#target-0-url",
		"- 312 names at old.example.org have new addresses", "ark:12345/x5d: other content", "- 12 targets of ark:12345/x5 can't be checked by programs")
	last := -1
	for _, text := range []string{"dead.example.org", "x5a", "old.example.org", "x5d", "can't be checked"} {
		if at := strings.Index(l.Text, text); at < last {
			t.Errorf("%q comes too early:\n%s", text, l.Text)
		} else {
			last = at
		}
	}
	s.set(monday.Add(2 * week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
	// A host whose names move day after day is new once in a month; a name that broke again is new, and content that differs since then, too.
	s.prefer("olga", func(p *auth.Preferences) { p.Language = "pt-BR" })
	s.links.Moved[0].Last = monday.Add(2 * week)
	s.set(monday.Add(3 * week))
	if got := s.send(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	s.links.First["drifted"][0].Drifted = monday.Add(2 * week)
	s.set(monday.Add(4 * week))
	if got := s.send(); len(got) != 1 || !strings.Contains(got["olga"].Text, "312 nomes em old.example.org têm novos endereços") {
		t.Errorf("got %v", got)
	}
	// In the next month the host is new once more.
	s.links.Moved[0].Last = monday.Add(4 * week)
	s.set(monday.Add(5 * week))
	if got := s.send(); len(got) != 1 || !strings.Contains(got["olga"].Text, "312 nomes em old.example.org têm novos endereços") {
		t.Errorf("in another month: %v", got)
	}
	// However much is broken, the number of what can't be checked is shown.
	for i := range 3 * maxItems {
		s.links.First["broken"] = append(s.links.First["broken"], apijson.LinkFinding{ID: fmt.Sprint("ark:12345/x5q", i), Scheme: "ark", URL: "https://example.org/q", State: "broken", Cause: "loop", Since: monday.Add(time.Duration(i) * time.Hour)})
	}
	s.set(monday.Add(6 * week))
	l = s.send()["olga"]
	if first, last := strings.Index(l.Text, "x5q29:"), strings.Index(l.Text, "x5q28:"); first < 0 || last < first || strings.Contains(l.Text, "x5q0:") {
		t.Errorf("the newest do not come first:\n%s", l.Text)
	}
	if !strings.Contains(l.Text, "12 destinos de ark:12345/x5 não podem ser verificados") || !strings.Contains(l.Text, "links?namespace=ark%3A12345%2Fx5\n") {
		t.Errorf("got\n%s", l.Text)
	}
}

// TestManyBlocked: numbers of what can't be checked do not take the place of what is broken.
func TestManyBlocked(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	for i := range 2 * maxItems {
		key := stele.NamespaceKey{Scheme: "ark", Prefix: fmt.Sprintf("ark:12345/y%02d", i)}
		must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Owner: "olga"}))(t)
		must(s.r.SetLinkChecks(s.admin, key, func(l *registrar.LinkChecks) { l.On = true }))(t)
	}
	s.send()
	s.links = apijson.LinkOverview{Counts: map[string]int{"blocked": 12}, First: map[string][]apijson.LinkFinding{"broken": {{ID: "ark:12345/y00a", Scheme: "ark", URL: "https://example.org/a", State: "broken", Cause: "not-found", Status: 404, Since: monday}}}}
	s.set(monday.Add(week))
	if l := s.send()["olga"]; !strings.Contains(l.Text, "y00a: broken") || strings.Count(l.Text, "can't be checked by programs") != maxBlocked {
		t.Errorf("got\n%s", l.Text)
	}
}

// TestNewComesFirst: what the user was not told stands before what the user was told, however much that is, and what is not shown is counted.
func TestNewComesFirst(t *testing.T) {
	s := newDesktop(t, inMemory).server()
	must(s.r.SetLinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = true }))(t)
	s.send()
	found := func(kind, name string, since time.Time) {
		s.links.First[kind] = append(s.links.First[kind], apijson.LinkFinding{ID: "ark:12345/x5" + name, Scheme: "ark", URL: "https://example.org/" + name, State: kind, Cause: "not-found", Status: 404, Since: since})
	}
	s.links = apijson.LinkOverview{Counts: map[string]int{"broken": 5000, "gone": 1, "blocked": 7}, First: make(map[string][]apijson.LinkFinding)}
	for i := range 2 * maxItems {
		found("broken", fmt.Sprint("old", i), monday.Add(-time.Duration(i)*time.Hour))
	}
	s.set(monday)
	has(t, s.send()["olga"], "x5old0: broken", "and 4,992 more", "7 targets of ark:12345/x5 can't be checked")

	// A week later one is gone, and the names of a host have moved.
	found("gone", "new", monday.Add(day))
	s.links.Moved = []apijson.LinkMoved{{Host: "old.example.org", Count: 312, Last: monday.Add(day)}}
	s.set(monday.Add(week))
	s.fail = stele.Errorf("send mail", stele.ID{}, stele.Unavailable, "mail.test", "the mail server does not answer")
	if got := s.send(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	// The letter waits, and is made anew: what was new still comes first.
	s.fail = nil
	s.set(monday.Add(week + 2*day))
	l := s.deliver()["olga"]
	has(t, l, "x5new: gone", "312 names at old.example.org", "x5old6: broken", "and 4,993 more", "7 targets of ark:12345/x5 can't be checked")
	if gone, moved, old := strings.Index(l.Text, "x5new"), strings.Index(l.Text, "old.example.org have"), strings.Index(l.Text, "x5old0"); gone > moved || moved > old {
		t.Errorf("what is new does not come first:\n%s", l.Text)
	}
}
