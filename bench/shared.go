package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// sharedBench measures a registry in PostgreSQL, which several servers may share,
// against what PostgreSQL and its driver do alone.
type sharedBench struct {
	*registryBench
	db *postgres
}

// tables are those of store/postgres that an import fills.
var tables = [...]string{"names", "history", "places", "counts", "changes"}

// figures prints all of them.
func (r *registryBench) shared(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	s := &sharedBench{registryBench: r}
	if s.db, err = startPostgres(ctx, r.work, 0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.stop()) }()
	for _, measure := range []func(context.Context, *tabwriter.Writer) error{s.imports, s.redirects, s.registrations} {
		if err := measure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// url is that of a database of the server.
func (p *postgres) url(database string) string {
	return "postgres://bench@/" + database + "?host=" + url.QueryEscape(p.folder)
}

// remake makes a database anew, with our tables.
func (s *sharedBench) remake(ctx context.Context, database string) error {
	if err := s.db.sql(ctx, "DROP DATABASE IF EXISTS "+database, "CREATE DATABASE "+database, "CHECKPOINT"); err != nil {
		return err
	}
	return command(ctx, s.stele, "store", "migrate", "--store", s.db.url(database))
}

// imports compares an import with a COPY of the same rows, as the import left them,
// into the same tables with the same indexes.
func (s *sharedBench) imports(ctx context.Context, w *tabwriter.Writer) error {
	path, err := s.file(s.records)
	if err != nil {
		return err
	}
	var ours, peer, ratios []float64
	for i := range importRounds {
		progress("import of %d records into %s, round %d of %d", s.records, s.db.version, i+1, importRounds)
		if err := s.remake(ctx, "registry"); err != nil {
			return err
		}
		begin := time.Now()
		if err := command(ctx, s.stele, "import", "--store", s.db.url("registry"), path); err != nil {
			return err
		}
		a := time.Since(begin).Seconds()
		b, err := s.copyTables(ctx)
		if err != nil {
			return err
		}
		progress("ours %.1f s, COPY %.1f s", a, b)
		ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, b/a)
	}
	fmt.Fprintf(w, "import of %d into %s : COPY of the same rows\t%.2f s\t%.2f s\t%.2f\t\tat least 0.7\n",
		s.records, s.db.version, median(ours), median(peer), median(ratios))
	return nil
}

// copyTables copies what an import made into another database, and returns how long
// that took.
func (s *sharedBench) copyTables(ctx context.Context) (seconds float64, err error) {
	if err := s.remake(ctx, "bare"); err != nil {
		return 0, err
	}
	var out, in []string
	for _, t := range tables {
		file := filepath.Join(s.db.folder, t+".rows")
		out = append(out, fmt.Sprintf("COPY stele.%s TO '%s' (FORMAT binary)", t, file))
		in = append(in, fmt.Sprintf("COPY stele.%s FROM '%s' (FORMAT binary)", t, file))
	}
	if err := s.db.sqlIn(ctx, "registry", append(out, "CHECKPOINT")...); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = s.db.sqlIn(ctx, "bare", in...)
	return time.Since(begin).Seconds(), err
}

// zipfLoad is loadScript with names of which few are asked for often: the n-th one about
// 1/n as often as the first.
var zipfLoad = strings.Replace(loadScript, "math.random(0, last)", "(math.floor(math.exp(math.random() * math.log(last + 1))) - 1)", 1)

// redirects compares redirects of a server over PostgreSQL: with all that it may keep in
// memory, with a server over the embedded store; and with nothing kept, with a bare
// handler that looks each name up.
func (s *sharedBench) redirects(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	names := filepath.Join(s.work, "names")
	if err := writeNames(names, s.records); err != nil {
		return err
	}
	embedded, _, err := s.startStele(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, embedded.stop()) }()
	warm, err := s.startOver(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, warm.stop()) }()
	if err := checkAnswers(ctx, warm, s.records); err != nil {
		return err
	}
	embedded.settle(ctx)
	warm.settle(ctx)
	l := load{core: cores[1], script: filepath.Join(s.work, "zipf.lua"), names: names}
	if err := os.WriteFile(l.script, []byte(zipfLoad), 0o644); err != nil {
		return err
	}
	row := fmt.Sprintf("redirects among %d through %s, a few names often, in a second of CPU time : embedded store", s.records, s.db.version)
	if err := l.ratio(ctx, w, warm, embedded, row, "at least 0.9"); err != nil {
		return err
	}
	return s.coldRedirects(ctx, w, cores, names)
}

// coldRedirects is the part in which nothing is kept.
func (s *sharedBench) coldRedirects(ctx context.Context, w *tabwriter.Writer, cores [2]int, names string) (err error) {
	cold, err := s.startOver(ctx, cores[0], "--cache", "0", "--redirect-cache", "0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cold.stop()) }()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bare, err := startServer(ctx, cores[0], address, self, "-bare", address, "-database", s.db.url("registry"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	if err := bare.await(ctx, "/ark:12345/"+benchName(0)); err != nil {
		return err
	}
	l := load{core: cores[1], script: filepath.Join(s.work, "uniform.lua"), names: names}
	if err := os.WriteFile(l.script, []byte(loadScript), 0o644); err != nil {
		return err
	}
	return l.ratio(ctx, w, cold, bare, "  any name as often, nothing kept in memory : bare pgx look-up behind net/http", "at least 0.8")
}

// ratio prints how many answers each of two servers gives in a second of CPU time.
func (l *load) ratio(ctx context.Context, w *tabwriter.Writer, ours, peer *server, name, wanted string) error {
	var speeds, rates [2][]float64
	var ratios []float64
	for i := range rounds + 1 {
		progress("redirects, round %d of %d", i, rounds)
		var seen [2]answers
		for j, s := range []*server{ours, peer} {
			a, err := l.run(ctx, s)
			if err != nil {
				return err
			}
			seen[j] = a
		}
		if i == 0 {
			continue // warming up
		}
		for j, a := range seen {
			speeds[j], rates[j] = append(speeds[j], a.perCPU()), append(rates[j], a.rate)
		}
		ratios = append(ratios, seen[0].perCPU()/seen[1].perCPU())
	}
	fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t\t%s\n", name, median(speeds[0]), median(speeds[1]), median(ratios), wanted)
	fmt.Fprintf(w, "    by the clock\t%.0f/s\t%.0f/s\t%.2f\t\t(for information)\n",
		median(rates[0]), median(rates[1]), median(rates[0])/median(rates[1]))
	return nil
}

// startOver starts our server over the filled database, on a core.
func (s *sharedBench) startOver(ctx context.Context, core int, flags ...string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--store", s.db.url("registry"), "--http", address, "--log-level", "warn"}, flags...)
	over, err := startServer(ctx, core, address, s.stele, args...)
	if err != nil {
		return nil, err
	}
	if err := over.await(ctx, "/ark:12345/"+benchName(0)); err != nil {
		return nil, errors.Join(err, over.stop())
	}
	return over, nil
}

// startOverAPI starts our server over an empty database, on all cores, with a user's token
// for it.
func (s *sharedBench) startOverAPI(ctx context.Context, database string) (*apiServer, error) {
	if err := s.remake(ctx, database); err != nil {
		return nil, err
	}
	at := s.db.url(database)
	if err := command(ctx, s.stele, "user", "add", "bench", "--admin", "--store", at); err != nil {
		return nil, err
	}
	token, err := exec.CommandContext(ctx, s.stele, "token", "create", "bench", "--store", at).Output()
	if err != nil {
		return nil, fmt.Errorf("stele token create: %w", err)
	}
	return s.serveAPI(ctx, -1, string(bytes.TrimSpace(token)), "--store", at)
}
