package storetest

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// scanned is what Scan should find in a list of records.
func scanned(list []*stele.Record, scheme, prefix, after string) (out []string) {
	for _, r := range list {
		if text := r.ID.String(); r.ID.Scheme() == scheme && strings.HasPrefix(text, prefix) && text > after {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

// checkSnapshots: an iterator that has begun sees one state, whatever is committed
// meanwhile; also by the caller that iterates.
func checkSnapshots(s *session) {
	const url = "https://example.org/all"
	old := s.numbered("%03d", 40)
	for i := range old {
		old[i].Targets = []stele.Target{at(url)}
	}
	s.ingest(old, nil, nil)
	a := first(s.ark("a"))
	root := space("ark", "")
	s.apply(&stele.Commit{
		Records:    []*stele.Record{a},
		Namespaces: []*stele.Namespace{root, space("hdl", ""), space("urn", "")},
		Minters:    []stele.MinterState{{Name: "1", After: []byte{1}}, {Name: "2", After: []byte{1}}, {Name: "3", After: []byte{1}}},
		Cells:      []stele.CellChange{{Name: "1", After: []byte{1}}, {Name: "2", After: []byte{1}}, {Name: "3", After: []byte{1}}},
	})
	for i := range 10 {
		a = next(a, fmt.Sprint(i))
		s.put(a)
	}
	changes, history := s.changes(0), s.history(a.ID)

	// Once the first item is there, everything changes: before the place of the
	// iterator and after it.
	disturb := s.disturber(a, root, old)
	during(s, "Scan", func() iter.Seq2[*stele.Record, error] { return s.Scan(s.ctx, "ark", "", "") }, disturb)
	for _, l := range []stele.Location{{URL: url}, {Host: "example.org"}} {
		during(s, "Pointing", func() iter.Seq2[stele.ID, error] { return s.Pointing(s.ctx, l, stele.ID{}) }, disturb)
	}
	during(s, "History", func() iter.Seq2[*stele.Record, error] { return s.History(s.ctx, a.ID) }, disturb)
	during(s, "HistoryBefore", func() iter.Seq2[*stele.Record, error] { return s.HistoryBefore(s.ctx, a.ID, 9) }, disturb)
	during(s, "NamespaceHistory", func() iter.Seq2[*stele.Namespace, error] { return s.NamespaceHistory(s.ctx, root.Key()) }, disturb)
	during(s, "Changes", func() iter.Seq2[stele.Change, error] { return s.Changes(s.ctx, 0) }, disturb)
	during(s, "Namespaces", func() iter.Seq2[*stele.Namespace, error] { return s.Namespaces(s.ctx) }, disturb)
	during(s, "MinterStates", func() iter.Seq2[stele.MinterState, error] { return s.MinterStates(s.ctx) }, disturb)
	during(s, "Cells", func() iter.Seq2[stele.Cell, error] { return s.Cells(s.ctx, "", "") }, disturb)

	// What was seen before is still the beginning, or the end, of what there is.
	if got := s.changes(0)[:len(changes)]; fmt.Sprint(got) != fmt.Sprint(changes) {
		s.Errorf("changes of the past have changed: %v, were %v", got, changes)
	}
	got := s.history(a.ID)
	for i, r := range got[len(got)-len(history):] {
		s.same("History of the past", r, history[i])
	}
}

// disturber returns a function that changes something of every sort.
func (s *session) disturber(a *stele.Record, root *stele.Namespace, old []*stele.Record) func() {
	round := 0
	return func() {
		s.Helper()
		round++
		a = next(a, fmt.Sprint("round ", round))
		root = nextNamespace(root, fmt.Sprint("round ", round))
		c := &stele.Commit{Records: []*stele.Record{a}, Namespaces: []*stele.Namespace{root, space("zz", fmt.Sprint(round))}}
		for i := range old {
			old[i] = next(old[i], fmt.Sprint("round ", round))
			old[i].Targets = old[i].Targets[:0:0]
			if round%2 == 0 {
				old[i].Targets = []stele.Target{at("https://example.org/all")}
			}
			c.Records = append(c.Records, old[i])
		}
		for i := range 10 {
			r := first(s.ark(fmt.Sprintf("%03d-%d", i*4, round)))
			r.Targets = []stele.Target{at("https://example.org/all")}
			c.Records = append(c.Records, r)
		}
		before := []byte{byte(round)}
		for _, name := range []string{"1", "2", "3"} {
			c.Minters = append(c.Minters, stele.MinterState{Name: name, Before: before, After: []byte{byte(round + 1)}})
		}
		c.Minters = append(c.Minters, stele.MinterState{Name: fmt.Sprint("2-", round), After: []byte{1}})
		c.Cells = []stele.CellChange{
			{Name: "1", Before: before, After: []byte{byte(round + 1)}},
			{Name: "2", Before: before, After: []byte{byte(round + 1)}},
			{Name: fmt.Sprint("3", strings.Repeat("-", round-1)), Before: []byte{1}}, // the last is removed, and there is another
			{Name: fmt.Sprint("3", strings.Repeat("-", round)), After: []byte{1}},
		}
		s.apply(c)
		s.ingest(s.numbered(fmt.Sprintf("0%%02d-i%d", round), 40), nil, nil)
	}
}

// during iterates, and disturbs after the first item. What it sees must be what
// another iteration saw just before.
func during[T any](s *session, what string, open func() iter.Seq2[T, error], disturb func()) {
	s.Helper()
	want := all(s, what, open())
	var got []T
	for item, err := range open() {
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		if got = append(got, item); len(got) == 1 {
			disturb()
		}
	}
	g, w := show(s, got), show(s, want)
	if !slices.Equal(g, w) {
		s.Errorf("%s sees what is committed after it began: got %.300q, want %.300q", what, g, w)
	}
}

// show makes items comparable.
func show[T any](s *session, items []T) (out []string) {
	for _, item := range items {
		switch v := any(item).(type) {
		case *stele.Record:
			out = append(out, fmt.Sprintf("%q %x", v.ID, encode(s, v)))
		case *stele.Namespace:
			out = append(out, fmt.Sprintf("%+v", *v))
		default:
			out = append(out, fmt.Sprintf("%v", v))
		}
	}
	return out
}
