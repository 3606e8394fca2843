package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele/internal/disk"
)

// registryBench measures a registry as people use it: in a folder, on a disk, with
// the real program where there is one for it.
type registryBench struct {
	records int
	folder  string
	profile string // file for a profile of the server, instead of figures; "" if none is wanted
	formats string // text in the names of the formats that imports are measured with; "" for all

	work   string // folder of all that is made; "" if there is none yet
	stele  string // the program
	filled string // folder of a registry with that many records; "" if there is none yet
}

// importRounds is how often imports are compared. Each takes a while.
const importRounds = 3

func (r *registryBench) close() error {
	if r.work == "" {
		return nil
	}
	return os.RemoveAll(r.work)
}

// prepare makes the folder and builds the program.
func (r *registryBench) prepare(ctx context.Context) (err error) {
	if r.work != "" {
		return nil
	}
	if r.work, err = os.MkdirTemp(r.folder, "stele-bench-"); err != nil {
		return err
	}
	// The server of PostgreSQL runs as another user if we are root.
	if err := os.Chmod(r.work, 0o755); err != nil {
		return err
	}
	r.stele = filepath.Join(r.work, "stele")
	const program = "github.com/stele-id/stele/cmd/stele"
	folder, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", program).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	// As `make build` does. Where there is no profile yet, one may be about to be made.
	pgo := "-pgo=" + filepath.Join(string(bytes.TrimSpace(folder)), "serve.pgo")
	if _, err := os.Stat(strings.TrimPrefix(pgo, "-pgo=")); err != nil {
		pgo = "-pgo=off"
	}
	return command(ctx, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", pgo, "-o", r.stele, program)
}

// command runs a program. What it prints is told if it fails.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return nil
}

// cost is what an import took.
type cost struct {
	wall, cpu time.Duration
	memory    int64 // bytes, at most
	disk      int64 // bytes, at its end
}

// file writes the records to a file for import, unless it is there.
func (r *registryBench) file(n int) (string, error) {
	path := filepath.Join(r.work, fmt.Sprintf("%d.jsonl", n))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	progress("writing %d records", n)
	return path, writeRecords(path, n, false)
}

// importOnce imports n records into a new registry with the program.
func (r *registryBench) importOnce(ctx context.Context, n int, data string, flags ...string) (c cost, err error) {
	path, err := r.file(n)
	if err != nil {
		return c, err
	}
	if err := os.RemoveAll(data); err != nil {
		return c, err
	}
	if c, err = r.timed(ctx, n > million, append([]string{"import", "--data", data, path}, flags...)...); err != nil {
		return c, err
	}
	c.disk, err = disk.FolderSize(data)
	return c, err
}

// timed runs the program, and returns what that took. What it prints is told if it fails; with told it is shown how far it is.
func (r *registryBench) timed(ctx context.Context, told bool, args ...string) (c cost, err error) {
	cmd := exec.CommandContext(ctx, r.stele, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if told {
		cmd.Stderr = os.Stderr
	}
	begin := time.Now()
	err = cmd.Run()
	c.wall = time.Since(begin)
	if err != nil {
		return c, fmt.Errorf("stele %s: %w: %s", args[0], err, bytes.TrimSpace(out.Bytes()))
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = u.Maxrss * 1024 // of Linux, in kilobytes
	}
	return c, nil
}

// imports compares the import of a million records with PostgreSQL's, and that of
// more with it.
func (r *registryBench) imports(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	db, err := startPostgres(ctx, r.work, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.stop()) }()
	var ours, copied, built []cost
	var ratios, laterRatios []float64
	data := filepath.Join(r.work, "registry")
	for i := range importRounds {
		progress("import of %d records, round %d of %d", n, i+1, importRounds)
		a, err := r.importOnce(ctx, n, data)
		if err != nil {
			return err
		}
		b, err := db.copyInto(ctx, true)
		if err != nil {
			return err
		}
		c, err := db.copyInto(ctx, false)
		if err != nil {
			return err
		}
		progress("ours %v, COPY %v, COPY and then the key %v", a.wall, b.wall, c.wall)
		ours, copied, built = append(ours, a), append(copied, b), append(built, c)
		ratios = append(ratios, a.wall.Seconds()/b.wall.Seconds())
		laterRatios = append(laterRatios, a.wall.Seconds()/c.wall.Seconds())
	}
	a := middle(ours)
	name := fmt.Sprintf("import of %d : %s's COPY", n, db.version)
	fmt.Fprintf(w, "%s, (id text primary key, body jsonb)\t%s\t%s\t%.2f\t\tat most 1\n", name, a, middle(copied), median(ratios))
	fmt.Fprintf(w, "%s, with the key made after it\t%s\t%s\t%.2f\t\tat most 0.7\n", name, a, middle(built), median(laterRatios))
	r.filled = data
	if r.records > n {
		if a, err = r.importMore(ctx, w, n, a); err != nil {
			return err
		}
		n = r.records
	}
	fmt.Fprintf(w, "  its memory\t%d MB\t\t\t\tat most 1500 MB\n", a.memory>>20)
	fmt.Fprintf(w, "  on disk, a record\t%d B\t\t\t\tat most 300 B\n", a.disk/int64(n))
	return nil
}

// importMore imports all records, and compares the cost of one with that among n.
func (r *registryBench) importMore(ctx context.Context, w *tabwriter.Writer, n int, few cost) (many cost, err error) {
	progress("import of %d records", r.records)
	if many, err = r.importOnce(ctx, r.records, r.filled); err != nil {
		return many, err
	}
	a, b := many.wall/time.Duration(r.records/1000), few.wall/time.Duration(n/1000)
	fmt.Fprintf(w, "import of %d : of %d, a thousand\t%s\t%s\t%.2f\t\tat most 1.5\n", r.records, n,
		a.Round(10*time.Microsecond), b.Round(10*time.Microsecond), float64(a)/float64(b))
	return many, nil
}

// middle returns the cost with the median of the times.
func middle(costs []cost) cost {
	var walls []float64
	for _, c := range costs {
		walls = append(walls, c.wall.Seconds())
	}
	m := median(walls)
	for _, c := range costs {
		if c.wall.Seconds() == m {
			return c
		}
	}
	return cost{}
}

func (c cost) String() string {
	return fmt.Sprintf("%.2f s (%.2f s of CPU)", c.wall.Seconds(), c.cpu.Seconds())
}

// fill makes sure that there is a registry with all records.
func (r *registryBench) fill(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil || r.filled != "" {
		return err
	}
	progress("import of %d records", r.records)
	data := filepath.Join(r.work, "registry")
	if _, err := r.importOnce(ctx, r.records, data); err != nil {
		return err
	}
	r.filled = data
	return nil
}
