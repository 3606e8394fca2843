package hdl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele/scheme/hdl"
)

// Figures that users rely on: see BenchmarkParse for time.
func TestAllocations(t *testing.T) {
	scheme := hdl.New(today)
	for text, limit := range map[string]float64{
		"10.1000/182":                 0,
		"hdl:0.NA/10.1000":            0,
		"https://doi.org/10.1000/182": 0,
		"10.1000/a-name-of-some-length-in-small-letters":                                   1,
		"https://hdl.handle.net/cnri.test/a-name-of-some-length-%C3%A9-percent-encoded-so": 3,
		"urn:doi:10.123:a-name-of-some-length-%C3%A9-percent-encoded-so":                   3,
		"https://" + strings.Repeat("A", 60) + ".EXAMPLE/hdl/10.1000/182":                  0,
	} {
		if got := testing.AllocsPerRun(100, func() { scheme.Parse(text) }); got > limit {
			t.Errorf("Parse(%q): %v allocations, want at most %v", text, got, limit)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	scheme := hdl.New(today)
	for _, c := range []struct{ name, text string }{
		{"bare", "102.100.272/Y35XYS0QH"},
		{"doi", "doi:10.1038/nphys1170"},
		{"url", "https://doi.org/10.1002/(sici)1097-0258(19980815/30)17:15/16%3C1661::aid-sim968%3E3.0.co;2-2"},
		{"other host", "http://resolver.net.au/hdl/102.100.272/Y35XYS0QH"},
	} {
		b.Run(c.name+"/stele", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				scheme.Parse(c.text)
			}
		})
		b.Run(c.name+"/net/url", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				url.Parse(c.text)
			}
		})
	}
}
