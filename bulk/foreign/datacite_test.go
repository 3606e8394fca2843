package foreign_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// readDOIs reads all rows of files of a system.
func readDOIs(t testing.TB, system string, o foreign.Options, texts ...any) ([]bulk.Row, foreign.Report, error) {
	t.Helper()
	o.Schemes, o.System = known, system
	s, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		return nil, foreign.Report{}, err
	}
	return rowsOf(t, s)
}

// continues holds that an import which is interrupted after any block continues with the rows that follow.
func continues(t *testing.T, system string, o foreign.Options, texts ...any) {
	t.Helper()
	all, _, err := readDOIs(t, system, o, texts...)
	if err != nil {
		t.Fatal(err)
	}
	o.Schemes, o.System = known, system
	first, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for blocks := 0; ; blocks++ {
		b, err := first.Next()
		if err != nil {
			if blocks < 2 {
				t.Errorf("%d blocks are too few for this test", blocks)
			}
			return
		}
		read += len(b.Rows)
		again, err := foreign.Open(opened(t, texts...), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.SkipTo(b.End, b.Next); err != nil {
			t.Fatal(err)
		}
		rest, _, err := rowsOf(t, again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(all[read:]), lines(rest)); diff != "" {
			t.Fatalf("after block %d:\n%s", blocks, diff)
		}
	}
}

const dataciteRivers = `{"id":"10.5072/rivers-1","type":"dois","attributes":{"doi":"10.5072/rivers-1","prefix":"10.5072","suffix":"rivers-1",
  "identifiers":[{"identifier":"B 7","identifierType":"Shelf mark"}],"alternateIdentifiers":[{"alternateIdentifier":"B 7","alternateIdentifierType":"Shelf mark"}],
  "creators":[{"name":"Lima, Ana","nameType":"Personal","givenName":"Ana","familyName":"Lima","affiliation":[],"nameIdentifiers":[{"schemeUri":"https://orcid.org","nameIdentifier":"https://orcid.org/0000-0002-1825-0097","nameIdentifierScheme":"ORCID"}]},{"name":"River Institute","affiliation":[]}],
  "titles":[{"lang":"en","title":"Rivers of the north","titleType":null},{"title":"Rios do norte","titleType":"TranslatedTitle"}],
  "publisher":{"name":"River Press"},"container":{},"publicationYear":2019,"subjects":[{"subject":"rivers"},{"subject":"maps"}],"contributors":[],
  "dates":[{"date":"2019-05-17","dateType":"Issued"}],"language":"en","types":{"ris":"DATA","resourceType":"Gauges","resourceTypeGeneral":"Dataset"},
  "relatedIdentifiers":[{"relationType":"IsIdenticalTo","relatedIdentifier":"10.5072/RIVERS-X","relatedIdentifierType":"DOI"},{"relationType":"Cites","relatedIdentifier":"10.5072/other","relatedIdentifierType":"DOI"}],
  "sizes":[],"formats":["text/csv"],"version":"2","rightsList":[],"descriptions":[{"description":"Gauges of all rivers.","descriptionType":"Abstract"}],
  "xml":"PHJlc291cmNlLz4=","url":"https://example.org/rivers","contentUrl":["https://example.org/rivers.csv"],"metadataVersion":0,"schemaVersion":"http://datacite.org/schema/kernel-4",
  "source":"mds","isActive":true,"state":"findable","reason":null,"viewCount":3,"citationCount":0,
  "created":"2019-05-18T01:02:03.000Z","registered":"2019-05-18T01:02:04.000Z","published":"2019","updated":"2020-06-07T08:09:10.000Z"},
  "relationships":{"client":{"data":{"id":"river.press","type":"clients"}}}}`

// TestDataCite reads pages of the REST API.
func TestDataCite(t *testing.T) {
	page := `{"data":[` + dataciteRivers + `,
{"id":"10.5072/d","type":"dois","attributes":{"doi":"10.5072/d","state":"draft","titles":[]}},
{"id":"10.5072/t","type":"dois","attributes":{"doi":"10.5072/t","state":"tombstoned","reason":"by order of a court","url":"https://example.org/t"}},
{"id":"10.5072/r","type":"dois","attributes":{"doi":"10.5072/r","state":"registered","isActive":false,"url":"https://example.org/r","publisher":"P"}},
{"id":"10.5072/s","type":"dois","attributes":{"doi":"10.5072/s","state":"asleep"}},
{"id":"10.5072/u","type":"dois","attributes":{"doi":"10.5072/v"}},
{"id":"x","type":"clients","attributes":{"name":"x"}},
{"id":"10.5072/bad","type":"dois","attributes":{"doi":"10.5072/bad","url":"javascript:alert(1)"}},
7],"meta":{"total":9},"links":{"next":"https://api.example/dois?page=2"},"included":[{"id":"river.press"}]}`
	rows, report, err := readDOIs(t, "datacite", foreign.Options{}, []byte(page))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":"10.5072/RIVERS-1","spelling":"doi:10.5072/rivers-1","targets":[{"url":"https://example.org/rivers"},{"url":"https://example.org/rivers.csv","type":"text/csv","order":101}],` +
			`"metadata":{"who":"Lima, Ana (https://orcid.org/0000-0002-1825-0097); River Institute","what":"Rivers of the north","when":"2019-05-17","datacite":"<resource/>",` +
			`"datacite.identifiers":"[{\"identifier\":\"B 7\",\"identifierType\":\"Shelf mark\"}]","datacite.isidenticalto":"doi:10.5072/RIVERS-X","datacite.published":"2019","datacite.registered":"2019-05-18T01:02:04.000Z",` +
			`"datacite.relatedidentifiers":"[{\"relatedIdentifier\":\"10.5072/RIVERS-X\",\"relatedIdentifierType\":\"DOI\",\"relationType\":\"IsIdenticalTo\"},{\"relatedIdentifier\":\"10.5072/other\",\"relatedIdentifierType\":\"DOI\",\"relationType\":\"Cites\"}]",` +
			`"datacite.relationships":"{\"client\":{\"data\":{\"id\":\"river.press\",\"type\":\"clients\"}}}","datacite.schemaversion":"http://datacite.org/schema/kernel-4","datacite.source":"mds",` +
			`"datacite.titles":"[{\"lang\":\"en\",\"title\":\"Rivers of the north\",\"titleType\":null},{\"title\":\"Rios do norte\",\"titleType\":\"TranslatedTitle\"}]",` +
			`"datacite.types":"{\"resourceType\":\"Gauges\",\"resourceTypeGeneral\":\"Dataset\",\"ris\":\"DATA\"}","datacite.viewcount":"3",` +
			`"description":"Gauges of all rivers.","language":"en","publisher":"River Press","subject":"rivers; maps","type":"Dataset/Gauges","version":"2"},` +
			`"created":"2019-05-18T01:02:03Z","modified":"2020-06-07T08:09:10Z"}`,
		`{"id":"10.5072/D","spelling":"doi:10.5072/d","state":"reserved"}`,
		`{"id":"10.5072/T","spelling":"doi:10.5072/t","state":"withdrawn","tombstone":{"reason":"by order of a court"},"targets":[{"url":"https://example.org/t"}]}`,
		`{"id":"10.5072/R","spelling":"doi:10.5072/r","targets":[{"url":"https://example.org/r"}],"metadata":{"datacite.isactive":"false","datacite.state":"registered","publisher":"P"}}`,
	}
	got := lines(rows)
	if len(got) != 9 {
		t.Fatalf("%d rows: %q", len(got), got)
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Error(diff)
	}
	for i, part := range []string{`the state "asleep" is not known`, "it has the id 10.5072/u, and says that it is 10.5072/v", `of the type "clients"`, "protocol", "not an object"} {
		if row := rows[4+i]; row.Err == nil || !strings.Contains(row.Err.Error(), part) || row.Line != 16+i {
			t.Errorf("line %d: %v, want %q", row.Line, row.Err, part)
		}
	}
	if len(report.Notes) != 2 || !strings.Contains(report.Notes[0].Error(), "included") || !strings.HasPrefix(report.Notes[1].Error(), "1 identifiers are said to name the same thing") {
		t.Errorf("notes %q", report.Notes)
	}
	if text := string(rows[4].Later()); strings.Contains(text, "\n") || !strings.HasPrefix(text, `{"id":"10.5072/s"`) {
		t.Errorf("rejected as %s", text)
	}
}

// TestDataCiteForms: pages, several of them in a file, objects and attributes that follow each other, lists, and the archive of
// the public data file give the same records.
func TestDataCiteForms(t *testing.T) {
	record := func(n int) string {
		return fmt.Sprintf(`{"doi":"10.5072/n%d","titles":[{"title":"N %d"}],"publicationYear":2020,"url":"https://example.org/%d","state":"findable"}`, n, n, n)
	}
	object := func(n int) string {
		return fmt.Sprintf(`{"id":"10.5072/n%d","type":"dois","attributes":%s}`, n, record(n))
	}
	old := strings.NewReplacer(`publicationYear`, `publication-year`).Replace
	zipped := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range [][2]string{{"dois/updated_2020-01/part_0000.jsonl.gz", zipped(object(1) + "\n")}, {"dois/updated_2020-01/2020-01.csv", "doi\n"}, {"dois/updated_2020-02/part_0000.jsonl", object(2) + "\n" + record(3)}} {
		w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o600, Size: int64(len(f[1])), Typeflag: tar.TypeReg})
		w.Write([]byte(f[1]))
	}
	w.Close()
	want := []string{}
	for n := range 3 {
		want = append(want, fmt.Sprintf(`{"id":"10.5072/N%d","spelling":"doi:10.5072/n%d","targets":[{"url":"https://example.org/%d"}],"metadata":{"what":"N %d","when":"2020"}}`, n+1, n+1, n+1, n+1))
	}
	for name, text := range map[string]string{
		"page":     `{"data":[` + object(1) + "," + object(2) + "," + object(3) + `],"meta":{}}`,
		"pages":    `{"meta":{},"data":[` + object(1) + "]}\n{\"data\":" + object(2) + `}{"data":[` + object(3) + "]}",
		"lines":    object(1) + "\n" + record(2) + "\n\n" + object(3),
		"rejects":  "# line 1: it was wrong\n" + object(1) + "\n# line 2: so was this\n" + object(2) + "\n" + object(3) + "\n",
		"list":     "\xef\xbb\xbf[" + object(1) + ",\n" + object(2) + "," + record(3) + "]",
		"old":      old(record(1) + record(2) + record(3)),
		"archive":  archive.String(),
		"archives": zipped(archive.String()),
	} {
		rows, report, err := readDOIs(t, "datacite", foreign.Options{}, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, lines(rows)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if strings.HasPrefix(name, "archive") && (rows[2].Line != 3 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), "2020-01.csv is left out")) {
			t.Errorf("%s: line %d, notes %q", name, rows[2].Line, report.Notes)
		}
	}
}

// TestDataCiteBroken: what is cut off or not JSON ends the import with the line; what was read before comes first.
func TestDataCiteBroken(t *testing.T) {
	one := `{"id":"10.5072/a","type":"dois","attributes":{"doi":"10.5072/a"}}`
	for text, want := range map[string]string{
		`{"data":[` + one + ",\n" + one[:20]:                    "ends within line 2",
		`{"data":[` + one + ",\n":                               "ends within line 2",
		`{"data":[` + one + "\n" + one + "]}":                   "a comma or ] should stand here",
		`{"data":[` + one + "]\n" + `"meta":1}`:                 "at line 2: a comma or }",
		one + "\nnothing":                                       "at line 2: an object or a list should stand here, not 'n'",
		one + strings.Repeat("[", 9):                            "a record should stand here",
		`{"data":[` + one + `],` + "\n" + `meta:1}`:             "at line 2: a name in quotation marks",
		`{"data":[` + one + "," + strings.Repeat(`{"a":`, 1000): "ends within line 1",
		`{"data":[` + one + `],"meta":}`:                        "a value should stand here",
		`{"data":[` + one + `],"meta"` + "\n" + `{}}`:           "at line 2: a colon",
		`[` + one + `,` + "\n" + `]`:                            "a value should stand here",
	} {
		rows, _, err := readDOIs(t, "datacite", foreign.Options{}, []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(rows) != 1 {
			t.Errorf("%q: %d rows, %v; want %q", text, len(rows), err, want)
		}
	}
	long := `{"data":[{"doi":"10.5072/a","titles":[{"title":"` + strings.Repeat("x", 5<<20) + `"}]},` + one + `]}`
	rows, _, err := readDOIs(t, "datacite", foreign.Options{}, []byte(long))
	if err != nil || len(rows) != 2 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "4194304 are the most") || rows[1].Err != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestDataCiteLong: what is longer than a field may be, or has characters that no field may have, is kept whole.
func TestDataCiteLong(t *testing.T) {
	var b strings.Builder
	for i := range 900 {
		fmt.Fprintf(&b, `,{"name":"Person Number %d é","affiliation":["Some university"]}`, i)
	}
	text := `{"doi":"10.5072/a","creators":[` + b.String()[1:] + `],"titles":[{"title":"A\u0007 title"}],"descriptions":[{"description":"` + strings.Repeat("é ", 7000) + `","descriptionType":"Abstract"}],"xml":"` + strings.Repeat("PHJlc291cmNlLz4K", 1000) + `"}`
	rows, _, err := readDOIs(t, "datacite", foreign.Options{}, []byte(text))
	if err != nil || rows[0].Err != nil {
		t.Fatal(err, rows)
	}
	m := rows[0].Record.Metadata
	if !strings.HasSuffix(m["who"], "; et al.") || m["what"] != "A\ufffd title" || !strings.HasSuffix(m["description"], " [...]") {
		t.Errorf("%q", m["what"])
	}
	for _, key := range []string{"datacite.creators", "datacite.creators.5", "datacite.titles", "datacite.descriptions.2", "datacite.xml", "datacite.xml.2"} {
		if m[key] == "" {
			t.Errorf("there is no %s", key)
		}
	}
	if !strings.Contains(m["datacite.titles"], `A\u0007 title`) {
		t.Errorf("titles %s", m["datacite.titles"])
	}
}

func TestDataCiteResumes(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `{"doi":"10.5072/n%d","url":"https://example.org/%d","titles":[{"title":"%s"}]}`+"\n", i, i, strings.Repeat("t", 300))
	}
	continues(t, "datacite", foreign.Options{}, []byte(b.String()), []byte(`{"data":[`+strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", ",")+`]}`))
}

func FuzzDataCite(f *testing.F) {
	for _, text := range []string{dataciteRivers, `{"data":[{"doi":"10.5072/a","types":[]}]}`, `[{"doi":"10.5072/a","creators":[null,1,{"name":{}}]},`, `{"data":`, "# x\n{}", `{"id":"https://doi.org/10.5072/a%20b","attributes":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, _ := readDOIs(t, "datacite", foreign.Options{Format: foreign.DataCiteLines}, []byte(text))
		for _, row := range rows {
			if (row.Record == nil) == (row.Err == nil) {
				t.Fatalf("a row without record and error: %+v", row)
			}
		}
	})
}
