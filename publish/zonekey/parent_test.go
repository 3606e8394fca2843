package zonekey

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// TestParent says that the parent has the DS record of a new key, when it has and when it has
// not. TestParentDS of package client asks a real one.
func TestParent(t *testing.T) {
	records, asked := []string{"7 13 2 AA00"}, 0
	parent := &Parent{Find: func(context.Context, string) (string, []string, error) { asked++; return "example.", records, nil }}
	now := time.Unix(1_700_000_000, 0)
	status := &Status{Zone: "zone.example.", Steps: []Step{{Role: CSK, Key: "00008", To: Active, From: now, Parent: true}},
		DS: []DSRecord{{Owner: "zone.example.", Record: "3600 IN DS 7 13 2 AA00"}, {Owner: "zone.example.", Record: "3600 IN DS 8 13 2 BB00"}}}
	published, removed := Said{Published: true}, Said{Removed: true}
	check := func(what string, p *Parent, status *Status, said Said, at time.Time, want string) {
		t.Helper()
		err := p.CheckNext(t.Context(), status, said, at)
		if want == "" && err != nil || want != "" && (stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("nothing is said", parent, status, Said{}, now, "")
	check("before the time", parent, status, published, now.Add(-time.Second), "")
	check("unchecked", nil, status, published, now, "")
	if asked > 0 {
		t.Errorf("asked %d times though it should not be", asked)
	}
	check("the parent does not have it", parent, status, published, now, `example. does not have the DS record of the key 8 of zone.example., "8 13 2 BB00"`)
	check("no keys leave", parent, status, removed, now, "no keys of zone.example. are about to leave")
	records = append(records, "8 13 2 BB00")
	check("the parent has it", parent, status, published, now, "")

	// An old key is about to leave: its DS record has to.
	leaving := &Status{Zone: "zone.example.", Steps: []Step{{Key: "00007", To: Leaving, From: now, Parent: true}}, DS: status.DS[1:]}
	check("the parent has it still", parent, leaving, removed, now, `still has the DS record "7 13 2 AA00"`)
	check("the wrong thing is said", parent, leaving, published, now, "give --ds-removed instead of --ds-published")
	records = records[1:]
	check("the parent has it no more", parent, leaving, removed, now, "")

	parent.Find = func(context.Context, string) (string, []string, error) { return "", nil, errors.New("no answer") }
	if err := parent.HasNoOthers(t.Context(), leaving); stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "or add --unchecked") {
		t.Error(err)
	}
}
