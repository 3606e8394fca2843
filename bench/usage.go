package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

const (
	// countedFor is how long names are asked for in a round. It has some intervals, so that what is written is
	// measured too, as often as in use.
	countedFor    = time.Minute
	usageInterval = 30 * time.Second
	usageRounds   = 5

	answerStarts, answerTurns = 5, 10 // of answers of the DNS

	// foldShare is how many minutes' redirects pay for adding up the names of a minute. The server does so every ten minutes: these have
	// about twice the names of one minute, if they are asked for as readerScript does.
	foldShare = 5
)

// readerScript is what wrk runs: readers with browsers ask for names, of which a few are asked for often (Zipf's law).
const readerScript = `
local names, width, span
local agents = {}
local before, behind = "GET /ark:12345/", "\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n\r\n"
function init(args)
  local file = assert(io.open(args[1], "rb"))
  names = file:read("*a")
  file:close()
  width = names:find("\n", 1, true)
  span = math.log(#names / width)
  math.randomseed(os.time())
  for i = 1, 500 do
    agents[i] = string.format(" HTTP/1.1\r\nHost: id.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%d.%d", 100 + i % 50, 100 + i % 50, i)
  end
end
function request()
  local at = (math.floor(math.exp(math.random() * span)) - 1) * width
  return before .. names:sub(at + 1, at + width - 1) .. agents[math.random(1, 500)] .. behind
end
` + loadEnd

// counting compares the CPU time of redirects and of answers of the DNS that are counted with that of those which are
// not, in servers of the same registry that take turns.
func (d *dnsBench) counting(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := d.fill(ctx); err != nil {
		return err
	}
	l := load{core: cores[1], script: filepath.Join(d.work, "readers.lua"), names: filepath.Join(d.work, "reader-names"), lasts: countedFor}
	if err := errors.Join(os.WriteFile(l.script, []byte(readerScript), 0o644), writeNames(l.names, d.records)); err != nil {
		return err
	}
	var each [2][]float64
	var ratios []float64
	for i := range usageRounds {
		var seen [2]float64
		for k := range 2 {
			j := (i + k) % 2 // they take turns at being first
			micros, answered, err := d.redirectsCounted(ctx, &l, cores[0], j == 0)
			if err != nil {
				return err
			}
			if seen[j] = micros; j == 0 {
				folded, err := d.folded(ctx, cores[0])
				if err != nil {
					return err
				}
				seen[j] += folded / float64(foldShare*answered)
				progress("the journal of a minute: %.0f ms of CPU", folded/1000)
			}
			each[j] = append(each[j], seen[j])
		}
		ratios = append(ratios, seen[0]/seen[1])
		progress("redirects, round %d of %d: %.1f us of CPU each with counting, and %.1f us without", i+1, usageRounds, seen[0], seen[1])
	}
	fmt.Fprintf(w, "redirects that are counted : not counted, CPU time each\t%.1f us\t%.1f us\t%.3f\t\tat most 1.03\n", median(each[0]), median(each[1]), median(ratios))
	return d.answersCounted(ctx, w, cores)
}

// folded returns what it costs a server to add up the journal that the one before it has left, in microseconds: what a start costs with it, less
// what a start costs without.
func (d *dnsBench) folded(ctx context.Context, core int) (micros float64, err error) {
	var used [2]time.Duration
	for i := range used {
		s, _, err := d.startStele(ctx, core, "--usage-interval="+usageInterval.String())
		if err != nil {
			return 0, err
		}
		s.settle(ctx)
		used[i] = usedBy(s.pid())
		if err := s.stop(); err != nil {
			return 0, err
		}
	}
	return max(0, (used[0]-used[1]).Seconds()*1e6), nil
}

// redirectsCounted returns what a redirect costs, in microseconds, and how many there were. The server ends before the time is
// taken, so that all figures are written; those of many names are in its journal then.
func (d *dnsBench) redirectsCounted(ctx context.Context, l *load, core int, counted bool) (micros float64, answered int64, err error) {
	s, _, err := d.startStele(ctx, core, fmt.Sprintf("--usage=%t", counted), "--usage-interval="+usageInterval.String())
	if err != nil {
		return 0, 0, err
	}
	s.settle(ctx)
	warm := *l
	warm.lasts = loadFor
	if _, err := warm.run(ctx, s); err != nil {
		return 0, 0, errors.Join(err, s.stop())
	}
	before := usedBy(s.pid())
	a, err := l.run(ctx, s)
	if err := errors.Join(err, s.stop()); err != nil {
		return 0, 0, err
	}
	state := s.cmd.ProcessState
	return (state.UserTime() + state.SystemTime() - before).Seconds() * 1e6 / float64(a.number), a.number, nil
}

// answersCounted is the same for answers of the DNS, which are counted by zone. A server differs from the next start of the same program by more than
// counting costs, and a second of a machine from the next one by more still: both servers run, each with a copy of the registry, take many short turns, and are
// started again some times.
func (d *dnsBench) answersCounted(ctx context.Context, w *tabwriter.Writer, cores [2]int) (err error) {
	if err := d.export(ctx); err != nil {
		return err
	}
	second := *d
	second.published = d.published + "-not-counted"
	if err := os.CopyFS(second.published, os.DirFS(d.published)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(second.published)) }()
	l := dnsLoad{core: cores[1], questions: d.questions}
	var each [2][]float64
	var ratios []float64
	for i := range answerStarts {
		one, other, err := l.inTurn(ctx, d, &second, cores[0])
		if err != nil {
			return err
		}
		between := make([]float64, len(one))
		for k := range one {
			between[k] = one[k] / other[k]
		}
		progress("answers, start %d of %d: %.2f us of CPU each with counting, and %.2f us without; ratio %.3f", i+1, answerStarts, median(one), median(other), median(between))
		each[0], each[1], ratios = append(each[0], one...), append(each[1], other...), append(ratios, between...)
	}
	fmt.Fprintf(w, "answers of the DNS that are counted : not counted, CPU time each\t%.2f us\t%.2f us\t%.3f\t\tat most 1.02\n", median(each[0]), median(each[1]), median(ratios))
	return nil
}

// inTurn returns what answers of a server that counts cost, and those of one that does not, in microseconds, for each turn.
func (l *dnsLoad) inTurn(ctx context.Context, counting, plain *dnsBench, core int) (one, other []float64, err error) {
	var servers [2]*nameServer
	defer func() {
		for _, s := range servers {
			if s != nil {
				err = errors.Join(err, s.stop())
			}
		}
	}()
	for i, d := range [2]*dnsBench{counting, plain} {
		if servers[i], _, err = d.startOurs(ctx, core, fmt.Sprintf("--usage=%t", d == counting)); err != nil {
			return nil, nil, err
		}
		if _, err := l.run(ctx, servers[i], 2, time.Hour); err != nil { // the first time answers are made, and kept
			return nil, nil, err
		}
	}
	turns := max(1, askAtLeast/counting.names)
	for i := range answerTurns {
		var seen [2]dnsAnswers
		for k := range 2 {
			j := (i + k) % 2 // they take turns at being first
			if seen[j], err = l.run(ctx, servers[j], turns, time.Hour); err != nil {
				return nil, nil, err
			}
		}
		one, other = append(one, seen[0].each()), append(other, seen[1].each())
	}
	return one, other, nil
}
