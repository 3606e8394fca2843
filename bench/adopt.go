package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"
)

// adoptions compares the adoption of a bundle with an import of the same records. An adoption reads the bundle twice: it checks all of it
// first.
func (r *registryBench) adoptions(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	giver, heir, file := filepath.Join(r.work, "giver"), filepath.Join(r.work, "heir"), filepath.Join(r.work, "bundle.tar")
	defer func() { err = errors.Join(err, os.RemoveAll(giver), os.RemoveAll(heir), os.RemoveAll(file)) }()
	var rates, used [2][]float64
	var ratios, byCPU []float64
	var memory int64
	for i := range importRounds {
		progress("adoption of %d records, round %d of %d", n, i+1, importRounds)
		imported, err := r.importOnce(ctx, n, giver)
		if err != nil {
			return err
		}
		if err := command(ctx, r.stele, "ns", "add", "ark:12345", "--data", giver); err != nil {
			return err
		}
		key, err := exec.CommandContext(ctx, r.stele, "log", "key", "--origin", "bench.example.org/.log", "--data", giver).Output()
		if err != nil {
			return fmt.Errorf("stele log key: %w", err)
		}
		if err := errors.Join(os.RemoveAll(file), command(ctx, r.stele, "bundle", "ark:12345", "-o", file, "--data", giver)); err != nil {
			return err
		}
		adopted, err := r.adoptOnce(ctx, heir, file, string(bytes.TrimSpace(key)))
		if err != nil {
			return err
		}
		memory = max(memory, adopted.memory)
		for j, c := range []cost{adopted, imported} {
			rates[j], used[j] = append(rates[j], float64(n)/c.wall.Seconds()), append(used[j], c.cpu.Seconds()*1e6/float64(n))
		}
		ratios, byCPU = append(ratios, imported.wall.Seconds()/adopted.wall.Seconds()), append(byCPU, imported.cpu.Seconds()/adopted.cpu.Seconds())
	}
	fmt.Fprintf(w, "adoption of %d records from a bundle : import of the same\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n", n, median(rates[0]), median(rates[1]), median(ratios))
	fmt.Fprintf(w, "  by CPU time, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(used[0]), median(used[1]), median(byCPU))
	fmt.Fprintf(w, "  memory of the adoption\t%d MiB\t\t\t\t(for information)\n", memory>>20)
	return nil
}

// adoptOnce adopts a bundle in a new registry.
func (r *registryBench) adoptOnce(ctx context.Context, data, file, key string) (c cost, err error) {
	if err := os.RemoveAll(data); err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, r.stele, "adopt", file, "--key", key, "--data", data)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err = cmd.Run()
	c.wall = time.Since(begin)
	if err != nil {
		return c, fmt.Errorf("stele adopt: %w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = u.Maxrss * 1024 // of Linux, in kilobytes
	}
	return c, nil
}
