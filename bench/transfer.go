package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
)

const (
	transferPairs  = 7
	transferPoll   = 20 * time.Millisecond
	transferAtMost = 10 * time.Minute
	changedNames   = 1000
	changesRounds  = 15
)

// knotSecondary takes the zone from a primary, and keeps it in memory alone.
const knotSecondary = `server:
  rundir: "{folder}"
  listen: 127.0.0.1@{port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 2
control:
  listen: "{folder}/control"
database:
  storage: "{folder}"
log:
  - target: stderr
    any: warning
remote:
  - id: primary
    address: 127.0.0.1@{primary}
zone:
  - domain: ` + benchZone + `
    master: primary
    zonefile-sync: -1
    zonefile-load: none
    journal-content: none
`

// bindPrimary has the zone from a file.
var bindPrimary = dnsPeer{
	name: "BIND-primary", args: []string{"-g", "-c", "{folder}/conf"}, get: installed("named"), ask: []string{"-v"},
	files: map[string]string{"conf": `options {
	directory "{folder}"; pid-file none; session-keyfile none; lock-file none; managed-keys-directory "{folder}";
	listen-on port {port} { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; dnssec-validation no; notify no; empty-zones-enable no; allow-transfer { 127.0.0.1; };
};
controls { };
zone "` + benchZone + `" { type primary; file "{zone}"; };
`},
}

// transfers measures how long it takes until Knot has the zone of us, and of BIND, and
// how long it takes to tell what has changed.
func (d *dnsBench) transfers(ctx context.Context, w *tabwriter.Writer) error {
	if err := d.export(ctx); err != nil {
		return err
	}
	if err := d.wholeZones(ctx, w); err != nil {
		return err
	}
	return d.changes(ctx, w)
}

// share lets every client on this machine transfer the zone.
func (d *dnsBench) share(ctx context.Context) error {
	return command(ctx, d.stele, "zone", "secondary", "add", benchZone, "--network", "127.0.0.0/8", "--data", d.published)
}

// allCores is the cores of the bench, in the form of taskset's list.
func allCores() (string, error) {
	cores, err := twoCores()
	return fmt.Sprintf("%d,%d", cores[0], cores[1]), err
}

// wholeZones compares the transfers of the whole zone.
func (d *dnsBench) wholeZones(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := allCores()
	if err != nil {
		return err
	}
	if err := d.share(ctx); err != nil {
		return err
	}
	ours, _, err := d.startOursOn(ctx, cores)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	bind, err := d.startPeerOn(ctx, bindPrimary, cores)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bind.server.stop()) }()
	ours.settle(ctx)
	var took, used [2][]float64
	var ratios []float64
	for i := range transferPairs {
		var one [2]time.Duration
		for k := range one {
			j := (i + k) % 2 // the servers take turns at being first
			s := []*nameServer{ours, bind.server}[j]
			before := usedBy(s.pid())
			if one[j], err = d.takeWhole(ctx, s, cores); err != nil {
				return err
			}
			took[j], used[j] = append(took[j], one[j].Seconds()), append(used[j], (usedBy(s.pid())-before).Seconds())
		}
		ratios = append(ratios, one[0].Seconds()/one[1].Seconds())
		progress("whole zones, round %d of %d: %.2f s, and of BIND %.2f s", i+1, transferPairs, one[0].Seconds(), one[1].Seconds())
	}
	fmt.Fprintf(w, "AXFR of %d names to Knot : from %s, by the clock\t%.2f s\t%.2f s\t%.2f\t\tat most 1\n",
		d.names, strings.Replace(bind.server.version, "-primary", "", 1), median(took[0]), median(took[1]), median(ratios))
	fmt.Fprintf(w, "    CPU time of the primary\t%.2f s\t%.2f s\t%.2f\t\t(for information)\n",
		median(used[0]), median(used[1]), median(used[0])/median(used[1]))
	return nil
}

// takeWhole returns how long it takes from the start of a secondary until it has the
// zone.
func (d *dnsBench) takeWhole(ctx context.Context, primary *nameServer, cores string) (took time.Duration, err error) {
	folder, err := os.MkdirTemp(d.work, "secondary-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program, err := installed("knotd")(ctx, folder)
	if err != nil {
		return 0, err
	}
	at, err := freeAddress()
	if err != nil {
		return 0, err
	}
	_, port, _ := strings.Cut(at, ":")
	_, primaryPort, _ := strings.Cut(primary.at, ":")
	text := strings.NewReplacer("{folder}", folder, "{port}", port, "{primary}", primaryPort).Replace(knotSecondary)
	config := filepath.Join(folder, "conf")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return 0, err
	}
	begin := time.Now()
	s, err := startServerOn(ctx, cores, at, program, "-c", config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for {
		if _, err = askRules(ctx, at, ownerOf(d.names-1)); err == nil {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-s.ended:
			return 0, fmt.Errorf("the secondary ended: %s", s.said)
		case <-time.After(transferPoll):
		}
		if time.Since(begin) > transferAtMost {
			return 0, fmt.Errorf("the secondary has no zone after %v: %w", transferAtMost, err)
		}
	}
}

// changes tells how long it takes to tell of some changes, in a zone and in one that is
// ten times as large.
func (d *dnsBench) changes(ctx context.Context, w *tabwriter.Writer) error {
	small := &dnsBench{registryBench: d.registryBench, names: max(d.names/10, changedNames), label: "-small"}
	if err := small.publish(ctx); err != nil {
		return err
	}
	if err := small.share(ctx); err != nil {
		return err
	}
	var took, used [2]float64
	for i, one := range []*dnsBench{d, small} {
		var err error
		if took[i], used[i], err = one.takeChanges(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "IXFR of %d changes among %d names : among %d, by the clock\t%.1f ms\t%.1f ms\t%.2f\t\tabout 1\n",
		changedNames, d.names, small.names, took[0], took[1], took[0]/took[1])
	fmt.Fprintf(w, "    CPU time\t%.1f ms\t%.1f ms\t%.2f\t\tabout 1\n", used[0], used[1], used[0]/used[1])
	return nil
}

// takeChanges changes names, and returns how long it takes to take that, and what it
// costs the server, in milliseconds.
func (d *dnsBench) takeChanges(ctx context.Context) (took, used float64, err error) {
	cores, err := allCores()
	if err != nil {
		return 0, 0, err
	}
	before, _, err := d.startOursOn(ctx, cores)
	if err != nil {
		return 0, 0, err
	}
	serial, err := askSerial(ctx, before.at)
	if err := errors.Join(err, before.stop()); err != nil {
		return 0, 0, err
	}
	file := filepath.Join(d.work, "changes"+d.label)
	if err := writePublished(file, d.names, d.names+changedNames); err != nil {
		return 0, 0, err
	}
	if err := command(ctx, d.stele, "import", file, "--data", d.published); err != nil {
		return 0, 0, err
	}
	s, _, err := d.startOursOn(ctx, cores)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	s.settle(ctx)
	var times []float64
	var spent time.Duration
	for i := range changesRounds + 1 {
		begin, cpu := time.Now(), usedBy(s.pid())
		if err := takeIncrement(ctx, s.at, serial); err != nil {
			return 0, 0, err
		}
		if i > 0 { // the first round reads what no request has read before
			times, spent = append(times, time.Since(begin).Seconds()*1e3), spent+usedBy(s.pid())-cpu
		}
	}
	return median(times), spent.Seconds() * 1e3 / changesRounds, nil
}

// askSerial returns the serial of the zone.
func askSerial(ctx context.Context, at string) (uint32, error) {
	client := &dns.Client{Timeout: time.Second}
	m, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(benchZone, dns.TypeSOA), at)
	if err != nil {
		return 0, err
	}
	for _, rr := range m.Answer {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa.Serial, nil
		}
	}
	return 0, fmt.Errorf("%s has no serial: %v", benchZone, m)
}

// takeIncrement takes what has changed since a serial: new names, each with its rules.
func takeIncrement(ctx context.Context, at string, serial uint32) error {
	m := new(dns.Msg).SetIxfr(benchZone, serial, ".", ".")
	in, err := (&dns.Transfer{ReadTimeout: transferAtMost}).In(m, at)
	if err != nil {
		return err
	}
	n, differs := 0, false
	for e := range in {
		if e.Error != nil {
			return e.Error
		}
		for i, rr := range e.RR {
			if _, ok := rr.(*dns.SOA); n == 0 && i == 1 {
				differs = ok
			}
		}
		n += len(e.RR)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !differs || n < changedNames*rulesOfAName || n > changedNames*(rulesOfAName+3)+10 {
		return fmt.Errorf("from serial %s there came %d records, which is no difference", strconv.FormatUint(uint64(serial), 10), n)
	}
	return nil
}
