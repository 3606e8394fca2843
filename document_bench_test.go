package stele

import (
	"encoding/json"
	"testing"
)

// typical is a record as most imports have them, of about 250 bytes.
const typical = `{"id":"ark:12345/x54xz321s3","targets":[{"service":"N2L","url":"https://repository.example.org/items/54321/view","type":"text/html"}],` +
	`"metadata":{"who":"Gomes, Ana; Silva, Rui","what":"Relevés of the coastal dunes, 1987 to 1991","when":"1992-03-14"}}`

// BenchmarkDecodeRecord reads, parses and validates; encoding/json only reads.
func BenchmarkDecodeRecord(b *testing.B) {
	data := []byte(typical)
	s, err := NewSchemes(toy("hdl"), toy("lsid"), toy("urn"), toy("ark"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("stele", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.DecodeRecord(data); err != nil {
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
