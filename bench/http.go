package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	loadFor     = 5 * time.Second
	connections = 64
	restarts    = 5
	checked     = 200 // answers that are looked at before the load
)

// loadScript is what wrk runs: it asks for names at random, all of them as likely, and
// says at the end what it saw. The names come from a file, of which each line is as
// long as the others.
const loadScript = `
local names, width, last
local before, behind = "GET /ark:12345/", " HTTP/1.1\r\nHost: id.example.org\r\n\r\n"
function init(args)
  local file = assert(io.open(args[1], "rb"))
  names = file:read("*a")
  file:close()
  width = names:find("\n", 1, true)
  last = #names / width - 1
  math.randomseed(os.time())
end
function request()
  local at = math.random(0, last) * width
  return before .. names:sub(at + 1, at + width - 1) .. behind
end
` + loadEnd

// redirects compares the way from a request to a redirect, for any of all names, with
// nginx's, which redirects all requests to one place. Both servers have the same core and
// the load comes from another one. What counts is the CPU time that a server uses for an
// answer: the clock would tell of whatever else the machine does.
func (r *registryBench) redirects(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	l := load{core: cores[1], script: filepath.Join(r.work, "load.lua"), names: filepath.Join(r.work, "names")}
	if err := errors.Join(os.WriteFile(l.script, []byte(loadScript), 0o644), writeNames(l.names, r.records)); err != nil {
		return err
	}
	if r.profile != "" {
		return r.profileRedirects(ctx, cores[0], &l)
	}
	ours, began, err := r.startStele(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	if err := checkAnswers(ctx, ours, r.records); err != nil {
		return err
	}
	ours.settle(ctx)
	peer, err := r.startNginx(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	if err := l.compare(ctx, w, ours, peer, r.records); err != nil {
		return err
	}
	memory, err := ours.memory()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  its memory, at most\t%d MB\t\t\t\tat most 1000 MB\n", memory>>20)
	if err := r.restart(ctx, w, ours, began, cores[0]); err != nil {
		return err
	}
	if err := ours.stop(); err != nil { // one process has the folder at a time
		return err
	}
	return r.redirectsSecure(ctx, w, cores)
}

// compare prints what the load saw of both.
func (l *load) compare(ctx context.Context, w *tabwriter.Writer, ours, peer *server, records int) error {
	progress("redirects among %d, warming up", records)
	for _, s := range []*server{ours, peer} {
		if _, err := l.run(ctx, s); err != nil {
			return err
		}
	}
	var speeds, slow, rates [2][]float64
	var ratios, slower []float64
	for i := range rounds {
		var seen [2]answers
		for j, s := range []*server{ours, peer} {
			a, err := l.run(ctx, s)
			if err != nil {
				return err
			}
			seen[j] = a
			speeds[j], slow[j], rates[j] = append(speeds[j], a.perCPU()), append(slow[j], a.p99.Seconds()*1000), append(rates[j], a.rate)
		}
		ratios = append(ratios, seen[0].perCPU()/seen[1].perCPU())
		slower = append(slower, seen[0].p99.Seconds()/seen[1].p99.Seconds())
		progress("redirects, round %d of %d: %.1f us of CPU each, and nginx's %.1f us", i+1, rounds, 1e6/seen[0].perCPU(), 1e6/seen[1].perCPU())
	}
	fmt.Fprintf(w, "redirects among %d, in a second of CPU time : nginx's return 302\t%.0f\t%.0f\t%.2f\t\tat least 0.45\n",
		records, median(speeds[0]), median(speeds[1]), median(ratios))
	fmt.Fprintf(w, "  of 100 the slowest but one, %d connections\t%.1f ms\t%.1f ms\t%.2f\t\tat most 10\n",
		connections, median(slow[0]), median(slow[1]), median(slower))
	fmt.Fprintf(w, "  by the clock\t%.0f/s\t%.0f/s\t%.2f\t\t(for information)\n",
		median(rates[0]), median(rates[1]), median(rates[0])/median(rates[1]))
	return nil
}

// restart tells how long it takes from the start of the program to its first redirect.
// The first start has taken that long already.
func (r *registryBench) restart(ctx context.Context, w *tabwriter.Writer, s *server, first time.Duration, core int) error {
	took := []float64{first.Seconds() * 1000}
	for range restarts - 1 {
		progress("restarting")
		if err := s.stop(); err != nil {
			return err
		}
		next, began, err := r.startStele(ctx, core)
		if err != nil {
			return err
		}
		*s = *next
		took = append(took, began.Seconds()*1000)
	}
	fmt.Fprintf(w, "  restart to the first redirect\t%.0f ms\t\t\t\tat most 1000 ms\n", median(took))
	return nil
}

// load is the load generator.
type load struct {
	core          int
	script, names string
	lasts         time.Duration // loadFor if 0
}

// answers is what the load saw, and what it cost the server.
type answers struct {
	number int64
	rate   float64 // a second
	p99    time.Duration
	cpu    time.Duration
}

// perCPU returns how many answers a second of CPU time gave.
func (a answers) perCPU() float64 { return float64(a.number) / a.cpu.Seconds() }

// run asks a server for a while. An answer that is an error makes it fail.
func (l *load) run(ctx context.Context, s *server) (a answers, err error) {
	return wrkFor(ctx, cmp.Or(l.lasts, loadFor), l.core, s, l.script, l.names)
}

// wrk has wrk ask a server as a script says, which gets the arguments. It runs on one
// core, or on all if that is negative.
func wrk(ctx context.Context, core int, s *server, script string, args ...string) (a answers, err error) {
	return wrkFor(ctx, loadFor, core, s, script, args...)
}

// wrkFor is wrk for a while of another length, in whole seconds.
func wrkFor(ctx context.Context, lasts time.Duration, core int, s *server, script string, args ...string) (a answers, err error) {
	words := append([]string{"--threads=1", fmt.Sprintf("--connections=%d", connections), fmt.Sprintf("--duration=%.0fs", lasts.Seconds()),
		"--timeout=1m", "--latency", "--script=" + script, s.url, "--"}, args...)
	cmd := exec.CommandContext(ctx, "wrk", words...)
	if core >= 0 {
		cmd = pinned(ctx, core, "wrk", words...)
	}
	before := usedBy(s.pid())
	out, err := cmd.Output()
	a.cpu = usedBy(s.pid()) - before
	if err != nil {
		return a, fmt.Errorf("wrk: %w: %s", err, bytes.TrimSpace(out))
	}
	_, line, _ := strings.Cut(string(out), "\nseen ")
	var micros, p99, refused, broken int64
	if _, err := fmt.Sscan(line, &a.number, &micros, &p99, &refused, &broken); err != nil || a.number == 0 || micros == 0 {
		return a, fmt.Errorf("wrk says something else than it should: %s", bytes.TrimSpace(out))
	}
	if refused+broken > 0 {
		return a, fmt.Errorf("of %d requests to %s %d were refused and %d broken off", a.number, s.url, refused, broken)
	}
	a.rate, a.p99 = float64(a.number)*1e6/float64(micros), time.Duration(p99)*time.Microsecond
	return a, nil
}

// writeNames writes the first n names, one a line.
func writeNames(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		fmt.Fprintln(w, benchName(i)) // Flush has the error
	}
	return errors.Join(w.Flush(), f.Close())
}

// checkAnswers looks whether names lead to where they should.
func checkAnswers(ctx context.Context, s *server, records int) error {
	for range checked {
		name := benchName(rand.IntN(records))
		got, err := locate(ctx, s.url+"/ark:12345/"+name)
		if err != nil {
			return err
		}
		if want := "https://archive.example.org/items/" + name[1:] + "/view"; got != want {
			return fmt.Errorf("ark:12345/%s leads to %q, and not to %q", name, got, want)
		}
	}
	return nil
}

// locate returns where a URL redirects to.
func locate(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusFound {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return res.Header.Get("Location"), err
}

// startStele starts our server on a core, and returns how long it took from there to
// its first redirect.
func (r *registryBench) startStele(ctx context.Context, core int, flags ...string) (*server, time.Duration, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	s, err := startServer(ctx, core, address, r.stele, append([]string{"serve", "--data", r.filled, "--http", address, "--log-level", "warn"}, flags...)...)
	if err != nil {
		return nil, 0, err
	}
	if err := s.await(ctx, "/ark:12345/"+benchName(0)); err != nil {
		return nil, 0, errors.Join(err, s.stop())
	}
	return s, time.Since(begin), nil
}

// nginxConfig is for one worker that does nothing but redirect. What is switched off
// would cost it time, or keep connections from being used again.
const nginxConfig = `worker_processes 1;
daemon off;
pid %[1]s/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path %[1]s/nginx-body;
	proxy_temp_path %[1]s/nginx-proxy;
	fastcgi_temp_path %[1]s/nginx-fastcgi;
	uwsgi_temp_path %[1]s/nginx-uwsgi;
	scgi_temp_path %[1]s/nginx-scgi;
	server {
		listen %[2]s;
		location / { return 302 https://archive.example.org/items/0123456789/view; }
	}
}
`

// startNginx starts Debian's nginx on a core.
func (r *registryBench) startNginx(ctx context.Context, core int) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(r.work, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, r.work, address), 0o644); err != nil {
		return nil, err
	}
	s, err := startServer(ctx, core, address, findServer("nginx"), "-c", config, "-e", "stderr")
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, "/"); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// freeAddress returns an address on which no process listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
