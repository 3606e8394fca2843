package wording

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Each change is reported, and nothing else is.
func TestDifferences(t *testing.T) {
	base := func() *stele.Record {
		return &stele.Record{
			State:   stele.Active,
			Targets: []stele.Target{{Service: stele.N2L, URL: "https://a.org", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}},
			Values:  []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("https://a.org")}},
		}
	}
	for _, tt := range []struct {
		change func(*stele.Record)
		want   string
	}{
		{func(*stele.Record) {}, "changed"},
		{func(r *stele.Record) { r.Spelling = "x" }, "spelling changed"},
		{func(r *stele.Record) { r.Targets[0].Preference = 1 }, "target https://a.org changed (preference 1)"},
		{func(r *stele.Record) { r.Targets[0].URL = "https://b.org" }, "target https://a.org moved to https://b.org"},
		{func(r *stele.Record) { r.Targets[0].Service, r.Targets[0].URL = stele.N2C, "https://b.org" }, "target https://a.org removed; target https://b.org added"},
		{func(r *stele.Record) { r.Metadata = stele.Metadata{"zoo": "1", "what": "2"} }, "title set; zoo set"},
		{func(r *stele.Record) { r.Persistence.Statement = "x" }, "persistence changed"},
		{func(r *stele.Record) { r.Persistence.Until = "2040-01-01" }, "persistence until 2040-01-01"},
		{func(r *stele.Record) { r.Values[0].Data = nil }, "handle values changed"},
		{func(r *stele.Record) { r.Values[0].References = []stele.HandleReference{{Handle: "1/2", Index: 1}} }, "handle values changed"},
		{func(r *stele.Record) { r.Readers = []string{"user:ana"} }, "readers changed"},
		{func(r *stele.Record) {
			r.State, r.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: strings.Repeat("é", 101)}
		}, "withdrawn: " + strings.Repeat("é", 100) + "..."},
	} {
		rec := base()
		tt.change(rec)
		if got := strings.Join(Differences(base(), rec), "; "); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestChangesOfMany: the work grows with the records, and not with its square: with these it
// would take longer than any test may.
func TestChangesOfMany(t *testing.T) {
	var before, after stele.Record
	for i := range 300_000 {
		before.Targets = append(before.Targets, stele.Target{URL: fmt.Sprint("https://example.org/", i)})
		alias, err := stele.NewID("urn", fmt.Sprint("urn:example:", i))
		if err != nil {
			t.Fatal(err)
		}
		before.Aliases = append(before.Aliases, alias)
	}
	after.Targets, after.Aliases = slices.Clone(before.Targets), slices.Clone(before.Aliases)
	slices.Reverse(after.Targets)
	slices.Reverse(after.Aliases)
	if got := strings.Join(Differences(&before, &after), "; "); got != "changed" {
		t.Error(got)
	}
}
