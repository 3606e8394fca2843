package bulk

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
	"testing"
)

// BenchmarkRows reads the rows of a typical file as an import does, and as encoding/csv does.
func BenchmarkRows(b *testing.B) {
	text := []byte(strings.Repeat("ark:12345/x54xz321,https://example.org/object/54321?view=full,text/html,\"Gomes, Ana\",Dunas do litoral,1992\r\n", 1000))
	b.Run("bulk", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		var cells []string
		for b.Loop() {
			for rest := text; len(rest) > 0; {
				end := RowEnd(rest, ',')
				var err error
				if cells, err = SplitRow(TrimEnd(rest[:end]), ',', cells[:0]); err != nil {
					b.Fatal(err)
				}
				rest = rest[end:]
			}
		}
	})
	b.Run("encoding-csv", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			r := csv.NewReader(bytes.NewReader(text))
			r.ReuseRecord = true
			for {
				if _, err := r.Read(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
				_ = r.InputOffset()
			}
		}
	})
}
