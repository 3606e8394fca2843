package web

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

func TestDifference(t *testing.T) {
	alias, err := stele.NewID("urn", "urn:example:1")
	if err != nil {
		t.Fatal(err)
	}
	base := func() *stele.Record {
		return &stele.Record{
			State:    stele.Active,
			Targets:  []stele.Target{{Service: stele.N2L, URL: "https://example.org/1"}},
			Metadata: stele.Metadata{"what": "Rivers", "when": "2024"},
			Values:   []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("x")}},
		}
	}
	for _, tt := range []struct {
		name   string
		before func(*stele.Record)
		after  func(*stele.Record)
		want   []string
	}{
		{"nothing", nil, func(r *stele.Record) { r.Version = 2; r.By = "ann" }, []string{"nothing that is shown"}},
		{"target", nil, func(r *stele.Record) { r.Targets[0].URL = "https://example.org/2" }, []string{"now leads to https://example.org/2", "no longer leads to https://example.org/1"}},
		{"rank", nil, func(r *stele.Record) { r.Targets[0].Order = 3 }, []string{"targets arranged otherwise"}},
		{"alias and rank", nil, func(r *stele.Record) { r.Aliases = []stele.ID{alias}; r.Targets[0].Order = 3 }, []string{"also named urn:example:1", "targets arranged otherwise"}},
		{"metadata", nil, func(r *stele.Record) { r.Metadata = stele.Metadata{"what": "Lakes", "who": "Lima"} }, []string{"what changed", "when removed", "who added"}},
		{"withdrawn", nil, func(r *stele.Record) { r.State = stele.Withdrawn; r.Tombstone = new(stele.Tombstone) }, []string{"withdrawn"}},
		{"back", func(r *stele.Record) { r.State = stele.Withdrawn }, nil, []string{"no longer withdrawn"}},
		{"published", func(r *stele.Record) { r.State = stele.Reserved }, nil, []string{"published"}},
		{"reserved", nil, func(r *stele.Record) { r.State = stele.Reserved }, []string{"reserved"}},
		{"reason", func(r *stele.Record) { r.Tombstone = &stele.Tombstone{At: time.Unix(1, 0)} }, func(r *stele.Record) { r.Tombstone = &stele.Tombstone{Reason: "x"} }, []string{"reason for the withdrawal changed"}},
		{"alias", nil, func(r *stele.Record) { r.Aliases = []stele.ID{alias} }, []string{"also named urn:example:1"}},
		{"spelling", nil, func(r *stele.Record) { r.Spelling = "x" }, []string{"spelling changed"}},
		{"signature", nil, func(r *stele.Record) { r.Signatures = []stele.Signature{{Date: then}} }, []string{"signed on 2024-05-17"}},
		{"no signature", func(r *stele.Record) { r.Signatures = []stele.Signature{{Date: then}} }, func(r *stele.Record) { r.Signatures = nil }, []string{"signatures removed"}},
		{"promise", nil, func(r *stele.Record) { r.Persistence.Level = stele.Stable }, []string{"promise changed"}},
		{"values", nil, func(r *stele.Record) { r.Values[0].Data = []byte("y") }, []string{"handle values changed"}},
		{"readers", nil, func(r *stele.Record) { r.Readers = []string{"user:ann"} }, []string{"visibility changed"}},
		{"redacted", nil, func(r *stele.Record) { *r = stele.Record{Redacted: true} }, []string{"content removed by order"}},
	} {
		before, after := base(), base()
		if tt.before != nil {
			tt.before(before)
		}
		if tt.after != nil {
			tt.after(after)
		}
		if diff := cmp.Diff(tt.want, Difference(before, after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := Difference(nil, base()); !cmp.Equal(got, []string{"registered"}) {
		t.Errorf("the first version: %q", got)
	}
	if got := Difference(base(), nil); got != nil {
		t.Errorf("no version: %q", got)
	}
	many := base()
	for i := range 1000 {
		many.Metadata[fmt.Sprint("x", i)] = "y"
	}
	if got := Difference(base(), many); len(got) != maxPhrases+1 || got[maxPhrases] != "988 more changes" {
		t.Errorf("%d phrases, the last %q", len(got), got[len(got)-1])
	}
}

// The work grows with the records, and not with its square: with these it would take
// longer than any test may.
func TestDifferenceOfMany(t *testing.T) {
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
	if diff := cmp.Diff([]string{"targets arranged otherwise"}, Difference(&before, &after)); diff != "" {
		t.Error(diff)
	}
}
