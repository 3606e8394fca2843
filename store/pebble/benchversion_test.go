package pebble

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// BenchmarkOldVersion reads versions of a record, here and there in its history, by number
// and by date. With 100,000 versions it costs about as much as with 100: one seek.
func BenchmarkOldVersion(b *testing.B) {
	for _, versions := range []uint64{100, 100_000} {
		s, err := Open(b.Context(), "db", Options{Now: time.Now, FS: vfs.NewMem()}) // a commit in memory needs no disk
		if err != nil {
			b.Fatal(err)
		}
		r := benchRecord(b, 1, false)
		first := r.Modified
		for version := range versions {
			next := *r
			next.Version, next.Modified = version+1, first.Add(time.Duration(version)*time.Second)
			if err := s.Apply(b.Context(), &stele.Commit{Records: []*stele.Record{&next}}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("by number of %d", versions), func(b *testing.B) {
			for n := uint64(0); b.Loop(); n++ {
				want := n*7919%(versions-1) + 1
				if got, err := s.Version(b.Context(), r.ID, want); err != nil || got.Version != want {
					b.Fatal(got, err)
				}
			}
		})
		b.Run(fmt.Sprintf("by date of %d", versions), func(b *testing.B) {
			for n := uint64(0); b.Loop(); n++ {
				want := n*7919%(versions-1) + 1
				if got, err := s.VersionAt(b.Context(), r.ID, first.Add(time.Duration(want-1)*time.Second)); err != nil || got.Version != want {
					b.Fatal(got, err)
				}
			}
		})
		mustClose(b, s)
	}
}
