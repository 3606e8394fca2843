package foreign_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/scheme/all"
)

// knownPURLs are the schemes with the hosts of PURLs.
var knownPURLs = func() *stele.Schemes {
	s, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"purl.org", "purl.net"}})
	if err != nil {
		panic(err)
	}
	return s
}()

// withPast returns rows as lines of an import would have them, with their earlier versions.
func withPast(rows []bulk.Row) (list []string) {
	for _, row := range rows {
		if row.Err != nil {
			list = append(list, fmt.Sprintf("%d: %v", row.Line, row.Err))
		} else {
			list = append(list, string(document.AppendEarlier(document.AppendRecord(nil, row.Record), row.Earlier)))
		}
	}
	return list
}

// readPURLs reads all rows of files of a PURL server, and checks that reading from any bookmark gives the rest.
func readPURLs(t testing.TB, system, prefix string, texts ...any) ([]string, foreign.Report, error) {
	t.Helper()
	for i, text := range texts {
		if text, ok := text.(string); ok {
			texts[i] = []byte(text)
		}
	}
	o := foreign.Options{System: system, Prefix: prefix, Schemes: knownPURLs}
	s, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		return nil, foreign.Report{}, err
	}
	rows, report, err := rowsOf(t, s)
	if err == nil {
		resumes(t, o, rows, texts...)
	}
	return withPast(rows), report, err
}

const domainX = `{
  "name": "/x",
  "created": "2009-07-22 17:44:37",
  "maintainer": {"fullname": "Ann Lima", "userid": "ann", "email": "ann@example.org", "affiliation": null},
  "purls": [
    {"type": "302", "target": "https://example.org/a2", "name": "/x/a", "created": "2009-07-22 19:36:27", "modified": "2012-11-16 14:25:18"},
    {"type": "301", "target": "https://example.org/A", "name": "/X/A", "created": "2009-07-22 19:36:26", "modified": "2009-07-22 19:36:26"},
    {"type": "partial", "target": "/x/test/terms/", "name": "/x/terms", "created": "2012-05-28 16:59:52", "modified": "2012-05-28 16:59:52"},
    {"type": "404", "target": "", "name": "/x/later", "created": "2012-05-28 16:59:52", "modified": "2012-05-28 16:59:52"},
    {"type": "410", "target": "", "name": "/x/over", "created": "2012-05-28 16:59:52", "modified": "2013-05-28 16:59:52", "colour": 7},
    {"type": "clone", "target": "/x/chain", "name": "/x/clone"},
    {"type": "chain", "target": "/x/a", "name": "/x/chain"},
    {"type": "partial-ignore-extension", "target": "https://example.org/e/", "name": "/x/e/"}
  ]
}`

const historyX = `{"history": [
    {"name": "/x/a", "type": "302", "target": "https://example.org/a2", "status": 1, "modtime": "2012-11-16 14:25:18", "user": "bo"},
    {"name": "/x/gone", "type": "302", "target": "https://example.org/gone", "status": 0, "modtime": "2009-07-22 19:11:39", "user": "admin"},
    {"name": "/x/a", "type": "partial", "target": "/x/b", "status": 0, "modtime": "2009-07-22 19:36:26", "user": "ann"},
    {"name": "/x/over", "type": "404", "target": "", "status": 0, "modtime": "2012-05-28 16:59:52", "user": "ann"},
    {"name": "/x/a", "type": "302", "target": "not a url", "status": 1, "modtime": "2010-01-01 00:00:00", "user": "ann"},
    {"name": "/x/a", "type": "404", "target": "", "status": 1, "modtime": "2011-01-01 00:00:00", "user": "ann"},
    {"name": "/x/a", "type": "302", "target": "https://example.org/a1", "status": 2, "modtime": "2011-02-01 00:00:00", "user": "ann"}
]}`

func TestPURLOrg(t *testing.T) {
	const about = `"purls.domain":"/x","purls.domain-created":"2009-07-22 17:44:37","purls.maintainer-email":"ann@example.org","purls.maintainer-fullname":"Ann Lima","purls.maintainer-userid":"ann"`
	want := []string{
		`{"id":"https://purl.org/X/A","targets":[{"url":"https://example.org/A","status":301}],"metadata":{` + about + `},"created":"2009-07-22T19:36:26Z","modified":"2009-07-22T19:36:26Z"}`,
		`{"id":"https://purl.org/x/a","targets":[{"url":"https://example.org/a2","status":302}],"metadata":{` + about + `},"created":"2009-07-22T19:36:26Z","modified":"2012-11-16T14:25:18Z","by":"bo","earlier":[` +
			`{"targets":[{"url":"https://purl.org/x/b","status":302,"partial":true}],"modified":"2009-07-22T19:36:26Z","by":"ann"},` +
			`{"metadata":{"purls.target":"not a url"},"modified":"2010-01-01T00:00:00Z","by":"ann"},` +
			`{"state":"withdrawn","tombstone":{"reason":"It was not found (404) at the PURL server that it was registered at.","at":"2011-01-01T00:00:00Z"},"metadata":{"purls.type":"404"},"modified":"2011-01-01T00:00:00Z","by":"ann"},` +
			`{"state":"withdrawn","tombstone":{"reason":"It was removed from the PURL server that it was registered at.","at":"2011-02-01T00:00:00Z"},"targets":[{"url":"https://example.org/a1"}],"modified":"2011-02-01T00:00:00Z","by":"ann"}]}`,
		`{"id":"https://purl.org/x/chain","targets":[{"url":"https://example.org/a2","status":302}],"metadata":{"purls.chain":"/x/a",` + about + `}}`,
		`{"id":"https://purl.org/x/clone","targets":[{"url":"https://example.org/a2","status":302}],"metadata":{"purls.clone":"/x/chain",` + about + `}}`,
		`{"id":"https://purl.org/x/e/","targets":[{"url":"https://example.org/e/","status":302,"partial":true}],"metadata":{` + about + `,"purls.type":"partial-ignore-extension"}}`,
		`{"id":"https://purl.org/x/gone","state":"withdrawn","tombstone":{"reason":"It was removed from the PURL server that it was registered at."},"targets":[{"url":"https://example.org/gone","status":302}],"created":"2009-07-22T19:11:39Z",` +
			`"earlier":[{"targets":[{"url":"https://example.org/gone","status":302}],"modified":"2009-07-22T19:11:39Z","by":"admin"}]}`,
		`{"id":"https://purl.org/x/later","state":"reserved","metadata":{` + about + `,"purls.type":"404"},"created":"2012-05-28T16:59:52Z","modified":"2012-05-28T16:59:52Z"}`,
		`{"id":"https://purl.org/x/over","state":"withdrawn","tombstone":{"reason":"It is gone (410) at the PURL server that it was registered at.","at":"2013-05-28T16:59:52Z"},"metadata":{"purls.colour":"7",` + about + `,"purls.type":"410"},"created":"2012-05-28T16:59:52Z","modified":"2013-05-28T16:59:52Z",` +
			`"earlier":[{"state":"reserved","metadata":{"purls.type":"404"},"modified":"2012-05-28T16:59:52Z","by":"ann"}]}`,
		`{"id":"https://purl.org/x/terms","targets":[{"url":"https://purl.org/x/test/terms/","status":302,"partial":true}],"metadata":{` + about + `},"created":"2012-05-28T16:59:52Z","modified":"2012-05-28T16:59:52Z"}`,
	}
	for _, texts := range [][]any{{domainX, historyX}, {historyX, domainX}, {domainX + "\n" + historyX}} {
		got, report, err := readPURLs(t, "purl.org", "", texts...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), "1 PURLs change the extension") {
			t.Errorf("the notes are %v", report.Notes)
		}
	}
	// Another host, and what is relative stays so to purl.org.
	got, _, err := readPURLs(t, "purl.org", "https://purl.net/", domainX)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got[1], `{"id":"https://purl.net/x/a",`) || !strings.Contains(got[len(got)-1], "https://purl.org/x/test/terms/") {
		t.Errorf("with another prefix:\n%s", strings.Join(got, "\n"))
	}
}

func TestPURLOrgRefused(t *testing.T) {
	row := func(rows string) string { return `{"name":"/x","purls":[` + "\n" + rows + "\n" + `]}` }
	for text, want := range map[string]string{
		row(`{"type":"302","target":"https://example.org/"}`):                                                                                            "2: import: the PURL has no name",
		row(`{"name":"/x/a","type":"999","target":"https://example.org/"}`):                                                                              `2: import: "/x/a" has the type "999", which is not known`,
		row(`{"name":"/x/a","type":"302","target":"javascript:1"}`):                                                                                      `2: import https://purl.org/x/a: targets[0].url: `,
		row(`{"name":"/x/../a","type":"302","target":"https://example.org/"}`):                                                                           `2: `,
		row(`{"name":"/x/a","type":"302","type":"301"}`):                                                                                                 `2: import: the PURL can't be read: `,
		row(`{"name":"/x/a","type":"clone","target":"/x/b"},{"name":"/x/b","type":"chain","target":"/x/a"}`):                                             `"/x/a" is made of itself: https://purl.org/x/a -> https://purl.org/x/b -> https://purl.org/x/a`,
		row(`{"name":"/x/a","type":"clone","target":"/x/a"}`):                                                                                            `"/x/a" is made of itself`,
		row(`{"name":"/x/a","type":"clone","target":"/y/b"}`):                                                                                            `"/x/a" is made of https://purl.org/y/b, which is not in the files`,
		row(`{"name":"/x/a","type":"302","target":"https://example.org/1"},` + "\n" + `{"name":"/x/%61","type":"302","target":"https://example.org/2"}`): `"/x/%61" is in the files twice, and the one at line 3 says something else`,
		`{"history":[{"name":"/x/a","type":"302","target":"https://example.org/","modtime":"2012-11-16 14:25:18"}]}`:                                     `"/x/a" is in a history only`,
		row("") + `{"history":[{"name":"/x/a","type":"302","target":"https://example.org/","modtime":"once"}]}`:                                          `has no date in modtime, but "once"`,
	} {
		got, _, err := readPURLs(t, "purl.org", "", text)
		if err != nil || len(got) == 0 || !strings.Contains(got[0], want) {
			t.Errorf("%s\ngives %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		`[1]`:                          "an object should stand here, not",
		`{"purls":[{"name":"/x/a"`:     "ends within line 1",
		`{"purls":[7]}`:                "a PURL in braces should stand here",
		`{"purls":[{"name":"/x"} {}]}`: "a comma should stand here",
		`{"purls":[]} x`:               "an object should stand here",
		`{"maintainer":{"a":1,"a":2}}`: "can't be read",
		`{"name":"` + strings.Repeat("a", 20<<10) + `"}`: "16384 are the most",
	} {
		if _, _, err := readPURLs(t, "purl.org", "", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// What is rejected can be imported again.
func TestPURLRejected(t *testing.T) {
	s, err := foreign.Open(opened(t, []byte(strings.Replace(domainX, `"404"`, `"499"`, 1)), []byte(historyX)), foreign.Options{System: "purl.org", Schemes: knownPURLs})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		want := withPast([]bulk.Row{row})
		text := append([]byte("# a remark\n"), row.Later()...)
		if bytes.Count(text, []byte("\n")) != 1 {
			t.Fatalf("more than one line: %s", text)
		}
		if strings.Contains(want[0], "made of") || strings.Contains(want[0], "purls.clone") || strings.Contains(want[0], "purls.chain") || strings.Contains(want[0], `"purls.domain"`) {
			continue // they need the others, or what the file says of all
		}
		again, _, err := readPURLs(t, "purl.org", "", text)
		if err != nil || len(again) != 1 {
			t.Fatalf("%s: %v, %v", text, again, err)
		}
		_, reason, refused := strings.Cut(want[0], ": ")
		if !strings.Contains(again[0], reason) && refused {
			t.Errorf("%s\nis read as\n%s\nwant\n%s", text, again[0], want[0])
		}
	}
}

func TestPURLZ(t *testing.T) {
	const batch = `<?xml version="1.0" encoding="ISO-8859-1"?>
<purls>
 <purl id="/net/a" type="302"><maintainers><uid>admin</uid><uid>ann</uid><gid>staff</gid></maintainers><target url="https://example.org/a?x=1&amp;y=2"/></purl>
 <purl id="/net/b" type="303"><seealso url="https://example.org/b"/></purl>
 <purl id="/net/c" type="clone"><basepurl path="/net/p"/></purl>
 <purl id="/net/d" type="chain"><basepurl path="/net/a"/></purl>
 <purl id="/net/e" type="410"><seealso url="https://example.org/new"/></purl>
 <purl id="/net/f" type="404" shelf="7"/>
 <purl id="/net/p" type="partial"><target url="https://example.org/p/"/><note>Jo` + "\xe3" + `o</note></purl>
</purls>
`
	got, _, err := readPURLs(t, "purlz", "https://purl.net", []byte(batch))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		`{"id":"https://purl.net/net/a","targets":[{"url":"https://example.org/a?x=1&y=2","status":302}],"metadata":{"purls.maintainer-groups":"staff","purls.maintainers":"admin\nann"}}`,
		`{"id":"https://purl.net/net/b","targets":[{"url":"https://example.org/b","status":303}]}`,
		`{"id":"https://purl.net/net/c","targets":[{"url":"https://example.org/p/","status":302,"partial":true}],"metadata":{"purls.clone":"/net/p"}}`,
		`{"id":"https://purl.net/net/d","targets":[{"url":"https://example.org/a?x=1&y=2","status":302}],"metadata":{"purls.chain":"/net/a"}}`,
		`{"id":"https://purl.net/net/e","state":"withdrawn","tombstone":{"reason":"It is gone (410) at the PURL server that it was registered at."},"metadata":{"purls.see-also":"https://example.org/new","purls.type":"410"}}`,
		`{"id":"https://purl.net/net/f","state":"reserved","metadata":{"purls.shelf":"7","purls.type":"404"}}`,
		`{"id":"https://purl.net/net/p","targets":[{"url":"https://example.org/p/","status":302,"partial":true}],"metadata":{"purls.note":"João"}}`,
	}, got); diff != "" {
		t.Error(diff)
	}
	got, _, err = readPURLs(t, "purlz", "", []byte(batch))
	if err != nil || !strings.Contains(got[0], "say what stands before it with --prefix") {
		t.Errorf("without a prefix: %q, %v", got, err)
	}
	got, _, err = readPURLs(t, "purlz", "https://purl.net/", "domain,id,target,note\nnet,a1,https://example.org/1,old\n/net/,b1,,\n")
	if err != nil || len(got) != 2 || got[0] != `{"id":"https://purl.net/net/a1","targets":[{"url":"https://example.org/1","status":302}],"metadata":{"purls.note":"old"}}` || !strings.Contains(got[1], "has no target") {
		t.Errorf("a table: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		`<purls><purl id="/a" type="302">`:                    "it ends within line 1",
		`<purls><purl id="/a" type="302"/>`:                   "it ends within line 1",
		`<!DOCTYPE x [<!ENTITY a "b">]><purls/>`:              "the document type declaration at line 1 is not read",
		"<purls/>\n<purls/>":                                  `it is not a batch of PURLZ: line 2: "purls" is not an element of one`,
		"<purls>\n<purl><a></purl></purls>":                   `it is not a batch of PURLZ: line 2: the end of "purl" stands where another element ends`,
		"<purls></purl></purls>":                              `it is not a batch of PURLZ: line 1: the end of "purl" stands where another element ends`,
		"<purls>words</purls>":                                "it is not a batch of PURLZ: line 1: there is something between the PURLs",
		"<purls><?x y?></purls>":                              "it is not a batch of PURLZ: line 1: there is something between the PURLs",
		"<purls>\n<other/></purls>":                           `it is not a batch of PURLZ: line 2: "other" is not an element of one`,
		"<recs/>":                                             `line 1: "recs" is not an element of one`,
		"<purls>" + strings.Repeat("<purl>", 20) + "</purls>": "it is not a batch of PURLZ: line 1: elements of a PURL are more than 7 deep",
	} {
		if _, _, err := readPURLs(t, "purlz", "https://purl.net", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// A PURL of a batch that can't be read is a rejected row; the others are imported.
func TestPURLZRows(t *testing.T) {
	batch := "<!-- made by hand --><p:purls xmlns:p='urn:x'>\n" +
		`<p:purl type='302' id="/a&amp;b" xmlns="urn:y"><p:target url='https://example.org/a'/><note>one<b>two</b>three<!-- no --><![CDATA[<4>]]></note></p:purl>` + "\n" +
		`<purl type='302' id='/q"'><target url="https://example.org/q"/></purl>` + "\n" +
		`<purl id="/b" type="302" id="/c"/>` + "\n" +
		`<purl id="/d" type="302"><target url="https://example.org/&other;"/></purl>` + "\n" +
		`<purl id="/e" type="302"><maintainers>` + strings.Repeat("<uid>ann</uid>", 10_001) + `</maintainers></purl>` + "\n" +
		`<purl id="/f" type="302"><note>` + strings.Repeat("x", bulk.MaxRow) + `</note></purl>` + "\n" +
		`<purl id="/g" type="302"><target url="https://example.org/g" `
	for i := range 40 {
		batch += fmt.Sprintf(`a%d="1" `, i)
	}
	batch += "/>"
	for i := range 1000 {
		batch += fmt.Sprintf("<b%d>1</b%d>", i, i)
	}
	batch += "</purl>\n<purl type='302'/>\n" + `<purl id="/z" type="cl&#111;ne"><basepurl path="/a&amp;b"/><maintainers shelf="7"/></purl>` + "\n</p:purls>\n"
	s, err := foreign.Open(opened(t, []byte(batch)), foreign.Options{System: "purlz", Prefix: "https://purl.net", Schemes: knownPURLs})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`7: import: the record has 4194`,
		`9: import: the PURL has no name`,
		`{"id":"https://purl.net/a&b","targets":[{"url":"https://example.org/a","status":302}],"metadata":{"purls.b":"two","purls.note":"onethree<4>"}}`,
		`4: import: the PURL can't be read: `,
		`5: import: the PURL can't be read: `,
		`6: import: the PURL can't be read: line 1: there are more than 10000 elements`,
		`8: import: the PURL has 1040 members that are not known; 1000 are the most`,
		`3: `,
		`{"id":"https://purl.net/z","targets":[{"url":"https://example.org/a","status":302}],"metadata":{"purls.clone":"/a&b","purls.shelf":"7"}}`,
	}
	got := withPast(rows)
	if len(got) != len(want) {
		t.Fatalf("%d rows: %.2000q", len(got), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("row %d: %.300s, want %s", i, got[i], want[i])
		}
	}
	if text := string(rows[4].Later()); text != `{"purls":[{"name":"/d","xml":"\u003cpurl id=\"/d\" type=\"302\"\u003e\u003ctarget url=\"https://example.org/\u0026other;\"/\u003e\u003c/purl\u003e"}],"history":[]}` {
		t.Errorf("rejected as %s", text)
	}
}

// Several goroutines read what PURLs of a batch say, and their order stays.
func TestPURLZParallel(t *testing.T) {
	var batch strings.Builder
	batch.WriteString("<purls>")
	const records = 5000
	for i := range records {
		fmt.Fprintf(&batch, "<purl id=\"/x/n%07d\" type=\"302\"><maintainers><uid>ann</uid></maintainers><target url=\"https://example.org/objects/%d\"/></purl>\n", i, i)
	}
	batch.WriteString("</purls>")
	s, err := foreign.Open(opened(t, []byte(batch.String())), foreign.Options{System: "purlz", Prefix: "https://purl.net", Schemes: knownPURLs})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	flow := bulk.NewFlow(t.Context(), s, 100, func(err error) error { return err })
	n := 0
	for b := range flow.Blocks() {
		<-b.Parsed()
		for _, row := range b.Rows {
			if want := fmt.Sprintf("https://example.org/objects/%d", n); row.Err != nil || row.Record.Targets[0].URL != want || row.Record.Metadata["purls.maintainers"] != "ann" {
				t.Fatalf("row %d: %+v", n, row)
			}
			n++
		}
		flow.Release(b)
	}
	if n != records {
		t.Errorf("%d rows", n)
	}
}

// Nothing that files say of a PURL is lost: in two places, in the past, or of its domain.
func TestPURLKept(t *testing.T) {
	one := func(more string) string {
		return `{"name":"/x/a","type":"302","target":"https://example.org/a"` + more + `}`
	}
	past := func(more string) string {
		return `{"history":[{"name":"/x/a","type":"302","target":"https://example.org/a","status":0,"modtime":"2009-07-22 19:36:26","user":"ann"` + more + `}]}`
	}
	domain := func(about string, purls ...string) string {
		return `{` + about + `"purls":[` + strings.Join(purls, ",") + `]}`
	}
	const begin, dates = `{"id":"https://purl.org/x/a","targets":[{"url":"https://example.org/a","status":302}]`, `,"created":"2009-07-22T19:36:26Z","modified":"2009-07-22T19:36:26Z","by":"ann"}`
	for text, want := range map[string]string{
		domain("", one(`,"note":"n"`), strings.Replace(one(`,"note":"n"`), "/x/a", "/x/%61", 1)): begin + `,"metadata":{"purls.note":"n"}}`,
		domain("", one(`,"note":"n"`), one("")):                                                  `"/x/a" is in the files twice, and the one at line 1 says something else`,
		domain("", one(""), one(`,"created":"2009-07-22 19:36:26"`)):                             `"/x/a" is in the files twice, and the one at line 1 says something else`,
		domain("", one(""), one(`,"uid":["ann"]`)):                                               `"/x/a" is in the files twice, and the one at line 1 says something else`,
		domain("", one(`,"note":"n"`)) + past(`,"note":"old","remark":"r","uid":["bo"]`):         begin + `,"metadata":{"purls.maintainers":"bo","purls.note":"n\nold","purls.remark":"r"}` + dates,
		domain("", one(`,"user":"bo"`)) + past(""):                                               begin + `,"metadata":{"purls.user":"ann"}` + strings.Replace(dates, `"by":"ann"`, `"by":"bo"`, 1),
		domain("", one(`,"note":"n","other":{"note":"m"}`)):                                      begin + `,"metadata":{"purls.note":"m\nn"}}`,
		domain("", one(`,"uid":["a",5]`)):                                                        begin + `,"metadata":{"purls.uid":"[\"a\",5]"}}`,
		domain(`"name":"/x",`, one(`,"domain":"mine"`)):                                          begin + `,"metadata":{"purls.domain":"mine\n/x"}}`,
		domain(`"a b":1,"A-b":2,`, one("")):                                                      begin + `,"metadata":{"purls.domain-a-b":"1\n2"}}`,
		domain(`"maintainer":"ann",`, one("")) + domain(`"maintainer":"bo",`, one("")):           begin + `,"metadata":{"purls.maintainer":"ann\nbo"}}`,
	} {
		got, _, err := readPURLs(t, "purl.org", "", text)
		if err != nil || len(got) != 1 || got[0] != want && !strings.Contains(got[0], want) {
			t.Errorf("%s\ngives %q, %v; want %q", text, got, err, want)
		}
	}
}

// What an object says of all its PURLs, and what a PURL says that is not known, have bounds: the record of each has them.
func TestPURLBounds(t *testing.T) {
	members := func(n, size int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"m%d":"%s",`, i, strings.Repeat("x", size))
		}
		return b.String()
	}
	const purl = `"purls":[{"name":"/x/a","type":"302","target":"https://example.org/"}]}`
	for _, about := range []string{members(1001, 1), members(20, 1000), `"maintainer":{` + strings.TrimSuffix(members(1001, 1), ",") + "},"} {
		if _, _, err := readPURLs(t, "purl.org", "", "{"+about+purl); err == nil || !strings.Contains(err.Error(), "says more of all its PURLs than 16384 bytes in 1000 members") {
			t.Errorf("%.60s: %v", about, err)
		}
	}
	got, _, err := readPURLs(t, "purl.org", "", `{"purls":[{`+members(1001, 1)+`"name":"/x/a","type":"302","target":"https://example.org/"}]}`)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "the PURL has 1001 members that are not known; 1000 are the most") {
		t.Errorf("%.300q, %v", got, err)
	}
}

// Reading is the same whether what is sorted fits into memory or not.
func TestPURLSorted(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(`{"name":"/x","purls":[`)
	for i := range 500 {
		fmt.Fprintf(&text, `{"name":"/x/%d","type":"chain","target":"/x/%d"},`+"\n", 999-i, 998-i)
	}
	text.WriteString(`{"name":"/x/499","type":"302","target":"https://example.org/"}]}`)
	var want []string
	for _, memory := range []int{0, 4096} {
		s, err := foreign.Open(opened(t, text.Bytes()), foreign.Options{System: "purl.org", Schemes: knownPURLs, Memory: memory, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := rowsOf(t, s)
		if err != nil {
			t.Fatal(err)
		}
		got := withPast(rows)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 501 {
			t.Errorf("%d rows: %s", len(got), diff)
		}
	}
	if !strings.Contains(want[1], `"url":"https://example.org/"`) || !strings.Contains(want[500], "is made of more than 100 PURLs") {
		t.Errorf("%s\n%s", want[1], want[500])
	}
}

func FuzzPURL(f *testing.F) {
	f.Add([]byte(domainX))
	f.Add([]byte(historyX))
	f.Add([]byte(domainX + historyX))
	f.Add([]byte(`<?xml version="1.0" encoding="ISO-8859-1"?><purls><purl id="/net/a" type="302"><maintainers><uid>x</uid></maintainers><target url="https://example.org/"/></purl></purls>`))
	f.Add([]byte("domain,id,target\na,b,https://example.org/\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, system := range []string{"purl.org", "purlz"} {
			s, err := foreign.Open(opened(t, text), foreign.Options{System: system, Prefix: "https://purl.org", Schemes: knownPURLs})
			if err != nil {
				continue
			}
			rows, _, _ := rowsOf(t, s)
			for _, row := range rows {
				if (row.Record == nil) == (row.Err == nil) {
					t.Errorf("a row has neither a record nor a reason, or both: %+v", row)
				}
				for _, v := range row.Earlier {
					if v.Modified.IsZero() || v.ID != row.Record.ID {
						t.Errorf("an earlier version is %+v", v)
					}
				}
			}
		}
	})
}

// TestSortedProgress tells how far an import is whose file is read to its end before its first row comes.
func TestSortedProgress(t *testing.T) {
	var batch bytes.Buffer
	batch.WriteString("<purls>")
	for i := range 30_000 {
		fmt.Fprintf(&batch, "<purl id=\"/x/n%07d\" type=\"302\"><target url=\"https://example.org/objects/%d\"/></purl>\n", i, i)
	}
	batch.WriteString("</purls>")
	s, err := foreign.Open(opened(t, batch.Bytes()), foreign.Options{System: "purlz", Prefix: "https://purl.org", Schemes: knownPURLs})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var told []int64
	for {
		b, err := s.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		told = append(told, b.Read)
	}
	if size := int64(batch.Len()); len(told) < 3 || !slices.IsSorted(told) || told[0] == 0 || told[0] > size/2 || told[len(told)-1] != size {
		t.Errorf("of %d bytes it says %d", size, told)
	}
}

func BenchmarkPURLs(b *testing.B) {
	const records = 5000
	var text, past, batch bytes.Buffer
	text.WriteString(`{"name":"/x","created":"2009-07-22 17:44:37","maintainer":{"userid":"ann"},"purls":[`)
	past.WriteString(`{"history":[`)
	batch.WriteString("<purls>")
	for i := range records {
		if i > 0 {
			text.WriteString(",\n")
			past.WriteString(",\n")
		}
		fmt.Fprintf(&text, `{"type": "302", "target": "https://example.org/objects/%d", "name": "/x/n%07d", "created": "2009-07-22 19:36:26", "modified": "2012-11-16 14:25:18"}`, i, i)
		fmt.Fprintf(&past, `{"name": "/x/n%07d", "type": "302", "target": "https://old.example.org/%d", "status": 0, "modtime": "2009-07-22 19:36:26", "user": "ann"}`, i, i)
		fmt.Fprintf(&batch, "<purl id=\"/x/n%07d\" type=\"302\"><maintainers><uid>ann</uid></maintainers><target url=\"https://example.org/objects/%d\"/></purl>\n", i, i)
	}
	text.WriteString("]}")
	past.WriteString("]}")
	batch.WriteString("</purls>")
	for name, texts := range map[string][]any{"purl.org": {text.Bytes()}, "purl.org with history": {text.Bytes(), past.Bytes()}, "purlz": {batch.Bytes()}} {
		b.Run(name, func(b *testing.B) {
			system, _, _ := strings.Cut(name, " ")
			b.ReportAllocs()
			for done := 0; done < b.N; done += records {
				s, err := foreign.Open(opened(b, texts...), foreign.Options{System: system, Prefix: "https://purl.org", Schemes: knownPURLs})
				if err != nil {
					b.Fatal(err)
				}
				if rows, _, err := rowsOf(b, s); err != nil || len(rows) != records || rows[7].Err != nil {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}
