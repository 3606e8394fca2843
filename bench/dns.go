package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
)

const (
	quickNames   = 100_000 // if the caller does not say how many
	askAtLeast   = 200_000 // questions a round
	dnsPairs     = 5
	firstAtMost  = time.Minute // for a peer's first answers to all names
	roundAtLeast = time.Second // if that is not enough for all questions; more with many names
	dnsStarts    = 3           // of a server
	rulesOfAName = 3

	// outstanding is how many questions wait for their answers at once. More would
	// overflow the sockets of some servers.
	outstanding = 100
)

// dnsBench measures the name server, and the clients that ask it.
type dnsBench struct {
	*registryBench
	names int
	label string // of what it makes, if others make the same

	published string // folder of a registry with published names; "" if there is none yet
	zone      string // file with their zone; "" if there is none yet
	questions string // file with a question for each of them, for dnsperf
}

// answers compares the CPU time that a name server uses for an answer with that of
// others which have the same zone from a file, all on the same core. The load comes
// from another one and asks for each name as often as for any other. One other server
// runs at a time, since each has the whole zone in memory.
func (d *dnsBench) answers(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := d.export(ctx); err != nil {
		return err
	}
	l := dnsLoad{core: cores[1], questions: d.questions}
	if d.profile != "" {
		return d.profileAnswers(ctx, cores[0], &l)
	}
	us, err := l.first(ctx, time.Hour, func() (*contender, error) { return d.startUs(ctx, cores[0]) }) // all names, whatever it takes
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, us.server.stop()) }()
	// A part of the first answers is not kept, and is made once more.
	if _, err := l.run(ctx, us.server, 1, time.Hour); err != nil {
		return err
	}
	fmt.Fprintf(w, "answers of the DNS among %d names with %d rules, all of them asked for before (ours twice); CPU time each\t\t\t\t\t\n", d.names, rulesOfAName)
	for _, peer := range peers {
		them, err := l.first(ctx, firstAtMost, func() (*contender, error) { return d.startPeer(ctx, peer, cores[0]) })
		if errors.Is(err, errNoPeer) {
			progress("%s: %v", peer.name, err)
			fmt.Fprintf(w, "  : %s\t\tnot measured\t\t\t%s\n", peer.name, peer.wanted)
			continue
		} else if err != nil {
			return err
		}
		err = d.against(ctx, w, &l, us, them, peer)
		if err := errors.Join(err, them.server.stop()); err != nil {
			return fmt.Errorf("%s: %w", peer.name, err)
		}
	}
	fmt.Fprintf(w, "  start to the first answer, of %d\t%.2f s\t\t\t\tat most 2 s\n", dnsStarts, us.began.Seconds())
	return nil
}

// contender is a server that runs.
type contender struct {
	server *nameServer
	began  time.Duration // from its start to its first answer
	cold   float64       // microseconds of CPU time for an answer to a question that no client asked before
}

// startUs starts our server on a core.
func (d *dnsBench) startUs(ctx context.Context, core int) (*contender, error) {
	s, began, err := d.startOurs(ctx, core)
	if err != nil {
		return nil, err
	}
	return &contender{server: s, began: began}, nil
}

// first starts a server some times, and asks it for all names each time, for no longer than atMost. It returns the last one, with the
// medians of what it took to start and of what an answer cost.
func (l *dnsLoad) first(ctx context.Context, atMost time.Duration, start func() (*contender, error)) (c *contender, err error) {
	var began, cold []float64
	for i := range dnsStarts {
		if c != nil {
			if err := c.server.stop(); err != nil {
				return nil, err
			}
		}
		if c, err = start(); err != nil {
			return nil, err
		}
		c.server.settle(ctx) // our server makes its index of words, which has nothing to do with answers
		a, err := l.run(ctx, c.server, 1, atMost)
		if err != nil {
			return nil, errors.Join(err, c.server.stop())
		}
		progress("first answers of %s, start %d of %d: %.2f us of CPU each", c.server.version, i+1, dnsStarts, a.each())
		began, cold = append(began, c.began.Seconds()), append(cold, a.each())
	}
	c.began, c.cold = time.Duration(median(began)*float64(time.Second)), median(cold)
	return c, nil
}

// against compares us with a peer, and prints it.
func (d *dnsBench) against(ctx context.Context, w *tabwriter.Writer, l *dnsLoad, us, them *contender, peer dnsPeer) (err error) {
	if err := d.sameAnswers(ctx, us.server, them.server); err != nil {
		return err
	}
	turns, atMost := max(1, askAtLeast/d.names), max(roundAtLeast, firstAtMost*time.Duration(d.names)/(6*million))
	var each, rates [2][]float64
	var ratios []float64
	for i := range dnsPairs {
		var seen [2]dnsAnswers
		for j, s := range []*nameServer{us.server, them.server} {
			if seen[j], err = l.run(ctx, s, turns, atMost); err != nil {
				return err
			}
			each[j], rates[j] = append(each[j], seen[j].each()), append(rates[j], seen[j].rate)
		}
		ratios = append(ratios, seen[0].each()/seen[1].each())
		progress("answers, round %d of %d: %.2f us of CPU each, and %s's %.2f us", i+1, dnsPairs, seen[0].each(), peer.name, seen[1].each())
	}
	memory, err := bothResident(ctx, us.server, them.server)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  : %s\t%.2f us\t%.2f us\t%.2f\t\t%s\n", them.server.version, median(each[0]), median(each[1]), median(ratios), peer.wanted)
	fmt.Fprintf(w, "    the first time, when no client asked before, of %d starts\t%.2f us\t%.2f us\t%.2f\t\t%s\n",
		dnsStarts, us.cold, them.cold, us.cold/them.cold, peer.wantedFirst)
	fmt.Fprintf(w, "    by the clock\t%.0f/s\t%.0f/s\t%.2f\t\t(for information)\n",
		median(rates[0]), median(rates[1]), median(rates[0])/median(rates[1]))
	fmt.Fprintf(w, "    memory, resident, with %d names\t%d MB\t%d MB\t%.2f\t\t%s\n",
		d.names, memory[0]>>20, memory[1]>>20, float64(memory[0])/float64(memory[1]), peer.wantedMemory)
	fmt.Fprintf(w, "    start to the first answer\t%.2f s\t%.2f s\t%.2f\t\t(for information)\n",
		us.began.Seconds(), them.began.Seconds(), us.began.Seconds()/them.began.Seconds())
	return nil
}

func bothResident(ctx context.Context, a, b *nameServer) (memory [2]int64, err error) {
	if err := rest(ctx); err != nil {
		return memory, err
	}
	for i, s := range []*nameServer{a, b} {
		if memory[i], err = s.resident(); err != nil {
			return memory, err
		}
	}
	return memory, nil
}

// sameAnswers looks whether both answer alike, and with all rules.
func (d *dnsBench) sameAnswers(ctx context.Context, ours, peer *nameServer) error {
	for range checked {
		owner := ownerOf(rand.IntN(d.names))
		a, err := askRules(ctx, ours.at, owner)
		if err != nil {
			return err
		}
		b, err := askRules(ctx, peer.at, owner)
		if err != nil {
			return err
		}
		if len(a) != rulesOfAName || !slices.Equal(a, b) {
			return fmt.Errorf("%s: we answer\n%s\nand the other server\n%s", owner, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	return nil
}

// askRules returns the rules of a name, sorted. It is an error if there are none.
func askRules(ctx context.Context, at, owner string) (rules []string, err error) {
	client := &dns.Client{Timeout: time.Second}
	answer, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(owner, dns.TypeNAPTR).SetEdns0(1232, false), at)
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Answer {
		rules = append(rules, r.String())
	}
	if answer.Rcode != dns.RcodeSuccess || len(rules) == 0 {
		return nil, fmt.Errorf("%s has no rules: %s", owner, dns.RcodeToString[answer.Rcode])
	}
	slices.Sort(rules)
	return rules, nil
}

// dnsLoad is the load generator.
type dnsLoad struct {
	core      int
	questions string
	more      []string // arguments of dnsperf
}

// dnsAnswers is what the load saw, and what it cost the server.
type dnsAnswers struct {
	number int
	rate   float64 // a second
	cpu    time.Duration
}

// each returns what an answer costs, in microseconds of CPU time.
func (a dnsAnswers) each() float64 { return a.cpu.Seconds() * 1e6 / float64(a.number) }

var (
	sentLine      = regexp.MustCompile(`Queries sent: +(\d+)`)
	completedLine = regexp.MustCompile(`Queries completed: +(\d+)`)
	rateLine      = regexp.MustCompile(`Queries per second: +([\d.]+)`)
	noErrorLine   = regexp.MustCompile(`NOERROR (\d+) \(`)
)

// run asks a server for all names, so many times, for no longer than atMost: the slowest do
// not come to the last ones. Answers that are errors, or many that are missing, make it
// fail.
func (l *dnsLoad) run(ctx context.Context, s *nameServer, times int, atMost time.Duration) (a dnsAnswers, err error) {
	host, port, _ := strings.Cut(s.at, ":")
	before := usedBy(s.pid())
	args := append([]string{"-s", host, "-p", port, "-d", l.questions, "-n", strconv.Itoa(times),
		"-l", strconv.Itoa(int(atMost.Seconds())), "-e", "-q", strconv.Itoa(outstanding), "-T", "1", "-c", "4", "-t", "5"}, l.more...)
	out, err := pinned(ctx, l.core, "dnsperf", args...).Output()
	a.cpu = usedBy(s.pid()) - before
	if err != nil {
		return a, fmt.Errorf("dnsperf: %w: %s", err, bytes.TrimSpace(out))
	}
	good, err1 := lineNumber(noErrorLine, out)
	completed, err2 := lineNumber(completedLine, out)
	rate, err3 := lineNumber(rateLine, out)
	sent, err4 := lineNumber(sentLine, out)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return a, err
	}
	if good != completed || completed < 0.99*sent {
		return a, fmt.Errorf("of %.0f questions to %s %.0f were answered, and %.0f well", sent, s.version, completed, good)
	}
	a.number, a.rate = int(completed), rate
	return a, nil
}

// lineNumber returns the number that dnsperf prints in a line.
func lineNumber(line *regexp.Regexp, out []byte) (float64, error) {
	m := line.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("dnsperf says something else than it should, no %q: %s", line, bytes.TrimSpace(out))
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// resident returns how much of its memory is there now, in bytes.
func (s *nameServer) resident() (int64, error) {
	text, err := statusField(strconv.Itoa(s.pid()), "VmRSS")
	if err != nil {
		return 0, err
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return kilobytes << 10, err
}

// writeQuestions writes a question for each of the first n names.
func writeQuestions(path string, n int) error {
	return writeLines(path, 0, n, func(w *bufio.Writer, i int) { fmt.Fprintf(w, "%s NAPTR\n", ownerOf(i)) })
}
