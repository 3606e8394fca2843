package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
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

// TestChangedMeanwhile: a record that another user changes while its page is judged is judged once more, also one that is to be withdrawn. If
// it is changed again, it is rejected, and the next harvest asks for it again.
func TestChangedMeanwhile(t *testing.T) {
	const kept, gone = "ark:12345/x5a", "ark:12345/x5b"
	for changes, want := range map[int]struct{ first, second string }{ // what of both names, after each harvest
		0: {"active https://new.example/ 10, withdrawn", "active https://new.example/ 10, withdrawn"},
		1: {"active https://new.example/ 10, withdrawn", "active https://new.example/ 10, withdrawn"},
		2: {"active https://old.example/ 10, active", "active https://new.example/ 10, withdrawn"},
	} {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			to := newRegistry(t)
			to.space(x5, false)
			there := func(name, url string) string {
				return record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>"+url+"</identifier></dc>")
			}
			var asked []string // from when on
			answers := []string{page("", there(kept, "https://old.example/"), there(gone, "https://old.example/")), page("", there(kept, "https://new.example/"), record(gone, "2026-06-02", ""))}
			at := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("verb") == "Identify" {
					fmt.Fprint(w, identify)
					return
				}
				asked = append(asked, r.URL.Query().Get("from"))
				fmt.Fprint(w, strings.Replace(answers[min(len(asked), len(answers))-1], "2026-06-01T12:00:00Z", to.now.Format("2006-01-02T15:04:05Z"), 1))
			})
			j := newJob(to, at, x5, harvest.Dublin)
			j.o.Limit = 1
			j.must()
			left := map[string]int{kept: changes, gone: changes}
			j.o.To = &changing{to, func(name string) {
				if left[name]--; left[name] < 0 {
					return
				}
				if _, err := to.Update(to.ctx, to.id(name), 0, func(r *stele.Record) error {
					r.Metadata["note"] = fmt.Sprint(left[name])
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}}
			look := func() string {
				state, _, _ := strings.Cut(to.leads(gone), " ")
				return to.leads(kept) + ", " + state
			}
			to.now = to.now.Add(48 * time.Hour)
			c := j.must()
			if got := look(); got != want.first || (c.Rejected == 2) != (changes == 2) || c.Rejected+c.Updated+c.Withdrawn != 2 {
				t.Errorf("%s, %+v %q", got, c, j.rejected)
			}
			to.now = to.now.Add(48 * time.Hour)
			c = j.must()
			if got := look(); got != want.second || c.Rejected != 0 {
				t.Errorf("then %s, %+v %q", got, c, j.rejected)
			}
			to.now = to.now.Add(48 * time.Hour)
			j.must()
			if got := asked[2] == asked[1]; got != (changes == 2) || asked[3] == asked[2] {
				t.Errorf("asked from %q", asked)
			}
		})
	}
}

// changing is a registry in which another user changes each record right before it is written.
type changing struct {
	*registry
	change func(name string)
}

func (c *changing) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	for _, rec := range records {
		c.change(rec.ID.String())
	}
	return c.registry.Ingest(ctx, records, o)
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

// strict is a registry that keeps bookmarks of 4096 bytes at most, as a server does.
type strict struct{ *registry }

func (s strict) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	if len(o.Bookmark) > 4096 {
		return nil, fmt.Errorf("a bookmark of %d bytes", len(o.Bookmark))
	}
	return s.registry.Ingest(ctx, records, o)
}

// TestLongTokens: tokens that are too long for a bookmark, one after the other, do not end a harvest.
func TestLongTokens(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	one := func(i int) string {
		name := fmt.Sprintf("ark:12345/x5a%02d", i)
		return record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>")
	}
	long := func(letter string, n int) string { return strings.Repeat(letter, n) }
	j := newJob(to, script(t, page("short", one(1)), page(long("x", 3000), one(2)), page(long("&amp;", 2400), one(3)), page(long("y", 5000), one(4)), page(long("z", 5000), one(5)), page("", one(6))), x5, harvest.Dublin)
	j.o.To = strict{to}
	if c := j.must(); c.New != 6 || c.Pages != 6 {
		t.Errorf("%+v", c)
	}
}

// TestSecretQuery: a key in the query of the base URL is shown to no reader; and only the repository whose harvest withdrew a name has
// it reinstated.
func TestSecretQuery(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	const name = "ark:12345/x5a"
	there := page("", record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>"))
	at := script(t, there, page("", record(name, "2026-06-02", "")), there)
	j := newJob(to, at+"/oai?key=geheim", x5, harvest.Dublin)
	j.o.Limit = 1
	j.must()
	j.must()
	rec, err := to.Get(to.ctx, to.id(name))
	if err != nil || rec.State != stele.Withdrawn || rec.Tombstone.Reason != "deleted at its source, "+at+"/oai" {
		t.Fatalf("%+v %v", rec, err)
	}
	for one, err := range to.Imports(to.ctx, 0) {
		if err != nil || strings.Contains(one.Label, "geheim") {
			t.Errorf("%q %v", one.Label, err)
		}
	}
	other := newJob(to, script(t, there), x5, harvest.Dublin)
	if c := other.must(); c.Updated != 0 || !slices.Equal(other.rejected, []string{name + " harvest.withdrawn-here"}) {
		t.Errorf("%+v %q", c, other.rejected)
	}
	if c := j.must(); c.Updated != 1 || !strings.HasPrefix(to.leads(name), "active") {
		t.Errorf("%+v %q", c, j.rejected)
	}
}

// TestReservedHere: a repository does not make a reserved name active.
func TestReservedHere(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	const name = "ark:12345/x5a"
	if _, err := to.Register(to.ctx, &stele.Record{ID: to.id(name), State: stele.Reserved}); err != nil {
		t.Fatal(err)
	}
	j := newJob(to, script(t, page("", record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>"))), x5, harvest.Dublin)
	if j.must(); !slices.Equal(j.rejected, []string{name + " harvest.reserved-here"}) || to.leads(name) != "reserved" {
		t.Errorf("%q %s", j.rejected, to.leads(name))
	}
	j.o.Yes, j.o.Again = true, true
	if j.must(); to.leads(name) != "active https://a.example/ 10" {
		t.Errorf("%q %s", j.rejected, to.leads(name))
	}
}

// TestBoundedWaiting: a repository that answers each request late, for ever, does not keep a run for years.
func TestBoundedWaiting(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	n := 0
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; {
		case n%2 == 1:
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Query().Get("verb") == "Identify":
			fmt.Fprint(w, identify)
		default:
			fmt.Fprint(w, page(fmt.Sprint(n), record("oai:x:1", "2026-06-01", "<x/>")))
		}
	})
	begun := to.now
	_, err := newJob(to, at, gbv, harvest.Epicur).run(to.ctx)
	if code, _ := stele.CodeOf(err); code != "harvest.too-slow" || to.now.Sub(begun) > 50*time.Hour {
		t.Errorf("%s after %s: %v", code, to.now.Sub(begun), err)
	}
}

// TestDeletedLater: a record that one page brings and a later page deletes is withdrawn, also if names were looked up before.
func TestDeletedLater(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	j := newJob(to, script(t, page("a", record("oai:x:9", "2026-06-01", "")), page("b", record("oai:x:1", "2026-06-01", epicur("urn_new", urn, resource("primary", "https://a.example/1", "text/html")))),
		page("", record("oai:x:1", "2026-06-01", ""))), gbv, harvest.Epicur)
	j.o.Limit = 1
	if c := j.must(); c.New != 1 || c.Withdrawn != 1 || !strings.HasPrefix(to.leads(urn), "withdrawn") {
		t.Errorf("%+v %s", c, to.leads(urn))
	}
}

// TestTwoRuns: of two runs of a harvest that begin at once, the second one does not overwrite which names the first one has found deleted.
func TestTwoRuns(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	there := func(name string) string {
		return record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>")
	}
	gone := func(name string) string { return record(name, "2026-06-02", "") }
	ctx, cut := context.WithCancel(to.ctx)
	defer cut()
	answers := []string{page("", there("ark:12345/x5a"), there("ark:12345/x5b")), page("t", gone("ark:12345/x5a")), "", page("u", gone("ark:12345/x5b")), page("")}
	var asked atomic.Int32 // the request that is cut off may still be answered when the next one comes
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("verb") == "Identify" {
			fmt.Fprint(w, identify)
			return
		}
		n := int(asked.Add(1)) - 1
		if n == 2 {
			cut() // the first run ends after its first page
		}
		fmt.Fprint(w, answers[min(n, len(answers)-1)])
	})
	j := newJob(to, at, x5, harvest.Dublin)
	j.o.Limit = 1
	j.must()
	first, err := harvest.New(to.ctx, j.o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := harvest.New(to.ctx, j.o)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := second.Run(to.ctx); !errors.Is(err, stele.Conflict) {
		t.Fatal(err)
	}
	if c := j.must(); c.Withdrawn != 1 || !strings.HasPrefix(to.leads("ark:12345/x5a"), "withdrawn") || !strings.HasPrefix(to.leads("ark:12345/x5b"), "active") {
		t.Errorf("%+v: %s, %s", c, to.leads("ark:12345/x5a"), to.leads("ark:12345/x5b"))
	}
}
