// Command bench measures Stele's hot paths, and the registry as a whole, against
// peers and prints ratios.
//
//	go run ./bench                             all figures
//	go run ./bench import lookup               some
//	go run ./bench -records 10000000 import    with a larger registry
//
// Machines are noisy, so absolute times mean little: each figure is the median
// of the ratios of alternating pairs of rounds, ours and the peer's, by the CPU
// time that the process used, or by the clock where a disk has its part. The last
// column says what we ask of ourselves; the program only tells, it never fails for a
// figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/ibi"
	"github.com/stele-id/stele/scheme/purl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure is something to measure. It prints its rows.
type figure struct {
	name    string
	measure func(ctx context.Context, w *tabwriter.Writer) error
}

func run(ctx context.Context, args []string) (err error) {
	r := &registryBench{}
	d := &dnsBench{registryBench: r, names: quickNames}
	h := newHandleBench(d)
	figures := []figure{
		{"label", label}, {"parse", parse}, {"distributor", distributor},
		{"import", r.imports}, {"second", r.second}, {"growth", r.growth}, {"pipe", r.pipes}, {"verify", r.verifies}, {"imports", r.foreignImports}, {"log", r.logged}, {"search", r.searches}, {"desk", r.desk}, {"lookup", r.lookUps}, {"register", r.registers}, {"mint", r.mints},
		{"http", r.redirects}, {"rules", r.byRules}, {"lsid", r.byLSID}, {"api", r.overHTTP}, {"proof", r.proofs}, {"bundle", r.bundles}, {"adopt", r.adoptions}, {"shared", r.shared}, {"dns", d.answers}, {"dns-memory", d.memories}, {"dns-growth", d.growth}, {"resolve", d.resolves},
		{"signed", d.signedAnswers}, {"transfer", d.transfers}, {"usage", d.counting}, {"report", r.yearReport}, {"links", r.checked},
		{"handle-import", h.imports}, {"handle", h.resolution}, {"handle-write", h.creations},
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&r.records, "records", million, "how many records the registry has for import, imports, lookup, http, handle and shared;\nwhere it is given, how many names for dns, resolve, signed, transfer and handle too, a million at most")
	flags.StringVar(&r.folder, "folder", os.TempDir(), "where registries are made, and removed")
	flags.StringVar(&r.profile, "profile", "", "for http or dns: `file` to which a profile of the server is written, for the compiler; nothing is compared then")
	flags.StringVar(&r.formats, "formats", "", "for imports: only the formats that have this `text` in their names, as they are printed")
	bare := flags.String("bare", "", "answer at this `address` from a database, and do nothing else: a peer that shared starts")
	database := flags.String("database", "", "`URL` of the database for -bare")
	connections := flags.String("connections", "", "accept connections at this `address`, answer one message on each, and do nothing else: a peer that handle starts")
	sizes := flags.String("sizes", "", "octets of a request and of an answer for -connections, as `N,M`")
	var load loader
	flags.StringVar(&load.way, "load", "", "send prepared requests, and print how many were answered: a load that handle starts; `WAY` is udp-hdl, udp-dns or tcp")
	flags.StringVar(&load.address, "address", "", "`address` of the server for -load")
	flags.StringVar(&load.requests, "requests", "", "`file` with the requests for -load")
	flags.IntVar(&load.times, "times", 1, "how often -load sends them")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "bench [flags] [figure...]; figures are %s\n", strings.Join(names(figures), ", "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *bare != "" {
		return serveBare(ctx, *bare, *database)
	}
	if *connections != "" {
		return serveSizes(ctx, *connections, *sizes)
	}
	if load.way != "" {
		return load.run(ctx, os.Stdout)
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "records" {
			d.names = min(r.records, million)
			h.names = d.names
		}
	})
	if figures, err = choose(figures, flags.Args()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()

	fmt.Printf("%s, %s/%s, %d CPUs; medians of alternating pairs\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tours\tpeer\tratio\tallocations\twanted")
	for _, f := range figures {
		if err := f.measure(ctx, w); err != nil {
			_ = w.Flush() // what was measured before
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return w.Flush()
}

func names(figures []figure) (list []string) {
	for _, f := range figures {
		list = append(list, f.name)
	}
	return list
}

// choose returns the figures of those names, in their order; all if there are none.
func choose(figures []figure, wanted []string) (chosen []figure, err error) {
	for _, name := range wanted {
		if !slices.Contains(names(figures), name) {
			return nil, fmt.Errorf("there is no figure %q; there are %s", name, strings.Join(names(figures), ", "))
		}
	}
	for _, f := range figures {
		if len(wanted) == 0 || slices.Contains(wanted, f.name) {
			chosen = append(chosen, f)
		}
	}
	return chosen, nil
}

// progress tells the user what is going on.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

const (
	pairs    = 15
	roundFor = 20 * time.Millisecond
)

// cpu returns the CPU time that the process has used, the collector's included.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// round returns the CPU time of one call of f, from n of them.
func round(f func(), n int) float64 {
	begin := cpu()
	for range n {
		f()
	}
	return float64(cpu()-begin) / float64(n)
}

// calls finds how many calls of f fill a round.
func calls(f func()) int {
	for n := 1; ; n *= 2 {
		begin := time.Now()
		for range n {
			f()
		}
		if time.Since(begin) > roundFor/2 {
			return 2 * n
		}
	}
}

// compare measures ours against peer in alternating rounds.
func compare(ours, peer func()) (oursNS, peerNS, ratio float64) {
	n, m := calls(ours), calls(peer)
	var a, b, r []float64
	for range pairs {
		x, y := round(ours, n), round(peer, m)
		a, b, r = append(a, x), append(b, y), append(r, x/y)
	}
	return median(a), median(b), median(r)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func row(w *tabwriter.Writer, figure string, ours, peer func(), wanted string) {
	a, b, ratio := compare(ours, peer)
	allocs := testing.AllocsPerRun(1000, ours)
	fmt.Fprintf(w, "%s\t%.0f ns\t%.0f ns\t%.2f\t%.0f\t%s\n", figure, a, b, ratio, allocs, wanted)
}

// label compares making an IBIp with making a UUID.
func label(_ context.Context, w *tabwriter.Writer) error {
	prefix, err := ibi.IBIpPrefix(netip.MustParseAddr("150.163.34.243"), 800, ibi.PublicOnly)
	if err != nil {
		return err
	}
	date, err := mint.NewDate(1_800_000_000, 123_456_000_000_000_000)
	if err != nil {
		return err
	}
	var id stele.ID
	var text string
	row(w, "IBIp label : UUIDv7 + String", func() { id, err = prefix.ID(date) }, func() {
		var u uuid.UUID
		u, err = uuid.NewV7()
		text = u.String()
	}, "at most 1")
	if err != nil || !id.IsValid() || text == "" {
		return fmt.Errorf("making labels: %q, %q, %w", id, text, err)
	}
	return nil
}

// parse compares reading identifiers, by their own scheme and through the list of
// all, with reading the same text as a URL.
func parse(_ context.Context, w *tabwriter.Writer) error {
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: purl.DefaultHosts()})
	if err != nil {
		return err
	}
	for _, text := range []string{
		"sid.inpe.br/mtc-m21d/2022/07.20.15.45",
		"8JMKD3MGP3W34T/47AF772",
		"7URMDHLL9SSN2D89MX/38G3TS3",
		"http://urlib.net/rep/8JMKD3MGP3W34T/47AF772",
		"urn:paradisec:AB1:001:A",
		"urn:isbn:978-3-16-148410-0",
		"urn:nbn:de:101:1-201102033592",
		"ark:12148/btv1b8449691v",
		"https://n2t.net/ark:/12345/X5-4xz-321/s3/f8.05v.tiff",
		"102.100.272/Y35XYS0QH",
		"https://doi.org/10.1000/182",
		"https://purl.org/dc/terms/title",
		"urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC",
	} {
		id, err := schemes.Parse(text)
		if err != nil {
			return err
		}
		scheme, peer := schemes.Lookup(id.Scheme()), func() { _, _ = url.Parse(text) }
		row(w, scheme.Name()+" "+text+" : url.Parse", func() { _, _ = scheme.Parse(text) }, peer, "at most 2, 3 allocations")
		row(w, "  through the list of schemes", func() { _, _ = schemes.Parse(text) }, peer, "(for information)")
	}
	return nil
}

// distributor tells how many dates a temporal distributor issues in a second.
func distributor(_ context.Context, w *tabwriter.Writer) error {
	const begin = 1_800_000_000
	var state mint.Distributor
	n, failed := uint64(0), false
	step := func() {
		n++
		now, err := mint.NewDate(begin+int64(n/1_000_000), n%1_000_000*1_000_000_000_000)
		_, next, wait := state.Next(now, mint.Microsecond)
		state, failed = next, failed || err != nil || wait > 0
	}
	calls := calls(step)
	var rates []float64
	for range pairs {
		rates = append(rates, 1e9/round(step, calls))
	}
	if failed {
		return fmt.Errorf("the distributor waited for a clock that went on")
	}
	fmt.Fprintf(w, "distributor at 1us\t%s steps/s\t\t\t%.0f\tat least 10000000 steps/s\n",
		strconv.FormatFloat(median(rates), 'f', 0, 64), testing.AllocsPerRun(1000, step))
	return nil
}
