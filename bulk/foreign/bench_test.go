package foreign_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stele-id/stele/bulk/foreign"
)

// BenchmarkJSON reads records of three values from a JSON export.
func BenchmarkJSON(b *testing.B) {
	const records = 5000
	var text bytes.Buffer
	text.WriteString(`{"homedPrefixes":["0.NA/20.500.12345"],"handleRecords":{`)
	for i := range records {
		if i > 0 {
			text.WriteString(",\n")
		}
		name := fmt.Sprintf("20.500.12345/N%07d", i)
		fmt.Fprintf(&text, `%q: {"handle": %q, "values": [{"index": 1, "type": "URL", "data": {"format": "string", "value": "https://example.org/objects/%d"}, "ttl": 86400, "timestamp": "2023-11-14T22:13:20Z"}, `+
			`{"index": 2, "type": "EMAIL", "data": {"format": "string", "value": "a@example.org"}, "ttl": 86400, "timestamp": "2023-11-14T22:13:20Z"}, `+
			`{"index": 100, "type": "HS_ADMIN", "data": {"format": "admin", "value": {"handle": "0.NA/20.500.12345", "index": 300, "permissions": "111111111111"}}, "ttl": 86400, "timestamp": "2023-11-14T22:13:20Z"}]}`, name, name, i)
	}
	text.WriteString("}}")
	b.SetBytes(int64(text.Len()) / records)
	b.ReportAllocs()
	for done := 0; done < b.N; done += records {
		if rows, _, err := read(b, foreign.Options{Admins: true}, text.Bytes()); err != nil || len(rows) != records {
			b.Fatal(len(rows), err)
		}
	}
}

// BenchmarkXML reads records from XML: a download of EZID, and a deposit at Crossref.
func BenchmarkXML(b *testing.B) {
	const records = 5000
	var ezid, crossref bytes.Buffer
	ezid.WriteString("<records>")
	crossref.WriteString(crossrefHead)
	for i := range records {
		fmt.Fprintf(&ezid, `<record identifier="ark:/12345/x%07d"><element name="_created">1700000000</element><element name="_updated">1700000100</element><element name="_owner">ana</element><element name="_profile">erc</element>`+
			`<element name="_status">public</element><element name="_export">yes</element><element name="_target">https://example.org/objects/%d</element><element name="erc.who">Lima, Ana</element><element name="erc.what">Rivers, volume %d</element></record>`, i, i, i)
		fmt.Fprintf(&crossref, `<posted_content type="report"><contributors><person_name sequence="first" contributor_role="author"><given_name>Ana</given_name><surname>Lima</surname></person_name></contributors>`+
			`<titles><title>Rivers, volume %d</title></titles><posted_date><year>2019</year></posted_date><doi_data><doi>10.5072/x%07d</doi><resource>https://example.org/objects/%d</resource></doi_data></posted_content>`, i, i, i)
	}
	ezid.WriteString("</records>")
	crossref.WriteString("</body></doi_batch>")
	for name, text := range map[string][]byte{"ezid": ezid.Bytes(), "crossref": crossref.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)) / records)
			b.ReportAllocs()
			for done := 0; done < b.N; done += records {
				if rows, _, err := readDOIs(b, name, foreign.Options{}, text); err != nil || len(rows) != records {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// BenchmarkZone reads names from a zone of the DNS, with one rule each.
func BenchmarkZone(b *testing.B) {
	const records = 5000
	var text bytes.Buffer
	text.WriteString("$ORIGIN example.urn.example.org.\n$TTL 3600\n@ IN SOA ns1 hostmaster 1 3600 600 1209600 300\n@ IN NS ns1\nns1 IN A 192.0.2.1\n")
	for i := range records {
		fmt.Fprintf(&text, "x%07d IN NAPTR 100 10 \"u\" \"http+N2L\" \"!^urn:example:x%07d$!https://example.org/objects/%d!\" .\n", i, i, i)
	}
	b.SetBytes(int64(text.Len()) / records)
	b.ReportAllocs()
	for done := 0; done < b.N; done += records {
		if rows, _, err := readDOIs(b, "zone", foreign.Options{}, text.Bytes()); err != nil || len(rows) != records || rows[7].Err != nil {
			b.Fatal(len(rows), err)
		}
	}
}
