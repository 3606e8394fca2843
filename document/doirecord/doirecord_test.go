package doirecord_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/doirecord"
	"github.com/stele-id/stele/scheme/all"
)

var known = func() *stele.Schemes {
	s, err := all.New(all.Config{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		panic(err)
	}
	return s
}()

// TestDataCiteSpellings: of an attribute in several spellings the same one counts each time, and the others are kept. A word
// may begin with any letter.
func TestDataCiteSpellings(t *testing.T) {
	for range 20 { // the order of a map differs
		rec, _, err := doirecord.FromDataCite(known, []byte(`{"doi":"10.5072/a","publication_year":2002,"publication-year":2001,"a-\u00e9tat":"x","content-url":"https://example.org/b","contentUrl":"https://example.org/c"}`))
		if err != nil {
			t.Fatal(err)
		}
		want := stele.Metadata{"when": "2001", "datacite.publication_year": "2002", "datacite.other": `{"aÉtat":"x"}`, "datacite.content-url": "https://example.org/b", "datacite.contenturl": `["https://example.org/c"]`}
		if diff := cmp.Diff(want, rec.Metadata); diff != "" || len(rec.Targets) != 1 || rec.Targets[0].URL != "https://example.org/c" {
			t.Fatal(diff, rec.Targets)
		}
	}
}

// TestDataCiteAndBack: the attributes that are made of a record which came from DataCite say what they said there, and give the
// same record again.
func TestDataCiteAndBack(t *testing.T) {
	for _, text := range []string{
		`{"doi":"10.5072/a","url":"https://example.org/a","state":"findable","isActive":true}`,
		`{"doi":"10.5072/A.b","state":"draft","isActive":false,"titles":[{"title":"T"}]}`,
		`{"doi":"10.5072/a","state":"tombstoned","reason":"why","isActive":false,"url":"https://example.org/"}`,
		`{"doi":"10.5072/a","state":"registered","isActive":false,"created":"2019-05-18T01:02:03.000Z","updated":"2019-05-19T01:02:03.000Z","registered":"2019-05-18T01:02:03.000Z"}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"creators":[{"name":"Lima, Ana","nameType":"Personal","givenName":"Ana","familyName":"Lima"},{"name":"Lab; two","nameType":"Organizational"}]}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"publicationYear":2019,"dates":[{"date":"2019-05-01","dateType":"Issued"},{"date":"2018","dateType":"Created"}],"viewCount":7,"version":"1.0","schemaVersion":"[x]"}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"url":"https://example.org/a","contentUrl":["https://example.org/b","https://example.org/c"],"formats":["PDF"],"container":{"type":"Series","title":"S","firstPage":"1"}}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"publisher":{"name":"P","publisherIdentifier":"https://ror.org/1"},"types":{"resourceTypeGeneral":"Text","resourceType":"Thesis","ris":"THES"},"xml":"PHJlc291cmNlLz4="}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"titles":[{"title":"\u202e` + strings.Repeat("é", 9000) + `"}],"aVeryLongNameOfAnAttributeThatNobodyHasThoughtOfSoFarInTheWorld":[1,{"b":null}],"x y":"z"}`,
		`{"doi":"10.5072/a","state":"findable","isActive":true,"subjects":[{"subject":"a; b"},{"subject":"c","subjectScheme":"S"}],"rightsList":[{"rights":"CC","rightsUri":"https://cc.example/","rightsIdentifier":"cc"}],"language":"en"}`,
	} {
		rec, _, err := doirecord.FromDataCite(known, []byte(text))
		if err != nil {
			t.Errorf("%.80s: %v", text, err)
			continue
		}
		var report stele.Report
		if rec.Check(&report); report.Err("check", rec.ID) != nil {
			t.Errorf("%.80s: %v", text, report.Err("check", rec.ID))
		}
		made, unsaid := doirecord.Attributes(rec, doirecord.DOI(known, rec))
		if len(unsaid) > 0 {
			t.Errorf("%.80s: %q can't be said", text, unsaid)
		}
		line, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if diff := cmp.Diff(v, got[name]); diff != "" {
				t.Errorf("%.80s: %s: %s", text, name, diff)
			}
		}
		again, _, err := doirecord.FromDataCite(known, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if diff := cmp.Diff(string(document.AppendRecord(nil, rec)), string(document.AppendRecord(nil, again))); diff != "" {
			t.Errorf("%.80s: %s", text, diff)
		}
	}
}

// TestAttributesOfOthers: a record that did not come from DataCite has attributes, and what they can't say is told. What was changed
// since an import is said as it is now.
func TestAttributesOfOthers(t *testing.T) {
	rec, _, err := doirecord.FromDataCite(known, []byte(`{"doi":"10.5072/a","titles":[{"title":"Old"},{"title":"Other","titleType":"Subtitle"}],"sizes":["1"]}`))
	if err != nil {
		t.Fatal(err)
	}
	rec.Metadata["what"], rec.Metadata["shelf"], rec.Metadata["when"] = "New", "B 7", "long ago"
	rec.Targets = []stele.Target{{Service: stele.N2C, URL: "https://example.org/m"}}
	alias, err := known.Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	rec.Aliases = []stele.ID{alias}
	made, unsaid := doirecord.Attributes(rec, "10.5072/a")
	if diff := cmp.Diff([]string{"metadata.datacite.titles", "metadata.shelf", "targets"}, unsaid); diff != "" {
		t.Error(diff)
	}
	line, _ := json.Marshal(made)
	want := `{"dates":[{"date":"long ago","dateType":"Other"}],"doi":"10.5072/a","identifiers":[{"identifier":"ark:12345/x1","identifierType":"ARK"}],"isActive":true,"prefix":"10.5072","sizes":["1"],"state":"findable","suffix":"a","titles":[{"title":"New"}]}`
	if diff := cmp.Diff(want, string(line)); diff != "" {
		t.Error(diff)
	}
}

// TestCrossrefWithoutPlace: a work that names no page but its DOI is read, whatever stands in resource.
func TestCrossrefWithoutPlace(t *testing.T) {
	for _, text := range []string{
		`{"DOI":"10.5072/x","URL":"https://doi.org/10.5072/x","resource":null}`,
		`{"DOI":"10.5072/x","URL":"https://doi.org/10.5072/x","resource":"none"}`,
	} {
		rec, err := doirecord.FromCrossref(known, []byte(text))
		if err != nil || len(rec.Targets) != 0 {
			t.Errorf("%s: %v, %v", text, rec, err)
		}
	}
}

func FuzzFromCrossref(f *testing.F) {
	f.Add(`{"DOI":"10.5072/x","URL":"https://doi.org/10.5072/x","resource":null}`)
	f.Add(`{"DOI":"10.5072/y","title":["a","b"],"resource":{"primary":{"URL":"https://example.org/"}},"link":[{"URL":"x","content-type":"unspecified"}],"license":[{}],"author":[1,{"family":"F"}],"issued":{"date-parts":[[2019,5,17,1]]},"abstract":"<a","is-referenced-by-count":0}`)
	f.Add(`{"DOI":["10.5072/z"],"title":{},"issued":{"date-parts":[null]},"created":[],"prefix":7}`)
	f.Fuzz(func(t *testing.T, text string) {
		rec, err := doirecord.FromCrossref(known, []byte(text))
		if (rec == nil) == (err == nil) {
			t.Fatalf("%v, %v", rec, err)
		}
	})
}
