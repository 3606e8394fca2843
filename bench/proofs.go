package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele/transparency"
)

// proofs measures what a proof costs: made by a server, compared with a record that is read over the API, and checked by a
// reader.
func (r *registryBench) proofs(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	cores, err := twoCores()
	if err != nil {
		return err
	}
	n := min(r.records, million)
	data := filepath.Join(r.work, "proved")
	if _, err := r.importOnce(ctx, n, data); err != nil {
		return err
	}
	key, err := exec.CommandContext(ctx, r.stele, "log", "key", "--origin", "bench.example.org/.log", "--data", data).Output()
	if err != nil {
		return fmt.Errorf("stele log key: %w", err)
	}
	if err := command(ctx, r.stele, "log", "catch-up", "--data", data); err != nil {
		return err
	}
	s, err := r.startAPI(ctx, cores[0], data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	s.settle(ctx) // it makes the search index
	if err := r.proofsMade(ctx, w, s, cores[1], n); err != nil {
		return err
	}
	return proofChecked(ctx, w, s, strings.TrimSpace(string(key)))
}

// proofsMade compares proofs with records that are read, by the CPU time of the server.
func (r *registryBench) proofsMade(ctx context.Context, w *tabwriter.Writer, s *apiServer, core, n int) error {
	names := filepath.Join(r.work, "proved-names")
	if err := writeNames(names, n); err != nil {
		return err
	}
	scripts := [2]string{filepath.Join(r.work, "proof.lua"), filepath.Join(r.work, "record.lua")}
	for i, path := range []string{"GET /api/v1/proof/ark:", "GET /api/v1/records/ark:"} {
		if err := os.WriteFile(scripts[i], []byte(strings.ReplaceAll(loadScript, "GET /ark:", path)), 0o600); err != nil {
			return err
		}
	}
	var costs [2][]float64
	var ratios []float64
	for i := range rounds + 1 {
		progress("proofs and records, round %d of %d", i, rounds)
		var seen [2]float64
		for j, script := range scripts {
			a, err := wrk(ctx, core, s.server, script, names)
			if err != nil {
				return err
			}
			seen[j] = 1e6 / a.perCPU()
		}
		if i == 0 {
			continue // warming up
		}
		costs[0], costs[1], ratios = append(costs[0], seen[0]), append(costs[1], seen[1]), append(ratios, seen[0]/seen[1])
	}
	fmt.Fprintf(w, "a proof made, CPU time : a record read over the API\t%.1f us\t%.1f us\t%.2f\t\tat most 3\n",
		median(costs[0]), median(costs[1]), median(ratios))
	return nil
}

// proofChecked measures how long a reader checks a proof, and how large it is.
func proofChecked(ctx context.Context, w *tabwriter.Writer, s *apiServer, key string) error {
	k, err := transparency.ParsePublicKey(key)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/proof/ark:12345/"+benchName(0), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	const times = 2000
	var p transparency.Proof
	begin := time.Now()
	for range times {
		if err := p.UnmarshalText(text); err != nil {
			return err
		}
		if _, err := p.Check([]transparency.PublicKey{k}); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	fmt.Fprintf(w, "a proof checked\t%.3f ms\t\t\t\tunder 1 ms\n", took.Seconds()*1000/times)
	fmt.Fprintf(w, "a proof, beside its document\t%d bytes\t\t\t\tat most 4,096\n", len(text)-len(p.Document))
	return nil
}
