package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
)

const (
	batchSize    = 1000
	batchSenders = 4 // connections: while one waits for the disk, others are read
	batchRecords = 200_000
)

// overHTTP measures what the API adds: to an import, to a commit, and to a read.
func (r *registryBench) overHTTP(ctx context.Context, w *tabwriter.Writer) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.batches(ctx, w); err != nil {
		return err
	}
	if err := r.puts(ctx, w); err != nil {
		return err
	}
	return r.tokens(ctx, w)
}

// apiServer is our server over a folder, and a user's token for it.
type apiServer struct {
	*server
	token string
}

// startAPI starts our server over a folder, in which an administrator gets a token. It
// runs on one core, or on all if that is negative.
func (r *registryBench) startAPI(ctx context.Context, core int, data string, flags ...string) (*apiServer, error) {
	if err := command(ctx, r.stele, "user", "add", "bench", "--admin", "--data", data); err != nil {
		return nil, err
	}
	token, err := exec.CommandContext(ctx, r.stele, "token", "create", "bench", "--data", data).Output()
	if err != nil {
		return nil, fmt.Errorf("stele token create: %w", err)
	}
	return r.serveAPI(ctx, core, string(bytes.TrimSpace(token)), append([]string{"--data", data}, flags...)...)
}

// serveAPI starts our server with flags that say what it serves, for a user with a token.
func (r *registryBench) serveAPI(ctx context.Context, core int, token string, flags ...string) (*apiServer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cores := fmt.Sprint(core)
	if core < 0 {
		if cores, err = statusField("self", "Cpus_allowed_list"); err != nil {
			return nil, err
		}
	}
	s, err := startServerOn(ctx, cores, address, r.stele, append([]string{"serve", "--http", address, "--api-rate", "0", "--log-level", "warn"}, flags...)...)
	if err != nil {
		return nil, err
	}
	a := &apiServer{s, token}
	if err := s.awaitAnswer(ctx, func() error { return a.ask(ctx, http.MethodGet, "/api/v1/me", nil) }); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return a, nil
}

// ask sends a request with the token, and wants it to be answered well.
func (a *apiServer) ask(ctx context.Context, method, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-ndjson")
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s: %.300s", method, path, res.Status, said)
	case bytes.Contains(said, []byte(`"status":"refused"`)):
		return fmt.Errorf("%s %s: a record was refused", method, path)
	}
	return nil
}

// batches compares records that come over HTTP, a thousand a request, with the import
// of the same file on the folder itself.
func (r *registryBench) batches(ctx context.Context, w *tabwriter.Writer) error {
	n := min(r.records, batchRecords)
	path, err := r.file(n)
	if err != nil {
		return err
	}
	var ours, peer, ratios []float64
	for i := range importRounds {
		progress("%d records over HTTP, round %d of %d", n, i+1, importRounds)
		local, err := r.importOnce(ctx, n, filepath.Join(r.work, "imported"))
		if err != nil {
			return err
		}
		took, err := r.sendBatches(ctx, path, filepath.Join(r.work, "sent"))
		if err != nil {
			return err
		}
		a, b := float64(n)/took.Seconds(), float64(n)/local.wall.Seconds()
		ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, a/b)
	}
	fmt.Fprintf(w, "records over HTTP, %d a request : import\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.5\n",
		batchSize, median(ours), median(peer), median(ratios))
	return nil
}

// sendBatches sends a file's records to a server over a new folder, and returns how
// long that took.
func (r *registryBench) sendBatches(ctx context.Context, path, data string) (took time.Duration, err error) {
	if err := os.RemoveAll(data); err != nil {
		return 0, err
	}
	s, err := r.startAPI(ctx, -1, data)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	batches := make(chan []byte)
	var failed error
	go func() {
		failed = readBatches(path, batches)
		close(batches)
	}()
	begin := time.Now()
	errs := make(chan error)
	for range batchSenders {
		go func() {
			var err error
			for batch := range batches {
				if err == nil { // else the others are read, and not sent
					err = s.ask(ctx, http.MethodPost, "/api/v1/records", batch)
				}
			}
			errs <- err
		}()
	}
	for range batchSenders {
		err = errors.Join(err, <-errs)
	}
	return time.Since(begin), errors.Join(err, failed)
}

// readBatches cuts a file into pieces of so many lines.
func readBatches(path string, batches chan<- []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		var batch []byte
		for range batchSize {
			line, err := lines.ReadSlice('\n')
			batch = append(batch, line...)
			if err == io.EOF {
				if len(batch) > 0 {
					batches <- batch
				}
				return nil
			}
			if err != nil {
				return err
			}
		}
		batches <- batch
	}
}

// putScript is what wrk runs: it registers one record after the other, each new.
const putScript = `
local n, head, run = 0
function init(args)
  head = {["Authorization"] = "Bearer " .. args[1], ["Content-Type"] = "application/json"}
  run = args[2]
end
function request()
  n = n + 1
  local name = "ark:12345/x" .. run .. "r" .. n
  return wrk.format("PUT", "/api/v1/records/" .. name, head, '{"id":"' .. name ..
    '","targets":[{"url":"https://archive.example.org/items/' .. n .. '/view"}],"metadata":{"who":"Almeida, Castro",' ..
    '"what":"On the rivers and bridges of Amazonia, volume ' .. n .. '","when":"1987"}}')
end
` + loadEnd

// loadEnd is the end of such a script: what it saw.
const loadEnd = `
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("\nseen %d %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(99), e.status, e.connect + e.read + e.write + e.timeout))
end
`

// puts compares records that are put one by one over HTTP, each durable before the
// answer, with synced commits of Pebble's that have as many keys and bytes.
func (r *registryBench) puts(ctx context.Context, w *tabwriter.Writer) (err error) {
	s, err := r.startAPI(ctx, -1, filepath.Join(r.work, "put"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	script := filepath.Join(r.work, "put.lua")
	if err := os.WriteFile(script, []byte(putScript), 0o644); err != nil {
		return err
	}
	o := ourSettings()
	o.Logger = quiet{}
	db, err := pebbledb.Open(filepath.Join(r.work, "put-commits"), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	writes, err := putWrites()
	if err != nil {
		return err
	}
	var n atomic.Uint64
	var ours, peer, ratios []float64
	for i := range rounds {
		progress("records put over HTTP, round %d of %d", i+1, rounds)
		a, err := wrk(ctx, -1, s.server, script, s.token, fmt.Sprint(i))
		if err != nil {
			return err
		}
		b, err := together(callers, commitFor, func() error { return commitBare(db, writes, n.Add(1)) })
		if err != nil {
			return err
		}
		ours, peer, ratios = append(ours, a.rate), append(peer, b), append(ratios, a.rate/b)
	}
	fmt.Fprintf(w, "records put over HTTP, %d connections : bare synced commits\t%.0f/s\t%.0f/s\t%.2f\t\tat least 0.4\n",
		connections, median(ours), median(peer), median(ratios))
	return nil
}

// putWrites returns what must be written for a record like those that are put.
func putWrites() ([]write, error) {
	rec, err := putRecord()
	if err != nil {
		return nil, err
	}
	return keysOf(rec)
}

// putRecord returns a record like those that are put.
func putRecord() (*stele.Record, error) {
	id, err := stele.NewID("ark", "ark:12345/x1r100000")
	return &stele.Record{
		ID: id, State: stele.Active, Version: 1, Created: time.Now(), Modified: time.Now(), By: "bench",
		Targets:  []stele.Target{{Service: stele.N2L, URL: "https://archive.example.org/items/100000/view", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}},
		Metadata: stele.Metadata{stele.Who: "Almeida, Castro", stele.What: "On the rivers and bridges of Amazonia, volume 100000", stele.When: "1987"},
	}, err
}

// tokens measures the cost of authentication: records are read with a token, and without.
func (r *registryBench) tokens(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	n := min(r.records, batchRecords)
	data := filepath.Join(r.work, "imported") // the batches have left it
	s, err := r.startAPI(ctx, cores[0], data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	names := filepath.Join(r.work, "read-names")
	if err := writeNames(names, n); err != nil {
		return err
	}
	scripts := [2]string{filepath.Join(r.work, "known.lua"), filepath.Join(r.work, "public.lua")}
	for i, head := range []string{`Authorization: Bearer ` + s.token + `\r\n`, ""} {
		text := strings.NewReplacer("GET /ark:", "GET /api/v1/records/ark:", `id.example.org\r\n`, `id.example.org\r\n`+head).Replace(loadScript)
		if err := os.WriteFile(scripts[i], []byte(text), 0o600); err != nil {
			return err
		}
	}
	var costs [2][]float64
	var ratios []float64
	for i := range rounds + 1 {
		progress("reading with a token and without, round %d of %d", i, rounds)
		var seen [2]float64
		for j, script := range scripts {
			a, err := wrk(ctx, cores[1], s.server, script, names)
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
	fmt.Fprintf(w, "a record read with a token, CPU time : without\t%.1f us\t%.1f us\t%.2f\t\tat most 1.10\n",
		median(costs[0]), median(costs[1]), median(ratios))
	return nil
}
