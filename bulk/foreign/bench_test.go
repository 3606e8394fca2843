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
