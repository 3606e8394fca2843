package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/publish/zonekey"
)

// keysOnce are keys in one state.
type keysOnce struct{ zonekey.Status }

func (k *keysOnce) status(context.Context, time.Duration) (*zonekey.Status, error) {
	return &k.Status, nil
}

func (k *keysOnce) change(context.Context, zonekey.Change) (*zonekey.Status, error) {
	return &k.Status, nil
}

// TestRollAsksParent says that the parent has the DS record of a new key, when it has and
// when it has not. TestParentDS asks a real one.
func TestRollAsksParent(t *testing.T) {
	records := []string{"7 13 2 AA00"}
	ask := parentFlags{lookUp: func(context.Context, string) (string, []string, error) { return "example.", records, nil }}
	now := time.Unix(1_700_000_000, 0)
	keys := &keysOnce{zonekey.Status{Zone: "zone.example.", Steps: []zonekey.Step{{Role: zonekey.CSK, Key: "00008", To: zonekey.Active, From: now, Parent: true}},
		DS: []zonekey.DSRecord{{Owner: "zone.example.", Record: "3600 IN DS 7 13 2 AA00"}, {Owner: "zone.example.", Record: "3600 IN DS 8 13 2 BB00"}}}}
	f := rollFlags{next: true, atParent: true, ask: ask}
	if err := f.check(t.Context(), keys, now); err == nil || !strings.Contains(err.Error(), `example. does not have the DS record of the key 8 of zone.example., "8 13 2 BB00"`) {
		t.Errorf("the parent does not have it: %v", err)
	}
	if err := f.check(t.Context(), keys, now.Add(-time.Second)); err != nil {
		t.Errorf("asked before the time: %v", err)
	}
	unchecked := f
	unchecked.ask.unchecked = true
	if err := unchecked.check(t.Context(), keys, now); err != nil {
		t.Errorf("asked though it should not: %v", err)
	}
	records = append(records, "8 13 2 BB00")
	if err := f.check(t.Context(), keys, now); err != nil {
		t.Errorf("the parent has it: %v", err)
	}
	// An old key is about to leave: its DS record has to.
	leaving := &keysOnce{zonekey.Status{Zone: "zone.example.", Steps: []zonekey.Step{{Key: "00007", To: zonekey.Leaving, From: now, Parent: true}}, DS: keys.DS[1:]}}
	gone := rollFlags{next: true, removed: true, ask: f.ask}
	if err := gone.check(t.Context(), leaving, now); err == nil || !strings.Contains(err.Error(), `still has the DS record "7 13 2 AA00"`) {
		t.Errorf("the parent has it still: %v", err)
	}
}
