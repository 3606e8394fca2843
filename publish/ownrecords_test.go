package publish_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

// TestOwnRecordsRefused checks that a record that can't stand in the zone is refused when
// it is entered, with a reason, and is left out if the settings come to differ later.
func TestOwnRecordsRefused(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 2)
	p.Publish("urn:inner", "inner.z.example.", ":", 1)
	p.Register("urn:paradisec:c1:n1", "N2L https://example.org/")
	p.AddKey("urn:paradisec", "ED25519")
	for _, tt := range []struct{ name, kind, data, want string }{
		{"n1.c1.", "A", "192.0.2.1", "owner name of urn:paradisec:c1:n1"},
		{"x.inner.", "A", "192.0.2.1", "in the zone inner.z.example."},
		{"inner.", "TXT", "x", "in the zone inner.z.example."},
		{"_http._tcp.", "SRV", "0 0 80 a.example.", "the settings of the zone make the SRV records there"},
		{"_http._tcp.", "CNAME", "a.example.", "a CNAME record stands alone"},
		{"_n2s.", "TXT", "x", "the settings of the zone make the TXT records there"},
		{"_n2s.", "A", "192.0.2.1", ""},
		{"c1.", "CNAME", "a.example.", ""}, // with names below it
		{"n2.c1.", "A", "192.0.2.1", ""},
	} {
		r := stele.ZoneRecord{Name: tt.name + "z.example.", TTL: 60, Type: stele.RecordType(tt.kind), Data: tt.data}
		err := p.Zones.MayAdd(p.Ctx, "z.example.", r)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: %v, want %q", tt.name, tt.kind, err, tt.want)
		}
	}
	own := []stele.ZoneRecord{{Name: "x.late.z.example.", TTL: 60, Type: "A", Data: "192.0.2.1"}}
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = own })
	p.Publish("urn:late", "late.z.example.", ":", 1)
	if text := p.Problems("z.example."); !strings.Contains(text, "the A record at x.late.z.example. is not served: the name is in the zone late.z.example.") {
		t.Errorf("check says\n%s", text)
	}
	if file := p.Export("z.example."); strings.Contains(file, "x.late") {
		t.Errorf("the file:\n%s", file)
	}
}

// TestOwnRecordsOfLayouts checks that zones of the other layouts have records of the owner
// too.
func TestOwnRecordsOfLayouts(t *testing.T) {
	p := publishtest.New(t)
	servers := []stele.NameServer{{Name: "ns1.example.net."}, {Name: "ns2.example.net."}}
	own := func(zone string) []stele.ZoneRecord {
		return []stele.ZoneRecord{
			{Name: zone, TTL: 60, Type: "TXT", Data: `"v=spf1 -all"`},
			{Name: "a.b." + zone, TTL: 60, Type: "CNAME", Data: "www.example.org."},
		}
	}
	p.Namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: servers, Records: own("urn.example.")}
	})
	p.Namespace("urn:few", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "few.example.", Layout: stele.LayoutRules, Servers: servers, Resolver: "id.example.org", Records: own("few.example.")}
	})
	p.Register("urn:few:1", "N2L https://example.org/")
	p.SignZones(zonesign.Transfer, "urn.example.", "few.example.")
	for _, zone := range []string{"urn.example.", "few.example."} {
		path, text := exportSigned(p, zone)
		verifyZone(t, zone, path)
		if !strings.Contains(text, "\n@ 60 IN TXT \"v=spf1 -all\"\n") || !strings.Contains(text, "\na.b 60 IN CNAME www.example.org.\n") {
			t.Errorf("%s:\n%s", zone, text)
		}
	}
	err := p.Zones.MayAdd(p.Ctx, "urn.example.", stele.ZoneRecord{Name: "few.urn.example.", TTL: 60, Type: "CNAME", Data: "a.example."})
	if err == nil || !strings.Contains(err.Error(), "stands alone") {
		t.Errorf("an alias at the key of a namespace: %v", err)
	}
}
