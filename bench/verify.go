package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// pipes compares an import from a pipe with one of the same file by its name.
func (r *registryBench) pipes(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	data := filepath.Join(r.work, "pipes")
	var rates [2][]float64
	var ratios []float64
	for i := range importRounds {
		var one [2]cost
		for k := range one {
			var err error
			j := (i + k) % 2 // the ways take turns at being first
			if j == 0 {
				one[j], err = r.importPiped(ctx, n, data)
			} else {
				one[j], err = r.importOnce(ctx, n, data)
			}
			if err != nil {
				return err
			}
			rates[j] = append(rates[j], float64(n)/one[j].wall.Seconds())
		}
		progress("import of %d, round %d of %d: from a pipe %s, by name %s", n, i+1, importRounds, one[0], one[1])
		ratios = append(ratios, one[1].wall.Seconds()/one[0].wall.Seconds())
	}
	fmt.Fprintf(w, "import of %d from a pipe : of the same file by its name\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.9\n", n, median(rates[0]), median(rates[1]), median(ratios))
	return os.RemoveAll(data)
}

// importPiped imports n records into a new registry: cat FILE | stele import -.
func (r *registryBench) importPiped(ctx context.Context, n int, data string) (c cost, err error) {
	path, err := r.file(n)
	if err != nil {
		return c, err
	}
	if err := os.RemoveAll(data); err != nil {
		return c, err
	}
	cat := exec.CommandContext(ctx, "cat", path)
	in, err := cat.StdoutPipe()
	if err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, r.stele, "import", "--data", data, "-")
	cmd.Stdin = in
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	begin := time.Now()
	if err := cat.Start(); err != nil {
		return c, err
	}
	out, err := cmd.CombinedOutput()
	c.wall = time.Since(begin)
	if err := errors.Join(err, cat.Wait()); err != nil {
		return c, fmt.Errorf("stele import -: %w: %s", err, out)
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// verifies compares the verification of a registry with a bare scan of its tables, whose blocks have checksums.
func (r *registryBench) verifies(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.fill(ctx); err != nil {
		return err
	}
	var took [2][]float64
	var ratios []float64
	for i := range importRounds {
		scan, err := bareScan(r.filled)
		if err != nil {
			return err
		}
		ours, err := r.timed(ctx, false, "verify", "--data", r.filled)
		if err != nil {
			return err
		}
		progress("verify, round %d of %d: %s; bare scan %.2f s", i+1, importRounds, ours, scan.Seconds())
		took[0], took[1] = append(took[0], ours.wall.Seconds()), append(took[1], scan.Seconds())
		ratios = append(ratios, ours.wall.Seconds()/scan.Seconds())
	}
	fmt.Fprintf(w, "verify of %d : bare scan with checksums\t%.2f s\t%.2f s\t%.2f\t\tat most 2\n", r.records, median(took[0]), median(took[1]), median(ratios))
	return nil
}

// bareScan reads all keys and values of a folder of Pebble's, and returns how long that took.
func bareScan(folder string) (took time.Duration, err error) {
	o := ourSettings()
	o.ReadOnly, o.Logger = true, quietLogger{}
	begin := time.Now()
	db, err := pebbledb.Open(folder, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	it, err := db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	size := 0
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, errors.Join(err, it.Close())
		}
		size += len(it.Key()) + len(value)
	}
	if err := it.Close(); err != nil {
		return 0, err
	}
	if size == 0 {
		return 0, fmt.Errorf("%s is empty", folder)
	}
	return time.Since(begin), nil
}

// quietLogger prints what ends the program, and nothing else.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
