package dnsd

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonesign"
)

// ownRecords are records of an owner in a zone whose names have two parts.
func ownRecords(zone string) []stele.ZoneRecord {
	return []stele.ZoneRecord{
		{Name: zone, TTL: 60, Type: "MX", Data: "10 www." + zone},
		{Name: zone, TTL: 60, Type: "MX", Data: "20 mx.example.org."},
		{Name: zone, TTL: 60, Type: "CAA", Data: `0 issue "ca.example.net"`},
		{Name: zone, TTL: 60, Type: "TXT", Data: `"v=spf1 mx -all" "second \"string\""`},
		{Name: "www." + zone, TTL: 60, Type: "A", Data: "192.0.2.80"},
		{Name: "_dmarc.mail." + zone, TTL: 60, Type: "TXT", Data: `"v=DMARC1; p=none"`},
		{Name: "alias.c1." + zone, TTL: 60, Type: "CNAME", Data: "www." + zone},
		{Name: "second." + zone, TTL: 60, Type: "CNAME", Data: "alias.c1." + zone},
		{Name: "lost." + zone, TTL: 60, Type: "CNAME", Data: "nothing." + zone},
		{Name: "away." + zone, TTL: 60, Type: "CNAME", Data: "www.example.org."},
		{Name: "round." + zone, TTL: 60, Type: "CNAME", Data: "round." + zone},
	}
}

// TestOwnRecords checks that the server answers with records of the owner beside those made
// of the registry, and follows aliases inside the zone.
func TestOwnRecords(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 2)
	before := p.serialOf("z.example.")
	p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = ownRecords("z.example.") })
	if now := p.serialOf("z.example."); !stele.SerialAfter(now, before) {
		t.Errorf("the serial was %d and is %d", before, now)
	}
	p.register("urn:paradisec:c1:n1", "N2L https://example.org/")
	s := p.serve(Options{})
	ask := func(name, kind, want string) {
		t.Helper()
		for range 2 { // the second time it is known already
			m := new(dns.Msg).SetQuestion(name+"z.example.", dns.StringToType[kind])
			r, err := dns.Exchange(m, s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if got := brief(r); got != want {
				t.Errorf("%s %s: %s, want %s", name, kind, got, want)
			}
		}
	}
	ask("", "MX", "NOERROR aa answer:MX answer:MX additional:A")
	ask("", "TXT", "NOERROR aa answer:TXT")
	ask("", "NAPTR", "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR")
	ask("", "A", "NOERROR aa authority:SOA")
	ask("www.", "A", "NOERROR aa answer:A")
	ask("x.www.", "A", "NXDOMAIN aa authority:SOA")
	ask("mail.", "TXT", "NOERROR aa authority:SOA")
	ask("alias.c1.", "CNAME", "NOERROR aa answer:CNAME")
	ask("alias.c1.", "ANY", "NOERROR aa answer:CNAME")
	ask("alias.c1.", "A", "NOERROR aa answer:CNAME answer:A")
	ask("alias.c1.", "AAAA", "NOERROR aa answer:CNAME authority:SOA")
	ask("second.", "A", "NOERROR aa answer:CNAME answer:CNAME answer:A")
	ask("lost.", "A", "NXDOMAIN aa answer:CNAME authority:SOA")
	ask("away.", "A", "NOERROR aa answer:CNAME")
	ask("round.", "A", "NOERROR aa answer:CNAME")

	// What is registered comes first where it can't stand beside an alias.
	ask("second.", "NAPTR", "NOERROR aa answer:CNAME answer:CNAME authority:SOA")
	p.register("urn:paradisec:c1:alias", "N2L https://example.org/")
	ask("alias.c1.", "NAPTR", "NOERROR aa answer:NAPTR answer:NAPTR")
	ask("alias.c1.", "A", "NOERROR aa authority:SOA")
	ask("second.", "A", "NOERROR aa answer:CNAME authority:SOA")
	ask("second.", "NAPTR", "NOERROR aa answer:CNAME answer:NAPTR answer:NAPTR")
	file := p.export("z.example.")
	if strings.Contains(file, "alias.c1 60 IN CNAME") || !strings.Contains(file, "\nalias.c1 3600 IN NAPTR") || !strings.Contains(file, "\nwww 60 IN A 192.0.2.80\n") {
		t.Errorf("the file:\n%s", file)
	}
	if text := p.problems("z.example."); !strings.Contains(text, "alias.c1.z.example. has CNAME records of the owner's own, which are not served") {
		t.Errorf("check says\n%s", text)
	}
}

// TestOwnRecordsRefused checks that a record that can't stand in the zone is refused when
// it is entered, with a reason, and is left out if the settings come to differ later.
func TestOwnRecordsRefused(t *testing.T) {
	p := newPress(t)
	p.publish("urn:paradisec", "z.example.", ":", 2)
	p.publish("urn:inner", "inner.z.example.", ":", 1)
	p.register("urn:paradisec:c1:n1", "N2L https://example.org/")
	p.signer("urn:paradisec", "ED25519")
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
		err := p.zones.MayAdd(p.ctx, "z.example.", r)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: %v, want %q", tt.name, tt.kind, err, tt.want)
		}
	}
	own := []stele.ZoneRecord{{Name: "x.late.z.example.", TTL: 60, Type: "A", Data: "192.0.2.1"}}
	p.namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = own })
	p.publish("urn:late", "late.z.example.", ":", 1)
	if text := p.problems("z.example."); !strings.Contains(text, "the A record at x.late.z.example. is not served: the name is in the zone late.z.example.") {
		t.Errorf("check says\n%s", text)
	}
	if file := p.export("z.example."); strings.Contains(file, "x.late") {
		t.Errorf("the file:\n%s", file)
	}
}

// serialOf returns the serial of a zone.
func (p *press) serialOf(zone string) uint32 {
	p.t.Helper()
	one, err := p.zones.zoneNamed(p.ctx, zone)
	if err != nil {
		p.t.Fatal(err)
	}
	soa, _ := one.Apex()
	return soa.Serial
}

// problems returns what a check of a zone tells, line by line.
func (p *press) problems(zone string) string {
	p.t.Helper()
	var b strings.Builder
	err := p.zones.Check(p.ctx, zone, func(one Problem) { b.WriteString(one.ID.String() + " " + one.Text + "\n") }, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}

// TestOwnRecordsOfLayouts checks that zones of the other layouts have records of the owner
// too.
func TestOwnRecordsOfLayouts(t *testing.T) {
	p := newPress(t)
	servers := []stele.NameServer{{Name: "ns1.example.net."}, {Name: "ns2.example.net."}}
	own := func(zone string) []stele.ZoneRecord {
		return []stele.ZoneRecord{
			{Name: zone, TTL: 60, Type: "TXT", Data: `"v=spf1 -all"`},
			{Name: "a.b." + zone, TTL: 60, Type: "CNAME", Data: "www.example.org."},
		}
	}
	p.namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: servers, Records: own("urn.example.")}
	})
	p.namespace("urn:few", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "few.example.", Layout: stele.LayoutRules, Servers: servers, Resolver: "id.example.org", Records: own("few.example.")}
	})
	p.register("urn:few:1", "N2L https://example.org/")
	p.signed(zonesign.Transfer, "urn.example.", "few.example.")
	for _, zone := range []string{"urn.example.", "few.example."} {
		path, text := p.exportSigned(zone)
		verifyZone(t, zone, path)
		if !strings.Contains(text, "\n@ 60 IN TXT \"v=spf1 -all\"\n") || !strings.Contains(text, "\na.b 60 IN CNAME www.example.org.\n") {
			t.Errorf("%s:\n%s", zone, text)
		}
	}
	err := p.zones.MayAdd(p.ctx, "urn.example.", stele.ZoneRecord{Name: "few.urn.example.", TTL: 60, Type: "CNAME", Data: "a.example."})
	if err == nil || !strings.Contains(err.Error(), "stands alone") {
		t.Errorf("an alias at the key of a namespace: %v", err)
	}
}
