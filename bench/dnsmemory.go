package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"
)

// memorySizes are the numbers of names with which memory is compared, as far as the caller wants so
// many.
var memorySizes = []int{quickNames, million}

// memories compares the memory of our server, when it has answered for all names, with that of BIND
// with the same zone.
func (d *dnsBench) memories(ctx context.Context, w *tabwriter.Writer) error {
	for _, n := range memorySizes {
		if n > max(d.names, quickNames) {
			continue
		}
		one := &dnsBench{registryBench: d.registryBench, names: n, label: fmt.Sprintf("-%d", n)}
		if err := one.memory(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// memory compares it with so many names. One server runs at a time.
func (d *dnsBench) memory(ctx context.Context, w *tabwriter.Writer) error {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := d.export(ctx); err != nil {
		return err
	}
	bind := peers[slices.IndexFunc(peers, func(p dnsPeer) bool { return p.name == "BIND" })]
	ours, _, err := d.startOurs(ctx, cores[0])
	if err != nil {
		return err
	}
	memory, err := d.memoryOf(ctx, ours, cores[1])
	if err != nil {
		return err
	}
	them, err := d.startPeer(ctx, bind, cores[0])
	if err != nil {
		return err
	}
	theirs, err := d.memoryOf(ctx, them.server, cores[1])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "memory of the DNS with %d names with %d rules, all of them asked for : %s\t%d MB\t%d MB\t%.2f\t\t%s\n",
		d.names, rulesOfAName, them.server.version, memory>>20, theirs>>20, float64(memory)/float64(theirs), bind.wantedMemory)
	return nil
}

// memoryOf has a server answer for all names twice, leaves it alone, reads its memory and stops it.
func (d *dnsBench) memoryOf(ctx context.Context, s *nameServer, core int) (memory int64, err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	s.settle(ctx)
	l := dnsLoad{core: core, questions: d.questions}
	for range 2 {
		if _, err := l.run(ctx, s, 1, time.Hour); err != nil {
			return 0, err
		}
	}
	if err := rest(ctx); err != nil {
		return 0, err
	}
	return s.resident()
}

// restFor is how long a server is left alone before its memory is read: ours returns what it does
// not use to the system if it is at rest for some seconds.
const restFor = 12 * time.Second

func rest(ctx context.Context) error {
	select {
	case <-time.After(restFor):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
