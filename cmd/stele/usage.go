package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web/language"
)

func (p *program) usageCommand() *cobra.Command {
	var q apijson.UsageQuery
	var f usageFlags
	cmd := &cobra.Command{
		Use:   "usage ID|PREFIX",
		Short: "Show how often names are used",
		Long: `Usage prints how often a name was used, or all names with a prefix, by month.

A server counts resolutions, which are redirects to the target of a name, by the rules of
COUNTER: of clicks of one reader on a name at most 30 seconds apart the last one counts,
and unique are those that are the first of a reader on a name in an hour. Regular are
people, machine are programs that people run, such as curl and scripts. Descriptions are
pages and metadata that the server delivered itself. Robots are not in the other figures.

The figures of a namespace have visitors too: the sum of those of each day. A server knows
who is the same reader on one day only, and stores nothing about readers.

For a namespace the registrable domains of referring pages, the countries of readers, names
that lead nowhere and answers of the DNS are counted too, see --by; never for a single name. --unused
lists names without a use, and --counter prints a report in the shape of COUNTER's.

Answers that caches keep are not seen. Figures are written every half minute. Days are
added up to months after 400 days.`,
		Example: `  stele usage ark:12345/x1
  stele usage ark:12345/ --from 2026-01 --until 2026-03 --by day
  stele usage ark:12345/ --by name --limit 100 --csv > top.csv
  stele usage ark:12345 --by referrer
  stele usage ark:12345 --unused --from 2024-01
  stele usage ark:12345 --counter --from 2026-01 --until 2026-12 > report.json`,
		Args: usage.OneArgument("a name or a prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, p.json); err != nil {
				return err
			}
			q.Name = args[0]
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				return p.printUsage(ctx, l, q, &f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.From, "from", "", "first `month` or day, 2026-01 or 2026-01-31 (default: 12 months before the last)")
	flags.StringVar(&q.Until, "until", "", "last `month` or day (default: today)")
	flags.StringVar(&q.By, "by", "month", "what a line is: month, day or name; of a namespace also referrer, country, failure or dns")
	flags.StringVar(&q.Of, "of", "", "whose figures to print where both have the name: record or namespace (default: namespace)")
	flags.IntVarP(&q.Limit, "limit", "n", 0, "print so many lines at most, except of months and days: those that were counted most (0: all names, 100 referrers and failures)")
	flags.BoolVar(&f.csv, "csv", false, "print CSV")
	flags.BoolVar(&f.unused, "unused", false, "print names that were not used since --from (default: 24 months ago)")
	flags.BoolVar(&f.counter, "counter", false, "print a report in the shape of COUNTER's reports, in JSON")
	usage.Choices(cmd, "of", "record", "namespace")
	usage.Choices(cmd, "by", append([]string{"month", "day", "name"}, byNamespace()...)...)
	usage.NeverFiles(cmd)
	cmd.AddCommand(p.usageImportCommand(), p.usageSetCommand())
	return cmd
}

// byNamespace are the values of --by for what is counted for namespaces only.
func byNamespace() []string { return []string{"referrer", "country", "failure", "dns"} }

// usageFlags are the forms of the result.
type usageFlags struct{ csv, unused, counter bool }

// check finds flags that do not go together.
func (f *usageFlags) check(cmd *cobra.Command, json bool) error {
	switch {
	case f.csv && json:
		return usage.Errorf(cmd, "flag.csv-and-json", "--csv and --json are two forms of the result; keep one")
	case f.unused && f.counter, f.counter && (f.csv || cmd.Flags().Changed("by") || cmd.Flags().Changed("limit")):
		return usage.Errorf(cmd, "flag.counter-alone", "--counter prints a report of its own form; leave out --unused, --csv, --by and --limit")
	case f.unused && (cmd.Flags().Changed("by") || cmd.Flags().Changed("until")):
		return usage.Errorf(cmd, "flag.unused-since", "--unused lists names that were not used since --from; leave out --by and --until")
	}
	return nil
}

// printUsage prints what the flags ask for.
func (p *program) printUsage(ctx context.Context, l *Registry, q apijson.UsageQuery, f *usageFlags) error {
	switch {
	case f.counter:
		return p.counterReport(ctx, l, q)
	case f.unused:
		return p.unusedNames(ctx, l, q, f.csv)
	case slices.Contains(byNamespace(), q.By):
		found, err := l.Breakdown(ctx, q)
		if err != nil {
			return err
		}
		return p.printFigures(found, f.csv, func() error { return p.breakdownTable(found) })
	}
	report, err := l.Usage(ctx, q)
	if err != nil {
		return err
	}
	return p.printFigures(report, f.csv, func() error { return p.usageTable(report) })
}

// printFigures prints figures as JSON, as CSV, or for people.
func (p *program) printFigures(v interface{ Table() iter.Seq[[]string] }, asCSV bool, people func() error) error {
	switch {
	case p.json:
		return p.printLine(v)
	case asCSV:
		_, err := p.stdout.Write(bulk.AppendTable(nil, v.Table()))
		return err
	}
	return people()
}

// breakdownTable prints what is counted for a namespace, for people.
func (p *program) breakdownTable(r *apijson.UsageBreakdown) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s to %s\n", printable(r.Name), r.From, r.Until)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.Rows {
		text := row.Text
		if name := language.CountryIn(language.Default, text); r.By == "country" && name != text {
			text = name + " (" + text + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t\n", printable(text), grouped(int64(row.Count)))
	}
	if r.Other > 0 {
		fmt.Fprintf(t, "other\t%s\t\n", grouped(int64(r.Other)))
	}
	fmt.Fprintf(t, "total\t%s\t\n", grouped(int64(r.Total)))
	if err := t.Flush(); err != nil {
		return err
	}
	tellDamaged(&b, r.Damaged)
	return p.say("%s", b.String())
}

// tellDamaged says that figures are missing.
func tellDamaged(b *strings.Builder, damaged int) {
	if damaged > 0 {
		fmt.Fprintf(b, "%s stored figures can't be read, and are left out; run 'stele verify', or restore a backup\n", grouped(int64(damaged)))
	}
}

// unusedNames prints names that were not used, as they are found.
func (p *program) unusedNames(ctx context.Context, l *Registry, q apijson.UsageQuery, asCSV bool) error {
	ask := apijson.UnusedQuery{Name: q.Name, Since: q.From, Limit: 1000}
	for page, left := 0, q.Limit; ; page++ {
		if left > 0 {
			ask.Limit = min(left, 1000)
		}
		u, err := l.Unused(ctx, ask)
		if err != nil {
			return err
		}
		err = p.printFigures(&unusedPage{u, page}, asCSV, func() error {
			var b strings.Builder
			for _, n := range u.Names {
				fmt.Fprintln(&b, printable(n.Name))
			}
			tellDamaged(&b, u.Damaged)
			return p.say("%s", b.String())
		})
		if err != nil {
			return err
		}
		if left -= len(u.Names); u.Next == "" || q.Limit > 0 && left <= 0 {
			return nil
		}
		ask.After = u.Next
	}
}

// unusedPage is a page of names. Only the first has a header.
type unusedPage struct {
	*apijson.Unused
	page int
}

// Table yields the rows of the page.
func (u *unusedPage) Table() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		skip := u.page > 0
		for row := range u.Unused.Table() {
			if !skip && !yield(row) {
				return
			}
			skip = false
		}
	}
}

// counterReport prints a report in COUNTER's shape, page by page. Its header comes last: it tells what could not be read on any page.
func (p *program) counterReport(ctx context.Context, l *Registry, q apijson.UsageQuery) error {
	ask := apijson.UsageReportQuery{Name: q.Name, From: q.From, Until: q.Until, Limit: 1000}
	faults := []apijson.UsageReportFault{} // not null in JSON
	separator := "{\"report-datasets\":[\n"
	for {
		report, err := l.CounterReport(ctx, ask)
		if err != nil {
			return err
		}
		for i := range report.Names {
			text, err := json.Marshal(&report.Names[i])
			if err != nil {
				return err
			}
			if err := p.say("%s%s", separator, text); err != nil {
				return err
			}
			separator = ",\n"
		}
		faults = addFaults(faults, report.Header.Exceptions)
		if ask.After = report.Header.Next; ask.After != "" {
			continue
		}
		report.Header.Exceptions = faults
		head, err := json.Marshal(report.Header)
		if err != nil {
			return err
		}
		if separator != ",\n" { // there is not a single name
			if err := p.say("%s", separator); err != nil {
				return err
			}
		}
		return p.say("\n],\n\"report-header\":%s}\n", head)
	}
}

// addFaults adds what is wrong with a page of a report to what is wrong with those before: the numbers of the same fault are added up.
func addFaults(all, more []apijson.UsageReportFault) []apijson.UsageReportFault {
	for _, f := range more {
		at := slices.IndexFunc(all, func(o apijson.UsageReportFault) bool { return o.Code == f.Code && o.Message == f.Message })
		if at < 0 {
			all = append(all, f)
			continue
		}
		a, wrong := strconv.Atoi(all[at].Data)
		b, odd := strconv.Atoi(f.Data)
		if wrong == nil && odd == nil {
			all[at].Data = strconv.Itoa(a + b)
		}
	}
	return all
}

// usageTable prints figures for people.
func (p *program) usageTable(r *apijson.Usage) error {
	columns := 6 // of a record: names that lead nowhere and visitors belong to namespaces
	if !r.Record && r.By != "name" {
		columns = 8
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s to %s\n", printable(r.Name), r.From, r.Until)
	if r.Began == "" {
		b.WriteString("nothing was counted yet; a server counts, unless the setting usage is false\n")
		return p.say("%s", b.String())
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(first string, row *apijson.UsageRow) {
		fmt.Fprintf(t, "%s\t", first)
		for _, n := range row.Columns()[:columns] {
			fmt.Fprintf(t, "%s\t", grouped(int64(n)))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "\t%s\t\n", strings.ReplaceAll(strings.Join(apijson.UsageColumns()[:columns], "\t"), "_", " "))
	for i := range r.Rows {
		line(printable(r.Rows[i].Period+r.Rows[i].Name), &r.Rows[i])
	}
	line("total", &r.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	tellDamaged(&b, r.Damaged)
	fmt.Fprintf(&b, "counted since %s\n", r.Began)
	return p.say("%s", b.String())
}
