package stele_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestPublicationValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*stele.Namespace)
		faults []string // paths
	}{
		{"nothing wrong", func(*stele.Namespace) {}, nil},
		{"no dot", func(n *stele.Namespace) { n.Publication.Zone = "paradisec.example" }, []string{"publication.zone"}},
		{"capitals", func(n *stele.Namespace) { n.Publication.Zone = "Paradisec.example." }, []string{"publication.zone"}},
		{"no zone", func(n *stele.Namespace) { n.Publication.Zone = "" }, []string{"publication.zone"}},
		{"an empty label", func(n *stele.Namespace) { n.Publication.Zone = "a..b." }, []string{"publication.zone"}},
		{"a long label", func(n *stele.Namespace) { n.Publication.Zone = strings.Repeat("a", 64) + ".b." }, []string{"publication.zone"}},
		{"a long name", func(n *stele.Namespace) { n.Publication.Zone = strings.Repeat("abcdefg.", 32) }, []string{"publication.zone"}},
		{"a hyphen at the edge", func(n *stele.Namespace) { n.Publication.Zone = "-a.b." }, []string{"publication.zone"}},
		{"a blank", func(n *stele.Namespace) { n.Publication.Zone = "a b." }, []string{"publication.zone"}},
		{"the layout", func(n *stele.Namespace) { n.Publication.Layout = "tree" }, []string{"publication.layout", "publication.parts"}},
		{"root below the root", func(n *stele.Namespace) {
			n.Publication.Layout, n.Publication.Separator, n.Publication.Parts = stele.LayoutRoot, "", 0
		}, []string{"publication.layout"}},
		{"names at the root", func(n *stele.Namespace) { n.Prefix = "" }, []string{"publication.layout"}},
		{"parts in rules", func(n *stele.Namespace) { n.Publication.Layout = stele.LayoutRules }, []string{"publication.parts"}},
		{"no parts", func(n *stele.Namespace) { n.Publication.Parts = 0 }, []string{"publication.parts"}},
		{"many parts", func(n *stele.Namespace) { n.Publication.Parts = stele.MaxParts + 1 }, []string{"publication.parts"}},
		{"exact rules", func(n *stele.Namespace) {
			n.Publication.Layout, n.Publication.Separator, n.Publication.Parts, n.Publication.Exact = stele.LayoutRules, "", 0, true
		}, []string{"publication.exact"}},
		{"a letter between parts", func(n *stele.Namespace) { n.Publication.Separator = "a" }, []string{"publication.separator"}},
		{"two characters between parts", func(n *stele.Namespace) { n.Publication.Separator = "::" }, []string{"publication.separator"}},
		{"a server without address", func(n *stele.Namespace) { n.Publication.Servers[0].Addresses = nil }, []string{"publication.servers[0].addresses"}},
		{"a server twice", func(n *stele.Namespace) { n.Publication.Servers[1] = n.Publication.Servers[0] }, []string{"publication.servers[1].name"}},
		{"a wrong server", func(n *stele.Namespace) { n.Publication.Servers[1].Name = "ns" }, []string{"publication.servers[1].name"}},
		{"a wrong address", func(n *stele.Namespace) { n.Publication.Servers[0].Addresses[1] = "2001:DB8::1" }, []string{"publication.servers[0].addresses[1]"}},
		{"many servers", func(n *stele.Namespace) { n.Publication.Servers = make([]stele.NameServer, stele.MaxNameServers+1) }, []string{"publication.servers"}},
		{"the mailbox", func(n *stele.Namespace) { n.Publication.Mailbox = "hostmaster" }, []string{"publication.mailbox"}},
		{"a blank in the mailbox", func(n *stele.Namespace) { n.Publication.Mailbox = "host master@example.org" }, []string{"publication.mailbox"}},
		{"the resolver", func(n *stele.Namespace) { n.Publication.Resolver = "https://id.example.org" }, []string{"publication.resolver"}},
		{"the resolver's port", func(n *stele.Namespace) { n.Publication.Resolver = "id.example.org:0" }, []string{"publication.resolver"}},
		{"a wrong catalog", func(n *stele.Namespace) { n.Publication.Catalog = "catalog" }, []string{"publication.catalog"}},
		{"a catalog of itself", func(n *stele.Namespace) { n.Publication.Catalog = n.Publication.Zone }, []string{"publication.catalog"}},
		{"a record of another type", func(n *stele.Namespace) { n.Publication.Records[0].Type = "NS" }, []string{"publication.records[0].type"}},
		{"a record elsewhere", func(n *stele.Namespace) { n.Publication.Records[0].Name = "example." }, []string{"publication.records[0].name"}},
		{"a wildcard", func(n *stele.Namespace) { n.Publication.Records[0].Name = "*.paradisec.example." }, []string{"publication.records[0].name"}},
		{"no time to live", func(n *stele.Namespace) { n.Publication.Records[0].TTL = 0 }, []string{"publication.records[0].ttl"}},
		{"a long time to live", func(n *stele.Namespace) { n.Publication.Records[0].TTL = stele.MaxTTL + 1 }, []string{"publication.records[0].ttl"}},
		{"two lines", func(n *stele.Namespace) { n.Publication.Records[0].Data = "a\nb" }, []string{"publication.records[0].data"}},
		{"much data", func(n *stele.Namespace) {
			n.Publication.Records[0].Data = strings.Repeat("a", stele.MaxZoneRecordData+1)
		}, []string{"publication.records[0].data"}},
		{"an alias at the apex", func(n *stele.Namespace) { n.Publication.Records[2].Name = "paradisec.example." }, []string{"publication.records[2].type"}},
		{"an alias beside data", func(n *stele.Namespace) { n.Publication.Records[2].Name = "www.paradisec.example." }, []string{"publication.records[2].type"}},
		{"data beside an alias", func(n *stele.Namespace) {
			n.Publication.Records = append(n.Publication.Records, stele.ZoneRecord{Name: "blog.paradisec.example.", TTL: 300, Type: stele.RecordTXT, Data: "x"})
		}, []string{"publication.records[3].type"}},
		{"two TTLs", func(n *stele.Namespace) {
			n.Publication.Records = append(n.Publication.Records, stele.ZoneRecord{Name: "www.paradisec.example.", TTL: 301, Type: stele.RecordA, Data: "192.0.2.81"})
		}, []string{"publication.records[3].ttl"}},
		{"a record twice", func(n *stele.Namespace) {
			n.Publication.Records = append(n.Publication.Records, n.Publication.Records[1])
		}, []string{"publication.records[3]"}},
		{"the address of a name server", func(n *stele.Namespace) { n.Publication.Records[1].Name = "ns1.paradisec.example." }, []string{"publication.records[1].name"}},
		{"many records", func(n *stele.Namespace) { n.Publication.Records = make([]stele.ZoneRecord, stele.MaxZoneRecords+1) }, []string{"publication.records"}},
		{"much in records", func(n *stele.Namespace) {
			n.Publication.Records = nil
			for i := range 20 {
				n.Publication.Records = append(n.Publication.Records, stele.ZoneRecord{Name: fmt.Sprint("x", i, ".paradisec.example."), TTL: 300, Type: stele.RecordTXT, Data: strings.Repeat("a", 4000)})
			}
		}, []string{"publication.records"}},
		{"here and elsewhere", func(n *stele.Namespace) { n.Publication.Elsewhere = recordtest.Others().Publication.Elsewhere }, []string{"publication.elsewhere"}},
		{"elsewhere by nothing known", func(n *stele.Namespace) { *n = *recordtest.Others(); n.Publication.Elsewhere[0].Kind = "MX" }, []string{"publication.elsewhere[0].kind"}},
		{"elsewhere at a wrong name", func(n *stele.Namespace) { *n = *recordtest.Others(); n.Publication.Elsewhere[1].At = "example" }, []string{"publication.elsewhere[1].at"}},
		{"elsewhere at a wrong URL", func(n *stele.Namespace) { *n = *recordtest.Others(); n.Publication.Elsewhere[2].At = "javascript:1" }, []string{"publication.elsewhere[2].at"}},
		{"elsewhere twice", func(n *stele.Namespace) {
			*n = *recordtest.Others()
			n.Publication.Elsewhere[1] = n.Publication.Elsewhere[0]
		}, []string{"publication.elsewhere[1]"}},
	} {
		n := recordtest.Published()
		c.change(n)
		var paths []string
		problems, _ := errors.AsType[stele.Problems](n.Validate())
		for _, p := range problems {
			paths = append(paths, p.Path)
		}
		if !slices.Equal(paths, c.faults) {
			t.Errorf("%s: %v; want %q", c.name, n.Validate(), c.faults)
		}
	}
}
