package publish_test

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele/publish/publishtest"
)

// BenchmarkLookup measures an answer that is in no cache: a record with three rules, where
// case does not count and where it does, and a name that does not exist.
func BenchmarkLookup(b *testing.B) {
	for _, prefix := range []string{"urn:paradisec", "urn:example"} {
		p := publishtest.New(b)
		p.Publish(prefix, "zone.example.", ":", 3)
		for i := range 1000 {
			p.Register(fmt.Sprintf("%s:C%d:i:N%d", prefix, i%10, i), "N2L text/html http://example.org/", "N2L audio/wav http://example.org/wav", "N2C http://example.org/json")
		}
		for _, name := range []string{"n500.i.c0.zone.example.", "n1000.i.c0.zone.example."} {
			_, z := p.Lookup(name)
			b.Run(prefix+"/"+name[:5], func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := z.Lookup(p.Ctx, name); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
