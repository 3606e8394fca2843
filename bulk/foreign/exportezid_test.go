package foreign_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/document/ezidrecord"
)

// ezidCSV exports records as a batch download of EZID.
func ezidCSV(t *testing.T, records ...*stele.Record) (text string, told []string, done foreign.Exported) {
	t.Helper()
	var b strings.Builder
	done, err := foreign.ExportEZID(t.Context(), &listed{records: records}, []stele.NamespaceKey{{}}, known, &b, func(name string, what error) { told = append(told, name+": "+what.Error()) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), told, done
}

// ezidRecords reads records of a batch download.
func ezidRecords(t *testing.T, text string) (records []*stele.Record, shown []string) {
	t.Helper()
	s, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: "auto", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Err == nil {
			records = append(records, row.Record)
		}
	}
	return records, lines(rows)
}

// TestExportEZID: what is imported from EZID is exported as a table, and imported again as the same.
func TestExportEZID(t *testing.T) {
	const from = `:: ark:/99999/fk4ab1
_created: 1700000000
_updated: 1700000100
_status: unavailable | withdrawn | by author
_target: https://example.org/1
_owner: ann
_ownergroup: group
_datacenter: CDL.X
_profile: erc
erc.who: Lima, A.
erc.what: "Rivers"%0Aand lakes
erc.when: =1+1
Title 1: -2
shelf: ''x
_export: no

:: doi:10.5072/FK2AB2
_created: 1700000000
_updated: 1700000000
_profile: datacite
_status: public
_shadowedby: ark:/b5072/fk2ab2
datacite.title: Another title
datacite: <?xml version="1.0"?>%0A` + datacite + `

:: doi:10.5072/FK2AB3
_profile: dc
_status: reserved
dc.creator: C
dc.coverage: Pará
_mappedCreator: D

:: uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
_profile: crossref
crossref: <book><book_metadata><titles><title>T</title></titles></book_metadata></book>
`
	records, want := ezidRecords(t, from)
	if len(records) != 4 {
		t.Fatal(want)
	}
	text, told, done := ezidCSV(t, records...)
	if done != (foreign.Exported{Records: 4}) || len(told) > 0 {
		t.Errorf("%+v, %q", done, told)
	}
	_, got := ezidRecords(t, text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, text)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(ezidrecord.Columns(), "Title 1", "_datacenter", "_mappedCreator", "dc.coverage", "shelf"), rows[0]); diff != "" {
		t.Error(diff)
	}
	for i, rec := range records {
		for name, value := range ezidrecord.Elements(known, rec) {
			for k, column := range rows[0] {
				if cell := rows[i+1][k]; column == name && cell != value && cell != "'"+value {
					t.Errorf("%s has %q, and the API shows %q", name, cell, value)
				}
			}
		}
	}
	if !strings.HasPrefix(text, "_id,_target,_status,_created,_updated,_owner,_ownergroup,_profile,_export,") || rows[1][0] != "ark:/99999/fk4ab1" || rows[1][2] != "unavailable | withdrawn | by author" {
		t.Error(text)
	}
}

// TestExportEZIDUnsaid: what EZID can't say is told, and each row that is written can be imported.
func TestExportEZIDUnsaid(t *testing.T) {
	id := func(name string) stele.ID {
		id, err := known.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	at := func(url string) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
	}
	plain := func(name string) *stele.Record {
		return &stele.Record{ID: id(name), State: stele.Active, Targets: []stele.Target{at("https://example.org/")}}
	}
	var records []*stele.Record
	add := func(change func(r *stele.Record)) {
		r := plain(fmt.Sprintf("ark:12345/x%d", len(records)))
		change(r)
		records = append(records, r)
	}
	wants := []string{"", "targets", "targets", "aliases", "values", "tombstone.replacement", "persistence", "spelling", "metadata.shelf", "metadata.shelf", "metadata.ezid._id",
		"metadata.ezid._target", "metadata.datacite", "metadata.who", "metadata.ezid.-3dx", "metadata.ezid.-ff", "metadata.ezid._shadowedby"}
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"who": "A"} })
	add(func(r *stele.Record) { r.Targets = append(r.Targets, at("https://example.org/2")) })
	add(func(r *stele.Record) { r.Targets[0].Status = 303 })
	add(func(r *stele.Record) { r.Aliases = []stele.ID{id("ark:12345/y")} })
	add(func(r *stele.Record) { r.Values = []stele.HandleValue{{Index: 1, Type: "EMAIL"}} })
	add(func(r *stele.Record) {
		r.State, r.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "lost", Replacement: id("ark:12345/y")}
	})
	add(func(r *stele.Record) { r.Persistence.Level = stele.Permanent })
	add(func(r *stele.Record) { r.Spelling = "ark:12345/x-7" })
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"shelf": " a"} })
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"shelf": `\N`} })
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"ezid._id": "ark:12345/other"} })
	add(func(r *stele.Record) {
		r.Targets, r.Metadata = nil, stele.Metadata{"ezid._target": "https://example.org/not-a-target"}
	})
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"datacite": "not XML"} })
	add(func(r *stele.Record) {
		r.Metadata = stele.Metadata{"datacite": datacite, "ezid._profile": "datacite", "what": "Rivers & lakes", "when": "2024"}
	})
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"ezid.-3dx": "formula"} })
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"ezid.-ff": "not UTF-8"} })
	add(func(r *stele.Record) { r.Metadata = stele.Metadata{"ezid._shadowedby": "x"} })
	n := len(records)
	records = append(records, plain("ark:12345/z1"), plain("ark:12345/z2"))
	records[n].Readers, records[n+1].Redacted = []string{"user:a"}, true
	text, told, done := ezidCSV(t, records...)
	if want := (foreign.Exported{Records: n, Hidden: 2, Unsaid: n - 1}); done != want {
		t.Errorf("%+v, want %+v", done, want)
	}
	var want []string
	for i, fields := range wants[1:] {
		want = append(want, fmt.Sprintf("ark:12345/x%d: EZID has no elements for %s", i+1, fields))
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if got, shown := ezidRecords(t, text); len(got) != n || len(shown) != n {
		t.Error(strings.Join(shown, "\n"))
	}

	// More columns than an import reads are left out, and told; only the first records are named.
	records = nil
	for i := range 1200 {
		add(func(r *stele.Record) { r.Metadata = stele.Metadata{fmt.Sprintf("field%d", i): "v"} })
	}
	text, told, done = ezidCSV(t, records...)
	got, shown := ezidRecords(t, text)
	kept := 1000 - len(ezidrecord.Columns())
	if len(got) != 1200 || len(shown) != 1200 || done.Unsaid != 1200-kept || len(told) != 20 || told[0] != fmt.Sprintf("ark:12345/x%d: EZID has no elements for metadata.field%d", kept, kept) {
		t.Errorf("%d of %d records, %+v, %q", len(got), len(shown), done, told)
	}
}
