package recordtest

import (
	"time"

	"github.com/stele-id/stele"
)

// Rich has something in every field.
func Rich() *stele.Record {
	at := time.Date(2024, 5, 17, 10, 0, 0, 123_456_789, time.UTC)
	return &stele.Record{
		ID:       stele.StoredID("ark", "ark:12345/x54xz321"),
		Spelling: "https://n2t.net/ark:/12345/x54xz321",
		Aliases:  []stele.ID{stele.StoredID("hdl", "10.1000/182"), stele.StoredID("urn", "urn:isbn:9780141036144")},
		State:    stele.Withdrawn,
		Tombstone: &stele.Tombstone{
			Reason:      "published twice",
			At:          at,
			Replacement: stele.StoredID("ark", "ark:12345/x5new"),
		},
		Targets: []stele.Target{
			{Service: stele.N2L, URL: "https://example.org/1", Type: "text/html", Language: "pt-BR", Order: 100, Preference: 10, TTL: 3600, Status: 303, Partial: true},
			{Service: stele.N2C, URL: "ftp://example.org/2", Order: 65535},
		},
		Metadata:    stele.Metadata{"who": "Gomes, Ana", "what": "Dunas", "when": "1992", "where": "", "dc.rights": "CC0"},
		Persistence: stele.Persistence{Level: stele.Stable, Until: "2040-01-01", Statement: "as long as we are"},
		Values: []stele.HandleValue{{
			Index: 1, Type: "URL", Data: []byte{0, 1, 0xff}, TTL: 86400, TTLAbsolute: true, Timestamp: 4294967295,
			Permissions: stele.AdminRead | stele.PublicRead,
			References:  []stele.HandleReference{{Handle: "0.NA/10.1000", Index: 300}},
		}, {Index: 4294967295, Type: "EMAIL", Data: []byte{}, TTL: 86400}},
		Readers:  []string{"user:ana", "group:staff"},
		Version:  18446744073709551615,
		Created:  time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
		Modified: at,
		By:       "user:ana",
		Redacted: true,
	}
}

func RichNamespace() *stele.Namespace {
	return &stele.Namespace{
		Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Owner: "user:ana", Title: "The library",
		Minter: stele.Minter{
			Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.2.174", IPPort: 800,
			AllowPrivate: true, Granularity: "1us", Template: ".zk", Seed: 300,
		},
		TTL: 3600, Status: 302, Persistence: stele.Persistence{Level: stele.Permanent, Until: "2040-01-01", Statement: "yes"},
		Hosts: []string{"example.org", ".inpe.br"}, Protocols: []string{"https"},
		Delegate: "https://example.org/{id}", Checked: true, Quota: 1 << 40, Version: 2,
		Created: time.Unix(0, 0).UTC(), Modified: time.Unix(1_700_000_000, 1).UTC(), By: "user:root",
	}
}

// Typical is a record as most imports have them, of about 250 bytes.
const Typical = `{"id":"ark:12345/x54xz321s3","targets":[{"service":"N2L","url":"https://repository.example.org/items/54321/view","type":"text/html"}],` +
	`"metadata":{"who":"Gomes, Ana; Silva, Rui","what":"Relevés of the coastal dunes, 1987 to 1991","when":"1992-03-14"}}`

// Published is a namespace with a zone.
func Published() *stele.Namespace {
	return &stele.Namespace{Scheme: "ab", Prefix: "ab:x", Publication: stele.Publication{
		Zone: "paradisec.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 3,
		Servers: []stele.NameServer{
			{Name: "ns1.paradisec.example.", Addresses: []string{"192.0.2.1", "2001:db8::1"}},
			{Name: "ns.example.org."},
		},
		Mailbox: "hostmaster@paradisec.example", Resolver: "id.paradisec.example:8080",
		Catalog: "catalog.example.net.",
		Records: []stele.ZoneRecord{
			{Name: "paradisec.example.", TTL: 3600, Type: stele.RecordMX, Data: "10 mx.example.org."},
			{Name: "www.paradisec.example.", TTL: 300, Type: stele.RecordA, Data: "192.0.2.80"},
			{Name: "blog.paradisec.example.", TTL: 300, Type: stele.RecordCNAME, Data: "www.paradisec.example."},
		},
	}}
}

// Others is a namespace for which other resolvers answer.
func Others() *stele.Namespace {
	return &stele.Namespace{Scheme: "ab", Prefix: "ab:x", Publication: stele.Publication{Elsewhere: []stele.Discovery{
		{Kind: stele.DiscoverNAPTR, At: "rules.example.net."},
		{Kind: stele.DiscoverSRV, At: "_http._tcp.example.net."},
		{Kind: stele.DiscoverURL, At: "https://example.net/resolve"},
	}}}
}

// Granting is a namespace that gives these roles and is otherwise valid.
func Granting(grants ...stele.Grant) *stele.Namespace {
	return &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Grants: grants}
}

var SignedAt = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const SomeKey = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"

func SomeSignature() stele.Signature {
	s := stele.Signature{Size: 5, Type: "text/html", Date: SignedAt, Key: SomeKey, JWS: "eyJ9..c2ln"}
	s.SHA256[0], s.SHA256[31] = 0xab, 1
	return s
}

func SomeSigningKey() stele.SigningKey {
	return stele.SigningKey{ID: SomeKey, Algorithm: stele.KeyED25519, Public: []byte{0x30, 1}, Created: SignedAt, Note: "in the safe"}
}
