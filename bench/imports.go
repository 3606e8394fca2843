package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// foreignImports compares imports from other systems with those of the same records as JSONL, which are exported from a registry that
// has imported the file before. An export is in the order of the names, and so is the file, since names in order are imported faster.
func (r *registryBench) foreignImports(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(foreignFiles(), func(f foreignFile) bool { return !strings.Contains(f.name, r.formats) })
	if len(chosen) == 0 {
		return fmt.Errorf("no format has %q in its name", r.formats)
	}
	for _, f := range chosen {
		if err := r.foreignImport(ctx, w, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// foreignImport measures one format.
func (r *registryBench) foreignImport(ctx context.Context, w *tabwriter.Writer, f foreignFile) (err error) {
	n := r.records
	data, path := filepath.Join(r.work, "imports"), filepath.Join(r.work, "foreign")
	lines := path + ".jsonl"
	defer func() { err = errors.Join(err, os.RemoveAll(data), os.RemoveAll(path), os.RemoveAll(lines)) }()
	progress("writing %d names as %s", n, f.name)
	if err := writeFile(path, inOrder(n), f.write); err != nil {
		return err
	}
	theirs := append(slices.Clone(f.args), path)
	if _, err := r.importFresh(ctx, n, data, theirs...); err != nil {
		return err
	}
	if err := command(ctx, r.stele, "export", "-o", lines, "--data", data); err != nil {
		return err
	}
	var rates, used [2][]float64
	var ratios, byCPU []float64
	for i := range importRounds {
		var one [2]cost
		for k := range one {
			j := (i + k) % 2 // the formats take turns at being first
			if one[j], err = r.importFresh(ctx, n, data, [][]string{theirs, {lines}}[j]...); err != nil {
				return err
			}
			rates[j], used[j] = append(rates[j], float64(n)/one[j].wall.Seconds()), append(used[j], one[j].cpu.Seconds()*1e6/float64(n))
		}
		progress("import of %d names from %s, round %d of %d: %s, and as JSONL %s", n, f.name, i+1, importRounds, one[0], one[1])
		ratios, byCPU = append(ratios, one[1].wall.Seconds()/one[0].wall.Seconds()), append(byCPU, one[1].cpu.Seconds()/one[0].cpu.Seconds())
	}
	fmt.Fprintf(w, "import of %d names from %s : the same records as JSONL\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n", n, f.name, median(rates[0]), median(rates[1]), median(ratios))
	fmt.Fprintf(w, "  by CPU time, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(used[0]), median(used[1]), median(byCPU))
	return nil
}

// importFresh imports files with n names into a new registry. It fails if not all names are new.
func (r *registryBench) importFresh(ctx context.Context, n int, data string, args ...string) (c cost, err error) {
	if err := os.RemoveAll(data); err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, r.stele, append([]string{"import", "--data", data}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	begin := time.Now()
	err = cmd.Run()
	c.wall = time.Since(begin)
	if err != nil {
		return c, fmt.Errorf("stele import: %w: %s", err, bytes.TrimSpace(told.Bytes()))
	}
	counts := bytes.ReplaceAll(out.Bytes(), []byte(","), nil) // also those within numbers
	if !bytes.HasPrefix(counts, fmt.Appendf(nil, "%d new 0 updated 0 unchanged 0 rejected", n)) {
		return c, fmt.Errorf("stele import: %d names should be new: %s", n, bytes.TrimSpace(out.Bytes()))
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// numbers returns the numbers of n names.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// inOrder returns the numbers of n names in the order of the names.
func inOrder(n int) []int {
	list := numbers(n)
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(mix(a), mix(b)) })
	return list
}

// writeFile writes the names of a list to a file, and waits until they are on the disk: what is still on its way there would slow down the
// first that is measured.
func writeFile(path string, list []int, write func(w *bufio.Writer, list []int)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	write(w, list)
	return errors.Join(w.Flush(), f.Sync(), f.Close())
}
