package ezidrecord

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
)

func batch(t testing.TB, id string, given ...string) (*stele.Record, error) {
	t.Helper()
	schemes := newSchemes(t)
	var list []anvl.Element
	for i := 0; i+1 < len(given); i += 2 {
		list = append(list, anvl.Element{Label: given[i], Value: given[i+1]})
	}
	return FromBatch(schemes, parse(t, schemes, id), list)
}

// TestBatch: a record that is imported is viewed as EZID shows it.
func TestBatch(t *testing.T) {
	given := []string{
		"_owner", "ann", "_ownergroup", "lib", "_created", "1700000000", "_updated", "2023-12-01T00:00:00Z", "_target", "https://example.org/1", "_profile", "datacite",
		"_status", "unavailable | withdrawn by author", "_export", "no", "_datacenter", "CDL.X", "_shadowedby", "ark:/b5072/fk2test",
		"datacite.title", "A", "datacite.creator", "B", "erc.who", "C", "_mappedTitle", "A", "_mappedDate", "2020",
	}
	rec, err := batch(t, "doi:10.5072/FK2TEST", given...)
	if err != nil {
		t.Fatal(err)
	}
	var report stele.Report
	if rec.Check(&report); report.Err("check", rec.ID) != nil {
		t.Fatal(report.Err("check", rec.ID))
	}
	if at := time.Unix(1701388800, 0).UTC(); rec.State != stele.Withdrawn || rec.Tombstone.Reason != "withdrawn by author" || !rec.Tombstone.At.Equal(at) || !rec.Modified.Equal(at) || rec.Created.Unix() != 1700000000 {
		t.Errorf("%+v", rec)
	}
	if len(rec.Aliases) != 1 || rec.Aliases[0].String() != "ark:b5072/fk2test" {
		t.Errorf("aliases %v", rec.Aliases)
	}
	want := map[string]string{
		"_owner": "ann", "_ownergroup": "lib", "_created": "1700000000", "_updated": "1701388800", "_target": "https://example.org/1", "_profile": "datacite",
		"_status": "unavailable | withdrawn by author", "_export": "no", "_datacenter": "CDL.X", "datacite.title": "A", "datacite.creator": "B", "erc.who": "C", "datacite.publicationyear": "2020",
	}
	if d := cmp.Diff(want, Elements(newSchemes(t), rec)); d != "" {
		t.Error(d)
	}
}

func TestBatchTarget(t *testing.T) {
	for target, want := range map[string]int{
		"https://ezid.cdlib.org/id/ark:/99999/fk4a":              0,
		"http://ezid-stg.cdlib.org/tombstone/id/ark:/99999/fk4a": 0,
		"https://ezid.cdlib.org/id/ark:/99999/fk4b":              1,
		"https://example.org/id/ark:/99999/fk4a":                 1,
		"":                                                       0,
	} {
		rec, err := batch(t, "ark:99999/fk4a", "_target", target)
		if err != nil || len(rec.Targets) != want {
			t.Errorf("%s: %v, %v", target, rec, err)
		}
	}
	schemes := newSchemes(t)
	if id, err := ParseName(schemes, "uuid:F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"); err != nil || id.String() != "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6" {
		t.Error(id, err)
	}
}

func TestBatchRefused(t *testing.T) {
	for _, c := range []struct{ name, value, code string }{
		{"_created", "yesterday", "ezid.time-malformed"},
		{"_status", "gone", "ezid.status-unknown"},
		{"_shadowedby", "ark:/99999/fk4a", "ezid.shadowed-by-itself"},
		{"datacite", "<a/>", "ezid.xml-not-datacite"},
	} {
		_, err := batch(t, "ark:99999/fk4a", c.name, c.value)
		if m := messageAt(err, c.name); m == nil || m.Code != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := batch(t, "ark:99999/fk4a", "_shadowedby", "nothing"); err == nil {
		t.Error("an alias that is not an identifier is taken")
	}
}

func TestCrossref(t *testing.T) {
	const xml = `<journal xmlns="http://www.crossref.org/schema/4.3.4"><journal_metadata><full_title>J</full_title></journal_metadata>
<journal_article><titles><title>Rivers <i>of</i> Pará</title></titles><contributors><person_name sequence="first" contributor_role="author"><given_name>Ana</given_name><surname>Lima</surname></person_name>
<organization>INPE</organization></contributors><publication_date><year>2024</year></publication_date><doi_data><doi>10.5072/X</doi></doi_data></journal_article></journal>`
	rec, err := batch(t, "doi:10.5072/X", "_profile", "crossref", "crossref", xml)
	if err != nil {
		t.Fatal(err)
	}
	want := stele.Metadata{"crossref": xml, "who": "Lima, Ana; INPE", "what": "Rivers of Pará", "when": "2024", "type": "journal", keptProfile: "crossref"}
	if d := cmp.Diff(want, rec.Metadata); d != "" {
		t.Error(d)
	}
	if all := Elements(newSchemes(t), rec); all["who"] != "" || all["crossref"] != xml {
		t.Errorf("%v", all)
	}
	if crossrefFields("<a>") != nil || crossrefFields("") != nil {
		t.Error("a document that can't be read gives fields")
	}
}
