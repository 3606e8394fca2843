package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// TestPublicFigures has an owner make the figures of a namespace public: all see its months and those of its public names, and nothing else.
func TestPublicFigures(t *testing.T) {
	h := newHouse(t)
	admin := auth.With(t.Context(), auth.Local())
	keys := make(map[string]stele.NamespaceKey)
	for _, prefix := range []string{"ark:12345", "ark:12345/b", "ark:12345/c", "ark:54321"} {
		ns, err := h.r.AddNamespace(admin, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "ann", Title: "Rivers"})
		if err != nil {
			t.Fatal(err)
		}
		keys[prefix] = ns.Key()
	}
	agents, err := NewAgents(nil)
	if err != nil {
		t.Fatal(err)
	}
	h.counter = New(Options{Store: h.r, Agents: agents, Schemes: h.schemes, Now: h.clock, Space: func(_ context.Context, id stele.ID) stele.NamespaceKey {
		ns, err := h.r.FindNamespace(admin, id)
		if err != nil {
			return stele.NamespaceKey{}
		}
		return ns.Key()
	}})
	names := []string{"ark:12345/x1", "ark:12345/hidden", "ark:12345/reserved", "ark:12345/redacted", "ark:12345/b1", "ark:12345/c1", "ark:54321/x1"}
	for _, name := range names {
		rec := &stele.Record{ID: h.id(name), State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}}
		switch name {
		case "ark:12345/hidden":
			rec.Readers = []string{"user:bob"}
		case "ark:12345/reserved":
			rec.State = stele.Reserved
		}
		if _, err := h.r.Register(admin, rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, day := range []int{0, 20} {
		h.at(time.Duration(day) * 24 * time.Hour)
		for _, name := range names {
			h.counter.Redirected(h.id(name), h.ann, firefox, "https://www.example.net/")
		}
		h.counter.Failed(h.id("ark:12345/nothing"), h.ann, firefox)
		h.flush()
	}
	if _, err := h.r.Redact(admin, h.id("ark:12345/redacted"), 0, "order 7"); err != nil {
		t.Fatal(err)
	}
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	ask := func(who string, q apijson.UsageQuery) (list []string) {
		t.Helper()
		r, err := book.Report(auth.With(t.Context(), auth.Principal{Name: who}), q)
		if err != nil {
			return []string{stele.KindOf(err).String()}
		}
		for _, row := range append(r.Rows, r.Total) {
			list = append(list, fmt.Sprint(row.Name+row.Period, " ", row.Regular, " ", row.Failures, " ", row.Visitors))
		}
		return append(list, fmt.Sprint(r.Public))
	}
	const unknown, forbidden = "unauthenticated", "forbidden"
	if diff := cmp.Diff([]string{unknown}, ask("", apijson.UsageQuery{Name: "ark:12345"})); diff != "" {
		t.Errorf("before: %s", diff)
	}
	public := func(prefix string, on bool) {
		t.Helper()
		if _, err := h.r.SetUsageSettings(auth.With(t.Context(), auth.Principal{Name: "ann"}), keys[prefix], func(u *registrar.UsageSettings) { u.Public = on }); err != nil {
			t.Fatal(err)
		}
	}
	public("ark:12345", true)
	public("ark:12345/b", true)
	for _, c := range []struct {
		who  string
		q    apijson.UsageQuery
		want []string
	}{
		// The sums of the namespace and of that below it which is public too: of c nothing.
		{"", apijson.UsageQuery{Name: "ark:12345"}, []string{"2026-11 5 0 2", " 5 0 2", "true"}},
		{"sam", apijson.UsageQuery{Name: "ark:12345"}, []string{"2026-11 5 0 2", " 5 0 2", "true"}},
		{"", apijson.UsageQuery{Name: "ark:12345/x1"}, []string{"2026-11 1 0 0", " 1 0 0", "true"}},
		{"", apijson.UsageQuery{Name: "ark:12345/x1", Of: "record"}, []string{"2026-11 1 0 0", " 1 0 0", "true"}},
		// Neither is this month, which grows with each reader.
		{"", apijson.UsageQuery{Name: "ark:12345/x1", From: "2026-12", Until: "2026-12"}, []string{"2026-11 1 0 0", " 1 0 0", "true"}},
		// A day is not public, neither by name nor by a short period.
		{"", apijson.UsageQuery{Name: "ark:12345/x1", From: "2026-11-20", Until: "2026-11-21"}, []string{"2026-11 1 0 0", " 1 0 0", "true"}},
		{"", apijson.UsageQuery{Name: "ark:12345", From: "2026-11-20", Until: "2026-11-21"}, []string{"2026-11 5 0 2", " 5 0 2", "true"}},
		{"", apijson.UsageQuery{Name: "ark:12345/x1", By: "day"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345", By: "day"}, []string{unknown}},
		// Names can't be listed, nor found by their beginnings.
		{"", apijson.UsageQuery{Name: "ark:12345", By: "name"}, []string{unknown}},
		{"sam", apijson.UsageQuery{Name: "ark:12345", By: "name"}, []string{forbidden}},
		{"", apijson.UsageQuery{Name: "ark:12345/x"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/nothing"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/hidden"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/reserved"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/redacted"}, []string{unknown}},
		{"bob", apijson.UsageQuery{Name: "ark:12345/hidden"}, []string{forbidden}},
		// Namespaces below decide for themselves.
		{"", apijson.UsageQuery{Name: "ark:12345/c"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/c1"}, []string{unknown}},
		{"", apijson.UsageQuery{Name: "ark:12345/b1"}, []string{"2026-11 1 0 0", " 1 0 0", "true"}},
		{"", apijson.UsageQuery{Name: "ark:54321"}, []string{unknown}},
		// An owner sees all.
		{"ann", apijson.UsageQuery{Name: "ark:12345", Until: "2026-11"}, []string{"2026-11 6 1 3", " 6 1 3", "false"}},
	} {
		if diff := cmp.Diff(c.want, ask(c.who, c.q)); diff != "" {
			t.Errorf("%q asks %+v: %s", c.who, c.q, diff)
		}
	}
	anyone := t.Context()
	for _, by := range []string{"referrer", "country", "failure", "dns"} {
		if _, err := book.Breakdown(anyone, apijson.UsageQuery{Name: "ark:12345", By: by}); stele.KindOf(err) != stele.Unauthenticated {
			t.Errorf("by %s: %v", by, err)
		}
	}
	if _, err := book.Unused(anyone, apijson.UnusedQuery{Name: "ark:12345"}); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("unused: %v", err)
	}
	if _, err := book.CounterReport(anyone, apijson.UsageReportQuery{Name: "ark:12345"}); stele.KindOf(err) != stele.Unauthenticated {
		t.Errorf("report: %v", err)
	}
	public("ark:12345", false)
	if diff := cmp.Diff([]string{unknown}, ask("", apijson.UsageQuery{Name: "ark:12345"})); diff != "" {
		t.Errorf("after: %s", diff)
	}
	if diff := cmp.Diff([]string{unknown}, ask("", apijson.UsageQuery{Name: "ark:12345/x1"})); diff != "" {
		t.Errorf("after: %s", diff)
	}
}

// TestPublicWork checks that what the public asks for is read once in half a minute however often it is asked for, and that it is not read if there is too much.
func TestPublicWork(t *testing.T) {
	book, store, admin := year(t, 1)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	if _, err := book.Registrar.SetUsageSettings(admin, key, func(u *registrar.UsageSettings) { u.Public = true }); err != nil {
		t.Fatal(err)
	}
	anyone := auth.With(t.Context(), auth.Principal{})
	var first *apijson.Usage
	for n := range 3 {
		*store = askedStore{Store: store.Store}
		r, err := book.Report(anyone, apijson.UsageQuery{Name: "ark:12345"})
		if err != nil || len(r.Rows) == 0 || !r.Public {
			t.Fatalf("%+v, %v", r, err)
		}
		if n == 0 {
			first = r
			continue
		}
		if diff := cmp.Diff(first, r); diff != "" || store.scans > 0 {
			t.Errorf("%d scans; %s", store.scans, diff)
		}
		r.Rows[0].Regular = 77 // a caller's own
	}
	other, err := book.Report(anyone, apijson.UsageQuery{Name: "ark:12345", Until: "2026-08"})
	if err != nil || cmp.Equal(first.Rows, other.Rows) {
		t.Errorf("another period is %+v, %v", other, err)
	}

	once := appendMonth(nil, &Month{Days: []Day{{3, Counts{Regulars: 1}}}})
	var changes []stele.CellChange
	for n := range maxPublicCells {
		changes = append(changes, stele.CellChange{Name: spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: fmt.Sprintf("ark:12345/%06d", n)}, DateOf(noon).number()), After: once})
		if len(changes) == cellsAtOnce {
			if err := book.Registrar.KeepUsage(admin, changes...); err != nil {
				t.Fatal(err)
			}
			changes = changes[:0]
		}
	}
	book.public.list = nil
	for range 2 {
		*store = askedStore{Store: store.Store}
		if _, err := book.Report(anyone, apijson.UsageQuery{Name: "ark:12345"}); stele.KindOf(err) != stele.Exhausted || store.cells > maxPublicCells+2 {
			t.Errorf("%d cells were read: %v", store.cells, err)
		}
	}
	if store.cells > 0 {
		t.Errorf("that there are too many was found out again, from %d cells", store.cells)
	}
	if r, err := book.Report(admin, apijson.UsageQuery{Name: "ark:12345"}); err != nil || len(r.Rows) != 12 {
		t.Errorf("an administrator sees %+v, %v", r, err)
	}
}
