package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
)

func (p *program) usageCommand() *cobra.Command {
	var q apijson.UsageQuery
	var asCSV bool
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

Answers that caches keep are not seen. Figures are written every half minute. Days are
added up to months after 400 days.`,
		Example: `  stele usage ark:12345/x1
  stele usage ark:12345/ --from 2026-01 --until 2026-03 --by day
  stele usage ark:12345/ --by name --limit 100 --csv > top.csv`,
		Args: usage.OneArgument("a name or a prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asCSV && p.json {
				return usage.Errorf(cmd, "flag.csv-and-json", "--csv and --json are two forms of the result; keep one")
			}
			q.Name = args[0]
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				report, err := l.Usage(ctx, q)
				if err != nil {
					return err
				}
				switch {
				case p.json:
					return p.printLine(report)
				case asCSV:
					return p.usageCSV(report)
				}
				return p.usageTable(report)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.From, "from", "", "first `month` or day, 2026-01 or 2026-01-31 (default: 12 months before the last)")
	flags.StringVar(&q.Until, "until", "", "last `month` or day (default: today)")
	flags.StringVar(&q.By, "by", "month", "what a line is: month, day or name")
	flags.IntVarP(&q.Limit, "limit", "n", 0, "with --by name, print so many names at most, those that were used most (0: all)")
	flags.BoolVar(&asCSV, "csv", false, "print CSV")
	usage.Choices(cmd, "by", "month", "day", "name")
	return usage.NeverFiles(cmd)
}

// usageColumns are the figures of a row, in their order.
func usageColumns(r *apijson.UsageRow) []uint64 {
	return []uint64{r.Regular, r.RegularUnique, r.Machine, r.MachineUnique, r.Descriptions, r.Robots, r.Failures, r.Visitors}
}

// usageHeads are the names of the columns.
func usageHeads() []string {
	return []string{"regular", "regular_unique", "machine", "machine_unique", "descriptions", "robots", "failures", "visitors"}
}

// usageCSV prints figures as CSV.
func (p *program) usageCSV(r *apijson.Usage) error {
	w := csv.NewWriter(p.stdout)
	first := "period"
	if r.By == "name" {
		first = "name"
	}
	_ = w.Write(append([]string{first}, usageHeads()...)) // Error returns what fails
	for i := range r.Rows {
		line := []string{r.Rows[i].Period + r.Rows[i].Name}
		for _, n := range usageColumns(&r.Rows[i]) {
			line = append(line, strconv.FormatUint(n, 10))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
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
		for _, n := range usageColumns(row)[:columns] {
			fmt.Fprintf(t, "%s\t", grouped(int64(n)))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "\t%s\t\n", strings.ReplaceAll(strings.Join(usageHeads()[:columns], "\t"), "_", " "))
	for i := range r.Rows {
		line(printable(r.Rows[i].Period+r.Rows[i].Name), &r.Rows[i])
	}
	line("total", &r.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "counted since %s\n", r.Began)
	return p.say("%s", b.String())
}
