package main

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/search"
)

// findFlags say what find searches for.
type findFlags struct {
	namespace, state, visibility, host, by, since, until string

	limit uint64
	csv   bool
}

func (p *program) findCommand() *cobra.Command {
	var f findFlags
	cmd := &cobra.Command{
		Use:   "find [WORDS...]",
		Short: "Search records by words",
		Long: `Find prints the identifiers of the records that have all WORDS, in their names, their
metadata or the URLs of their targets, one a line, the last changed first; with --json or
--csv their records. Upper and lower case are the same, and so are letters with and
without diacritics: para finds Pará.

riv* finds all words that begin with riv. "two words", with the quotes in the argument,
finds words that follow each other. A URL or a host is found by its words. A name, in any
spelling, finds its record alone.

Without WORDS find prints all records for which the flags ask. --since and --until take a
date, a time, or an age: 90m, 12h, 7d.

The search index is a folder beside that of the registry. Find makes it, and brings it up
to date, which takes a moment after an import; a server does so all the time.`,
		Example: `  stele find rivers para
  stele find 'riv*' --namespace ark:12345 --state reserved
  stele find '"rivers of Pará"' --json
  stele find old.example.org --csv > moving.csv
  stele find --by ann --since 7d --server https://id.example.org`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := f.query(cmd, p, args)
			if err != nil {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				if f.namespace != "" {
					keys, err := l.Beginnings(f.namespace)
					if err != nil {
						return err
					}
					q.Namespace = keys[0]
				}
				return p.find(ctx, l, q, f.csv)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", "", "only records whose identifiers begin with this `prefix`")
	flags.StringVar(&f.state, "state", "", "only records in this state: reserved, active or withdrawn")
	flags.StringVar(&f.visibility, "visibility", "", "only records that are public, or restricted to some readers")
	flags.StringVar(&f.host, "host", "", "only records with a target on this `host`")
	flags.StringVar(&f.by, "by", "", "only records that this `user` changed last")
	flags.StringVar(&f.since, "since", "", "only records that were changed last at this `time` or later")
	flags.StringVar(&f.until, "until", "", "only records that were changed last before this `time`")
	flags.Uint64VarP(&f.limit, "limit", "n", 0, "print so many at most (0: all)")
	flags.BoolVar(&f.csv, "csv", false, "print the records as CSV, as export does")
	usage.Choices(cmd, "state", stele.Reserved, stele.Active, stele.Withdrawn)
	usage.Choices(cmd, "visibility", search.Public, search.Restricted)
	// They fail only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("namespace", p.completeNamespaces)
	_ = cmd.RegisterFlagCompletionFunc("by", p.completeUsers)
	for _, name := range []string{"since", "until"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{"1h", "1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp))
	}
	return usage.NeverFiles(cmd)
}

// query returns what the arguments and flags ask for, except the namespace.
func (f *findFlags) query(cmd *cobra.Command, p *program, words []string) (q remote.SearchQuery, err error) {
	q = remote.SearchQuery{Text: strings.Join(words, " "), State: stele.State(f.state), Visibility: f.visibility, Host: f.host, By: f.by, Limit: f.limit}
	q.Behind = func(changes uint64) {
		fmt.Fprintf(p.stderr, "stele: the last %s changes are not in the search index yet, and were not searched\n", grouped(int64(changes)))
	}
	switch {
	case f.csv && p.json:
		return q, usage.Errorf(cmd, "flag.csv-and-json", "--csv and --json are two forms of the result; keep one")
	case f.state != "" && !q.State.IsValid():
		return q, usage.Errorf(cmd, "flag.state-unknown", `"{state}" is not a state; there are reserved, active and withdrawn`, f.state)
	case f.visibility != "" && f.visibility != string(search.Public) && f.visibility != string(search.Restricted):
		return q, usage.Errorf(cmd, "flag.visibility-unknown", `"{visibility}" is not a visibility; there are public and restricted`, f.visibility)
	}
	if q.From, err = usage.ParseAgo(f.since, p.now()); err != nil {
		return q, usage.Errorf(cmd, "", "--since: {cause}", err)
	}
	if q.Before, err = usage.ParseAgo(f.until, p.now()); err != nil {
		return q, usage.Errorf(cmd, "", "--until: {cause}", err)
	}
	return q, nil
}

// find prints what a query finds.
func (p *program) find(ctx context.Context, l *Registry, q remote.SearchQuery, csv bool) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	if csv {
		// The columns are those that some record has, so the search is made twice.
		if err := bulk.Export(ctx, found{l, q}, []stele.NamespaceKey{{}}, out, bulk.ExportOptions{CSV: true}); err != nil {
			return err
		}
		return out.Flush()
	}
	for rec, err := range l.Search(ctx, q) {
		if err != nil {
			return err
		}
		if err := p.printName(out, rec); err != nil {
			return err
		}
	}
	return out.Flush()
}

// found is the result of a search, as an export reads it.
type found struct {
	*Registry
	q remote.SearchQuery
}

// Export yields what was found.
func (f found) Export(ctx context.Context, _ stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return f.Search(ctx, f.q)
}
