package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

const crossrefHead = `<?xml version="1.0" encoding="UTF-8"?>
<doi_batch xmlns="http://www.crossref.org/schema/5.3.0" xmlns:jats="http://www.ncbi.nlm.nih.gov/JATS1" version="5.3.0">
<head><doi_batch_id>b1</doi_batch_id><depositor><email_address>ann@example.org</email_address></depositor></head>
<body>
`

const crossrefRivers = crossrefHead + `<journal>
<journal_metadata language="en"><full_title>River Letters</full_title><issn media_type="print">12345678</issn><doi_data><doi>10.5072/rl</doi><resource>https://example.org/rl</resource></doi_data></journal_metadata>
<journal_issue><publication_date media_type="print"><year>2019</year></publication_date><journal_volume><volume>3</volume></journal_volume><issue>2</issue></journal_issue>
<!-- <journal_article> -->
<journal_article publication_type="full_text"><titles><title>Gauges of <i>Rio Pará</i>s &amp; others</title></titles>
<contributors><person_name sequence="first" contributor_role="author"><given_name>Ana</given_name><surname>Lima</surname><ORCID>https://orcid.org/0000-0002-1825-0097</ORCID></person_name><organization contributor_role="author" sequence="additional">River Lab</organization><person_name sequence="additional" contributor_role="editor"><given_name>Bo</given_name><surname>Li</surname></person_name></contributors>
<jats:abstract><jats:p>One.</jats:p><jats:p>Two.</jats:p></jats:abstract>
<publication_date media_type="online"><month>5</month><day>07</day><year>2019</year></publication_date><pages><first_page>11</first_page><last_page>19</last_page></pages>
<ai:program xmlns:ai="http://www.crossref.org/AccessIndicators.xsd"><ai:license_ref>https://cc.example/by</ai:license_ref></ai:program>
<doi_data><doi>10.5072/rl.1</doi><resource>https://example.org/rl/1?a=1&amp;b=2</resource><collection property="text-mining"><item><resource mime_type="application/pdf">https://example.org/rl/1.pdf</resource></item></collection></doi_data>
<component_list><component parent_relation="isPartOf"><description>Figure 1</description><doi_data><doi>10.5072/rl.1.f1</doi><resource>https://example.org/rl/1/f1</resource></doi_data></component></component_list>
</journal_article></journal>
<posted_content type="preprint"><titles><title>Early</title></titles><posted_date><year>2020</year><month>13</month></posted_date><doi_data><doi>10.5072/p1</doi><resource>https://example.org/p1</resource></doi_data></posted_content>
<dissertation><titles><title>No name</title></titles></dissertation>
<dissertation><titles><title>Bad</title></titles><doi_data><doi>10.5072/bad</doi><resource>javascript:x</resource></doi_data></dissertation>
</body></doi_batch>
`

// TestCrossref reads a deposit: every element that has doi_data is a record, with what stands around it.
func TestCrossref(t *testing.T) {
	rows, report, err := readDOIs(t, "crossref", foreign.Options{}, []byte(crossrefRivers))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Record != nil {
			if xml := row.Record.Metadata["crossref"]; !strings.HasPrefix(xml, "<doi_batch xmlns=") || !strings.HasSuffix(xml, "</body></doi_batch>") {
				t.Errorf("%v keeps %q", row.Record.ID, xml)
			}
			delete(row.Record.Metadata, "crossref")
		}
	}
	want := []string{
		`{"id":"10.5072/RL","spelling":"doi:10.5072/rl","targets":[{"url":"https://example.org/rl"}],"metadata":{"what":"River Letters","crossref.issn":"12345678","language":"en","type":"Journal"}}`,
		`{"id":"10.5072/RL.1","spelling":"doi:10.5072/rl.1","targets":[{"url":"https://example.org/rl/1?a=1&b=2"},{"url":"https://example.org/rl/1.pdf","type":"application/pdf","order":101}],` +
			`"metadata":{"who":"Lima, Ana (https://orcid.org/0000-0002-1825-0097); River Lab","what":"Gauges of Rio Parás & others","when":"2019-05-07","contributor":"Li, Bo","crossref.issn":"12345678","description":"One. Two.","issue":"2","journal":"River Letters","language":"en","license":"https://cc.example/by","pages":"11-19","type":"JournalArticle","volume":"3"}}`,
		`{"id":"10.5072/RL.1.F1","spelling":"doi:10.5072/rl.1.f1","targets":[{"url":"https://example.org/rl/1/f1"}],"metadata":{"what":"Figure 1","when":"2019","crossref.issn":"12345678","issue":"2","journal":"Gauges of Rio Parás & others","language":"en","type":"Other/component","volume":"3"}}`,
		`{"id":"10.5072/P1","spelling":"doi:10.5072/p1","targets":[{"url":"https://example.org/p1"}],"metadata":{"what":"Early","when":"2020","type":"Preprint"}}`,
	}
	got := lines(rows)
	if len(got) != 6 {
		t.Fatalf("%d rows: %q", len(got), got)
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Error(diff)
	}
	if e := rows[4].Err; rows[4].Line != 18 || e == nil || !strings.Contains(e.Error(), "the element dissertation has no doi_data") {
		t.Errorf("line %d: %v", rows[4].Line, e)
	}
	if e := rows[5].Err; rows[5].Line != 19 || e == nil || !strings.Contains(e.Error(), "protocol") {
		t.Errorf("line %d: %v", rows[5].Line, e)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), "the head of the deposit") {
		t.Errorf("notes %q", report.Notes)
	}
	// A rejected row is read again from its text.
	again, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte("# line 19: url <wrong>\n"+strings.ReplaceAll(string(rows[5].Later()), "javascript:x", "https://example.org/x")+"\n# line 20: the same\n"+string(rows[5].Later())))
	if err != nil || len(again) != 2 || again[0].Err != nil || again[1].Err == nil {
		t.Errorf("%v: %q", err, lines(again))
	}
}

// TestCrossrefKinds reads what other kinds of works say of what they are in.
func TestCrossrefKinds(t *testing.T) {
	doi := func(name string) string {
		return "<doi_data><doi>10.5072/" + name + "</doi><resource>https://example.org/" + name + "</resource></doi_data>"
	}
	text := crossrefHead + `<book book_type="edited_book"><book_metadata language="pt"><titles><title>Livro</title></titles><publication_date><year>2018</year></publication_date><isbn>9780000000002</isbn><publisher><publisher_name>Editora</publisher_name></publisher>` + doi("b") + `</book_metadata>
<content_item component_type="chapter"><titles><title>Capítulo</title></titles>` + doi("b.1") + `</content_item></book>
<conference><contributors><person_name contributor_role="chair"><surname>Silva</surname></person_name></contributors><proceedings_metadata><proceedings_title>Proceedings</proceedings_title></proceedings_metadata><conference_paper><titles><title>Paper</title></titles>` + doi("c.1") + `</conference_paper></conference>
<database><database_metadata><titles><title>Base</title></titles></database_metadata><dataset dataset_type="record"><titles><title>Row</title></titles><database_date><publication_date><year>2017</year></publication_date></database_date>` + doi("d.1") + `</dataset></database>
</body></doi_batch>`
	rows, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		if row.Err != nil {
			t.Fatal(row.Err)
		}
		m := row.Record.Metadata
		got = append(got, strings.Join([]string{row.Record.ID.String(), m["type"], m["what"], m["journal"], m["when"], m["publisher"], m["crossref.isbn"], m["language"]}, "|"))
	}
	want := []string{"10.5072/B|Book|Livro||2018|Editora|9780000000002|pt", "10.5072/B.1|BookChapter|Capítulo|Livro|2018|Editora|9780000000002|pt", "10.5072/C.1|ConferencePaper|Paper|Proceedings||||", "10.5072/D.1|Dataset|Row|Base|2017|||"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCrossrefJSON reads works of the REST API, and parts of the public data file.
func TestCrossrefJSON(t *testing.T) {
	work := `{"DOI":"10.5072/w1","prefix":"10.5072","type":"journal-article","title":["Rivers"],"author":[{"given":"Ana","family":"Lima","sequence":"first","affiliation":[]}],"issued":{"date-parts":[[2019,5]]},` +
		`"publisher":"P","container-title":["J"],"volume":"1","page":"2-3","URL":"https://doi.org/10.5072/w1","resource":{"primary":{"URL":"https://example.org/w1"}},"link":[{"URL":"https://example.org/w1.pdf","content-type":"application/pdf"}],` +
		`"abstract":"<jats:p>A &lt; B</jats:p>","ISSN":["1234-5678"],"is-referenced-by-count":0,"created":{"date-time":"2019-05-06T07:08:09Z"},"deposited":{"date-time":"2020-05-06T07:08:09Z"}}`
	want := `{"id":"10.5072/W1","spelling":"doi:10.5072/w1","targets":[{"url":"https://example.org/w1"},{"url":"https://example.org/w1.pdf","type":"application/pdf","order":101}],"metadata":{"who":"Lima, Ana","what":"Rivers","when":"2019-05",` +
		`"crossref.abstract":"<jats:p>A &lt; B</jats:p>","crossref.author":"[{\"affiliation\":[],\"family\":\"Lima\",\"given\":\"Ana\",\"sequence\":\"first\"}]","crossref.created":"{\"date-time\":\"2019-05-06T07:08:09Z\"}","crossref.deposited":"{\"date-time\":\"2020-05-06T07:08:09Z\"}","crossref.issn":"[\"1234-5678\"]","crossref.issued":"{\"date-parts\":[[2019,5]]}",` +
		`"crossref.link":"[{\"URL\":\"https://example.org/w1.pdf\",\"content-type\":\"application/pdf\"}]","crossref.type":"journal-article","description":"A < B","journal":"J","pages":"2-3","publisher":"P","type":"JournalArticle","volume":"1"},"created":"2019-05-06T07:08:09Z","modified":"2020-05-06T07:08:09Z"}`
	for _, text := range []string{
		`{"status":"ok","message-type":"work-list","message":{"facets":{},"total-results":1,"items":[` + work + `],"items-per-page":20}}`,
		`{"status":"ok","message-type":"work","message":` + work + `}`,
		`{"items":[` + work + `]}`, work + "\n", "[" + work + "]",
	} {
		rows, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte(text))
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		if diff := cmp.Diff([]string{want}, lines(rows)); diff != "" {
			t.Errorf("%.60s: %s", text, diff)
		}
	}
	rows, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte(`{"items":[{"title":["x"]},{"DOI":"10.5072/r","resource":{}}]}`))
	if err != nil || len(rows) != 2 || rows[0].Err == nil || rows[1].Err != nil {
		t.Errorf("%v: %q", err, lines(rows))
	}
}

// TestCrossrefBroken: files that are cut off, not UTF-8, not of Crossref or with entities of their own are refused with the line.
func TestCrossrefBroken(t *testing.T) {
	for text, want := range map[string]string{
		crossrefRivers[:len(crossrefRivers)-200]: "ends within line 18",
		crossrefHead:                             "ends within line 5",
		strings.Replace(crossrefRivers, "UTF-8", "ISO-8859-1", 1): "is not in UTF-8",
		"<!DOCTYPE a [<!ENTITY b \"c\">]><doi_batch/>":            "document type declaration at line 1",
		"<html><body/></html>":                                    "its outermost element is html",
		"<doi_batch><body></doi_batch>":                           "the end of doi_batch stands where another element ends",
		"<doi_batch><body><a><b></a></b></body></doi_batch>":      "the end of a stands",
		"<doi_batch><body>" + strings.Repeat("<a>", 200):          "more than 100 deep",
		"nothing": "does not begin as a file of Crossref",
	} {
		if _, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	rows, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte("<doi_batch><body><a "+strings.Repeat("x", 5<<20)+"/></body></doi_batch>"))
	if err != nil || len(rows) != 1 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "4194304 are the most") {
		t.Errorf("%v: %d rows", err, len(rows))
	}
	rows, _, err = readDOIs(t, "crossref", foreign.Options{}, []byte(crossrefHead+"<peer_review><titles><title>&laugh;</title></titles><doi_data><doi>10.5072/x</doi></doi_data></peer_review></body></doi_batch>"))
	if err != nil || len(rows) != 1 || rows[0].Err == nil {
		t.Errorf("%v: %q", err, lines(rows))
	}
}

func TestCrossrefResumes(t *testing.T) {
	var b strings.Builder
	b.WriteString(crossrefHead + "<journal><journal_metadata><full_title>J</full_title></journal_metadata>\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "<journal_article><titles><title>%s</title></titles><doi_data><doi>10.5072/n%d</doi><resource>https://example.org/%d</resource></doi_data></journal_article>\n", strings.Repeat("t", 300), i, i)
	}
	b.WriteString("</journal></body></doi_batch>")
	continues(t, "crossref", foreign.Options{}, []byte(b.String()))
}

func FuzzCrossref(f *testing.F) {
	for _, text := range []string{crossrefRivers, crossrefHead, "<doi_batch><body><a><doi_data/></a>", "<doi_batch><!-- <a> --><body><![CDATA[<b>]]><c d='>'/>", "<doi_batch></doi_batch>\n# x\n<doi_batch>", "<crossref><journal><journal_article><doi_data><doi>10.5072/a</doi></doi_data></journal_article></journal></crossref>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, _ := readDOIs(t, "crossref", foreign.Options{Format: foreign.CrossrefXML}, []byte(text))
		for _, row := range rows {
			if (row.Record == nil) == (row.Err == nil) {
				t.Fatalf("a row without record and error: %+v", row)
			}
		}
	})
}

// TestExportDataCite: what is imported from DataCite is exported as a page of its API, and imported again as the same.
func TestExportDataCite(t *testing.T) {
	rows, _, err := readDOIs(t, "datacite", foreign.Options{}, []byte(`{"data":[`+dataciteRivers+`,{"id":"10.5072/d","type":"dois","attributes":{"doi":"10.5072/d","state":"draft"}},{"id":"10.5072/t","type":"dois","attributes":{"doi":"10.5072/t","state":"tombstoned","reason":"why"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	from := &listed{}
	for _, row := range rows {
		from.records = append(from.records, row.Record)
	}
	ark, err := known.Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := known.Parse("doi:10.5072/own")
	from.records = append(from.records, &stele.Record{ID: ark, State: stele.Active}, &stele.Record{ID: own, State: stele.Active, Readers: []string{"user:a"}},
		&stele.Record{ID: own, State: stele.Active, Metadata: stele.Metadata{"shelf": "B 7"}})
	var b strings.Builder
	var told []string
	done, err := foreign.ExportDataCite(t.Context(), from, []stele.NamespaceKey{{}}, known, &b, func(name string, what error) { told = append(told, name+": "+what.Error()) }, nil)
	if err != nil || done != (foreign.Exported{Records: 4, Others: 1, Hidden: 1, Unsaid: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"10.5072/own: DataCite has no attributes for metadata.shelf"}, told); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(b.String(), `"relationships":{"client":{"data":{"id":"river.press","type":"clients"}}}}`) || !strings.HasSuffix(b.String(), `],"meta":{"total":4}}`+"\n") {
		t.Error(b.String())
	}
	again, _, err := readDOIs(t, "datacite", foreign.Options{}, []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(rows), lines(again[:3])); diff != "" {
		t.Error(diff)
	}
}

// TestCrossrefManyWorks: an element with very many works is refused as one row, and others share what is in memory.
func TestCrossrefManyWorks(t *testing.T) {
	const end = "</body></doi_batch>"
	work := "<doi_data><doi>10.5072/w</doi></doi_data>"
	rows, _, err := readDOIs(t, "crossref", foreign.Options{}, []byte(crossrefHead+"<dissertation>"+strings.Repeat(work, 1001)+"</dissertation>"+end))
	if err != nil || len(rows) != 1 || rows[0].Err == nil || !strings.Contains(rows[0].Err.Error(), "has 1001 elements doi_data; 1000 are the most") {
		t.Fatalf("%v: %d rows", err, len(rows))
	}
	rows, _, err = readDOIs(t, "crossref", foreign.Options{}, []byte(crossrefHead+"<dissertation>"+strings.Repeat("<doi_data/>", 200_000)+"</dissertation>"+end))
	if err != nil || len(rows) != 1 || rows[0].Err == nil {
		t.Fatalf("%v: %d rows", err, len(rows))
	}
	// Every doi_data of an element is a row of its own, with its own name.
	rows, _, err = readDOIs(t, "crossref", foreign.Options{}, []byte(crossrefHead+"<dissertation><titles><title>T</title></titles><doi_data><doi>10.5072/a</doi><resource>https://example.org/a</resource></doi_data><doi_data><doi>10.5072/b</doi><resource>https://example.org/b</resource></doi_data><doi_data/></dissertation>"+end))
	if err != nil || len(rows) != 3 || rows[2].Err == nil {
		t.Fatalf("%v: %q", err, lines(rows))
	}
	for i, want := range []string{"10.5072/A", "10.5072/B"} {
		if rec := rows[i].Record; rec == nil || rec.ID.String() != "doi:"+want && rec.ID.String() != want || rec.Metadata["what"] != "T" || len(rec.Targets) != 1 {
			t.Errorf("%v, %v, want %s", rec, rows[i].Err, want)
		}
	}
	if &rows[0].Text[0] != &rows[1].Text[0] {
		t.Error("two works of an element have copies of its text")
	}
}

// TestCrossrefContext: what describes works is read once, and has a limit over all levels together, which is told.
func TestCrossrefContext(t *testing.T) {
	var b strings.Builder
	const works = 300
	b.WriteString(crossrefHead + "<journal><journal_metadata><full_title>J</full_title>" + strings.Repeat("<x/>", 14_000) + "</journal_metadata>\n")
	for i := range works {
		fmt.Fprintf(&b, "<journal_article><doi_data><doi>10.5072/n%d</doi></doi_data></journal_article>\n", i)
	}
	b.WriteString("<journal_issue>" + strings.Repeat("<y/>", 14_000) + "</journal_issue></journal></body></doi_batch>")
	s, err := foreign.Open(opened(t, []byte(b.String())), foreign.Options{System: "crossref", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for row, err := range bulk.All(s) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Err != nil && count == 0 {
			t.Fatal(row.Err)
		}
		if len(row.Text) > 200 {
			t.Fatalf("the text of a row has %d bytes", len(row.Text))
		}
		count++
	}
	if count != works {
		t.Errorf("%d rows", count)
	}
	if notes := s.Report().Notes; len(notes) != 2 || !strings.Contains(notes[1].Error(), "journal_issue that ends at line 306 is not read for the works after it") {
		t.Errorf("notes %q", notes)
	}
	_, _, err = readDOIs(t, "crossref", foreign.Options{}, []byte("<doi_batch><body>"+strings.Repeat(`<journal a="`+strings.Repeat("x", 15_000)+`">`, 6)))
	if err == nil || !strings.Contains(err.Error(), "what stands around the works at line 1 has more than 65536 bytes") {
		t.Errorf("%v", err)
	}
}
