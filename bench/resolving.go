package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/scheme/all"
)

const (
	resolutions = 500 // a round
	programs    = 10  // that are started, a round
)

// resolves compares a resolution over the DNS, of three questions, with three questions
// of a bare client: by the clock, since to wait is a part of it. The names are asked for
// before; what a cold server takes is told elsewhere.
func (d *dnsBench) resolves(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := d.publish(ctx); err != nil {
		return err
	}
	s, _, err := d.startOurs(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	at, err := netip.ParseAddrPort(s.at)
	if err != nil {
		return err
	}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return err
	}
	way, err := client.NewDNS(client.DNSOptions{Schemes: schemes, Servers: []client.NameServer{client.PlainServer(at)}, Roots: map[string]string{"urn": benchRoot}})
	if err != nil {
		return err
	}
	progress("resolving")
	ours, bare, ratio, err := comparePaces(min(resolutions, d.names), resolveOne(ctx, way), askThree(ctx, s.at))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "resolve a URN over the DNS, by the clock : its 3 questions by a bare client\t%s\t%s\t%.2f\t\tat most 3\n", ours.wall, bare.wall, ratio.wall)
	fmt.Fprintf(w, "  by the CPU time of who asks\t%s\t%s\t%.2f\t\t%s\n", ours.cpu, bare.cpu, ratio.cpu, forInformation)
	if ours, bare, ratio, err = comparePaces(min(programs, d.names), d.runResolve(ctx, s.at), digThree(ctx, s.at)); err != nil {
		return err
	}
	fmt.Fprintf(w, "  the program, with its start : dig's, with 3 questions\t%s\t%s\t%.2f\t\t%s\n", ours.wall, bare.wall, ratio.wall, forInformation)
	return nil
}

// resolveOne resolves the n-th name. Nothing is remembered from one to the next.
func resolveOne(ctx context.Context, way *client.DNS) func(n int) error {
	return func(n int) error {
		res, err := way.Resolve(ctx, client.Request{Name: publishedName(n)})
		if err == nil && res.Location != publishedAt(n) {
			err = fmt.Errorf("%s leads to %q, and not to %q", publishedName(n), res.Location, publishedAt(n))
		}
		return err
	}
}

// threeQuestions are what a resolution of the n-th name asks.
func threeQuestions(n int) [3]string {
	return [...]string{"paradisec." + benchRoot, benchZone, ownerOf(n)}
}

// askThree asks the same questions, and does nothing with the answers.
func askThree(ctx context.Context, at string) func(n int) error {
	bare := new(dns.Client)
	return func(n int) error {
		for _, owner := range threeQuestions(n) {
			answer, _, err := bare.ExchangeContext(ctx, new(dns.Msg).SetQuestion(owner, dns.TypeNAPTR).SetEdns0(1232, false), at)
			if err != nil {
				return err
			}
			if len(answer.Answer) == 0 {
				return fmt.Errorf("%s has no rules", owner)
			}
		}
		return nil
	}
}

// runResolve resolves the n-th name with the program.
func (d *dnsBench) runResolve(ctx context.Context, at string) func(n int) error {
	return func(n int) error {
		out, err := exec.CommandContext(ctx, d.stele, "resolve", publishedName(n), "--via", "dns", "--dns", at, "--root", benchRoot).CombinedOutput()
		if err == nil && !strings.Contains(string(out), publishedAt(n)) {
			err = fmt.Errorf("%s is not where it leads", publishedAt(n))
		}
		if err != nil {
			return fmt.Errorf("stele resolve %s: %w: %s", publishedName(n), err, out)
		}
		return nil
	}
}

// digThree asks with dig, started once.
func digThree(ctx context.Context, at string) func(n int) error {
	host, port, _ := strings.Cut(at, ":")
	return func(n int) error {
		args := []string{"@" + host, "-p", port, "+short"}
		for _, owner := range threeQuestions(n) {
			args = append(args, "-q", owner, "-t", "NAPTR")
		}
		return command(ctx, "dig", args...)
	}
}

// pace is what one of many took.
type pace struct{ wall, cpu interval }

// interval is a time in microseconds, or the ratio of two.
type interval float64

func (i interval) String() string { return fmt.Sprintf("%.0f us", float64(i)) }

// comparePaces compares two ways to do something with each of the first n names.
func comparePaces(n int, ours, peer func(n int) error) (a, b, ratio pace, err error) {
	var seen [2][]pace
	for i := range pairs + 1 {
		for j, f := range []func(int) error{ours, peer} {
			p, err := paceOf(n, f)
			if err != nil {
				return a, b, ratio, err
			}
			if i > 0 { // the first only warms up
				seen[j] = append(seen[j], p)
			}
		}
	}
	var ratios []pace
	for i, p := range seen[0] {
		ratios = append(ratios, pace{p.wall / seen[1][i].wall, p.cpu / seen[1][i].cpu})
	}
	return medianPace(seen[0]), medianPace(seen[1]), medianPace(ratios), nil
}

func paceOf(n int, f func(n int) error) (p pace, err error) {
	begin, before := time.Now(), cpu()
	for i := range n {
		if err := f(i); err != nil {
			return p, err
		}
	}
	each := func(t time.Duration) interval { return interval(t.Seconds() * 1e6 / float64(n)) }
	return pace{each(time.Since(begin)), each(cpu() - before)}, nil
}

// medianPace takes the median of the times by the clock, and that of the CPU times.
func medianPace(list []pace) pace {
	var walls, cpus []float64
	for _, p := range list {
		walls, cpus = append(walls, float64(p.wall)), append(cpus, float64(p.cpu))
	}
	return pace{interval(median(walls)), interval(median(cpus))}
}
