package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
)

// growth compares answers of the DNS among as many names as there are records with those among a few. Each server keeps next to
// nothing in memory, so that it reads its registry for an answer. A client asks for a million of the names at most, which are spread
// over all of them.
func (d *dnsBench) growth(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	var sizes [2]*dnsBench
	var loads [2]dnsLoad
	var servers [2]*nameServer
	for i, n := range []int{fewNames, d.records} {
		b := &dnsBench{registryBench: d.registryBench, names: n, label: fmt.Sprintf("-growth-%d", n)}
		if err := b.publish(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.published)) }()
		sizes[i], loads[i] = b, dnsLoad{core: cores[1], questions: b.questions}
		if servers[i], _, err = b.startOurs(ctx, cores[0], "--dns-cache", "1MB"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].stop()) }()
		servers[i].settle(ctx)
	}
	var each [2][]float64
	var ratios []float64
	for round := range dnsPairs + 1 {
		var seen [2]float64
		for i, s := range servers {
			a, err := loads[i].run(ctx, s, askAtLeast, loadFor) // for as long as that, however often
			if err != nil {
				return err
			}
			seen[i] = a.each()
		}
		if round == 0 {
			continue // it reads what the page cache does not hold yet
		}
		progress("growth of the DNS, round %d of %d: %.2f us of CPU each among %d, %.2f us among %d", round, dnsPairs, seen[1], sizes[1].names, seen[0], sizes[0].names)
		each[0], each[1], ratios = append(each[0], seen[0]), append(each[1], seen[1]), append(ratios, seen[1]/seen[0])
	}
	fmt.Fprintf(w, "answers of the DNS among %d names : among %d, next to nothing kept in memory, CPU time each\t%.2f us\t%.2f us\t%.2f\t\t%s\n",
		sizes[1].names, sizes[0].names, median(each[1]), median(each[0]), median(ratios), wantedGrowth(d.records))
	return nil
}
