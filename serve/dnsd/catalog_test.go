package dnsd

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
)

// TestCatalogZone checks that a catalog lists the zones that name it, with labels that
// stay, for the secondaries of one of them. Its serial grows with the list, and with
// nothing else.
func TestCatalogZone(t *testing.T) {
	const catalog = "catalog.example.net."
	p := publishtest.New(t)
	key := p.AddTSIGKey("one.example.org.", zonekey.TSIGSHA256)
	list := func(prefix, name string) {
		p.Namespace(prefix, func(ns *stele.Namespace) { ns.Publication.Catalog = name })
	}
	members := func(rrs []dns.RR) (got []string) {
		for _, rr := range rrs {
			switch rr := rr.(type) {
			case *dns.PTR:
				if !strings.HasSuffix(rr.Hdr.Name, ".zones."+catalog) {
					t.Errorf("%v", rr)
				}
				got = append(got, rr.Ptr)
			case *dns.TXT:
				if rr.Hdr.Name != "version."+catalog || !slices.Equal(rr.Txt, []string{"2"}) {
					t.Errorf("%v", rr)
				}
			case *dns.NS:
				if rr.Ns != "invalid." {
					t.Errorf("%v", rr)
				}
			case *dns.SOA:
			default:
				t.Errorf("%v", rr)
			}
		}
		slices.Sort(got)
		return got
	}
	p.Publish("urn:one", "one.example.", ":", 1)
	p.Publish("urn:two", "two.example.", ":", 1)
	p.Publish("urn:three", "three.example.", ":", 1)
	p.SetSecondaries("urn:one", stele.Secondary{Key: key.Name})
	list("urn:one", catalog)
	s := serve(p, Options{})
	if _, code, err := take(s, catalog, 0, nil); err == nil && code == dns.RcodeSuccess {
		t.Error("a client without a key has the catalog")
	}
	first, _, err := take(s, catalog, 0, key)
	if err != nil || !slices.Equal(members(first), []string{"one.example."}) {
		t.Fatalf("%v, %v", first, err)
	}
	serial, copied := publishtest.Ends(t, first), publishtest.Lines(t, first)
	p.Register("urn:one:1", "N2L https://example.org/")
	list("urn:three", "other.example.net.")
	if now := p.Serial(catalog); now != serial {
		t.Errorf("the serial was %d, and is %d, though the list is the same", serial, now)
	}
	member := p.Serial("two.example.")
	list("urn:two", catalog)
	if now := p.Serial("two.example."); now != member {
		t.Errorf("a zone has the serial %d, not %d, because it was listed", now, member)
	}
	changed, _, err := take(s, catalog, serial, key)
	if err != nil {
		t.Fatal(err)
	}
	if changed[1].Header().Rrtype != dns.TypeSOA {
		t.Errorf("the whole catalog was sent for one zone: %v", changed)
	}
	serial = publishtest.Apply(t, copied, changed, serial)
	whole, _, err := take(s, catalog, 0, key)
	if err != nil || publishtest.Ends(t, whole) != serial || !slices.Equal(members(whole), []string{"one.example.", "two.example."}) {
		t.Errorf("%v, %v", whole, err)
	}
	for line := range publishtest.Lines(t, whole) {
		if !copied[line] {
			t.Errorf("not in the copy: %s", line)
		}
	}
	for line := range publishtest.Lines(t, first) {
		if strings.Contains(line, "\tPTR\t") && !copied[line] {
			t.Errorf("a zone has another label: %s", line)
		}
	}
	list("urn:one", "")
	list("urn:two", "")
	if z, err := p.Zones.Find(p.Ctx, catalog); z != nil || err != nil {
		t.Errorf("a catalog without zones: %v, %v", z, err)
	}
}
