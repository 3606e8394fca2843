package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/transparency"
)

// logged measures what the transparency log costs: an import, durable commits, and space on the disk.
func (r *registryBench) logged(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.loggedImports(ctx, w); err != nil {
		return err
	}
	return r.loggedCommits(ctx, w)
}

// loggedImports compares an import that ends when the log has caught up with one that leaves it for later.
func (r *registryBench) loggedImports(ctx context.Context, w *tabwriter.Writer) error {
	n := min(r.records, million)
	folders := [2]string{filepath.Join(r.work, "logged"), filepath.Join(r.work, "unlogged")}
	var rates, used [2][]float64
	var ratios, byCPU []float64
	for i := range importRounds {
		progress("import of %d records and their log, round %d of %d", n, i+1, importRounds)
		var one [2]cost
		for k := range one {
			j := (i + k) % 2 // they take turns at being first
			flags := [][]string{nil, {"--no-log"}}[j]
			var err error
			if one[j], err = r.importOnce(ctx, n, folders[j], flags...); err != nil {
				return err
			}
			rates[j], used[j] = append(rates[j], float64(n)/one[j].wall.Seconds()), append(used[j], one[j].cpu.Seconds()*1e6/float64(n))
		}
		ratios, byCPU = append(ratios, one[1].wall.Seconds()/one[0].wall.Seconds()), append(byCPU, one[1].cpu.Seconds()/one[0].cpu.Seconds())
	}
	fmt.Fprintf(w, "import of %d with the log : without\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.9\n", n, median(rates[0]), median(rates[1]), median(ratios))
	fmt.Fprintf(w, "  by CPU time, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(used[0]), median(used[1]), median(byCPU))
	var sizes [2]int64
	for j, folder := range folders {
		if err := command(ctx, r.stele, "store", "compact", "--data", folder); err != nil {
			return err
		}
		var err error
		if sizes[j], err = disk.FolderSize(folder); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "the log on disk, a change of %d\t%.1f B\t\t\t\tat most 64 B\n", n, float64(sizes[0]-sizes[1])/float64(n))
	return nil
}

// loggedCommits compares durable commits while the log follows, until it has caught up, with those without a log.
func (r *registryBench) loggedCommits(ctx context.Context, w *tabwriter.Writer) (err error) {
	var made atomic.Uint64
	var rates, used [2][]float64
	var ratios, byCPU []float64
	for i := range rounds {
		progress("registering with the log and without, round %d of %d", i+1, rounds)
		var rate, cost [2]float64
		for k := range rate {
			j := (i + k) % 2
			if rate[j], cost[j], err = r.commitLogged(ctx, fmt.Sprintf("commits-%d-%d", i, j), j == 0, &made); err != nil {
				return err
			}
			rates[j], used[j] = append(rates[j], rate[j]), append(used[j], cost[j])
		}
		ratios, byCPU = append(ratios, rate[0]/rate[1]), append(byCPU, cost[1]/cost[0])
	}
	fmt.Fprintf(w, "durable commits of %d goroutines with the log : without\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.97\n", callers, median(rates[0]), median(rates[1]), median(ratios))
	fmt.Fprintf(w, "  by CPU time, a commit\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(used[0]), median(used[1]), median(byCPU))
	return nil
}

// commitLogged commits for a while in a new registry. It returns commits a second, and the CPU time of one in microseconds.
func (r *registryBench) commitLogged(ctx context.Context, name string, follow bool, made *atomic.Uint64) (rate, cost float64, err error) {
	d, err := r.openMinters(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	log := transparency.New(transparency.Options{
		Source: d.store, Cells: d.Registrar, Random: rand.Reader, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (transparency.Listed, error) { return d.Public(ctx) },
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if follow {
			log.Run(running, transparency.Signing{Interval: time.Hour, Keys: func(context.Context) (*transparency.Keys, error) { return nil, nil }})
		}
	}()
	first, begin, before := made.Load(), time.Now(), cpu()
	_, err = together(callers, commitFor, func() error { _, err := d.register(made.Add(1)); return err })
	stop()
	<-ended
	if err == nil && follow {
		err = log.CatchUp(ctx, nil)
	}
	n := float64(made.Load() - first)
	return n / time.Since(begin).Seconds(), float64((cpu() - before).Microseconds()) / n, err
}
