package pebble

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// benchID makes the n-th identifier: in order, or as if at random.
func benchID(b testing.TB, n int, random bool) stele.ID {
	text := fmt.Sprintf("ark:12345/x%09d", n)
	if random {
		text = fmt.Sprintf("ark:12345/x%016x", uint64(n)*0x9e3779b97f4a7c15)
	}
	id, err := stele.NewID("ark", text)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// benchRecord makes a record of about 250 bytes as JSON.
func benchRecord(b testing.TB, n int, random bool) *stele.Record {
	id := benchID(b, n, random)
	name := strings.TrimPrefix(id.String(), "ark:12345/")
	words := [...]string{"river", "stone", "letters", "maps", "songs", "seeds", "tides", "bones"}
	return &stele.Record{
		ID: id, State: stele.Active, Version: 1,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://repository.example.org/items/" + name, Type: "text/html", Order: 100, Preference: 10}},
		Metadata: stele.Metadata{
			stele.Who:  fmt.Sprintf("%s, %c.", words[n%8], 'A'+n%26),
			stele.What: fmt.Sprintf("On the %s and %s of %d", words[n/8%8], words[n/64%8], n),
			stele.When: fmt.Sprint(1900 + n%120),
		},
		Created: time.Unix(1_790_000_000, 0).UTC(), Modified: time.Unix(1_790_000_000, 0).UTC(), By: "ana",
	}
}

func openBench(b testing.TB, folder string) *Store {
	b.Helper()
	s, err := Open(context.Background(), folder, Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func countRoot(id stele.ID) (stele.NamespaceKey, uint64) {
	return stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"}, 0
}

// fillBench ingests n records in chunks.
func fillBench(b testing.TB, s *Store, n, chunk int, random bool) (took, cpu time.Duration) {
	b.Helper()
	for from := 0; from < n; from += chunk {
		records := make([]*stele.Record, 0, chunk)
		for i := from; i < min(n, from+chunk); i++ {
			records = append(records, benchRecord(b, i, random))
		}
		begin, cpuBegin := time.Now(), cpuTime(b)
		errs, err := s.Ingest(b.Context(), records, countRoot, nil, nil)
		took += time.Since(begin)
		cpu += cpuTime(b) - cpuBegin
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range errs {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return took, cpu
}

// cpuTime is how long processors have worked for this process. On a busy machine it
// says more than the clock.
func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// onDisk adds up the sizes of a folder's files.
func onDisk(b testing.TB, folder string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil // merged with others just now
		}
		if err == nil && !strings.HasSuffix(d.Name(), ".log") {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// BenchmarkIngest ingests a million records, with all indexes, in chunks of 100,000.
func BenchmarkIngest(b *testing.B) {
	const n, chunk = 1_000_000, 100_000
	for _, random := range []bool{false, true} {
		b.Run(map[bool]string{false: "in order", true: "at random"}[random], func(b *testing.B) {
			for range b.N {
				folder := filepath.Join(b.TempDir(), "db")
				s := openBench(b, folder)
				took, cpu := fillBench(b, s, n, chunk, random)
				fresh := onDisk(b, folder)
				if err := s.current.Load().db.Compact(b.Context(), []byte{0}, []byte{0xff}, false); err != nil {
					b.Fatal(err)
				}
				mustClose(b, s)
				b.ReportMetric(n/took.Seconds(), "records/s")
				b.ReportMetric(float64(cpu.Microseconds())/n, "cpu-us/record")
				b.ReportMetric(float64(fresh)/n, "B/record")
				b.ReportMetric(float64(onDisk(b, folder))/n, "B/record-compacted")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkGet looks up names at random among 500,000, against a bare Get of Pebble's.
func BenchmarkGet(b *testing.B) {
	const n = 500_000
	s := openBench(b, filepath.Join(b.TempDir(), "db"))
	defer mustClose(b, s)
	fillBench(b, s, n, 100_000, true)
	if err := s.current.Load().db.Compact(b.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		b.Fatal(err)
	}
	db := s.current.Load().db
	for range s.Scan(b.Context(), "ark", "", "") { // so that the first to be measured finds blocks in memory, too
	}
	name := func(miss bool) stele.ID {
		if i := rand.IntN(n); !miss {
			return benchID(b, i, true)
		} else {
			return benchID(b, n+i, true)
		}
	}
	for _, miss := range []bool{false, true} {
		kind := map[bool]string{false: "hit", true: "miss"}[miss]
		b.Run(kind+"/stele", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Record(b.Context(), name(miss)); (err != nil) != miss {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind+"/pebble", func(b *testing.B) {
			for b.Loop() {
				value, closer, err := db.Get(nameKey(name(miss)))
				if (err != nil) != miss {
					b.Fatal(err)
				}
				if err == nil {
					_ = value
					closer.Close()
				}
			}
		})
	}
}

// BenchmarkApply commits new records from one goroutine and from 64, against bare
// synced batches of Pebble's with as many bytes.
func BenchmarkApply(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprint(writers, "/stele"), func(b *testing.B) {
			s := openBench(b, filepath.Join(b.TempDir(), "db"))
			defer mustClose(b, s)
			b.ResetTimer()
			share(b, writers, func(n int) {
				if err := s.Apply(b.Context(), &stele.Commit{Records: []*stele.Record{benchRecord(b, n, true)}, Counter: countRoot}); err != nil {
					b.Error(err)
				}
			})
		})
		b.Run(fmt.Sprint(writers, "/pebble"), func(b *testing.B) {
			s := openBench(b, filepath.Join(b.TempDir(), "db"))
			defer mustClose(b, s)
			db := s.current.Load().db
			b.ResetTimer()
			share(b, writers, func(n int) {
				body, err := binary.MarshalRecord(benchRecord(b, n, true))
				if err != nil {
					b.Error(err)
				}
				batch := db.NewBatch()
				key := nameKey(benchID(b, n, true))
				// As many bytes as a commit has with its indexes.
				_ = batch.Set(key, append(body, make([]byte, 250)...), nil)
				if err := db.Apply(batch, pebbledb.Sync); err != nil {
					b.Error(err)
				}
				batch.Close()
			})
		})
	}
}

// share does b.N things from several goroutines.
func share(b *testing.B, workers int, do func(n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	begin := cpuTime(b)
	for range workers {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N) && !b.Failed(); n = next.Add(1) {
				do(int(n))
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64((cpuTime(b)-begin).Microseconds())/float64(b.N), "cpu-us/op")
}
