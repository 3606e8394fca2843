package publish_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
)

// TestPreview: what a preview shows is what is published afterwards.
func TestPreview(t *testing.T) {
	p := publishtest.New(t)
	id, err := p.Schemes.Parse("urn:preview:ab1:001")
	if err != nil {
		t.Fatal(err)
	}
	rec := &stele.Record{ID: id, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: 100, Preference: 10}}}
	ns := &stele.Namespace{Scheme: "urn", Prefix: "urn:preview", Publication: stele.Publication{Zone: "preview.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 2, Resolver: "id.example.org"}}
	seen, err := p.Zones.Preview(p.Ctx, ns, rec)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Owner != "001.ab1.preview.example." || !strings.Contains(seen.Rule.Text, "preview.example.!i") {
		t.Errorf("got %+v", seen)
	}
	if _, err := p.Registrar.AddNamespace(p.Ctx, ns); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Registrar.Register(p.Ctx, rec); err != nil {
		t.Fatal(err)
	}
	zones := publish.NewZones(publish.ZonesOptions{Store: p.Store, Schemes: p.Schemes, Now: publishtest.Time, Secrets: p.Secrets})
	defer zones.Close()
	place, err := zones.Where(p.Ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(place.Records) == 0 || len(place.Records) != len(seen.Records) {
		t.Fatalf("%v are published, and %v were shown", place.Records, seen.Records)
	}
	for i, e := range place.Records {
		if e != seen.Records[i] {
			t.Errorf("%v is published, and %v was shown", e, seen.Records[i])
		}
	}
	other, err := p.Schemes.Parse("urn:preview:ab1")
	if err != nil {
		t.Fatal(err)
	}
	rec.ID = other
	if seen, err = p.Zones.Preview(p.Ctx, ns, rec); err != nil || seen.Reason == nil {
		t.Errorf("a name that does not fit: %+v, %v", seen, err)
	}
}
