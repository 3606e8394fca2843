package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// Fill makes a store in which something of everything has happened, some of it often.
func Fill(t testing.TB, s stele.Store, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	records := map[stele.ID]*stele.Record{}
	namespaces := map[stele.NamespaceKey]*stele.Namespace{}
	for i := range 120 {
		c := &stele.Commit{Counter: func(id stele.ID) (stele.NamespaceKey, uint64) {
			if len(id.String())%3 == 0 {
				return stele.NamespaceKey{}, 0
			}
			return stele.NamespaceKey{Scheme: "ark", Prefix: id.String()[:min(11, len(id.String()))]}, 1000
		}}
		chosen := map[stele.ID]bool{}
		for range rnd.IntN(4) {
			scheme := []string{"ark", "hdl"}[rnd.IntN(2)]
			id, err := stele.NewID(scheme, fmt.Sprintf("%s:12345/%d", scheme, rnd.IntN(40)))
			if err != nil {
				t.Fatal(err)
			}
			if chosen[id] {
				continue
			}
			chosen[id] = true
			next := &stele.Record{ID: id, State: stele.Active, Version: 1}
			if before := records[id]; before != nil {
				*next = *before
				next.Version++
			}
			next.Targets = []stele.Target{{Service: stele.N2L, URL: fmt.Sprint("https://example.org/", i)}}
			if rnd.IntN(3) == 0 {
				alias, err := stele.NewID("urn", fmt.Sprintf("urn:x1:%d-%d", i, len(chosen)))
				if err != nil {
					t.Fatal(err)
				}
				next.Aliases = append(slices.Clone(next.Aliases), alias)
			}
			records[id] = next
			c.Records = append(c.Records, next)
		}
		if rnd.IntN(3) == 0 {
			n := &stele.Namespace{Scheme: "ark", Prefix: fmt.Sprint("ark:12345/", rnd.IntN(4)), Title: fmt.Sprint(i), Version: 1,
				By: fmt.Sprint("user", i), Modified: time.Date(2031, 1, 1, 0, i, 0, 0, time.UTC)}
			if before := namespaces[n.Key()]; before != nil {
				n.Version = before.Version + 1
			}
			namespaces[n.Key()] = n
			c.Namespaces = append(c.Namespaces, n)
		}
		for _, kind := range []string{"m", "c"} {
			name := fmt.Sprint(kind, rnd.IntN(9))
			value := []byte(fmt.Sprint(i))[:rnd.IntN(2)]
			if kind == "m" {
				before, err := s.MinterState(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				c.Minters = append(c.Minters, stele.MinterState{Name: name, Before: before, After: value})
				continue
			}
			before, err := s.Cell(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if before != nil && rnd.IntN(3) == 0 {
				value = nil
			}
			c.Cells = append(c.Cells, stele.CellChange{Name: name, Before: before, After: value})
		}
		for range rnd.IntN(3) {
			c.Audit = append(c.Audit, &stele.AuditEntry{By: "ann", Operation: "register", Object: fmt.Sprint(i), Outcome: stele.AuditDone})
		}
		if i == 60 { // the oldest entries are gone
			_, last, err := s.AuditRange(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.Audit, c.TrimAudit = []*stele.AuditEntry{{By: "root", Operation: "trim audit", Outcome: stele.AuditDone, Trimmed: last / 2}}, last/2
		}
		if err := s.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// Image is all that a store has, in lines, except the entry about a copy.
func Image(t testing.TB, s stele.Store) string {
	t.Helper()
	var lines []string
	add := func(err error, format string, args ...any) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	ids := map[stele.ID]bool{}
	namespaces := map[stele.NamespaceKey]bool{}
	for c, err := range s.Changes(t.Context(), 0) {
		add(err, "%d %q %q %d %q %q %s", c.Seq, c.ID, c.Namespace, c.Version, c.Counted, c.CountedAliases, c.At.UTC().Truncate(time.Microsecond))
		if c.ID.IsValid() {
			ids[c.ID] = true
		}
		namespaces[c.Counted], namespaces[c.Namespace] = true, true
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), stele.ID.Compare) {
		for r, err := range s.History(t.Context(), id) {
			add(err, "version %+v", *r)
		}
		r, err := s.Record(t.Context(), id)
		add(err, "now %+v", *r)
		for _, alias := range r.Aliases {
			r, err := s.Record(t.Context(), alias)
			add(err, "%s is %s", alias, r.ID)
		}
	}
	for n, err := range s.Namespaces(t.Context()) {
		add(err, "namespace %+v", *n)
		for n, err := range s.NamespaceHistory(t.Context(), n.Key()) {
			add(err, "version %+v", *n)
		}
		namespaces[n.Key()] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(namespaces), func(a, b stele.NamespaceKey) int {
		return strings.Compare(a.Scheme+a.Prefix, b.Scheme+b.Prefix)
	}) {
		n, err := s.Count(t.Context(), key)
		add(err, "count %q %d", key, n)
	}
	for m, err := range s.MinterStates(t.Context()) {
		add(err, "minter %q %q", m.Name, m.After)
	}
	for c, err := range s.Cells(t.Context(), "", "") {
		add(err, "cell %q %q", c.Name, c.Value)
	}
	for e, err := range s.Audit(t.Context(), 0) {
		if err != nil || e.Operation != "copy store" { // which only the copy has
			e.At = e.At.UTC().Truncate(time.Microsecond)
			add(err, "audit %+v", *e)
		}
	}
	return strings.Join(lines, "\n")
}

// WantSame makes sure that two stores have the same.
func WantSame(t testing.TB, from, to stele.Store) {
	t.Helper()
	want, got := strings.Split(Image(t, from), "\n"), strings.Split(Image(t, to), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d of the copy is\n%s\nwant\n%s", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
	if err := to.Verify(t.Context(), func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}
