package resolver

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// elsewhere commits a record as another process does: the resolver is not told.
func (r *registry) elsewhere(record *stele.Record) {
	r.t.Helper()
	if err := r.store.Apply(r.t.Context(), &stele.Commit{Records: []*stele.Record{record}}); err != nil {
		r.t.Fatal(err)
	}
}

// written returns a version of a record with one target.
func (r *registry) written(name string, version uint64, url string) *stele.Record {
	r.t.Helper()
	return &stele.Record{
		ID: r.id(name), State: stele.Active, Version: version, Created: noon, Modified: noon, By: "ann",
		Targets: []stele.Target{{Service: stele.N2L, URL: url, Order: 100, Preference: 10}},
	}
}

// where asks for a name as a redirect does, which need not read the record.
func (r *registry) where(name string) string {
	r.t.Helper()
	res, err := r.Resolve(r.t.Context(), Request{ID: r.id(name), Brief: true})
	if err != nil {
		return "none"
	}
	return res.URL
}

// TestWrittenElsewhere: what another process writes is seen as soon as it is said what
// it was, and not before: else nothing would have been kept, and this test says nothing.
func TestWrittenElsewhere(t *testing.T) {
	const before, after = "https://example.org/1", "https://example.org/2"
	for name, tt := range map[string]struct {
		version uint64
		forget  func(r *registry, record *stele.Record)
	}{
		"new, by name":         {1, func(r *registry, record *stele.Record) { r.Invalidate(record) }},
		"new, and that is all": {1, func(r *registry, _ *stele.Record) { r.InvalidateUnknown() }},
		"new, of many":         {1, func(r *registry, _ *stele.Record) { r.InvalidateAll() }},
		"changed, by name":     {2, func(r *registry, record *stele.Record) { r.Invalidate(record) }},
		"changed, one of many": {2, func(r *registry, _ *stele.Record) { r.InvalidateAll() }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20, RedirectBytes: 1 << 20})
			defer r.Close()
			first := "none"
			if tt.version > 1 {
				r.elsewhere(r.written("urn:example:1", 1, before))
				first = before
			}
			if got := r.where("urn:example:1"); got != first {
				t.Fatal(got)
			}
			record := r.written("urn:example:1", tt.version, after)
			r.elsewhere(record)
			if got := r.where("urn:example:1"); got != first {
				t.Fatalf("nothing was kept: %s", got)
			}
			tt.forget(r, record)
			if got := r.where("urn:example:1"); got != after {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestNewNamesKeepKnownOnes: a registration by another process does not make the
// resolver forget what it knows.
func TestNewNamesKeepKnownOnes(t *testing.T) {
	r, store := newCounted(t, Options{Now: clock, CacheBytes: 1 << 20})
	r.to("urn:example:1", page("https://example.org/1"))
	r.location("urn:example:1")
	r.InvalidateUnknown()
	before := store.sum()
	r.location("urn:example:1")
	if n := store.sum() - before; n != 0 {
		t.Errorf("%d reads", n)
	}
}

// TestLateUnknown: what was read before another process registered a name is not kept
// after InvalidateUnknown.
func TestLateUnknown(t *testing.T) {
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})
	c, name := r.records, r.id("urn:example:1")
	ticket := c.take(name)
	r.InvalidateUnknown()
	c.keep(ticket, name, nil)
	if e := c.find(name); e != nil {
		t.Errorf("kept %+v", e)
	}
	ticket = c.take(name)
	r.InvalidateAll()
	c.keep(ticket, name, r.written("urn:example:1", 1, "https://example.org/1"))
	if e := c.find(name); e != nil {
		t.Errorf("kept %+v", e)
	}
}

// TestLagging: of a copy that may be old nothing is kept.
func TestLagging(t *testing.T) {
	lagging := true
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20, RedirectBytes: 1 << 20, Lagging: func() (time.Time, bool) { return noon, lagging }})
	defer r.Close()
	r.elsewhere(r.written("urn:example:1", 1, "https://example.org/1"))
	for _, name := range []string{"urn:example:1", "urn:example:2"} {
		r.where(name)
	}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lagging = false
	r.elsewhere(r.written("urn:example:1", 2, "https://example.org/2"))
	r.elsewhere(r.written("urn:example:2", 1, "https://example.org/2"))
	for _, name := range []string{"urn:example:1", "urn:example:2"} {
		if got := r.where(name); got != "https://example.org/2" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestLaggedMeanwhile: what was read while the store began to lag, and ceased, is not
// kept.
func TestLaggedMeanwhile(t *testing.T) {
	since := time.Time{}
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20, Lagging: func() (time.Time, bool) { return since, false }})
	c, name := r.records, r.id("urn:example:1")
	ticket := c.take(name)
	since = noon
	c.keep(ticket, name, nil)
	if e := c.find(name); e != nil {
		t.Errorf("kept %+v", e)
	}
	c.keep(c.take(name), name, nil)
	if e := c.find(name); e == nil {
		t.Error("nothing is kept")
	}
}
