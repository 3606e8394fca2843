package registrar

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestBehind makes sure that a store which may lag, before, while or after it is asked,
// never reports a name as not registered, or as free.
func TestBehind(t *testing.T) {
	var since time.Time
	var yes, flips bool
	f := newFixture(t, func(o *Options) {
		o.Lagging = func() (time.Time, bool) {
			if flips { // it lagged while it was asked, and does not any more
				since = since.Add(time.Second)
			}
			return since, yes
		}
	})
	key := f.space("ark:12345", minter(stele.Minter{Kind: stele.MinterNOID, Template: "x5.reedeedk", Seed: 42}))
	must(f.Register(f.admin, f.record("ark:12345/known", "https://example.org/")))(t)
	hidden := f.record("ark:12345/hidden", "https://example.org/")
	hidden.Readers = []string{"user:carl"}
	must(f.Register(f.admin, hidden))(t)
	for _, behind := range []string{"", "yes", "flips"} {
		yes, flips = behind == "yes", behind == "flips"
		want := stele.Unavailable
		if behind == "" {
			want = stele.NotFound
		}
		_, none := f.Get(as("ann"), f.id("ark:12345/none"))
		_, other := f.Get(as("ann"), f.id("ark:12345/hidden"))
		for _, err := range []error{none, other} {
			if stele.KindOf(err) != want {
				t.Errorf("behind: %q; a name that is not there: %v, want %v", behind, err, want)
			}
		}
		if x, y := strings.ReplaceAll(none.Error(), "none", "N"), strings.ReplaceAll(other.Error(), "hidden", "N"); x != y {
			t.Errorf("behind: %q; what is hidden is told apart from what is not there:\n%s\n%s", behind, x, y)
		}
		if _, err := f.Update(f.admin, f.id("ark:12345/none"), 0, func(*stele.Record) error { return nil }); stele.KindOf(err) != want {
			t.Errorf("behind: %q; an update of a name that is not there: %v, want %v", behind, err, want)
		}
		if _, err := f.Get(f.admin, f.id("ark:12345/known")); err != nil {
			t.Errorf("behind: %q; what is there: %v", behind, err)
		}
		// An update must not take it for a new one, and a rehearsal not for a free name.
		for _, o := range []ImportOptions{{DryRun: true}, {Update: true}} {
			errs, err := f.Ingest(f.admin, []*stele.Record{f.record("ark:12345/new"+behind, "https://example.org/")}, o)
			if behind == "" && (err != nil || errs[0] != nil) || behind != "" && stele.KindOf(err) != stele.Unavailable {
				t.Errorf("behind: %q; an import with %+v: %v, %v", behind, o, errs, err)
			}
		}
		_, err := f.Mint(f.admin, key, 1)
		if behind == "" && err != nil || behind != "" && stele.KindOf(err) != stele.Unavailable {
			t.Errorf("behind: %q; a name is made: %v", behind, err)
		}
	}
}
