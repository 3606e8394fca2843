package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

// bundles compares a bundle with an export of the same records. A bundle has the proof of each version, and every version with its date
// and author; here each record has one version. The log has followed before, as that of a server does.
func (r *registryBench) bundles(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	giver, file := filepath.Join(r.work, "giver"), filepath.Join(r.work, "bundle.tar")
	lines := filepath.Join(r.work, "export.jsonl")
	defer func() { err = errors.Join(err, os.RemoveAll(giver), os.RemoveAll(file), os.RemoveAll(lines)) }()
	if _, err := r.importOnce(ctx, n, giver); err != nil {
		return err
	}
	if _, err := r.giver(ctx, giver, file); err != nil {
		return err
	}
	for _, way := range []struct{ what, end, want string }{{"a bundle", "", "at least 0.7"}, {"a compressed bundle", ".gz", "(for information)"}} {
		pair, name, other := newPair(n), file+way.end, lines+way.end
		for i := range importRounds {
			progress("%s of %d records, round %d of %d", way.what, n, i+1, importRounds)
			exported, err := r.timed(ctx, false, "export", "ark:12345", "-o", other, "--data", giver)
			if err != nil {
				return err
			}
			bundled, err := r.timed(ctx, false, "bundle", "ark:12345", "-o", name, "--again", "--data", giver)
			if err != nil {
				return err
			}
			pair.add(bundled, exported)
		}
		pair.print(w, fmt.Sprintf("%s of %d records : export of the same", way.what, n), way.want)
		if err := errors.Join(os.RemoveAll(name), os.RemoveAll(other)); err != nil {
			return err
		}
	}
	return nil
}

// giver names the log of a registry, makes a bundle of it, and returns the public key of the log.
func (r *registryBench) giver(ctx context.Context, data, file string) (key string, err error) {
	if err := command(ctx, r.stele, "ns", "add", "ark:12345", "--data", data); err != nil {
		return "", err
	}
	text, err := exec.CommandContext(ctx, r.stele, "log", "key", "--origin", "bench.example.org/.log", "--data", data).Output()
	if err != nil {
		return "", fmt.Errorf("stele log key: %w", err)
	}
	return string(bytes.TrimSpace(text)), command(ctx, r.stele, "bundle", "ark:12345", "-o", file, "--again", "--data", data)
}

// adoptions compares the adoption of a bundle with an import of the same records. An adoption reads the bundle twice: it checks all of it
// first.
func (r *registryBench) adoptions(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	n := min(r.records, million)
	giver, heir, file := filepath.Join(r.work, "giver"), filepath.Join(r.work, "heir"), filepath.Join(r.work, "bundle.tar")
	defer func() { err = errors.Join(err, os.RemoveAll(giver), os.RemoveAll(heir), os.RemoveAll(file)) }()
	pair := newPair(n)
	for i := range importRounds {
		progress("adoption of %d records, round %d of %d", n, i+1, importRounds)
		imported, err := r.importOnce(ctx, n, giver)
		if err != nil {
			return err
		}
		key, err := r.giver(ctx, giver, file)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(heir); err != nil {
			return err
		}
		adopted, err := r.timed(ctx, false, "adopt", file, "--key", key, "--data", heir)
		if err != nil {
			return err
		}
		pair.add(adopted, imported)
	}
	pair.print(w, fmt.Sprintf("adoption of %d records from a bundle : import of the same", n), "at least 0.5")
	return nil
}

// pair is what two ways with the same records took, in some rounds.
type pair struct {
	records             int
	rates, used, ratios [2][]float64 // ratios by time, and by CPU time
	memory              int64        // of the first way
}

func newPair(records int) *pair { return &pair{records: records} }

func (p *pair) add(a, b cost) {
	p.memory = max(p.memory, a.memory)
	for j, c := range []cost{a, b} {
		p.rates[j] = append(p.rates[j], float64(p.records)/c.wall.Seconds())
		p.used[j] = append(p.used[j], c.cpu.Seconds()*1e6/float64(p.records))
	}
	p.ratios[0] = append(p.ratios[0], b.wall.Seconds()/a.wall.Seconds())
	p.ratios[1] = append(p.ratios[1], b.cpu.Seconds()/a.cpu.Seconds())
}

func (p *pair) print(w *tabwriter.Writer, what, want string) {
	fmt.Fprintf(w, "%s\t%.0f/s\t%.0f/s\t%.2f\t\t%s\n", what, median(p.rates[0]), median(p.rates[1]), median(p.ratios[0]), want)
	fmt.Fprintf(w, "  by CPU time, a record\t%.1f us\t%.1f us\t%.2f\t\t(for information)\n", median(p.used[0]), median(p.used[1]), median(p.ratios[1]))
	fmt.Fprintf(w, "  memory of the first\t%d MiB\t\t\t\t(for information)\n", p.memory>>20)
}
