package publish_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
)

// Clients of a scheme with authorities find the resolver by an SRV record, if the zone has the authority.
func TestDiscovery(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:lsid:example.org", "example.org.", ":", 2)
	p.Namespace("urn:lsid:example.org", func(ns *stele.Namespace) { ns.Publication.Resolver = "id.example.org:8080" })
	if text := p.Export("example.org."); !strings.Contains(text, "_lsid._tcp 3600 IN SRV 0 0 8080 id.example.org.") {
		t.Errorf("the zone file is\n%s", text)
	}
	node, _ := p.Lookup("_lsid._tcp.example.org.")
	if len(node.Records) != 1 || !strings.HasSuffix(node.Records[0].String(), "SRV\t0 0 8080 id.example.org.") {
		t.Errorf("there is %v", node.Records)
	}
	if node, _ := p.Lookup("_tcp.example.org."); !node.Exists {
		t.Error("the name above it does not exist")
	}
	// The serial moves on with the record, so that secondaries get it.
	before := p.Serial("example.org.")
	p.Namespace("urn:lsid:example.org", func(ns *stele.Namespace) { ns.Publication.Resolver = "" })
	if node, _ := p.Lookup("_lsid._tcp.example.org."); node.Exists || p.Serial("example.org.") == before {
		t.Errorf("without a resolver there is %v, and the serial is %d", node.Records, p.Serial("example.org."))
	}
	p.Publish("urn:lsid:example.net", "lsids.example.", ":", 2)
	if text := p.Problems("lsids.example."); !strings.Contains(text, "clients look for _lsid._tcp.example.net., which is not in the zone; add there: SRV 0 0 80 id.example.org.") {
		t.Errorf("the check tells %q", text)
	}
	p.Publish("urn:lsid:a.example.com", "a.example.com.", ":", 2)
	p.Publish("urn:paradisec", "example.com.", ":", 2)
	if node, _ := p.Lookup("_lsid._tcp.a.example.com."); len(node.Records) != 1 {
		t.Errorf("in the inner zone there is %v", node.Records)
	}
}
