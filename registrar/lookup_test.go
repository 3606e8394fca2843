package registrar

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stele-id/stele"
)

// asked counts how often the namespaces of a name are looked for: each look-up asks the
// scheme once where it may be cut, if one namespace fits.
type asked struct {
	stele.Scheme
	mu    sync.Mutex
	names map[stele.ID]int
}

func (a *asked) Cuts(id stele.ID, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names[id]++
	return a.Scheme.Cuts(id, n)
}

// A write looks for the namespace of a name once, and all parts of it have that answer:
// rights, rules, the audit trail, and the store's counts.
func TestOneLookUpForEachName(t *testing.T) {
	f := newFixture(t)
	counting := &asked{Scheme: f.schemes.Lookup("urn"), names: make(map[stele.ID]int)}
	f.Registrar = New(f.store, must(stele.NewSchemes(counting))(t), f.options)
	f.space("urn:example", owner("ann"), func(ns *stele.Namespace) { ns.Quota = 100 })
	f.space("urn:other", owner("ann"), func(ns *stele.Namespace) {
		ns.Checked, ns.Delegate = true, "https://example.org/{id}" // so that all rules are asked for
	})
	rec := f.record("urn:example:a", "https://example.org/1")
	rec.Aliases = []stele.ID{f.id("urn:example:b"), f.id("urn:example:c")}
	once := func(what string, names ...stele.ID) {
		t.Helper()
		for _, id := range names {
			if n := counting.names[id]; n != 1 {
				t.Errorf("%s: the namespace of %s was looked for %d times", what, id, n)
			}
		}
		clear(counting.names)
	}
	clear(counting.names)
	if _, err := f.Register(as("ann"), rec); err != nil {
		t.Fatal(err)
	}
	once("register", rec.Names()...)
	if _, err := f.Update(as("ann"), rec.ID, 0, func(r *stele.Record) error {
		r.Metadata = stele.Metadata{"what": "x"}
		r.Aliases = append(r.Aliases, f.id("urn:example:d"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	once("update", rec.ID, f.id("urn:example:d"))
	if n := must(f.store.Count(f.admin, f.key("urn:example")))(t); n != 4 {
		t.Errorf("%d names are counted", n)
	}
}

// A record with many names is counted and judged as one with few.
func TestLookUpOfManyNames(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example", owner("ann"))
	f.space("urn:example:z", owner("bob"))
	rec := f.record("urn:example:a", "https://example.org/1")
	for i := range 3 * maxFound {
		rec.Aliases = append(rec.Aliases, f.id(fmt.Sprintf("urn:example:a%d", i)))
	}
	if _, err := f.Register(as("ann"), rec); err != nil {
		t.Fatal(err)
	}
	if n := must(f.store.Count(f.admin, f.key("urn:example")))(t); n != 3*maxFound+1 {
		t.Errorf("%d names are counted", n)
	}
	_, err := f.AddAlias(as("bob"), rec.ID, 0, f.id("urn:example:z:1"))
	want(t, err, stele.Forbidden)
}

// A namespace that ends inside a part of names has its own count and quota: its names do
// not count for the namespace above it.
func TestQuotasInsideSegments(t *testing.T) {
	for _, tt := range []struct{ outer, inner string }{
		{"https://purl.org/obo/", "https://purl.org/obo/HP_"}, {"ark:13030", "ark:13030/qt"}, {"ark:13030/q", "ark:13030/qt"},
	} {
		f := newFixture(t)
		quota := func(n uint64) func(*stele.Namespace) { return func(ns *stele.Namespace) { ns.Quota = n } }
		outer, inner := f.space(tt.outer, quota(3)), f.space(tt.inner, quota(2))
		counted := func(wantOuter, wantInner uint64) {
			t.Helper()
			if o, i := must(f.store.Count(f.admin, outer))(t), must(f.store.Count(f.admin, inner))(t); o != wantOuter || i != wantInner {
				t.Errorf("%s has %d names and %s %d, want %d and %d", tt.outer, o, tt.inner, i, wantOuter, wantInner)
			}
		}
		joint := tt.outer
		if tt.outer == "ark:13030" {
			joint += "/"
		}
		f.registered(tt.inner + "1")
		rec := f.registered(joint + "z1")
		counted(1, 1)
		// An alias counts where its own text belongs.
		must(f.AddAlias(f.admin, rec.ID, 0, f.id(tt.inner+"2")))(t)
		counted(1, 2)
		_, err := f.Register(f.admin, f.record(tt.inner+"3", "https://example.org/"))
		want(t, err, stele.Exhausted, tt.inner)
		_, err = f.AddAlias(f.admin, rec.ID, 0, f.id(tt.inner+"4"))
		want(t, err, stele.Exhausted, tt.inner)
		errs := must(f.Ingest(f.admin, []*stele.Record{f.record(tt.inner+"5", "https://example.org/"), f.record(joint+"z2", "https://example.org/")}, ImportOptions{}))(t)
		want(t, errs[0], stele.Exhausted, tt.inner)
		if errs[1] != nil {
			t.Error(errs[1])
		}
		f.registered(joint + "z3")
		counted(3, 2)
		_, err = f.Register(f.admin, f.record(joint+"z4", "https://example.org/"))
		want(t, err, stele.Exhausted, tt.outer)
		must(f.SetNamespace(f.admin, inner, 0, func(ns *stele.Namespace) error { ns.Quota = 0; return nil }))(t)
		f.registered(tt.inner + "6")
		counted(3, 3)
	}
}
