package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// durable is a cluster that syncs its disk, which all benchmarks share.
var durable *postgrestest.Server

func benchServer(b *testing.B) *postgrestest.Server {
	b.Helper()
	if durable == nil {
		var err error
		if durable, err = postgrestest.New(postgrestest.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	return durable
}

func closeDurable() error {
	if durable == nil {
		return nil
	}
	return durable.Close()
}

// benchRecord makes the n-th record, of about 250 bytes as JSON, in no order of names.
func benchRecord(b testing.TB, n int) *stele.Record {
	name := fmt.Sprintf("x%016x", uint64(n)*0x9e3779b97f4a7c15)
	words := [...]string{"river", "stone", "letters", "maps", "songs", "seeds", "tides", "bones"}
	return &stele.Record{
		ID: newID(b, "ark", "ark:12345/"+name), State: stele.Active, Version: 1,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://repository.example.org/items/" + name, Type: "text/html", Order: 100, Preference: 10}},
		Metadata: stele.Metadata{
			stele.Who:  fmt.Sprintf("%s, %c.", words[n%8], 'A'+n%26),
			stele.What: fmt.Sprintf("On the %s and %s of %d", words[n/8%8], words[n/64%8], n),
			stele.When: fmt.Sprint(1900 + n%120),
		},
		Created: time.Unix(1_790_000_000, 0).UTC(), Modified: time.Unix(1_790_000_000, 0).UTC(), By: "ana",
	}
}

// together lets clients do b.N things.
func together(b *testing.B, clients int, do func(n int) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	cpu := cpuTime(b)
	b.ResetTimer()
	for range clients {
		all.Go(func() {
			for n := int(next.Add(1)); n <= b.N; n = int(next.Add(1)) {
				if err := do(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-us/record")
}

// cpuTime is the processor time of this process and the server: what a rate comes to on a
// machine that has nothing else to do.
func cpuTime(b *testing.B) time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	return time.Duration(own.Utime.Nano()+own.Stime.Nano()) + benchServer(b).CPU()
}

func barePool(b *testing.B, url string, connections int) *pgxpool.Pool {
	b.Helper()
	c, err := parse(url, Options{Wait: DefaultWait})
	if err != nil {
		b.Fatal(err)
	}
	c.MaxConns, c.MinConns = int32(connections), int32(connections)
	p, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return p
}

// BenchmarkRegister: durable registrations of 64 clients, through the store and as bare
// inserts of the same rows.
func BenchmarkRegister(b *testing.B) {
	const clients = 64
	count := func(stele.ID) (stele.NamespaceKey, uint64) {
		return stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/"}, 0
	}
	b.Run("store", func(b *testing.B) {
		s := opened(b, migrated(b, benchServer(b)), Options{})
		together(b, clients, func(n int) error {
			return s.Apply(context.Background(), &stele.Commit{Records: []*stele.Record{benchRecord(b, n)}, Counter: count})
		})
	})
	b.Run("pgx", func(b *testing.B) {
		p := barePool(b, migrated(b, benchServer(b)), clients)
		together(b, clients, func(n int) error {
			e, err := newEntry(benchRecord(b, n), count)
			if err != nil {
				return err
			}
			batch := &pgx.Batch{}
			batch.Queue(`INSERT INTO names (key, version, body) VALUES ($1, 1, $2)`, e.name, e.body)
			for _, place := range e.places {
				batch.Queue(`INSERT INTO places (place, record) VALUES ($1, $2)`, []byte(place), e.name)
			}
			batch.Queue(`INSERT INTO changes (seq, at, name, space, version, counted) VALUES ($1, $2, $3, false, 1, $4)`,
				n, time.Now(), e.name, namespaceName(e.counted.Namespace))
			return p.SendBatch(context.Background(), batch).Close()
		})
	})
}

// BenchmarkIngest: many new records, through the store and as a bare COPY of the same
// rows, in chunks as an import has them.
func BenchmarkIngest(b *testing.B) {
	const chunk = 10_000
	chunks := func(b *testing.B, do func(list []*stele.Record) error) {
		var cpu time.Duration
		for n := 0; n < b.N; n += chunk {
			b.StopTimer()
			var list []*stele.Record
			for i := n; i < min(n+chunk, b.N); i++ {
				list = append(list, benchRecord(b, i))
			}
			before := cpuTime(b)
			b.StartTimer()
			if err := do(list); err != nil {
				b.Fatal(err)
			}
			cpu += cpuTime(b) - before
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/record")
	}
	b.Run("store", func(b *testing.B) {
		s := opened(b, migrated(b, benchServer(b)), Options{})
		chunks(b, func(list []*stele.Record) error {
			_, err := s.Ingest(context.Background(), list, nil, nil, nil)
			return err
		})
	})
	b.Run("pgx", func(b *testing.B) {
		p := barePool(b, migrated(b, benchServer(b)), 1)
		seq := 0
		chunks(b, func(list []*stele.Record) error {
			var names, places, changes [][]any
			for _, r := range list {
				e, err := newEntry(r, nil)
				if err != nil {
					return err
				}
				seq++
				names = append(names, []any{e.name, 1, e.body})
				for _, place := range e.places {
					places = append(places, []any{[]byte(place), e.name})
				}
				changes = append(changes, []any{seq, time.Now(), e.name, false, 1})
			}
			return pgx.BeginFunc(context.Background(), p, func(tx pgx.Tx) error {
				for _, t := range []struct {
					name    string
					columns []string
					rows    [][]any
				}{
					{"names", []string{"key", "version", "body"}, names},
					{"places", []string{"place", "record"}, places},
					{"changes", []string{"seq", "at", "name", "space", "version"}, changes},
				} {
					if _, err := tx.CopyFrom(context.Background(), pgx.Identifier{t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// BenchmarkRecord: look-ups at random of 64 clients, through the store and as a bare
// prepared statement.
func BenchmarkRecord(b *testing.B) {
	const clients, records, connections = 64, 50_000, 16
	url := migrated(b, benchServer(b))
	s := opened(b, url, Options{Connections: connections})
	var list []*stele.Record
	for n := range records {
		list = append(list, benchRecord(b, n))
	}
	if _, err := s.Ingest(context.Background(), list, nil, nil, nil); err != nil {
		b.Fatal(err)
	}
	b.Run("store", func(b *testing.B) {
		together(b, clients, func(int) error {
			_, err := s.Record(context.Background(), list[rand.IntN(records)].ID)
			return err
		})
	})
	b.Run("pgx", func(b *testing.B) {
		p := barePool(b, url, connections)
		together(b, clients, func(int) error {
			var body []byte
			err := p.QueryRow(context.Background(), `SELECT body FROM names WHERE key = $1`, nameOf(list[rand.IntN(records)].ID)).Scan(&body)
			if err != nil {
				return err
			}
			return binary.UnmarshalRecord(body, new(stele.Record))
		})
	})
}
