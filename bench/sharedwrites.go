package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele/store/binary"
)

// registrations compares records that are put one by one through a server, each durable
// before the answer, with bare inserts of the same rows; and again with a standby that must
// have each commit before it is acknowledged.
func (s *sharedBench) registrations(ctx context.Context, w *tabwriter.Writer) (err error) {
	script := filepath.Join(s.work, "put.lua")
	if err := os.WriteFile(script, []byte(putScript), 0o644); err != nil {
		return err
	}
	server, err := s.startOverAPI(ctx, "puts")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	if err := s.remake(ctx, "bare"); err != nil {
		return err
	}
	bare, err := newBareRows(ctx, s.db.url("bare"))
	if err != nil {
		return err
	}
	defer bare.pool.Close()
	run := 0
	measure := func() (ours, peer, ratio float64, err error) {
		var a, b, r []float64
		for range rounds {
			run++
			progress("records put through %s, run %d", s.db.version, run)
			x, err := wrk(ctx, -1, server.server, script, server.token, fmt.Sprint(run))
			if err != nil {
				return 0, 0, 0, err
			}
			y, err := together(connections, loadFor, func() error { return bare.insert(ctx) })
			if err != nil {
				return 0, 0, 0, err
			}
			a, b, r = append(a, x.rate), append(b, y), append(r, x.rate/y)
		}
		return median(a), median(b), median(r), nil
	}
	ours, peer, ratio, err := measure()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "records put over HTTP into %s, %d connections : bare inserts of the same rows\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n",
		s.db.version, connections, ours, peer, ratio)
	standby, err := s.db.startStandby(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, standby.stop()) }()
	behind, peerBehind, ratioBehind, err := measure()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  behind a synchronous standby : bare inserts behind it\t%.0f/s\t%.0f/s\t%.2f\t\t(for information)\n", behind, peerBehind, ratioBehind)
	fmt.Fprintf(w, "  behind a synchronous standby : without it\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n", behind, ours, behind/ours)
	return s.db.sql(ctx, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
}

// bareRows inserts rows like those of a new record.
type bareRows struct {
	pool *pgxpool.Pool
	body []byte
	n    atomic.Uint64
}

func newBareRows(ctx context.Context, url string) (*bareRows, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = connections, connections
	config.ConnConfig.RuntimeParams["search_path"] = "stele"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	rec, err := putRecord()
	if err != nil {
		return nil, err
	}
	body, err := binary.MarshalRecord(rec)
	return &bareRows{pool: pool, body: body}, err
}

// insert inserts the rows of one record, in one transaction.
func (b *bareRows) insert(ctx context.Context) error {
	n := b.n.Add(1)
	name := fmt.Appendf(nil, "ark\x00ark:12345/x0r%d", n)
	var batch pgx.Batch
	batch.Queue("INSERT INTO names (key, version, body) VALUES ($1, 1, $2)", name, b.body)
	batch.Queue("INSERT INTO places (place, record) VALUES ($1, $3), ($2, $3)",
		fmt.Appendf(nil, "uhttps://archive.example.org/items/%d/view", n), []byte("harchive.example.org"), name)
	batch.Queue("INSERT INTO changes (seq, at, name, space, version) VALUES ($1, $2, $3, false, 1)", int64(n), time.Now(), name)
	return b.pool.SendBatch(ctx, &batch).Close()
}

// serveBare answers with redirects to one place, each after a look-up by a prepared
// statement, and does nothing else.
func serveBare(ctx context.Context, address, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		err := pool.QueryRow(r.Context(), "SELECT body FROM stele.names WHERE key = $1", []byte("ark\x00"+strings.TrimPrefix(r.URL.Path, "/"))).Scan(&body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Location", "https://archive.example.org/items/0123456789/view")
		w.WriteHeader(http.StatusFound)
	})}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
