package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/stele-id/stele/internal/disk"
)

// logged measures what the transparency log costs: an import, records that are put, and space on the disk.
func (r *registryBench) logged(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.loggedImports(ctx, w); err != nil {
		return err
	}
	return r.loggedPuts(ctx, w)
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

// loggedPuts compares records that are put one by one over HTTP, each durable before the answer, at a server that keeps the log with
// one that does not. The time, and the CPU time, are counted until the log has caught up.
func (r *registryBench) loggedPuts(ctx context.Context, w *tabwriter.Writer) (err error) {
	script := filepath.Join(r.work, "logged-put.lua")
	if err := os.WriteFile(script, []byte(putScript), 0o600); err != nil {
		return err
	}
	var servers [2]*apiServer
	for j, flags := range [][]string{{"--log-origin", "bench.example.org/.log"}, {"--log=false"}} {
		if servers[j], err = r.startAPI(ctx, -1, filepath.Join(r.work, fmt.Sprintf("logged-put-%d", j)), flags...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[j].stop()) }()
	}
	var rates, used [2][]float64
	var ratios, byCPU []float64
	for i := range rounds {
		progress("records put with the log and without, round %d of %d", i+1, rounds)
		var rate, cost [2]float64
		for k := range rate {
			j := (i + k) % 2 // they take turns at being first
			before := usedBy(servers[j].pid())
			a, err := wrk(ctx, -1, servers[j].server, script, servers[j].token, fmt.Sprint(i))
			if err != nil {
				return err
			}
			rest := servers[j].settle(ctx)
			rate[j], cost[j] = settledRate(a, rest), float64((usedBy(servers[j].pid())-before).Microseconds())/float64(a.number)
			rates[j], used[j] = append(rates[j], rate[j]), append(used[j], cost[j])
		}
		ratios, byCPU = append(ratios, rate[0]/rate[1]), append(byCPU, cost[1]/cost[0])
	}
	fmt.Fprintf(w, "records put over HTTP, %d connections, until the log has caught up : without\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.97\n", connections, median(rates[0]), median(rates[1]), median(ratios))
	fmt.Fprintf(w, "  by CPU time of the server, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(used[0]), median(used[1]), median(byCPU))
	return nil
}
