package foreign_test

import (
	"bytes"
	"fmt"
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
		`<purls><purl id="/a" type="302">`:       "it is not a batch of PURLZ: line 1: ",
		`<!DOCTYPE x [<!ENTITY a "b">]><purls/>`: "it is not a batch of PURLZ: line 1: ",
		"<purls>\n<other/></purls>":              `it is not a batch of PURLZ: line 2: "other" is not an element of one`,
		"<recs/>":                                `line 1: "recs" is not an element of one`,
		"<purls><purl id=\"/a\" " + strings.Repeat("a='1' ", 100) + "/></purls>": "it is not a batch of PURLZ: line 1: ",
		"<purls>" + strings.Repeat("<purl>", 20) + "</purls>":                    "it is not a batch of PURLZ: line 1: ",
	} {
		if _, _, err := readPURLs(t, "purlz", "https://purl.net", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
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
