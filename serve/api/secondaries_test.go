package api

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// The API compares a zone with its secondaries.
func TestCheckSecondaries(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Upkeep.Secondaries = func(_ context.Context, zone string) ([]stele.SecondaryAnswer, error) {
			return []stele.SecondaryAnswer{
				{Zone: zone, At: "192.0.2.53:53", State: stele.SecondaryAnswers, Serial: 1 << 20},
				{Zone: zone, At: "192.0.2.54:53", State: stele.SecondarySilent, Why: "it does not answer"},
			}, nil
		}
	})
	s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:12345", `{"publication":{"zone":"ark.example.","layout":"names","separator":"/","parts":1}}`, "Content-Type", apijson.MergePatch).want(t, 200)
	var got apijson.CheckedZone
	s.ask(theAdmin, "GET", Root+"/secondaries/ark.example.", "").want(t, 200).read(t, &got)
	text, err := json.Marshal(got.Secondaries)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"at":"192.0.2.53:53","state":"ahead","serial":1048576},{"at":"192.0.2.54:53","state":"silent","why":"it does not answer"}]`; string(text) != want || got.Zone != "ark.example." || got.Serial == 0 || got.Shut {
		t.Errorf("%+v: %s, want %s", got, text, want)
	}
	s.ask(theAdmin, "GET", Root+"/secondaries/other.example.", "").want(t, 404)
	s.ask(theOwner, "GET", Root+"/secondaries/ark.example.", "").want(t, 403)
}

// A zone that changes while its secondaries are asked, and that they have taken already, is
// compared with them anew.
func TestCheckSecondariesMeanwhile(t *testing.T) {
	var s *site
	asked := 0
	s = newSite(t, func(o *Options) {
		o.Upkeep.Secondaries = func(_ context.Context, zone string) ([]stele.SecondaryAnswer, error) {
			if asked++; asked == 1 { // the zone changes, and the secondary has the change at once
				if _, err := s.registry.RaiseZone(s.admin, zone, nil); err != nil {
					return nil, err
				}
			}
			z, err := s.store.ZoneState(s.admin, zone)
			return []stele.SecondaryAnswer{{Zone: zone, At: "192.0.2.53:53", State: stele.SecondaryAnswers, Serial: z.Serial()}}, err
		}
	})
	s.ask(theAdmin, "PATCH", Root+"/namespaces/ark:12345", `{"publication":{"zone":"ark.example.","layout":"names","separator":"/","parts":1}}`, "Content-Type", apijson.MergePatch).want(t, 200)
	var got apijson.CheckedZone
	s.ask(theAdmin, "GET", Root+"/secondaries/ark.example.", "").want(t, 200).read(t, &got)
	if len(got.Secondaries) != 1 || got.Secondaries[0].State != string(stele.SecondarySame) || asked != 2 {
		t.Errorf("after %d questions: %+v", asked, got)
	}
}
