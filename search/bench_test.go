package search

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/pebble"
)

// benchRecords is how many records the benchmarks have.
const benchRecords = 150_000

// benchStore makes a store of records that are like those of 'make bench': with three words
// that no other record has, some that a sixteenth of all has, and some that all have.
func benchStore(b *testing.B) stele.Store {
	b.Helper()
	store, err := pebble.Open(b.Context(), b.TempDir(), pebble.Options{Now: func() time.Time { return clock }, Brief: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	things := [...]string{"rivers", "stones", "letters", "maps", "songs", "seeds", "tides", "bones", "bridges", "clouds", "coins", "dances", "gardens", "islands", "looms", "masks"}
	people := [...]string{"Almeida", "Brandt", "Castro", "Dubois", "Eriksen", "Fonseca", "Gupta", "Haddad", "Ito", "Jansen", "Kaya", "Lima", "Moreau", "Novak", "Okafor", "Pereira"}
	var list []*stele.Record
	for i := range benchRecords {
		x := uint64(i) * 0x9e3779b97f4a7c15
		name := fmt.Sprintf("%010x", x>>24)
		list = append(list, &stele.Record{
			ID: id("ark:12345/x" + name), State: stele.Active, Version: 1, Created: clock, Modified: clock, By: "local",
			Targets: []stele.Target{{Service: stele.N2L, URL: "https://archive.example.org/items/" + name + "/view"}},
			Metadata: stele.Metadata{
				"who":  people[x>>60] + ", " + people[x>>56&15],
				"what": fmt.Sprintf("On the %s and %s of Bahia, volume %d", things[x>>52&15], things[x>>48&15], i), "when": fmt.Sprint(1900 + i%120),
			},
		})
	}
	if _, err := store.Ingest(context.Background(), list, nil, nil, nil); err != nil {
		b.Fatal(err)
	}
	return store
}

// BenchmarkCatchUp indexes all records, and tells what the index takes.
func BenchmarkCatchUp(b *testing.B) {
	store := benchStore(b)
	for i := 0; b.Loop(); i++ {
		x, err := Open(b.Context(), Options{Folder: filepath.Join(b.TempDir(), fmt.Sprint(i)), Source: store})
		if err != nil {
			b.Fatal(err)
		}
		if err := x.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
		if x, err = Open(b.Context(), Options{Folder: x.o.Folder, Source: store}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(x.Status().Bytes)/benchRecords, "B/record")
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/benchRecords, "us/record")
}

// BenchmarkOffered indexes records that an import offers.
func BenchmarkOffered(b *testing.B) {
	store := benchStore(b)
	var list []*stele.Record
	for c, err := range store.Changes(b.Context(), 0) {
		if err != nil {
			b.Fatal(err)
		}
		r, err := store.Record(b.Context(), c.ID)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, r)
	}
	for i := 0; b.Loop(); i++ {
		x, err := Open(b.Context(), Options{Folder: filepath.Join(b.TempDir(), fmt.Sprint(i)), Source: store})
		if err != nil {
			b.Fatal(err)
		}
		x.Offer(list)
		if err := x.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/benchRecords, "us/record")
}

// BenchmarkFind measures searches.
func BenchmarkFind(b *testing.B) {
	store := benchStore(b)
	x, err := Open(b.Context(), Options{Folder: b.TempDir(), Source: store})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	if err := x.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"rare": "77777", "common": "rivers", "two": "rivers castro", "beginning": "riv*", "none": "nowhere"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := x.Find(b.Context(), &Query{Text: text, Limit: 25}, everything); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
