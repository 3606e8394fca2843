package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestSlowLoss: a repository that deletes 5 % each day, in whatever parts it is harvested, does not have all names withdrawn. A user
// who agrees begins the count anew, and it forgets what was withdrawn a month ago.
func TestSlowLoss(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	name := func(i int) string { return fmt.Sprintf("ark:12345/x5a%02d", i) }
	var all []string
	for i := range 40 {
		all = append(all, record(name(i), "2026-06-01", "<dc><identifier>"+name(i)+"</identifier><identifier>https://a.example/</identifier></dc>"))
	}
	newJob(to, script(t, page("", all...)), x5, harvest.Dublin).must()
	lose := func(i int, yes bool) (harvest.Counts, error) {
		to.now = to.now.Add(24 * time.Hour)
		j := newJob(to, script(t, page("", record(name(i), "2026-06-02", ""), record(name(i+1), "2026-06-02", ""))), x5, harvest.Dublin)
		j.o.Source.Set = fmt.Sprint("part", i)
		j.o.Yes = yes
		return j.run(to.ctx)
	}
	for i, tt := range []struct {
		at      int
		yes     bool
		days    int
		earlier int // more than the limit
	}{{at: 0}, {at: 2, earlier: 2}, {at: 4, earlier: 2}, {at: 4, yes: true}, {at: 6}, {at: 8, earlier: 2}, {at: 8, days: 31}} {
		to.now = to.now.AddDate(0, 0, tt.days)
		c, err := lose(tt.at, tt.yes)
		tooMany, refused := errors.AsType[*harvest.TooManyError](err)
		switch {
		case tt.earlier == 0 && (err != nil || c.Withdrawn != 2):
			t.Errorf("%d: %+v %v", i, c, err)
		case tt.earlier > 0 && (!refused || tooMany.Earlier != tt.earlier || c.Withdrawn != 0):
			t.Errorf("%d: %+v %v", i, c, err)
		}
	}
}

// TestForeignDeletion: a repository does not have a name withdrawn that it never supplied.
func TestForeignDeletion(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	to.register("ark:12345/x5a", "https://curated.example/")
	j := newJob(to, script(t, page("", record("oai:x:ark:12345/x5a", "2026-06-02", ""))), x5, harvest.Dublin)
	j.o.Limit = 1
	if c := j.must(); c.Withdrawn != 0 || !slices.Equal(j.rejected, []string{"oai:x:ark:12345/x5a harvest.deleted-not-harvested"}) {
		t.Errorf("%+v %q", c, j.rejected)
	}
	j.o.Yes, j.o.Again = true, true
	if c := j.must(); c.Withdrawn != 1 || !strings.HasPrefix(to.leads("ark:12345/x5a"), "withdrawn") {
		t.Errorf("%+v %q", c, j.rejected)
	}
}
