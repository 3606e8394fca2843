package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// id makes an identifier. Its scheme need not exist: to a store names are bytes.
func (s *session) id(scheme, text string) stele.ID {
	s.Helper()
	id, err := stele.NewID(scheme, text)
	if err != nil {
		s.Fatalf("the suite's own sample is wrong: %v", err)
	}
	return id
}

// ark makes an identifier in the scheme that most checks use.
func (s *session) ark(text string) stele.ID {
	s.Helper()
	return s.id("ark", "ark:12345/"+text)
}

// prefix makes the Prefix that is cut out of a longer identifier.
func (s *session) prefix(scheme, text string) stele.Prefix {
	s.Helper()
	return s.id(scheme, text+"x").Prefix(len(text))
}

// spring is when the samples' records begin.
var spring = time.Date(2026, time.March, 20, 14, 46, 0, 123456789, time.UTC)

// first makes the first version of a record, with a target.
func first(id stele.ID, aliases ...stele.ID) *stele.Record {
	return &stele.Record{
		ID:       id,
		Aliases:  aliases,
		State:    stele.Active,
		Targets:  []stele.Target{at("https://example.org/" + id.String())},
		Metadata: stele.Metadata{stele.What: "a thing named " + id.String()},
		Version:  1,
		Created:  spring,
		Modified: spring,
		By:       "ana",
	}
}

// at makes a target.
func at(url string) stele.Target {
	return stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
}

// next makes the version after r, which says what it is, with further aliases.
func next(r *stele.Record, what string, aliases ...stele.ID) *stele.Record {
	n := *r
	n.Aliases = append(append([]stele.ID(nil), r.Aliases...), aliases...)
	n.Metadata = stele.Metadata{stele.What: what}
	n.Version++
	n.Modified = r.Modified.Add(time.Hour)
	return &n
}

// full makes a record with something in every field.
func (s *session) full(id stele.ID, aliases ...stele.ID) *stele.Record {
	r := first(id, aliases...)
	r.Spelling = strings.ToUpper(id.String())
	r.State = stele.Withdrawn
	r.Tombstone = &stele.Tombstone{Reason: "lost in the flood", At: spring.Add(time.Hour), Replacement: s.ark("instead")}
	r.Targets = append(r.Targets, stele.Target{
		Service: stele.N2C, URL: "http://localhost:8080/x?y#z", Type: "text/html", Language: "pt-BR",
		Order: 65535, Preference: 1, TTL: 4294967295, Status: 307, Partial: true,
	})
	r.Metadata = stele.Metadata{stele.Who: "Ω", stele.What: "", "x-free": "a\x00b\xff"}
	r.Persistence = stele.Persistence{Level: stele.Stable, Until: "2040-01-01", Statement: "as long as we are here"}
	r.Values = []stele.HandleValue{{
		Index: 4294967295, Type: "HS_ADMIN", Data: []byte{0, 1, 0xff}, TTL: 86400, TTLAbsolute: true,
		Timestamp: 1, Permissions: stele.AdminRead | stele.PublicRead,
		References: []stele.HandleReference{{Handle: "0.NA/1", Index: 300}},
	}}
	r.Readers = []string{"ana", "group:staff"}
	r.By = "bruno"
	r.Redacted = true
	return r
}

// space makes the first version of a namespace.
func space(scheme, prefix string) *stele.Namespace {
	return &stele.Namespace{
		Scheme: scheme, Prefix: prefix, Owner: "ana", Title: "sample", Quota: 7, Passthrough: true, Reviewed: true, Listed: true, Handles: stele.HandleService{Off: true, PublicWrite: true},
		Rules: []stele.Rule{{
			Pattern: "n_{number:digit,7}", Fold: true, Title: "terms", Reason: "lost",
			Targets:  []stele.Target{{Service: stele.N2L, URL: "https://example.org/{number}", Type: "text/html", Order: 100, Preference: 10, TTL: 60, Status: 303}},
			Examples: []stele.RuleExample{{Name: prefix + "n_0000001", Type: "text/html", Want: "https://example.org/0000001"}},
		}},
		Heirs:     []stele.Heir{{Registry: "heir.example.org/.log", Address: "https://heir.example.org/", Days: 180}, {Registry: "b", Address: "http://b/", Days: 365}},
		HandOver:  stele.HandOver{State: stele.Offered, Heir: "heir.example.org/.log", Address: "https://heir.example.org/", Since: spring, By: "ana"},
		Adoptions: []stele.Adoption{{From: "giver.example.org/.log", To: "this.example.org/.log", Bundle: strings.Repeat("0f", 32), Change: 1 << 40, Until: spring, At: spring, By: "ana", Reading: true}, {From: "giver.example.org/.log", Bundle: strings.Repeat("0f", 32), Silent: true, Ended: spring}},
		Minter:    stele.Minter{Kind: stele.MinterNOID, Template: "reeddk", Seed: 1 << 63, Order: stele.OrderNOID, Expand: 3},
		Hosts:     []string{".example.org"}, Protocols: []string{"https"},
		Persistence: stele.Persistence{Level: stele.Permanent},
		Grants:      []stele.Grant{{To: "user:bruno", Role: stele.RoleEditor}, {To: "group:staff", Role: stele.RoleReader}},
		Version:     1, Created: spring, Modified: spring, By: "ana",
	}
}

// nextNamespace makes the version after n, with another title.
func nextNamespace(n *stele.Namespace, title string) *stele.Namespace {
	m := *n
	m.Title = title
	m.Version++
	return &m
}

// countFor makes a counter that counts every record for one namespace.
func countFor(key stele.NamespaceKey, quota uint64) stele.NamespaceCounter {
	return func(stele.ID) (stele.NamespaceKey, uint64) { return key, quota }
}

// numbered makes n records whose texts are in order, none with an alias.
func (s *session) numbered(format string, n int) []*stele.Record {
	s.Helper()
	all := make([]*stele.Record, n)
	for i := range all {
		all[i] = first(s.ark(fmt.Sprintf(format, i)))
	}
	return all
}
