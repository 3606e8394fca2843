package schemetest

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"testing"

	"github.com/stele-id/stele"
)

// Benchmark measures scheme's Parse on texts, which are given by name, as
// name/stele, and net/url's Parse of the same text as name/net-url: a reader of
// URLs is the nearest peer that all schemes share. Both must take the text, for
// a refusal costs less than reading.
func Benchmark(b *testing.B, scheme stele.Scheme, texts map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		_, err := scheme.Parse(text)
		_, urlErr := url.Parse(text)
		if err := errors.Join(err, urlErr); err != nil {
			b.Fatalf("%s: %q can't be compared: %v", name, text, err)
		}
		b.Run(name+"/stele", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = scheme.Parse(text)
			}
		})
		b.Run(name+"/net-url", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = url.Parse(text)
			}
		})
	}
}
