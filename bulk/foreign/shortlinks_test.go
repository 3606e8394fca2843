package foreign_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// readFrom reads all rows of files of a system, and checks that reading from any bookmark gives the rest.
func readFrom(t testing.TB, system, prefix string, texts ...any) ([]string, foreign.Report, error) {
	t.Helper()
	o := foreign.Options{System: system, Prefix: prefix, Schemes: known}
	s, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		return nil, foreign.Report{}, err
	}
	rows, report, err := rowsOf(t, s)
	if err == nil {
		resumes(t, o, rows, texts...)
	}
	return lines(rows), report, err
}

// resumes checks that reading continues after each block.
func resumes(t testing.TB, o foreign.Options, want []bulk.Row, texts ...any) {
	t.Helper()
	first, err := foreign.Open(opened(t, texts...), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for done := 0; ; {
		b, err := first.Next()
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		done += len(b.Rows)
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
		if d := cmp.Diff(lines(want[done:]), lines(rest)); d != "" {
			t.Fatalf("after %d rows: %s", done, d)
		}
	}
}

// check compares rows, of which those that are refused may be given by a part of the reason.
func check(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("row %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}

func wide(text string) []byte {
	b := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

func TestShlink(t *testing.T) {
	const record = `{"id":"20.500.1/ABC","targets":[{"url":"https://example.org/long"}],"metadata":{"what":"Título","shlink.domain":"s.example.org","shlink.tags":"a|b"}}`
	for _, text := range [][]byte{
		[]byte("Long URL;Tags;Domain;Short code;Title\r\nhttps://example.org/long;a|b;s.example.org;ABC;Título\r\n"),
		[]byte("\xef\xbb\xbflongurl,TAGS,domain,short_code,title,\nhttps://example.org/long,a|b,s.example.org,ABC,\"Título\"\n\n"),
		[]byte("sep=\t\nlong url\ttags\tdomain\tshort-code\ttitle\nhttps://example.org/long\ta|b\ts.example.org\tABC\tT\xedtulo"),
		wide("Long URL\tTags\tDomain\tShort code\tTitle\r\nhttps://example.org/long\ta|b\ts.example.org\tABC\tTítulo\r\n"),
	} {
		got, _, err := readFrom(t, "auto", "hdl:20.500.1/", text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		check(t, got, []string{record})
	}
	// What Shlink's web client exports; the code is that of the short URL if there is no other.
	got, _, err := readFrom(t, "shlink", "hdl:20.500.1/", []byte(`createdAt,shortUrl,longUrl,title,tags,visits
2023-05-06T07:08:09+02:00,https://s.example.org/AB,https://example.org/1,,,"12"
never,https://s.example.org/AC,https://example.org/2,"=1+1 ""x""
y",,
2023-05-06T07:08:09+02:00,,https://example.org/2,,,
2023-05-06T07:08:09+02:00,https://s.example.org/AD,not a url,,,
2023-05-06T07:08:09+02:00,https://s.example.org/AE,https://example.org/3,,,,x
2023-05-06T07:08:09+02:00,https://s.example.org/AF,https://example.org/4,"open
2023-05-06T07:08:09+02:00,https://s.example.org/AG,https://example.org/5,,,`))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{
		`{"id":"20.500.1/AB","targets":[{"url":"https://example.org/1"}],"metadata":{"shlink.shorturl":"https://s.example.org/AB","shlink.visits":"12"},"created":"2023-05-06T05:08:09Z","modified":"2023-05-06T05:08:09Z"}`,
		`"what":"=1+1 \"x\"\ny","shlink.createdat":"never"`,
		`5: import: the row has no short code`,
		`6: import 20.500.1/AD:`,
		`7: import: the row has 7 cells, and the header has 6`,
		`8: import: cell 4 begins with a quotation mark and has none at its end`,
		`{"id":"20.500.1/AG"`,
	})
}

func TestShortNames(t *testing.T) {
	const text = "Long URL,Short code,Domain\nhttps://example.org/1,AB?c,20.500.2\nhttps://example.org/2,AC,\n"
	for prefix, want := range map[string][]string{
		"":                          {"1: the short code", "such as https://purl.example.org/ or https://{domain}/"},
		"hdl:20.500.1/":             {`"20.500.1/AB?C"`, `"20.500.1/AC"`},
		"hdl:{domain}/":             {`"20.500.2/AB?C"`, `the row of the short code "AC" has no domain`},
		"https://purl.example.org/": {"has a character that ends the path of a URL", "3: parse: at byte 0"},
	} {
		got, _, err := readFrom(t, "shlink", prefix, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if prefix == "" {
			want = []string{`2: import: the short code "AB?c" is not an identifier`, want[1]}
		}
		check(t, got, want)
	}
}

// TestTableColumns: a column whose name can't be kept is told, and one without a name is refused if it has something.
func TestTableColumns(t *testing.T) {
	got, report, err := readFrom(t, "shlink", "hdl:20.500.1/", []byte("Long URL,Short code,Größe,\nhttps://example.org/1,a,5,\nhttps://example.org/1,b,5,x\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{`"metadata":{"shlink.gr--e":"5"}`, "cell 4 stands in a column without a name"})
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), `the column "größe" is kept as shlink.gr--e`) {
		t.Error(report.Notes)
	}
}

func TestYOURLS(t *testing.T) {
	got, report, err := readFrom(t, "auto", "hdl:20.500.1/", []byte(`"keyword","url","title","timestamp","ip","clicks"
"a1","https://example.org/1","A ""title""","2011-02-03 04:05:06","192.0.2.7","42"
"a2","https://example.org/2",\N,"0000-00-00 00:00:00","",0
`))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{
		`{"id":"20.500.1/A1","targets":[{"url":"https://example.org/1"}],"metadata":{"what":"A \"title\"","yourls.clicks":"42"},"created":"2011-02-03T04:05:06Z","modified":"2011-02-03T04:05:06Z"}`,
		`{"id":"20.500.1/A2","targets":[{"url":"https://example.org/2"}],"metadata":{"yourls.clicks":"0","yourls.timestamp":"0000-00-00 00:00:00"}}`,
	})
	if len(report.Notes) != 1 || report.Notes[0].Error() != "1 IP addresses of persons who made links were left out" || strings.Contains(strings.Join(got, ""), "192.0.2.7") {
		t.Errorf("%v; %v", report.Notes, got)
	}
}

func TestKutt(t *testing.T) {
	const link = `{"address":"a1","banned":false,"created_at":"2021-02-03T04:05:06.789Z","id":"c0","link":"https://kutt.example.org/a1","password":false,"target":"https://example.org/1","description":"A \u00e9","updated_at":"2022-02-03T04:05:06.000Z","visit_count":7,"expire_in":null,"domain":null}`
	const banned = `{"banned":true,"address":"a2","link":{"link":"k/a2","url":"https://k.example.org/a2"},"target":"https://example.org/2","updated_at":"2022-02-03T04:05:06.000Z","relative_created_at":"3 days ago"}`
	want := []string{
		`{"id":"20.500.1/A1","targets":[{"url":"https://example.org/1"}],"metadata":{"what":"A é","kutt.id":"c0","kutt.link":"https://kutt.example.org/a1","kutt.password":"false","kutt.visit_count":"7"},"created":"2021-02-03T04:05:06Z","modified":"2022-02-03T04:05:06Z"}`,
		`{"id":"20.500.1/A2","state":"withdrawn","tombstone":{"reason":"banned at kutt","at":"2022-02-03T04:05:06Z"},"targets":[{"url":"https://example.org/2"}],"metadata":{"kutt.link":"https://k.example.org/a2"}`,
	}
	for _, text := range []string{
		`{"limit":10,"skip":0,"total":2,"data":[` + link + ",\n" + banned + `]}`,
		`[` + link + "," + banned + `]`,
		"# line 1: why\n" + link + "\n# line 2: why\n" + banned + "\n",
	} {
		got, report, err := readFrom(t, "kutt", "hdl:20.500.1/", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		check(t, got, want)
		if len(report.Notes) > 0 {
			t.Error(report.Notes)
		}
	}
	got, report, err := readFrom(t, "auto", "hdl:20.500.1/", []byte(`{"total":55,"data":[`+link+`,{"address":5},{"address":"x","target":"nowhere"}],"x":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{want[0], `1: import: the short code "5" leads nowhere`, `1: import 20.500.1/X:`})
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Error(), "has 3 of 55 links") {
		t.Error(report.Notes)
	}
	const odd = `{"address":"a1","target":"https:\/\/example.org\/1","visit_count":1e999,"id":"","user":null,"more":{"a":[1]}}`
	if got, _, err = readFrom(t, "kutt", "hdl:20.500.1/", []byte(odd)); err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{`{"id":"20.500.1/A1","targets":[{"url":"https://example.org/1"}],"metadata":{"kutt.more":"{\"a\":[1]}","kutt.visit_count":"1e999"}}`})
	got, _, err = readFrom(t, "auto", "hdl:20.500.1/", []byte("address,target,created_at,visit_count\na1,https://example.org/1,2021-02-03 04:05:06+00,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{`"created":"2021-02-03T04:05:06Z"`})
	for value, want := range map[string]string{"True": `"state":"withdrawn"`, "TRUE": `"state":"withdrawn"`, "T": `"state":"withdrawn"`, "1": `"state":"withdrawn"`, "False": "", "f": "", "0": "", "reported": `"kutt.banned":"reported"`} {
		got, _, err := readFrom(t, "kutt", "hdl:20.500.1/", []byte("address,target,visit_count,banned\na1,https://example.org/1,3,"+value+"\n"))
		if err != nil || len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "banned") != (want != "") {
			t.Errorf("banned %s: %s, %v", value, got, err)
		}
	}
	for _, text := range []string{`{"data":[` + link, `{"data":[` + link + ` ` + link + `]}`, `[` + link + `] x`, `{"data":5}`, `{}`, `[5]`, "[" + link[:50], `{"total":`, link + "[]"} {
		if _, _, err := readFrom(t, "kutt", "hdl:20.500.1/", []byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestTablesRefused: a file that is not a table of the system is refused as a whole, and cheaply.
func TestTablesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "does not begin as a file of YOURLS",
		"a,b\n1,2\n":                   "does not begin as a file of YOURLS",
		"keyword;url;URL\n1;2;3\n":     "does not begin as a file of YOURLS",
		"a1,https://example.org/1\n":   "does not begin as a file of YOURLS",
		strings.Repeat("a,", 1_000_00): "does not begin as a file of YOURLS",
	} {
		if _, _, err := readFrom(t, "yourls", "hdl:20.500.1/", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"":                             "has no header",
		"a,b\n1,2\n":                   `the column keyword is missing; there are "a", "b". If it has another name, say so with --map NAME=keyword`,
		"keyword;url;URL\n1;2;3\n":     `the columns "url" and "URL" mean the same`,
		strings.Repeat("a,", 1_000_00): "the header has more than 65536 bytes",
		strings.Repeat("a,", 2000):     "the row has more than 1000 cells",
		"keyword,\"url\n":              "the column keyword is missing",
	} {
		s, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: "yourls", Format: foreign.CSV, Schemes: known})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := rowsOf(t, s); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "quotation mark") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	// A row of a million cells is refused, and the rest is read.
	got, _, err := readFrom(t, "yourls", "hdl:20.500.1/", []byte("keyword,url\n"+strings.Repeat(",", 1_000_000)+"x\na,https://example.org/\n"+strings.Repeat("x", 5<<20)+"\nb,https://example.org/\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{"the row has more than 1000 cells", `"20.500.1/A"`, "4: import: the record has 5242880 bytes in the file", `"20.500.1/B"`})
}

// TestTableMap: --map names columns that have other names.
func TestTableMap(t *testing.T) {
	o := foreign.Options{System: "yourls", Format: foreign.CSV, Prefix: "hdl:20.500.1/", Schemes: known, Map: map[string]string{"kürzel": "keyword", "ziel": "url"}}
	s, err := foreign.Open(opened(t, []byte("Kürzel;Ziel\na;https://example.org/\n")), o)
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil {
		t.Fatal(err)
	}
	check(t, lines(rows), []string{`{"id":"20.500.1/A","targets":[{"url":"https://example.org/"}]}`})
	if string(s.Title()) != "Kürzel;Ziel" {
		t.Errorf("%q", s.Title())
	}
}

// TestTableLong: a table of several blocks is the same from each bookmark.
func TestTableLong(t *testing.T) {
	var text bytes.Buffer
	text.WriteString("keyword,url,title\n")
	for i := range 6_000 {
		fmt.Fprintf(&text, "k%d,https://example.org/%d,\"Line %d\nand more\"\n", i, i, i)
	}
	got, _, err := readFrom(t, "yourls", "hdl:20.500.1/", text.Bytes())
	if err != nil || len(got) != 6_000 || !strings.Contains(got[5_999], "20.500.1/K5999") {
		t.Fatal(len(got), err)
	}
}

// fuzzFrom reads any bytes as files of systems.
func fuzzFrom(f *testing.F, systems []string, prefix string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range systems {
			for _, format := range append(foreign.SystemNamed(name).Formats, foreign.Auto) {
				s, err := foreign.Open(opened(t, text), foreign.Options{System: name, Format: format, Prefix: prefix, Schemes: known})
				if err != nil {
					continue
				}
				rows, _, err := rowsOf(t, s)
				for _, row := range rows {
					if (row.Record == nil) == (row.Err == nil) {
						t.Fatalf("line %d: %v, %v", row.Line, row.Record, row.Err)
					}
				}
				if err == nil {
					resumes(t, foreign.Options{System: name, Format: format, Prefix: prefix, Schemes: known}, rows, text)
				}
			}
		}
	})
}

func FuzzShortLinks(f *testing.F) {
	fuzzFrom(f, []string{"shlink", "yourls", "kutt"}, "hdl:20.500.1/",
		"Long URL;Tags;Domain;Short code;Title\r\nhttps://example.org/long;a|b;s.example.org;ABC;x\r\n",
		"sep=;\nkeyword;url;ip\n\"a\";\"https://example.org/\"\"\n\";1\n",
		`{"total":2,"data":[{"address":"a","target":"https://example.org/","link":{"url":"x"}}]}`,
		"# x\n[{\"address\":\"a\",\"target\":\"b\"},{}]",
		"address,target,banned\na,b,true\n", "\xff\xfek\x00", "keyword,url\n\"")
}
