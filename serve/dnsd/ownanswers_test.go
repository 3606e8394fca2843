package dnsd

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
)

// TestOwnRecords checks that the server answers with records of the owner beside those made
// of the registry, and follows aliases inside the zone.
func TestOwnRecords(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 2)
	before := p.Serial("z.example.")
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Records = publishtest.OwnRecords("z.example.") })
	if now := p.Serial("z.example."); !stele.SerialAfter(now, before) {
		t.Errorf("the serial was %d and is %d", before, now)
	}
	p.Register("urn:paradisec:c1:n1", "N2L https://example.org/")
	s := serve(p, Options{})
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
	p.Register("urn:paradisec:c1:alias", "N2L https://example.org/")
	ask("alias.c1.", "NAPTR", "NOERROR aa answer:NAPTR answer:NAPTR")
	ask("alias.c1.", "A", "NOERROR aa authority:SOA")
	ask("second.", "A", "NOERROR aa answer:CNAME authority:SOA")
	ask("second.", "NAPTR", "NOERROR aa answer:CNAME answer:NAPTR answer:NAPTR")
	file := p.Export("z.example.")
	if strings.Contains(file, "alias.c1 60 IN CNAME") || !strings.Contains(file, "\nalias.c1 3600 IN NAPTR") || !strings.Contains(file, "\nwww 60 IN A 192.0.2.80\n") {
		t.Errorf("the file:\n%s", file)
	}
	if text := p.Problems("z.example."); !strings.Contains(text, "alias.c1.z.example. has CNAME records of the owner's own, which are not served") {
		t.Errorf("check says\n%s", text)
	}
}
