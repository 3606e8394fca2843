package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"text/tabwriter"
)

// fewNames is how many names the smaller registry of growth has.
const fewNames = 100_000

// growth compares redirects among all records with those among a few, and tells what the first start after a large
// import takes. `make soak` runs it with a hundred million records.
func (r *registryBench) growth(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	cores, err := twoCores()
	if err != nil {
		return err
	}
	script := filepath.Join(r.work, "growth.lua")
	if err := os.WriteFile(script, []byte(loadScript), 0o644); err != nil {
		return err
	}
	// They share the program and the folder for work, which belongs to r.
	few, many := *r, *r
	few.records, few.filled = fewNames, filepath.Join(r.work, "few")
	many.filled = filepath.Join(r.work, "many")
	var loads [2]load
	for i, b := range []*registryBench{&few, &many} {
		loads[i] = load{core: cores[1], script: script, names: fmt.Sprintf("%s.names", b.filled)}
		if err := writeNames(loads[i].names, b.records); err != nil {
			return err
		}
		progress("import of %d records", b.records)
		if _, err := b.importOnce(ctx, b.records, b.filled); err != nil {
			return err
		}
	}
	if err := many.firstStart(ctx, w, cores[0], &loads[1]); err != nil {
		return err
	}
	var servers [2]*server
	for i, b := range []*registryBench{&few, &many} {
		if servers[i], _, err = b.startStele(ctx, cores[0], "--redirect-cache", "0"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].stop()) }()
		servers[i].settle(ctx)
	}
	var each [2][]float64
	var ratios []float64
	for round := range rounds + 1 {
		var seen [2]float64
		for i := range servers {
			a, err := loads[i].run(ctx, servers[i])
			if err != nil {
				return err
			}
			seen[i] = 1e6 / a.perCPU()
		}
		if round == 0 {
			continue // it reads what the page cache does not hold yet
		}
		progress("growth, round %d of %d: %.1f us of CPU each among %d, %.1f us among %d", round, rounds, seen[1], many.records, seen[0], few.records)
		each[0], each[1], ratios = append(each[0], seen[0]), append(each[1], seen[1]), append(ratios, seen[1]/seen[0])
	}
	fmt.Fprintf(w, "redirects of any name among %d : among %d, nothing kept in memory, CPU time each\t%.1f us\t%.1f us\t%.2f\t\t%s\n",
		many.records, few.records, median(each[1]), median(each[0]), median(ratios), wantedGrowth(r.records))
	return nil
}

// wantedGrowth is what we ask of a registry with so many records, beside one with few.
func wantedGrowth(records int) string {
	if records > 10*million {
		return "at most 2"
	}
	return "at most 1.3"
}

// firstStart starts a server for the first time after an import, kills it while it may be merging tables, starts it again, and
// compares the rate of answers then with the rate when it is at rest.
func (r *registryBench) firstStart(ctx context.Context, w *tabwriter.Writer, core int, l *load) error {
	s, first, err := r.startStele(ctx, core)
	if err != nil {
		return err
	}
	if err := s.kill(); err != nil {
		return err
	}
	s, second, err := r.startStele(ctx, core)
	if err != nil {
		return err
	}
	early, err := l.run(ctx, s)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	s.settle(ctx)
	late, err := l.run(ctx, s)
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	fmt.Fprintf(w, "first start after an import of %d, to the first redirect\t%.0f ms\t\t\t\tat most 2000 ms\n", r.records, first.Seconds()*1000)
	fmt.Fprintf(w, "  the same after a kill at once\t%.0f ms\t\t\t\tat most 2000 ms\n", second.Seconds()*1000)
	fmt.Fprintf(w, "  redirects then, by the clock : when it is at rest\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.7\n", early.rate, late.rate, early.rate/late.rate)
	return nil
}

// kill ends a server as a crash does.
func (s *server) kill() error {
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	return nil
}

// second compares a second import of a million other records with that of the first million.
func (r *registryBench) second(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	path := filepath.Join(r.work, "second.jsonl")
	if err := writeRecordsFrom(path, r.records, n, false); err != nil {
		return err
	}
	alone, both := filepath.Join(r.work, "alone"), filepath.Join(r.work, "both")
	var took [2][]float64
	var ratios []float64
	for i := range importRounds {
		first, err := r.importOnce(ctx, n, alone)
		if err != nil {
			return err
		}
		if _, err := r.importOnce(ctx, r.records, both); err != nil {
			return err
		}
		second, err := r.timed(ctx, n > million, "import", "--data", both, path)
		if err != nil {
			return err
		}
		progress("second import of %d, round %d of %d: %s, the first %s", n, i+1, importRounds, second, first)
		took[0], took[1] = append(took[0], second.wall.Seconds()), append(took[1], first.wall.Seconds())
		ratios = append(ratios, second.wall.Seconds()/first.wall.Seconds())
	}
	fmt.Fprintf(w, "import of %d more into a registry of %d : of the first %d\t%.2f s\t%.2f s\t%.2f\t\tat most 1.5\n",
		n, r.records, n, median(took[0]), median(took[1]), median(ratios))
	return errors.Join(os.RemoveAll(alone), os.RemoveAll(both), os.Remove(path))
}
