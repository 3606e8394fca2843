package stele

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// published is a namespace with a zone.
func published() *Namespace {
	return &Namespace{Scheme: "ab", Prefix: "ab:x", Publication: Publication{
		Zone: "paradisec.example.", Layout: LayoutNames, Separator: ":", Parts: 3,
		Servers: []NameServer{
			{Name: "ns1.paradisec.example.", Addresses: []string{"192.0.2.1", "2001:db8::1"}},
			{Name: "ns.example.org."},
		},
		Mailbox: "hostmaster@paradisec.example", Resolver: "id.paradisec.example:8080",
		Catalog: "catalog.example.net.",
		Records: []ZoneRecord{
			{Name: "paradisec.example.", TTL: 3600, Type: RecordMX, Data: "10 mx.example.org."},
			{Name: "www.paradisec.example.", TTL: 300, Type: RecordA, Data: "192.0.2.80"},
			{Name: "blog.paradisec.example.", TTL: 300, Type: RecordCNAME, Data: "www.paradisec.example."},
		},
	}}
}

// others is a namespace that others answer for.
func others() *Namespace {
	return &Namespace{Scheme: "ab", Prefix: "ab:x", Publication: Publication{Elsewhere: []Discovery{
		{DiscoverNAPTR, "rules.example.net."},
		{DiscoverSRV, "_http._tcp.example.net."},
		{DiscoverURL, "https://example.net/resolve"},
	}}}
}

func TestPublicationRoundTrip(t *testing.T) {
	schemes := spellers(t)
	for _, n := range []*Namespace{published(), others(), {Scheme: "ab", Publication: Publication{Zone: "ab.example.", Layout: LayoutRoot}}} {
		text := n.AppendJSON(nil)
		back, err := schemes.DecodeNamespace(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(n, back); diff != "" {
			t.Error(diff)
		}
		b, err := n.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var binary Namespace
		if err := binary.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, &binary, same); diff != "" {
			t.Error(diff)
		}
	}
}

// What was stored before there were publications is read, and one that says
// nothing is damage: it would not be written.
func TestPublicationBinary(t *testing.T) {
	old, err := hex.DecodeString(richNamespaceBinary)
	if err != nil {
		t.Fatal(err)
	}
	var n Namespace
	if err := n.UnmarshalBinary(old); err != nil || !n.Publication.IsZero() {
		t.Errorf("%+v, %v", n.Publication, err)
	}
	if err := n.UnmarshalBinary(append(old, make([]byte, 8)...)); err == nil {
		t.Error("an empty publication is read")
	}
}

func TestPublicationValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Namespace)
		faults []string // paths
	}{
		{"nothing wrong", func(*Namespace) {}, nil},
		{"no dot", func(n *Namespace) { n.Publication.Zone = "paradisec.example" }, []string{"publication.zone"}},
		{"capitals", func(n *Namespace) { n.Publication.Zone = "Paradisec.example." }, []string{"publication.zone"}},
		{"no zone", func(n *Namespace) { n.Publication.Zone = "" }, []string{"publication.zone"}},
		{"an empty label", func(n *Namespace) { n.Publication.Zone = "a..b." }, []string{"publication.zone"}},
		{"a long label", func(n *Namespace) { n.Publication.Zone = strings.Repeat("a", 64) + ".b." }, []string{"publication.zone"}},
		{"a long name", func(n *Namespace) { n.Publication.Zone = strings.Repeat("abcdefg.", 32) }, []string{"publication.zone"}},
		{"a hyphen at the edge", func(n *Namespace) { n.Publication.Zone = "-a.b." }, []string{"publication.zone"}},
		{"a blank", func(n *Namespace) { n.Publication.Zone = "a b." }, []string{"publication.zone"}},
		{"the layout", func(n *Namespace) { n.Publication.Layout = "tree" }, []string{"publication.layout", "publication.parts"}},
		{"root below the root", func(n *Namespace) {
			n.Publication.Layout, n.Publication.Separator, n.Publication.Parts = LayoutRoot, "", 0
		}, []string{"publication.layout"}},
		{"names at the root", func(n *Namespace) { n.Prefix = "" }, []string{"publication.layout"}},
		{"parts in rules", func(n *Namespace) { n.Publication.Layout = LayoutRules }, []string{"publication.parts"}},
		{"no parts", func(n *Namespace) { n.Publication.Parts = 0 }, []string{"publication.parts"}},
		{"many parts", func(n *Namespace) { n.Publication.Parts = MaxParts + 1 }, []string{"publication.parts"}},
		{"exact rules", func(n *Namespace) {
			n.Publication.Layout, n.Publication.Separator, n.Publication.Parts, n.Publication.Exact = LayoutRules, "", 0, true
		}, []string{"publication.exact"}},
		{"a letter between parts", func(n *Namespace) { n.Publication.Separator = "a" }, []string{"publication.separator"}},
		{"two characters between parts", func(n *Namespace) { n.Publication.Separator = "::" }, []string{"publication.separator"}},
		{"a server without address", func(n *Namespace) { n.Publication.Servers[0].Addresses = nil }, []string{"publication.servers[0].addresses"}},
		{"a server twice", func(n *Namespace) { n.Publication.Servers[1] = n.Publication.Servers[0] }, []string{"publication.servers[1].name"}},
		{"a wrong server", func(n *Namespace) { n.Publication.Servers[1].Name = "ns" }, []string{"publication.servers[1].name"}},
		{"a wrong address", func(n *Namespace) { n.Publication.Servers[0].Addresses[1] = "2001:DB8::1" }, []string{"publication.servers[0].addresses[1]"}},
		{"many servers", func(n *Namespace) { n.Publication.Servers = make([]NameServer, MaxNameServers+1) }, []string{"publication.servers"}},
		{"the mailbox", func(n *Namespace) { n.Publication.Mailbox = "hostmaster" }, []string{"publication.mailbox"}},
		{"a blank in the mailbox", func(n *Namespace) { n.Publication.Mailbox = "host master@example.org" }, []string{"publication.mailbox"}},
		{"the resolver", func(n *Namespace) { n.Publication.Resolver = "https://id.example.org" }, []string{"publication.resolver"}},
		{"the resolver's port", func(n *Namespace) { n.Publication.Resolver = "id.example.org:0" }, []string{"publication.resolver"}},
		{"a wrong catalog", func(n *Namespace) { n.Publication.Catalog = "catalog" }, []string{"publication.catalog"}},
		{"a catalog of itself", func(n *Namespace) { n.Publication.Catalog = n.Publication.Zone }, []string{"publication.catalog"}},
		{"a record of another type", func(n *Namespace) { n.Publication.Records[0].Type = "NS" }, []string{"publication.records[0].type"}},
		{"a record elsewhere", func(n *Namespace) { n.Publication.Records[0].Name = "example." }, []string{"publication.records[0].name"}},
		{"a wildcard", func(n *Namespace) { n.Publication.Records[0].Name = "*.paradisec.example." }, []string{"publication.records[0].name"}},
		{"no time to live", func(n *Namespace) { n.Publication.Records[0].TTL = 0 }, []string{"publication.records[0].ttl"}},
		{"a long time to live", func(n *Namespace) { n.Publication.Records[0].TTL = MaxTTL + 1 }, []string{"publication.records[0].ttl"}},
		{"two lines", func(n *Namespace) { n.Publication.Records[0].Data = "a\nb" }, []string{"publication.records[0].data"}},
		{"much data", func(n *Namespace) { n.Publication.Records[0].Data = strings.Repeat("a", MaxZoneRecordData+1) }, []string{"publication.records[0].data"}},
		{"an alias at the apex", func(n *Namespace) { n.Publication.Records[2].Name = "paradisec.example." }, []string{"publication.records[2].type"}},
		{"an alias beside data", func(n *Namespace) { n.Publication.Records[2].Name = "www.paradisec.example." }, []string{"publication.records[2].type"}},
		{"data beside an alias", func(n *Namespace) {
			n.Publication.Records = append(n.Publication.Records, ZoneRecord{Name: "blog.paradisec.example.", TTL: 300, Type: RecordTXT, Data: "x"})
		}, []string{"publication.records[3].type"}},
		{"two TTLs", func(n *Namespace) {
			n.Publication.Records = append(n.Publication.Records, ZoneRecord{Name: "www.paradisec.example.", TTL: 301, Type: RecordA, Data: "192.0.2.81"})
		}, []string{"publication.records[3].ttl"}},
		{"a record twice", func(n *Namespace) {
			n.Publication.Records = append(n.Publication.Records, n.Publication.Records[1])
		}, []string{"publication.records[3]"}},
		{"the address of a name server", func(n *Namespace) { n.Publication.Records[1].Name = "ns1.paradisec.example." }, []string{"publication.records[1].name"}},
		{"many records", func(n *Namespace) { n.Publication.Records = make([]ZoneRecord, MaxZoneRecords+1) }, []string{"publication.records"}},
		{"much in records", func(n *Namespace) {
			n.Publication.Records = nil
			for i := range 20 {
				n.Publication.Records = append(n.Publication.Records, ZoneRecord{Name: fmt.Sprint("x", i, ".paradisec.example."), TTL: 300, Type: RecordTXT, Data: strings.Repeat("a", 4000)})
			}
		}, []string{"publication.records"}},
		{"here and elsewhere", func(n *Namespace) { n.Publication.Elsewhere = others().Publication.Elsewhere }, []string{"publication.elsewhere"}},
		{"elsewhere by nothing known", func(n *Namespace) { *n = *others(); n.Publication.Elsewhere[0].Kind = "MX" }, []string{"publication.elsewhere[0].kind"}},
		{"elsewhere at a wrong name", func(n *Namespace) { *n = *others(); n.Publication.Elsewhere[1].At = "example" }, []string{"publication.elsewhere[1].at"}},
		{"elsewhere at a wrong URL", func(n *Namespace) { *n = *others(); n.Publication.Elsewhere[2].At = "javascript:1" }, []string{"publication.elsewhere[2].at"}},
		{"elsewhere twice", func(n *Namespace) { *n = *others(); n.Publication.Elsewhere[1] = n.Publication.Elsewhere[0] }, []string{"publication.elsewhere[1]"}},
	} {
		n := published()
		c.change(n)
		var paths []string
		problems, _ := errors.AsType[Problems](n.Validate())
		for _, p := range problems {
			paths = append(paths, p.Path)
		}
		if !slices.Equal(paths, c.faults) {
			t.Errorf("%s: %v; want %q", c.name, n.Validate(), c.faults)
		}
	}
}
