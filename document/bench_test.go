package document

import (
	"encoding/json"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

// BenchmarkDecodeRecord reads, parses and validates; encoding/json only reads.
func BenchmarkDecodeRecord(b *testing.B) {
	data := []byte(recordtest.Typical)
	s, err := stele.NewSchemes(recordtest.Toy("hdl"), recordtest.Toy("lsid"), recordtest.Toy("urn"), recordtest.Toy("ark"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("stele", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeRecord(s, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(data, new(plainRecord)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
