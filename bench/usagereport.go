package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/usage"
)

const (
	reportNames  = 100_000
	reportMonths = 12
	reportRounds = 5
	reportYear   = 2025
)

// yearReport compares the report of a year of a namespace of 100,000 names, each used in each month, with one scan of the same figures in their order that does nothing with them. A report that
// looked for each name by itself would take many times as long.
func (r *registryBench) yearReport(ctx context.Context, w *tabwriter.Writer) (err error) {
	folder, err := os.MkdirTemp(r.folder, "stele-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	store, err := pebble.Open(ctx, filepath.Join(folder, "usage"), pebble.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		return err
	}
	reg := registrar.New(store, schemes, registrar.Options{Now: time.Now})
	local := auth.With(ctx, auth.Local())
	if _, err := reg.AddNamespace(local, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345"}); err != nil {
		return err
	}
	if err := fillUsage(ctx, reg, schemes); err != nil {
		return err
	}
	if err := store.Compact(ctx); err != nil {
		return err
	}
	book := &usage.Book{Registrar: reg, Schemes: schemes}
	report := func() error {
		found, err := book.Report(local, apijson.UsageQuery{Name: "ark:12345", By: "name", From: fmt.Sprint(reportYear, "-01"), Until: fmt.Sprint(reportYear, "-12")})
		if err == nil && (len(found.Rows) != reportNames || found.Total.Regular != reportNames*reportMonths) {
			err = fmt.Errorf("%d names were used %d times", len(found.Rows), found.Total.Regular)
		}
		return err
	}
	scan := func() error {
		n := 0
		for _, err := range reg.UsageList(local, registrar.UsageCells+"r", "") {
			if err != nil {
				return err
			}
			n++
		}
		if n != reportNames*reportMonths {
			return fmt.Errorf("%d figures are kept", n)
		}
		return nil
	}
	var each [2][]float64
	var ratios []float64
	for range reportRounds {
		var seen [2]float64
		for j, f := range []func() error{report, scan} {
			before := cpu()
			if err := f(); err != nil {
				return err
			}
			seen[j] = float64((cpu() - before).Milliseconds())
			each[j] = append(each[j], seen[j])
		}
		ratios = append(ratios, seen[0]/max(seen[1], 1))
	}
	fmt.Fprintf(w, "report of a year of %d names : a scan of its figures, CPU time\t%.0f ms\t%.0f ms\t%.2f\t\tone scan: at most 5\n", reportNames, median(each[0]), median(each[1]), median(ratios))
	return nil
}

// fillUsage counts a log in which each name is used once a month.
func fillUsage(ctx context.Context, reg *registrar.Registrar, schemes *stele.Schemes) error {
	progress("counting the uses of %d names in %d months", reportNames, reportMonths)
	agents, err := usage.NewAgents(nil)
	if err != nil {
		return err
	}
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	im := usage.LogImporter{
		Store: reg, Schemes: schemes, Agents: agents, Now: time.Now, Combined: true,
		Space: func(context.Context, stele.ID) (stele.NamespaceKey, error) { return key, nil },
		Find:  func(_ context.Context, id stele.ID) (stele.ID, bool, error) { return id, true, nil },
	}
	_, err = im.Import(ctx, "made", func() (io.ReadCloser, error) { return io.NopCloser(&madeLog{}), nil })
	return err
}

// madeLog is a log file that is made while it is read.
type madeLog struct {
	next int // line
	rest []byte
}

func (l *madeLog) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.next == reportNames*reportMonths {
			return 0, io.EOF
		}
		// A month has its lines within half a day.
		at := time.Date(reportYear, time.Month(l.next/reportNames+1), 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(l.next%reportNames) * time.Second / 3)
		l.rest = fmt.Appendf(l.rest[:0], "192.0.2.%d - - [%s] \"GET /ark:12345/x%06d HTTP/1.1\" %d 0 \"-\" \"Mozilla/5.0 Firefox/140.0\"\n", l.next%250, at.Format("02/Jan/2006:15:04:05 -0700"), l.next%reportNames, http.StatusFound)
		l.next++
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
