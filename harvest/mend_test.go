package harvest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/registrar"
)

// meanwhile is a registry in which another user writes right before records are written.
type meanwhile struct {
	*registry
	once func()
}

func (m *meanwhile) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	if m.once != nil && len(records) > 0 {
		m.once()
		m.once = nil
	}
	return m.registry.Ingest(ctx, records, o)
}

// TestMeanwhile: a name that another user registers while a page is judged is not overwritten.
func TestMeanwhile(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	j := newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", epicur("urn_new", urn, resource("primary", "https://a.example/1", "text/html"))))), gbv, harvest.Epicur)
	j.o.To = &meanwhile{to, func() { to.register(urn, "https://curated.example/1") }}
	c := j.must()
	if got := to.leads(urn); got != "active https://curated.example/1 10" || c.New != 0 || !slices.Equal(j.rejected, []string{"oai:x:1 record.registered-meanwhile"}) {
		t.Errorf("%s, %+v %q", got, c, j.rejected)
	}
}

// TestRemove: a record that removes URLs never makes a name lead nowhere.
func TestRemove(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	remove := func(want string) {
		t.Helper()
		j := newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", epicur("url_delete", urn, resource("primary", "https://a.example/1", "text/html"))))), gbv, harvest.Epicur)
		if c := j.must(); c.New+c.Updated != 0 || !slices.Equal(j.rejected, []string{"oai:x:1 " + want}) {
			t.Errorf("%+v %q", c, j.rejected)
		}
	}
	remove("harvest.removes-from-unknown")
	if got := to.leads(urn); got != "nothing" {
		t.Error(got)
	}
	to.register(urn, "https://a.example/1")
	remove("harvest.removes-last-url")
	if got := to.leads(urn); got != "active https://a.example/1 10" {
		t.Error(got)
	}
}

// TestSameURL: a URL that a record has twice is one target in each harvest, and targets that were set here stay.
func TestSameURL(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	a := resource("primary", "https://a.example/1", "text/html")
	run := func() {
		t.Helper()
		newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", epicur("url_update_general", urn, a, a)))), gbv, harvest.Epicur).must()
	}
	for range 3 {
		run()
		if got := to.leads(urn); got != "active https://a.example/1 10" {
			t.Fatal(got)
		}
	}
	if _, err := to.Update(to.ctx, to.id(urn), 0, func(r *stele.Record) error {
		other := r.Targets[0]
		other.Type, other.Preference = "application/pdf", 30
		r.Targets = append(r.Targets, other)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	run()
	if got := to.leads(urn); got != "active https://a.example/1 10, https://a.example/1 30" {
		t.Error(got)
	}
}
