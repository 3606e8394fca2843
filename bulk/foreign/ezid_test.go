package foreign_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/document/ezidrecord"
	"github.com/stele-id/stele/internal/plainxml"
)

const datacite = `<resource xmlns="http://datacite.org/schema/kernel-4"><creators><creator><creatorName>Lima, A.</creatorName></creator></creators><titles><title>Rivers &amp; lakes</title></titles><publicationYear>2024</publicationYear></resource>`

var ezidANVL = `:: ark:/99999/fk4ab1
_created: 1700000000
_updated: 1700000100
_status: unavailable | withdrawn by author
_target: https://example.org/1
_owner: ann
_profile: erc
erc.who: Lima, A.
erc.what: Rivers%0Aand lakes
_export: no

# a remark
:: doi:10.5072/FK2AB2
_created: 1700000000
_profile: datacite
_status: public
_target: https://ezid.cdlib.org/id/doi:10.5072/FK2AB2
_shadowedby: ark:/b5072/fk2ab2
datacite: <?xml version="1.0"?>%0A` + datacite + `

_created: 1700000000

:: ark:/99999/fk4ab3
_status: reserved
a: 1
a: 2

:: ark:/99999/fk4ab4
_status: reserved
`

var ezidRows = []string{
	`{"id":"ark:99999/fk4ab1","state":"withdrawn","tombstone":{"reason":"withdrawn by author","at":"2023-11-14T22:15:00Z"},"targets":[{"url":"https://example.org/1"}],"metadata":{"who":"Lima, A.","what":"Rivers\nand lakes","ezid._export":"no","ezid._owner":"ann","ezid._profile":"erc"},"created":"2023-11-14T22:13:20Z","modified":"2023-11-14T22:15:00Z"}`,
	`"aliases":["ark:b5072/fk2ab2"],"metadata":{"who":"Lima, A.","what":"Rivers & lakes","when":"2024","datacite":"`,
	`the block does not begin with :: and an identifier`,
	`repeated label`,
	`{"id":"ark:99999/fk4ab4","state":"reserved","metadata":{"ezid._profile":"erc"}}`,
}

func TestEZIDText(t *testing.T) {
	got, _, err := readFrom(t, "auto", "", []byte(ezidANVL))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, ezidRows)
	if strings.Contains(got[1], "targets") {
		t.Error("EZID's own page is a target:", got[1])
	}
	got, _, err = readFrom(t, "ezid", "", []byte("\xef\xbb\xbf"+strings.ReplaceAll(ezidANVL, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, ezidRows)
}

func TestEZIDXML(t *testing.T) {
	const begin = `<?xml version="1.0" encoding="utf-8"?>` + "\n<records>"
	const first = `<record identifier="ark:/99999/fk4ab1"><element name="_created">1700000000</element><element name="_updated">1700000100</element><element name="_status">unavailable | withdrawn by author</element>` +
		`<element name="_target">https://example.org/1</element><element name="_owner">ann</element><element name="_profile">erc</element><element name="erc.who">Lima, A.</element><element name="erc.what">Rivers
and lakes</element><element name="_export">no</element></record>`
	const second = `<record identifier="doi:10.5072/FK2AB2"><element name="_profile">datacite</element><element name="_shadowedby">ark:/b5072/fk2ab2</element><element name="datacite">` + datacite + `</element></record>`
	bad := `<record identifier="ark:/99999/x"><element>y</element></record>` + `<record identifier="ark:/99999/x"><element name="a"><b></record>` + `<record identifier=""><element name="a">b</element></record>`
	got, _, err := readFrom(t, "auto", "", []byte(begin+first+second+bad+"</records>"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{ezidRows[0], ezidRows[1], "is not an element with a name of its own", "it is not well-formed XML", "the record of EZID has no identifier"})
	if !strings.Contains(got[1], strings.ReplaceAll(strings.ReplaceAll(datacite, `"`, `\"`), "&", `&`)) {
		t.Error("the document is not kept as it is:", got[1])
	}
	for text, want := range map[string]string{
		begin + first:                                       "</records> is missing there",
		begin + first[:50]:                                  "</record> is missing there",
		begin + first + "</records>x":                       "the end of the file should stand there",
		begin + "<!-- -->" + first + "</records>":           "a record should stand there",
		"<!DOCTYPE x [<!ENTITY a 'b'>]><records></records>": "the document type declaration at line 1 is not read",
		"<records>" + "x":                                   "a record should stand there",
	} {
		if _, _, err := readFrom(t, "ezid", "", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	// Entities are not expanded, and a record that is too long does not end the import.
	got, _, err = readFrom(t, "ezid", "", []byte(begin+`<record identifier="ark:/99999/x"><element name="a">&lol;</element></record><record identifier="ark:/99999/x"><element name="a">`+strings.Repeat("x", 9<<20)+`</element></record>`+first+"</records>"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{"it is not well-formed XML", "bytes in the file", ezidRows[0]})
}

func TestEZIDCSV(t *testing.T) {
	got, _, err := readFrom(t, "auto", "", []byte("_id,_created,_updated,_status,_target,_owner,_profile,erc.who,_mappedTitle,_export,Shelf Mark\r\n"+
		"ark:/99999/fk4ab1,2023-11-14T22:13:20Z,1700000100,unavailable | withdrawn by author,https://example.org/1,ann,erc,\"Lima, A.\",Rivers,no,B 7\r\n"+
		",,,,,,,,,,x\r\nuuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6,,,gone,,,,,,,\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{
		`"metadata":{"who":"Lima, A.","what":"Rivers","ezid.-53helf-20-4dark":"B 7","ezid._export":"no","ezid._owner":"ann","ezid._profile":"erc"},"created":"2023-11-14T22:13:20Z","modified":"2023-11-14T22:15:00Z"}`,
		"the record of EZID has no identifier", "invalid identifier status",
	})
	s, err := foreign.Open(opened(t, []byte("_id,a\n"), []byte(ezidANVL)), foreign.Options{System: "ezid", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := rowsOf(t, s); err == nil || !strings.Contains(err.Error(), "import them one by one") {
		t.Error(err)
	}
}

// TestEZIDRejects: what is rejected can be read again, also from XML.
func TestEZIDRejects(t *testing.T) {
	s, err := foreign.Open(opened(t, []byte(`<records><record identifier="ark:/99999/fk4"><element name="_status">gone</element><element name="a:b">c
d</element></record></records>`)), foreign.Options{System: "ezid", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := rowsOf(t, s)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	text := "# line 1: why\n" + string(rows[0].Later()) + "\n# line 2: why\n:: ark:/99999/fk4b\n_status: public\n"
	got, _, err := readFrom(t, "ezid", "", []byte(strings.Replace(text, "gone", "public", 1)))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, []string{`"id":"ark:99999/fk4","metadata":{"ezid._profile":"erc","ezid.a-3ab":"c\nd"}`, `"id":"ark:99999/fk4b"`})
}

// TestEZIDSame: the same record in all three forms is the same, and EZID's API here shows what the download had.
func TestEZIDSame(t *testing.T) {
	texts := []string{
		":: ark:/99999/a\n_created: 1700000000\n_updated: 1700000000\n_profile: dc\n_status: public\n_export: yes\n_target: https://example.org/\n_datacenter: X\ndc.title: T & U\ndc.creator: C\n",
		`<records><record identifier="ark:/99999/a"><element name="_created">1700000000</element><element name="_updated">1700000000</element><element name="_profile">dc</element><element name="_status">public</element><element name="_export">yes</element><element name="_target">https://example.org/</element><element name="_datacenter">X</element><element name="dc.title">T &amp; U</element><element name="dc.creator">C</element></record></records>`,
		"_id,_created,_updated,_profile,_status,_export,_target,_datacenter,dc.title,dc.creator\nark:/99999/a,1700000000,1700000000,dc,public,yes,https://example.org/,X,T & U,C\n",
	}
	want := map[string]string{"_created": "1700000000", "_updated": "1700000000", "_profile": "dc", "_status": "public", "_export": "yes", "_target": "https://example.org/", "_datacenter": "X", "dc.title": "T & U", "dc.creator": "C"}
	for _, text := range texts {
		s, err := foreign.Open(opened(t, []byte(text)), foreign.Options{System: "auto", Schemes: known})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := rowsOf(t, s)
		if err != nil || len(rows) != 1 || rows[0].Err != nil {
			t.Fatal(rows, err)
		}
		if d := cmp.Diff(want, ezidrecord.Elements(known, rows[0].Record)); d != "" {
			t.Error(d)
		}
	}
}

// TestEZIDLong: files of several blocks are the same from each bookmark.
func TestEZIDLong(t *testing.T) {
	var text, xml bytes.Buffer
	xml.WriteString("<records>")
	for i := range 2_500 {
		fmt.Fprintf(&text, ":: ark:/99999/fk4%d\n_status: public\nerc.what: %s\n\n", i, strings.Repeat("x", 150))
		fmt.Fprintf(&xml, `<record identifier="ark:/99999/fk4%d"><element name="erc.what">%s</element></record>`, i, strings.Repeat("x", 150))
	}
	xml.WriteString("</records>")
	for _, b := range [][]byte{text.Bytes(), xml.Bytes()} {
		got, _, err := readFrom(t, "ezid", "", b)
		if err != nil || len(got) != 2_500 || !strings.Contains(got[2_499], "ark:99999/fk42499") {
			t.Fatal(len(got), err)
		}
	}
}

func FuzzEZID(f *testing.F) {
	fuzzFrom(f, []string{"ezid"}, "", ezidANVL, "_id,_status,datacite\nark:/99999/a,public,<resource/>\n",
		`<?xml version="1.0"?><!-- x --><records><record identifier="ark:/99999/a"><element name="datacite"><resource/></element></record></records>`, "<records></records>", ":: \n\n#\n :: x")
}

// TestEZIDXMLMarks: the end of a record in a comment or a section is not its end.
func TestEZIDXMLMarks(t *testing.T) {
	const odd = `<record identifier="ark:/99999/a"><!-- </record> --><element name="note"><![CDATA[</record><!--]]></element></record>`
	got, _, err := readFrom(t, "ezid", "", []byte("<records>"+odd+"\n"+`<record identifier="ark:/99999/b"><element name="note">x</element></record></records>`))
	if err != nil || len(got) != 2 || !strings.Contains(got[0], `"note":"</record><!--"`) || !strings.Contains(got[1], `"ark:99999/b"`) {
		t.Errorf("%q, %v", got, err)
	}
	long := strings.Repeat("</record>", 100_000) // each of which is one place to stop
	got, _, err = readFrom(t, "ezid", "", []byte(`<records><record identifier="ark:/99999/a"><!-- `+long+` --><element name="note">x</element></record></records>`))
	if err != nil || len(got) != 1 || !strings.Contains(got[0], `"note":"x"`) {
		t.Errorf("%.200q, %v", got, err)
	}
}

// FuzzEZIDXML: where all records of a file are read, a reader of XML finds the same records in the whole of it.
func FuzzEZIDXML(f *testing.F) {
	f.Add([]byte(`<record identifier="ark:/99999/a"><element name="note">x</element></record>` + "\n" + `<record identifier="ark:/99999/b"><element name="n">y</element></record>`))
	f.Add([]byte(`<record identifier="ark:/99999/a"><!-- </record> --><element name="note"><![CDATA[</record>]]></element></record>`))
	f.Add([]byte(`<record identifier="ark:/99999/a"><element name="x"><a><b>1</b></a></element></record><record identifier='ark:/99999/b'></record>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := "<records>" + string(text) + "</records>"
		s, err := foreign.Open(opened(t, []byte(whole)), foreign.Options{System: "ezid", Format: foreign.EZIDXML, Schemes: known})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := rowsOf(t, s)
		if err != nil {
			return
		}
		var names []stele.ID
		for _, row := range rows {
			if row.Err != nil {
				return
			}
			names = append(names, row.Record.ID)
		}
		root, err := plainxml.Parse(strings.NewReader(whole), plainxml.Limits{Bytes: 4 << 20, Token: 2 << 20, Depth: 65, Elements: 200_000})
		if err != nil || len(root.Children) != len(names) {
			t.Fatalf("%q: %v read, and %v, %v", whole, names, root, err)
		}
		for i, e := range root.Children {
			if id, err := ezidrecord.ParseName(known, strings.TrimSpace(e.Get("identifier"))); err != nil || id != names[i] || e.Name.Local != "record" {
				t.Fatalf("%q: %v instead of %v, %v", whole, names[i], id, err)
			}
		}
	})
}
