package harvest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/harvest"
)

// TestNothingLeftOut: what has no field of its own is kept under the name of its format, and what is too long for a field continues
// in others. A second harvest of the same changes nothing, and one that says less removes what it continued in.
func TestNothingLeftOut(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	const urn = "urn:nbn:de:gbv:7-3"
	long := strings.Repeat("ção ", 5000)
	dublin := func(description string) string {
		return `<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/"><identifier>` + urn + `</identifier><identifier>https://a.example/9</identifier><identifier>https://b.example/9</identifier>` +
			`<title>One</title><title>Uno</title><date>2020</date><date>2021</date><source>Archive</source><relation>other</relation><coverage>Pará</coverage><format>text/html</format><description>` + description + `</description></dc>`
	}
	run := func(text string) harvest.Counts {
		t.Helper()
		return newJob(to, script(t, page("", record("oai:x:9", "2026-06-01", text))), gbv, harvest.Dublin).must()
	}
	run(dublin(long))
	rec, err := to.Get(to.ctx, to.id(urn))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"what": "One", "dc.title": "Uno", "when": "2020", "dc.date": "2021", "dc.source": "Archive", "dc.relation": "other", "dc.coverage": "Pará", "dc.format": "text/html",
		"dc.identifier": urn + "; https://a.example/9; https://b.example/9",
	} {
		if got := rec.Metadata[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	whole := ""
	for n := 1; ; n++ {
		name := "description"
		if n > 1 {
			name = fmt.Sprint(name, ".", n)
		}
		if rec.Metadata[name] == "" {
			break
		}
		whole += rec.Metadata[name]
	}
	squeeze := func(text string) string { return strings.Join(strings.Fields(text), "") }
	if squeeze(whole) != squeeze(long) {
		t.Errorf("%d bytes of the description are kept, of %d", len(whole), len(long))
	}
	run(dublin(long))
	if again, err := to.Get(to.ctx, to.id(urn)); err != nil || again.Version != 1 {
		t.Errorf("the same again is version %d, %v", again.Version, err)
	}
	run(dublin("short"))
	if rec, err = to.Get(to.ctx, to.id(urn)); err != nil || rec.Metadata["description"] != "short" || rec.Metadata["description.2"] != "" {
		t.Errorf("%q %q %v", rec.Metadata["description"], rec.Metadata["description.2"], err)
	}
}

// TestDataCiteLeftOver: the same for resources of DataCite.
func TestDataCiteLeftOver(t *testing.T) {
	to := newRegistry(t)
	key := stele.NamespaceKey{Scheme: "hdl", Prefix: "10.5072/"}
	to.space(key, false)
	text := `<resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">10.5072/ABC</identifier>` +
		`<creators><creator><creatorName>Lima, Ana</creatorName><affiliation>INPE</affiliation></creator></creators><titles><title>One</title><title titleType="Subtitle">Two</title></titles>` +
		`<publisher>INPE</publisher><publicationYear>2020</publicationYear><resourceType resourceTypeGeneral="Dataset">Gauges</resourceType>` +
		`<contributors><contributor contributorType="Editor"><contributorName>Souza, Bia</contributorName></contributor></contributors>` +
		`<dates><date dateType="Issued">2020-01-02</date></dates><rightsList><rights rightsURI="https://cc.example/by">CC BY</rights></rightsList><sizes><size>3 MB</size></sizes>` +
		`<alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL">https://a.example/abc</alternateIdentifier></alternateIdentifiers>` +
		`<descriptions><description descriptionType="Abstract">First</description><description descriptionType="Methods">Second</description></descriptions></resource>`
	newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", text))), key, harvest.DataCite).must()
	rec, err := to.Get(to.ctx, to.id("10.5072/ABC"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"who": "Lima, Ana", "datacite.creators": "Lima, Ana INPE", "what": "One", "datacite.titles": "titleType=Subtitle Two", "datacite.contributors": "contributorType=Editor Souza, Bia",
		"datacite.dates": "dateType=Issued 2020-01-02", "datacite.rightslist": "rightsURI=https://cc.example/by CC BY", "datacite.sizes": "3 MB", "datacite.resourcetype": "Gauges",
		"description": "First", "datacite.descriptions": "descriptionType=Methods Second",
	} {
		if got := rec.Metadata[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestAttributesOfFields: the attributes of an element that has a field of its own never stand in the field, and are kept beside it.
func TestAttributesOfFields(t *testing.T) {
	dublin := `<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/"><identifier>ark:12345/x5a</identifier><identifier>https://a.example/9</identifier>` +
		`<title xml:lang="en">Rivers</title><title xml:lang="pt">Rios</title><creator xml:lang="pt">Lima, Ana</creator><creator>Souza, Bia</creator><description xml:lang="en">Of rivers</description>` +
		`<publisher>INPE</publisher><date scheme="W3CDTF">2020</date></dc>`
	datacite := func(descriptions string) string {
		return `<resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">10.5072/ABC</identifier>` +
			`<creators><creator><creatorName nameType="Personal">Lima, Ana</creatorName></creator></creators><titles><title xml:lang="en">One</title></titles>` +
			`<publisher publisherIdentifier="https://ror.org/04xbn6x09">INPE</publisher><publicationYear>2020</publicationYear><language>en</language>` +
			`<resourceType resourceTypeGeneral="Dataset">Gauges</resourceType><subjects><subject subjectScheme="LCSH" valueURI="https://s.example/1">Rivers</subject><subject>Rain</subject></subjects>` +
			`<alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL">https://a.example/abc</alternateIdentifier></alternateIdentifiers>` +
			"<descriptions>" + descriptions + "</descriptions></resource>"
	}
	doi := stele.NamespaceKey{Scheme: "hdl", Prefix: "10.5072/"}
	for name, tt := range map[string]struct {
		into   stele.NamespaceKey
		format harvest.Format
		text   string
		id     string
		want   map[string]string
	}{
		"Dublin Core": {x5, harvest.Dublin, dublin, "ark:12345/x5a", map[string]string{
			"what": "Rivers", "dc.title": "lang=en Rivers; lang=pt Rios", "who": "Lima, Ana; Souza, Bia", "dc.creator": "lang=pt Lima, Ana", "description": "Of rivers",
			"dc.description": "lang=en Of rivers", "publisher": "INPE", "dc.publisher": "", "when": "2020", "dc.date": "scheme=W3CDTF 2020",
		}},
		"DataCite": {doi, harvest.DataCite, datacite(`<description descriptionType="Methods">How</description><description descriptionType="Abstract">What</description>`), "10.5072/ABC", map[string]string{
			"who": "Lima, Ana", "datacite.creators": "nameType=Personal Lima, Ana", "what": "One", "datacite.titles": "lang=en One", "publisher": "INPE",
			"datacite.publisher": "publisherIdentifier=https://ror.org/04xbn6x09 INPE", "subject": "Rivers; Rain", "datacite.subjects": "subjectScheme=LCSH valueURI=https://s.example/1 Rivers",
			"description": "What", "datacite.descriptions": "descriptionType=Methods How", "type": "Dataset", "datacite.resourcetype": "Gauges", "datacite.identifier": "", "datacite.language": "",
		}},
		"DataCite without an abstract": {doi, harvest.DataCite, datacite(`<description descriptionType="Methods">How</description>`), "10.5072/ABC", map[string]string{
			"description": "", "datacite.descriptions": "descriptionType=Methods How",
		}},
		"DataCite with an abstract in a language": {doi, harvest.DataCite, datacite(`<description descriptionType="Abstract" xml:lang="en">What</description>`), "10.5072/ABC", map[string]string{
			"description": "What", "datacite.descriptions": "descriptionType=Abstract lang=en What",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			to := newRegistry(t)
			to.space(tt.into, false)
			newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", tt.text))), tt.into, tt.format).must()
			rec, err := to.Get(to.ctx, to.id(tt.id))
			if err != nil {
				t.Fatal(err)
			}
			for field, want := range tt.want {
				if got := rec.Metadata[field]; got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
		})
	}
}

// TestTooMuchInOneRecord: a record with more URLs than are taken is refused, with the reason.
func TestTooMuchInOneRecord(t *testing.T) {
	to := newRegistry(t)
	to.space(gbv, false)
	var b strings.Builder
	for i := range 101 {
		b.WriteString(resource("primary", fmt.Sprintf("https://a.example/%d", i), "text/html"))
	}
	j := newJob(to, script(t, page("", record("oai:x:1", "2026-06-01", epicur("urn_new", "urn:nbn:de:gbv:7-3", b.String())))), gbv, harvest.Epicur)
	if j.must(); len(j.rejected) != 1 || j.rejected[0] != "oai:x:1 harvest.too-many-urls" {
		t.Errorf("%q", j.rejected)
	}
}
